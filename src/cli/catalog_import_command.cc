// `trellis catalog import`: from JSON lines, or from a running Gravitino.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <atomic>
#include <boost/json.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "cli/arguments.h"
#include "cli/catalog_command.h"
#include "cli/catalog_walk.h"
#include "cli/human.h"
#include "json/json_text.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr size_t line_bytes_max = 64 * 1024 * 1024;
constexpr size_t batch_records = 512;
constexpr unsigned status_conflict = 409;
constexpr uint64_t code_exists = 1004;

struct CatalogImportArguments {
  std::string file;
  std::string from;
  std::string from_user;
  std::string path;
  unsigned threads = 4;
};

// As a request has it that makes the same again.
json::object request_of(const CatalogRecord& record) {
  json::object body = record.entity;
  for (const std::string_view answered : {"audit", "inherited", "latestVersion", "roles"})
    body.erase(answered);
  if (record.type == "function" || record.type == model_version_record) body.erase("version");
  if (record.type == "fileset" && body.contains("storageLocations")) body.erase("storageLocation");
  if (record.type == model_version_record && body.contains("uris")) body.erase("uri");
  if (body.contains("properties") && body["properties"].is_object()) {
    json::object& properties = body["properties"].get_object();
    if (record.type == metalake_kind.name || record.type == catalog_kind.name)
      properties.erase("in-use");
    properties.erase("gravitino.identifier");
  }
  if (record.type == partition_record) return {{"partitions", json::array{std::move(body)}}};
  return body;
}

std::string metalake_rest(const CatalogRecord& record) {
  return entity_rest({&metalake_kind, {record.names.front()}});
}

// What of a version counts: another one that has the same is the same.
std::string version_text(const json::object& version) {
  json::object known;
  if (version.contains("uri")) known["uris"] = json::object{{"unknown", version.at("uri")}};
  for (const std::string_view member : {"uris", "comment", "properties"}) {
    const json::value* value = version.if_contains(member);
    const bool is_empty =
        value == nullptr || value->is_null() || (value->is_object() && value->get_object().empty());
    if (!is_empty && !value->is_object()) known[member] = *value;
    if (is_empty || !value->is_object()) continue;
    std::map<std::string, json::value> sorted;
    for (const auto& each : value->get_object()) sorted.emplace(each.key(), each.value());
    json::object& members = known[member].emplace_object();
    for (const auto& [name, each] : sorted) members[name] = each;
  }
  std::set<std::string> aliases;
  for (const json::value& alias : array_at(version, "aliases"))
    if (alias.is_string()) aliases.emplace(alias.get_string());
  known["aliases"] = json::array(aliases.begin(), aliases.end());
  return json::serialize(known);
}

// {"tagsToAdd":["pii"]}, with values as version 2 has it.
ApiCall label_call(const CatalogRecord& record, const std::string& target) {
  const bool is_tag = record.type == tag_object_record;
  const std::string& label = record.names.back();
  const json::array& values = array_at(record.entity, "values");
  json::array added;
  for (const json::value& value : values)
    added.push_back(json::object{{"name", label}, {"value", value}});
  if (added.empty()) added.emplace_back(label);
  ApiCall call = json_call(HttpMethod::post, target + (is_tag ? "tags" : "policies"),
                           {{is_tag ? "tagsToAdd" : "policiesToAdd", std::move(added)}});
  if (!values.empty()) call.content_type = "application/vnd.gravitino.v2+json";
  return call;
}

// Makes what records say. Those that stand in schemas are made several at a time.
class CatalogImporter {
 public:
  CatalogImporter(ClientSession& session, unsigned threads)
      : session_(session),
        line_(session.err, session.err_is_terminal, session.clock),
        begin_us_(session.clock.monotonic_us()) {
    for (unsigned i = 0; i < threads; i++) apis_.push_back(session.api.another());
  }

  Status add(CatalogRecord record) {
    if (record.type == user_record || record.type == group_record || record.type == role_record ||
        record.type == owner_record) {
      TRY(find_out_access(record));
      if (!*has_access_) return {};
    }
    const CatalogKind* kind = find_catalog_kind(record.type);
    const bool is_leaf = kind != nullptr && kind->depth > schema_kind.depth;
    if (is_leaf) {
      batch_.push_back(std::move(record));
      return batch_.size() < batch_records ? Status() : make_batch();
    }
    const bool is_metalake = text_at(record.entity, "type") == metalake_kind.name;
    // Who imports would have no right to anything else any more.
    if (record.type == owner_record && is_metalake) {
      at_the_end_.push_back(std::move(record));
      return {};
    }
    if (record.type == owner_record || record.type == statistics_record) {
      behind_batch_.push_back(std::move(record));
      return behind_batch_.size() < batch_records ? Status() : make_batch();
    }
    TRY(make_batch());
    const json::object& properties = object_at(record.entity, "properties");
    if ((kind == &metalake_kind || kind == &catalog_kind) &&
        text_at(properties, "in-use") == "false")
      disabled_.push_back({kind, record.names});
    TRY(make_one(apis_[0], record));
    const bool has_roles = record.type == user_record || record.type == group_record;
    if (has_roles) principals_.push_back(std::move(record));
    return {};
  }

  Status finish() {
    TRY(make_batch());
    for (const CatalogRecord& record : principals_) TRY(grant_roles(apis_[0], record));
    // What is in them had to be made before, and a catalog cannot be altered in a disabled
    // metalake.
    for (auto path = disabled_.rbegin(); path != disabled_.rend(); ++path)
      TRY(apis_[0].ask(json_call(HttpMethod::patch, catalog_target(session_, entity_rest(*path)),
                                 {{"inUse", false}})));
    for (const CatalogRecord& record : at_the_end_) TRY(make_one(apis_[0], record));
    line_.clear();
    if (session_.json)
      return print_json(session_, {{"imported", made_.load()}, {"existed", existed_.load()}});
    std::string text = fmt::format("{} entities imported", made_.load());
    if (existed_ > 0) text += fmt::format("; {} were there and stay as they are", existed_.load());
    return print_line(session_, text);
  }

  void tell(std::string_view path, std::string_view what) {
    line_.clear();
    fmt::print(session_.err, "trellis: {}: {}\n", terminal_text(path), terminal_line(what));
  }

 private:
  std::string target_of(const CatalogRecord& record) const {
    if (record.type == model_version_record)
      return entity_rest({find_catalog_kind("model"), record.names}) + "/versions";
    if (record.type == partition_record)
      return entity_rest({find_catalog_kind("table"), record.names}) + "/partitions";
    if (record.type == user_record || record.type == group_record || record.type == role_record)
      return metalake_rest(record) + "/" + record.type + "s";
    const std::span above(record.names.data(), record.names.size() - 1);
    return entities_rest(*find_catalog_kind(record.type), above);
  }

  // Whether there are users at all.
  Status find_out_access(const CatalogRecord& record) {
    if (has_access_) return {};
    constexpr unsigned status_off = 405;
    TRY_ASSIGN(const ApiAnswer answer,
               apis_[0].ask({.target = catalog_target(session_, metalake_rest(record) + "/users"),
                             .expected_status = status_off}));
    has_access_ = answer.status != status_off;
    if (!*has_access_)
      tell(record.names.front(),
           "authorization is off: users, groups, roles and owners are left out");
    return {};
  }

  ApiCall owner_call(const CatalogRecord& record) const {
    const std::string rest = fmt::format("{}/owners/{}/{}", metalake_rest(record),
                                         percent_encode(text_at(record.entity, "type")),
                                         percent_encode(text_at(record.entity, "fullName")));
    return json_call(
        HttpMethod::put, catalog_target(session_, rest),
        {{"name", record.names.back()}, {"type", text_at(record.entity, "ownerType")}});
  }

  ApiCall statistics_call(const CatalogRecord& record) const {
    const auto& names = record.names;
    std::string rest = fmt::format(
        "{}/objects/table/{}/statistics", metalake_rest(record),
        percent_encode(fmt::format("{}", fmt::join(names.begin() + 1, names.end(), "."))));
    const json::object& values = object_at(record.entity, "statistics");
    if (!record.entity.contains("partitionName"))
      return json_call(HttpMethod::put, catalog_target(session_, rest), {{"updates", values}});
    const json::object update{{"partitionName", text_at(record.entity, "partitionName")},
                              {"statistics", values}};
    return json_call(HttpMethod::put, catalog_target(session_, rest + "/partitions"),
                     {{"updates", json::array{update}}});
  }

  ApiCall call_of(const CatalogRecord& record) const {
    if (record.type == owner_record) return owner_call(record);
    if (record.type == statistics_record) return statistics_call(record);
    if (record.type != tag_object_record && record.type != policy_object_record)
      return json_call(HttpMethod::post, catalog_target(session_, target_of(record)),
                       request_of(record));
    return label_call(
        record,
        catalog_target(session_, fmt::format("{}/objects/{}/{}/", metalake_rest(record),
                                             text_at(record.entity, "type"),
                                             percent_encode(text_at(record.entity, "fullName")))));
  }

  // Of a user or group that is there.
  Status grant_roles(ApiClient& api, const CatalogRecord& record) {
    const json::array& roles = array_at(record.entity, "roles");
    if (roles.empty()) return {};
    const std::string rest = fmt::format("{}/permissions/{}s/{}/grant", metalake_rest(record),
                                         record.type, percent_encode(record.names.back()));
    TRY(api.ask(
        json_call(HttpMethod::put, catalog_target(session_, rest), {{"roleNames", roles}})));
    return {};
  }

  Status make_one(ApiClient& api, const CatalogRecord& record) {
    const std::string path = fmt::format("{}", fmt::join(record.names, "."));
    // Versions have no names: they would be linked once more to a model that has them.
    if (record.type == model_version_record) {
      TRY_ASSIGN(const bool is_there, has_version(api, record));
      if (is_there) return {};
    }
    ApiCall call = call_of(record);
    call.expected_status = status_conflict;
    const auto answer = api.ask(call);
    if (!answer)
      return with_context(fmt::format("{} {}", record.type, quote(path)), answer.error());
    if (answer->status == status_conflict) {
      if (number_at(answer->object, "code") != code_exists)
        return Error{Code::conflict, text_at(answer->object, "message")};
      existed_++;
      return {};
    }
    if (record.type != owner_record && record.type != statistics_record) made_++;
    return {};
  }

  // Whether its model has one that is the same, and was not taken for another one of the import.
  // Records of one model follow each other; they are made one by one.
  Result<bool> has_version(ApiClient& api, const CatalogRecord& record) {
    if (record.names != model_) {
      versions_.clear();
      const std::string rest = target_of(record) + "?details=true";
      TRY_ASSIGN(const ApiAnswer answer, api.ask({.target = catalog_target(session_, rest)}));
      for (const json::value& value : array_at(answer.object, "infos"))
        if (value.is_object()) versions_.insert(version_text(value.get_object()));
      model_ = record.names;
    }
    const auto same = versions_.find(version_text(record.entity));
    if (same == versions_.end()) return false;
    versions_.erase(same);
    return true;
  }

  // What stands in schemas, then what says something of that.
  Status make_batch() {
    TRY(make_all(std::exchange(batch_, {})));
    return make_all(std::exchange(behind_batch_, {}));
  }

  Status make_all(const std::vector<CatalogRecord>& batch) {
    std::atomic<size_t> next = 0;
    Status failed;
    const auto work = [&](ApiClient& api) {
      for (size_t i = next++; i < batch.size(); i = next++) {
        const Status made = make_one(api, batch[i]);
        if (made) continue;
        const std::lock_guard lock(mutex_);
        if (failed) failed = made;
        next = batch.size();
      }
    };
    {
      std::vector<std::jthread> threads;
      const size_t wanted = std::min(apis_.size(), batch.size());
      for (size_t i = 1; i < wanted; i++)
        threads.emplace_back([&work, &api = apis_[i]] { work(api); });
      work(apis_[0]);
    }
    if (line_.is_due()) {
      const double seconds =
          static_cast<double>(session_.clock.monotonic_us() - begin_us_ + 1) / 1e6;
      line_.show(fmt::format("importing: {} entities, {:.0f}/s", made_ + existed_,
                             static_cast<double>(made_ + existed_) / seconds));
    }
    return failed;
  }

  ClientSession& session_;
  ProgressLine line_;
  const uint64_t begin_us_;
  std::vector<ApiClient> apis_;
  std::vector<CatalogRecord> batch_;
  std::vector<CatalogRecord> behind_batch_;  // owners and statistics
  std::vector<CatalogRecord> principals_;    // whose roles may come later
  std::vector<CatalogRecord> at_the_end_;
  std::vector<CatalogPath> disabled_;
  std::optional<bool> has_access_;
  std::atomic<uint64_t> made_ = 0;
  std::atomic<uint64_t> existed_ = 0;
  std::mutex mutex_;
  std::vector<std::string> model_;       // whose
  std::multiset<std::string> versions_;  // these are, of which none was taken yet
};

Result<CatalogRecord> parse_record(std::string_view line) {
  boost::system::error_code failed;
  const json::value value = json::parse(line, failed);
  if (failed || !value.is_object()) return Error{Code::invalid, "it is no JSON object"};
  const json::object& object = value.get_object();
  CatalogRecord record{text_at(object, "type"), {}, object_at(object, "entity")};
  for (const json::value& name : array_at(object, "names"))
    if (name.is_string()) record.names.emplace_back(name.get_string());
  const CatalogKind* kind = find_catalog_kind(record.type);
  const bool is_member = is_member_record(record.type);
  const bool is_relation = is_relation_record(record.type);
  if (kind == nullptr && !is_member && !is_relation)
    return Error{Code::invalid, fmt::format("there is no type {}", quote(record.type))};
  const size_t depth = is_relation ? 2 : is_member ? schema_kind.depth + 1 : kind->depth;
  if (record.names.size() != depth)
    return Error{Code::invalid, fmt::format("a {} has another number of names", record.type)};
  return record;
}

Status import_record_lines(CatalogImporter& importer, StandardInput& in) {
  for (uint64_t number = 1;; number++) {
    TRY_ASSIGN(const auto line, in.read_line(line_bytes_max));
    if (!line) return {};
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    auto record = parse_record(*line);
    if (!record) return with_context(fmt::format("line {}", number), record.error());
    TRY(importer.add(*std::move(record)));
  }
}

Status import_from_gravitino(const CatalogImportArguments& arguments, CatalogImporter& importer) {
  std::string server = arguments.from;
  while (server.ends_with('/')) server.pop_back();
  if (const auto url = parse_base_url(server); !url) return wrong_use(url.error().message);
  ApiClient api({.server = std::move(server), .token = {}, .ca_file = {}});
  CatalogWalkOptions options{.front = "/api", .is_gravitino = true};
  options.headers.push_back({"Accept", "application/vnd.gravitino.v1+json"});
  if (!arguments.from_user.empty())
    options.headers.push_back(
        {"Authorization", "Basic " + base64_encode(arguments.from_user + ":dummy")});
  options.skipped = [&](std::string_view path, std::string_view why) { importer.tell(path, why); };
  CatalogWalk walk(api, std::move(options),
                   [&](CatalogRecord record) { return importer.add(std::move(record)); });
  if (arguments.path.empty()) return walk.everything();
  TRY_ASSIGN(const CatalogPath path, parse_catalog_path(arguments.path, ""));
  return walk.below(path);
}

Status import_catalog(ClientSession& session, const CatalogImportArguments& arguments) {
  CatalogImporter importer(session, arguments.threads);
  if (!arguments.from.empty()) {
    TRY(import_from_gravitino(arguments, importer));
  } else if (!arguments.path.empty() || !arguments.from_user.empty()) {
    return wrong_use("--path and --from-user go with --from");
  } else if (arguments.file.empty()) {
    TRY(import_record_lines(importer, session.in));
  } else {
    TRY_ASSIGN(const StreamFile file, StreamFile::open_to_read(arguments.file));
    StandardInput in(file.descriptor(), arguments.file);
    TRY(import_record_lines(importer, in));
  }
  return importer.finish();
}

}  // namespace

void add_catalog_import_command(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<CatalogImportArguments>();
  CLI::App* command = commands.add_catalog(
      catalog, "import", "Make what an export has, or what is in a running Gravitino",
      [arguments](ClientSession& session) { return import_catalog(session, *arguments); });
  CLI::Option* file =
      add_text(*command, "--file", arguments->file, "FILE", "From there (default standard input)");
  add_text(*command, "--from", arguments->from, "URL",
           "From the REST API of a Gravitino, such as http://gravitino:8090")
      ->excludes(file);
  add_text(*command, "--from-user", arguments->from_user, "NAME",
           "Who asks it (default nobody, which it calls anonymous)");
  add_text(*command, "--path", arguments->path, "PATH",
           "Of the Gravitino only this, with all that is in it (default everything)");
  command->add_option("--threads", arguments->threads, "Requests at a time (default 4)")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  command->footer(
      "What is there already stays as it is, so that it can be done again after an error. Who "
      "imports is the creator, and the time is now. Versions of models are numbered anew; all "
      "above --path must be there.\n"
      "Examples:\n"
      "  trellis catalog import --file all.jsonl\n"
      "  trellis catalog import --from http://gravitino:8090 --path lake.hive");
}

}  // namespace trellis
