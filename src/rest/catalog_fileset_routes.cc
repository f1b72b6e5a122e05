// Where a fileset's files are, and which they are if that is in Trellis itself: trellis:///a/b is
// the directory /a/b of the same keyspace.
#include <fmt/format.h>

#include <algorithm>

#include "catalog/drafts.h"
#include "fs/file_systems.h"
#include "fs/files.h"
#include "json/json_text.h"
#include "net/url.h"
#include "rest/answers.h"
#include "rest/catalog_routes.h"
#include "rest/file_routes.h"
#include "rest/request_reading.h"

namespace trellis {
namespace {

constexpr std::string_view trellis_location = "trellis:///";

// Gravitino's clients encode it once more than the query does.
Result<std::string> query_sub_path(const CatalogRequest& request) {
  TRY_ASSIGN(auto text, query_text(request.http, "sub_path"));
  if (!text.has_value()) return std::string();
  auto decoded = percent_decode(*text);
  return decoded ? std::move(*decoded) : std::move(*text);
}

Result<std::string> find_location(const CatalogRequest& request) {
  TRY_ASSIGN(const std::string sub_path, query_sub_path(request));
  TRY_ASSIGN(const auto name, query_text(request.http, "location_name"));
  TRY_ASSIGN(const Entity fileset, request.catalog().load(request.call(), request.path()));
  return fileset_location(fileset.stored, name.value_or(""), sub_path);
}

Result<HttpResponse> get_location(CatalogRequest& request) {
  TRY_ASSIGN(const std::string location, find_location(request));
  Bytes members = ",\"fileLocation\":";
  append_json_string(members, location);
  return catalog_answer(members);
}

// What is in one directory: {"name","isDir","size","lastModified","path"} each.
class FilesetFiles final : public BodySource {
 public:
  FilesetFiles(const CatalogRequest& request, std::shared_ptr<Files> files, FileLister lister,
               std::string directory, std::string shown_directory)
      : context_(request.context),
        authorization_(request.user.authorization),
        files_(std::move(files)),
        lister_(std::move(lister)),
        directory_(std::move(directory)),
        shown_directory_(std::move(shown_directory)) {}

  Result<Chunk> next() override {
    TRY(check_still_valid(context_, authorization_));
    Chunk chunk;
    if (!has_begun_) chunk.bytes = "{\"code\":0,\"files\":[";
    for (size_t i = 0; i < page_entries; ++i) {
      TRY_ASSIGN(const auto file, lister_.next());
      if (!file.has_value()) {
        chunk.bytes += "]}";
        return chunk;
      }
      if (directory_.ends_with(file->path)) continue;  // itself
      if (std::exchange(has_any_, true)) chunk.bytes += ',';
      append_file(chunk.bytes, *file);
    }
    has_begun_ = true;
    chunk.then = Chunk::Then::more;
    return chunk;
  }

 private:
  static constexpr size_t page_entries = 1'000;

  void append_file(Bytes& out, const ListedFile& file) {
    ByteView path = file.path;
    const bool is_directory = path.ends_with('/');
    if (is_directory) path.remove_suffix(1);
    const size_t slash = path.rfind('/');
    out += "{\"name\":";
    append_json_string(out, slash == ByteView::npos ? path : path.substr(slash + 1));
    out += fmt::format(",\"isDir\":{},\"size\":{},\"lastModified\":{},\"path\":", is_directory,
                       file.attributes && !is_directory ? file.attributes->size : 0,
                       file.attributes ? file.attributes->modified_ns / 1'000'000 : 0);
    append_json_string(out, shown_directory_);
    out += '}';
  }

  const RestContext& context_;
  const std::string authorization_;
  const std::shared_ptr<Files> files_;
  FileLister lister_;
  const std::string directory_;        // that they are in
  const std::string shown_directory_;  // as the clients' file system names it
  bool has_begun_ = false;
  bool has_any_ = false;
};

// "/fileset/catalog/schema/name/sub/path"
Result<std::string> virtual_directory(const CatalogRequest& request) {
  TRY_ASSIGN(std::string sub_path, query_sub_path(request));
  if (sub_path.ends_with('/')) sub_path.pop_back();
  if (!sub_path.empty() && !sub_path.starts_with('/')) sub_path.insert(0, "/");
  return fmt::format("/fileset/{}{}", fmt::join(request.names.subspan(1, 3), "/"), sub_path);
}

Result<HttpResponse> list_files(CatalogRequest& request) {
  TRY_ASSIGN(const std::string location, find_location(request));
  TRY_ASSIGN(std::string shown_directory, virtual_directory(request));
  if (!location.starts_with(trellis_location)) {
    return Error{Code::unsupported,
                 fmt::format("{} is not in Trellis: files are listed of trellis:///PATH only",
                             quote(location)),
                 "unsupported"};
  }
  std::string directory = location.substr(trellis_location.size() - 1);
  if (!directory.ends_with('/')) directory += '/';
  TRY_ASSIGN(auto files, request.context.files.files_of(request.user.data.tenant));
  TRY_ASSIGN(FileLister lister,
             files->lister(request.user.data.caller, directory, {.attributes = true}));
  HttpResponse response;
  response.content_type = json_type;
  response.stream = std::make_unique<FilesetFiles>(request, std::move(files), std::move(lister),
                                                   directory, std::move(shown_directory));
  return response;
}

constexpr CatalogRoute fileset_routes[] = {
    {HttpMethod::get, CatalogRoute::Under::schema, "/filesets/{fileset}/location",
     CatalogType::fileset, "GET", get_location},
    {HttpMethod::get, CatalogRoute::Under::schema, "/filesets/{fileset}/files",
     CatalogType::fileset, "LIST_FILES", list_files},
};

TextMap properties_of(const Entity& entity) {
  return {entity.stored.properties().begin(), entity.stored.properties().end()};
}

bool names_location(const TextMap& properties) {
  const auto first = properties.lower_bound("location");
  return first != properties.end() && first->first.starts_with("location");
}

}  // namespace

// Its files are where its schema or catalog says, if the request does not, or else in Trellis.
Result<HttpResponse> create_fileset(CatalogRequest& request) {
  TRY_ASSIGN(stored::CatalogEntity draft, read_draft(request));
  EntityPath above = request.parent_path();
  TRY_ASSIGN(const Entity schema, request.catalog().load(request.call(), above));
  above = parent_of(above);
  TRY_ASSIGN(const Entity catalog, request.catalog().load(request.call(), above));
  FilesetPlace place{request.names[1], request.names[2], properties_of(catalog),
                     properties_of(schema)};
  if (draft.fileset().locations().empty() && draft.fileset().type() == "managed" &&
      !names_location(place.catalog_properties) && !names_location(place.schema_properties)) {
    place.schema_properties["location"] = fmt::format(
        "{}{}/{}/{}", trellis_location, request.names[0], request.names[1], request.names[2]);
  }
  TRY(place_fileset(place, draft));
  return create_drafted(request, std::move(draft));
}

std::span<const CatalogRoute> catalog_fileset_routes() { return fileset_routes; }

}  // namespace trellis
