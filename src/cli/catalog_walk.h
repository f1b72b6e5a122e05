// All that is in a catalog, parents before what stands in them, from a Trellis or a Gravitino.
//
//   CatalogWalk walk(api, {.front = "/api"}, [&](const CatalogRecord& record) { ... });
//   TRY(walk.metalake("lake"));
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/api_client.h"
#include "cli/catalog_command.h"

namespace trellis {

// A line of an export:
// {"type":"table","names":["lake","hive","sales","orders"],"entity":{"name":"orders",...}}
// The entity is what the server answers with. Beside the kinds of catalog_command.h there are
// "partition" and "statistics" ({"partitionName"?,"statistics":{name:value}}) with the names of
// their table and "model_version" with those of its model; "user" and "group" before the catalogs
// of their metalake; "owner" ({"fullName","type","ownerType"}) with the owner's names, behind all
// that is in the thing; and behind all else of a metalake "tag_object" and "policy_object"
// ({"fullName","type","values"?}) with the names of the label, and "role".
struct CatalogRecord {
  std::string type;
  std::vector<std::string> names;
  boost::json::object entity;
};
inline constexpr std::string_view partition_record = "partition";
inline constexpr std::string_view model_version_record = "model_version";
inline constexpr std::string_view statistics_record = "statistics";
inline constexpr std::string_view owner_record = "owner";
inline constexpr std::string_view tag_object_record = "tag_object";
inline constexpr std::string_view policy_object_record = "policy_object";
inline constexpr std::string_view role_record = "role";
inline constexpr std::string_view user_record = "user";
inline constexpr std::string_view group_record = "group";
// Whether it has two names, of which the first is its metalake.
bool is_relation_record(std::string_view type);
// Whether it has the four names of what it belongs to.
bool is_member_record(std::string_view type);

struct CatalogWalkOptions {
  std::string front;                     // what targets begin with: "/k/shop/api"
  std::vector<HttpHeader> headers = {};  // of every request
  // Gravitino: it has only what fits a catalog's type, and not all versions have all of that.
  bool is_gravitino = false;
  // Told of what cannot be looked into, and of catalogs without their secrets.
  std::function<void(std::string_view path, std::string_view why)> skipped = {};
};

class CatalogWalk {
 public:
  using Visit = std::function<Status(CatalogRecord record)>;
  CatalogWalk(ApiClient& api, CatalogWalkOptions options, Visit visit)
      : api_(api), options_(std::move(options)), visit_(std::move(visit)) {}

  Status everything();
  Status metalake(const std::string& name);
  // One with all that is in it, but without what is above it.
  Status below(const CatalogPath& path);

 private:
  Result<ApiAnswer> get(const std::string& rest);
  // Absent: it has no such thing, as an older Gravitino or authorization that is off has not.
  Result<std::optional<ApiAnswer>> get_if_known(const std::string& rest);
  Status tell(CatalogRecord record);
  // Whether an error may be passed over: the source has no such thing.
  bool is_unknown_there(const Error& error) const;
  Result<boost::json::object> load(const CatalogPath& path);
  // Each of a kind that stands there, in full.
  Status each(const CatalogKind& kind, std::span<const std::string> above,
              const std::function<Status(const boost::json::object&)>& visit);
  Status visit_one(const CatalogKind& kind, std::vector<std::string> names,
                   const boost::json::object& entity);
  // What is hidden from the caller: whoever makes the catalog again must not take it for values.
  void leave_out_secrets(const CatalogPath& path, boost::json::object& catalog) const;
  Status visit_contents(const CatalogPath& path, const boost::json::object& entity);
  Status visit_members(const CatalogPath& path, std::string_view rest, std::string_view array,
                       std::string_view type);
  bool may_have(const CatalogKind& kind) const;
  Status visit_relations(const CatalogPath& metalake);
  Status visit_labelled(const CatalogPath& label);
  Status visit_roles(const CatalogPath& metalake);
  Status visit_principals(const CatalogPath& metalake);
  Status visit_owner(const CatalogPath& path);
  Status visit_statistics(const CatalogPath& table, bool is_partitioned);

  ApiClient& api_;
  CatalogWalkOptions options_;
  Visit visit_;
  std::string catalog_type_;     // of the catalog that it is in
  bool visitor_failed_ = false;  // then nothing is passed over
  // Of a whole metalake, with its users: a part alone does not say who they are.
  bool has_owners_ = false;
};

}  // namespace trellis
