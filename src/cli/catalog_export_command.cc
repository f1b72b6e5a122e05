// `trellis catalog export`: a catalog as JSON lines.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/arguments.h"
#include "cli/catalog_command.h"
#include "cli/catalog_walk.h"
#include "cli/human.h"
#include "json/json_text.h"

namespace trellis {
namespace {

namespace json = boost::json;

struct CatalogExportArguments {
  std::string path;
  std::string type;
  std::string file;
};

Result<uint64_t> export_records(ClientSession& session, const CatalogExportArguments& arguments,
                                StandardOutput& out) {
  ProgressLine line(session.err, session.err_is_terminal, session.clock);
  uint64_t records = 0;
  const auto write = [&](const CatalogRecord& record) -> Status {
    json::array names(record.names.begin(), record.names.end());
    const json::object object{
        {"type", record.type}, {"names", std::move(names)}, {"entity", record.entity}};
    records++;
    if (line.is_due()) line.show(fmt::format("exporting: {} entities", records));
    Bytes text;
    append_json(text, object, JsonReals::as_java);
    TRY(out.write(text));
    return out.write("\n");
  };
  const auto skipped = [&](std::string_view path, std::string_view why) {
    line.clear();
    fmt::print(session.err, "trellis: {}: {}\n", terminal_text(path), terminal_line(why));
  };
  CatalogWalk walk(session.api, {.front = catalog_target(session, ""), .skipped = skipped}, write);
  if (arguments.path.empty()) {
    TRY(walk.everything());
  } else {
    TRY_ASSIGN(const CatalogFound found, ask_entity(session, arguments.path, arguments.type));
    TRY(walk.below(found.path));
  }
  TRY(out.flush());
  return records;
}

// Under another name until it is whole, so that half an export is never taken for one.
Status export_catalog(ClientSession& session, const CatalogExportArguments& arguments) {
  if (arguments.file.empty()) {
    TRY(export_records(session, arguments, session.out));
    return {};
  }
  const std::string partial = arguments.file + ".partial";
  Result<uint64_t> records = uint64_t{0};
  {
    TRY_ASSIGN(const StreamFile file, StreamFile::open_to_write(partial));
    StandardOutput out(file.descriptor(), partial);
    records = export_records(session, arguments, out);
    if (records) TRY(file.sync());
  }
  if (!records) {
    std::remove(partial.c_str());
    return std::move(records).error();
  }
  if (std::rename(partial.c_str(), arguments.file.c_str()) != 0)
    return Error{Code::unavailable,
                 fmt::format("{} could not be renamed to {}; it has all", partial, arguments.file)};
  if (session.json) return print_json(session, {{"exported", *records}});
  return print_line(session, fmt::format("{} entities exported", *records));
}

}  // namespace

void add_catalog_export_command(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<CatalogExportArguments>();
  CLI::App* command = commands.add_catalog(
      catalog, "export", "Write a catalog as JSON lines",
      [arguments](ClientSession& session) { return export_catalog(session, *arguments); });
  add_argument(*command, "PATH", arguments->path,
               "This with all that is in it (default all metalakes)");
  add_catalog_type(*command, arguments->type, "What PATH is (default whatever has that path)");
  add_text(*command, "--file", arguments->file, "FILE",
           "There (default standard output); it appears when it is whole");
  command->footer(
      std::string(catalog_path_help) +
      "A line for each, parents first: {\"type\":\"schema\",\"names\":[\"lake\",\"hive\","
      "\"sales\"],\"entity\":{...}}. Partitions, statistics, versions of models and owners have "
      "lines, too, and of a whole metalake users and groups, what tags and policies are on, and "
      "roles. What is in a disabled metalake or catalog is left out, and so are secrets of "
      "catalogs "
      "that you do not own; both are told.\n"
      "It is not of one instant: changes that come meanwhile are in it or not; `trellis backup` "
      "is.\n"
      "Examples:\n"
      "  trellis catalog export --file all.jsonl\n"
      "  trellis catalog export lake.hive.sales | trellis catalog import --server "
      "http://other:7380");
}

}  // namespace trellis
