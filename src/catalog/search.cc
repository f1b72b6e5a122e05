// Finding things of a metalake by name, column or tag, wherever they stand.
#include <fmt/format.h>

#include <algorithm>

#include "catalog/catalog.h"

namespace trellis {
namespace {

constexpr size_t found_max = 1'000;
// How many records one call looks at, whatever it finds.
constexpr size_t looks_max = 2'000;
constexpr size_t look_at_once = 256;

// '*' is any text; behind the pattern, too.
bool matches_pattern(std::string_view name, std::string_view pattern) {
  for (;;) {
    const size_t star = pattern.find('*');
    const std::string_view piece = pattern.substr(0, star);
    if (star == std::string_view::npos) return name.starts_with(piece);
    if (!name.starts_with(piece)) return false;
    name.remove_prefix(piece.size());
    pattern.remove_prefix(star + 1);
    // The shortest text will do, as whatever follows may be anything.
    const std::string_view next = pattern.substr(0, pattern.find('*'));
    const size_t at = name.find(next);
    if (at == std::string_view::npos) return false;
    name.remove_prefix(at);
  }
}

// What keys begin with under which names are found that match.
Bytes search_prefix(KeyspaceId keyspace, const Uuid& metalake, CatalogSearchKind kind,
                    const Bytes& pattern) {
  const ByteView start = ByteView(pattern).substr(0, pattern.find('*'));
  Bytes key = encode(CatalogSearchKey{keyspace, metalake, kind, start, {}});
  constexpr size_t end_of_name = 2;
  key.resize(key.size() - end_of_name - encode_ref({}).size());
  return key;
}

// What keys begin with of things that have the tag.
Bytes tagged_prefix(KeyspaceId keyspace, const Uuid& metalake, const CatalogRef& tag) {
  Bytes key =
      encode(CatalogInverseKey{keyspace, metalake, CatalogRelation::tag, tag, CatalogRef()});
  key.resize(key.size() - encode_ref({}).size());
  return key;
}

struct Hit {
  Bytes key;
  CatalogRef ref;
};

// One search: what is looked through, and what each must be like.
class Finder {
 public:
  Finder(Catalog& catalog, Tenant& tenant, const CatalogSearch& search, const EntityWay& start)
      : catalog_(catalog),
        tenant_(tenant),
        search_(search),
        name_(searched(search.name)),
        column_(searched(search.column)),
        pattern_(search.column.empty() ? name_ : column_),
        makes_tables_(search.tag.empty() && !search.column.empty() &&
                      search.type == CatalogType::table) {
    const Uuid& metalake = start.refs.front().id;
    const bool of_columns = !search.column.empty() || search.type == CatalogType::column;
    const auto kind = of_columns ? CatalogSearchKind::column : CatalogSearchKind::name;
    prefix_ = search.tag.empty() ? search_prefix(tenant.id(), metalake, kind, pattern_)
                                 : tagged_prefix(tenant.id(), metalake, start.ref());
  }

  Result<CatalogFoundPage> find() {
    Bytes from = prefix_;
    if (!search_.page_token.empty()) {
      const auto behind = from_hex(search_.page_token);
      if (!behind || behind->size() > key_bytes_max)
        return illegal_argument("the page token is none that a search gave");
      from += *behind;
    }
    CatalogFoundPage page;
    for (size_t looked = 0; looked < looks_max; looked += look_at_once) {
      std::vector<Hit> hits;
      TRY_ASSIGN(ScanPage scanned, look(from, hits));
      for (Hit& hit : hits) {
        TRY_ASSIGN(std::optional<EntityPath> path, catalog_.path_of(tenant_, hit.ref));
        if (path && makes_tables_) {
          TRY_ASSIGN(path, table_of(hit.ref, *path));
        }
        if (!path) continue;
        TRY_ASSIGN(bool fits, fits_all(*path));
        if (fits && search_.sees) {
          TRY_ASSIGN(fits, search_.sees(*path));
        }
        if (!fits) continue;
        page.found.push_back({hit.ref, std::move(*path)});
        if (page.found.size() < search_.limit) continue;
        page.next_page_token = token_of(successor(hit.key));
        return page;
      }
      if (!scanned.resume) return page;
      from = std::move(*scanned.resume);
    }
    page.next_page_token = token_of(from);
    return page;
  }

 private:
  // REQUIRES: the key begins with prefix_.
  std::string token_of(ByteView key) const { return to_hex(key.substr(prefix_.size())); }

  Result<ScanPage> look(ByteView from, std::vector<Hit>& hits) {
    const auto take = [&](ByteView key, ByteView) {
      if (const auto inverse = decode<CatalogInverseKey>(key)) {
        hits.push_back({Bytes(key), inverse->from});
        return Visit::go_on;
      }
      Bytes scratch;
      const auto found = decode<CatalogSearchKey>(key, scratch);
      if (found && matches_pattern(found->name, pattern_)) hits.push_back({Bytes(key), found->ref});
      return Visit::go_on;
    };
    return tenant_.map().engine.scan(
        {.begin = from, .end = prefix_end(prefix_), .entries_max = look_at_once}, take);
  }

  // What was looked through fits already as far as it says.
  Result<bool> fits_all(const EntityPath& path) {
    const bool is_column = path.type == CatalogType::column;
    const bool of_column = is_column && !search_.column.empty();
    const std::string& name = of_column ? path.names[path.names.size() - 2] : path.name();
    if (!search_.name.empty() && !matches_pattern(searched(name), name_)) return false;
    if (search_.type && path.type != *search_.type) return false;
    if (search_.column.empty() || makes_tables_) return true;
    if (is_column) return matches_pattern(searched(path.name()), column_);
    if (path.type != CatalogType::table) return false;
    TRY_ASSIGN(const std::optional<CatalogRef> column, first_column(path));
    return column.has_value();
  }

  // The first column of a table that fits.
  Result<std::optional<CatalogRef>> first_column(const EntityPath& path) {
    const std::optional<CatalogRef> none;
    TRY_ASSIGN(const EntityWay way, find_way(tenant_, path));
    if (!way.complete()) return none;
    Value value;
    TRY(tenant_.map().engine.get(entity_key(tenant_.id(), way.above(), way.ref()), value));
    if (!value.found()) return none;
    TRY_ASSIGN(const Entity table, decode_entity(way.above(), way.ref(), value.bytes()));
    for (const stored::CatalogColumn& column : table.stored.table().columns())
      if (matches_pattern(searched(column.name()), column_))
        return std::optional(CatalogRef::column(way.ref().number(), EntityId{column.id()}));
    return none;
  }

  // Of a column, which `ref` becomes. Only the first one that fits is asked for its table: then
  // each is found once, on whatever page.
  Result<std::optional<EntityPath>> table_of(CatalogRef& ref, const EntityPath& column) {
    EntityPath table{CatalogType::table, column.names};
    table.names.pop_back();
    TRY_ASSIGN(const std::optional<CatalogRef> first, first_column(table));
    if (first != ref) return std::optional<EntityPath>();
    TRY_ASSIGN(const EntityWay way, find_way(tenant_, table));
    if (!way.complete()) return std::optional<EntityPath>();
    ref = way.ref();
    return std::optional(std::move(table));
  }

  Catalog& catalog_;
  Tenant& tenant_;
  const CatalogSearch& search_;
  const Bytes name_;
  const Bytes column_;
  const Bytes& pattern_;     // of what is looked through
  const bool makes_tables_;  // of the columns that are found
  Bytes prefix_;
};

}  // namespace

Result<CatalogFoundPage> Catalog::search(const CatalogCall& call, const std::string& metalake,
                                         const CatalogSearch& search) {
  if (search.limit == 0 || search.limit > found_max)
    return illegal_argument(fmt::format("a limit is 1 to {}", found_max));
  if (search.name.empty() && search.column.empty() && search.tag.empty() && !search.type)
    return illegal_argument("a search needs a name, a column, a tag or a type");
  TRY(call.tenant.admit(call.caller, Access::read));
  EntityPath start{CatalogType::metalake, {metalake}};
  if (!search.tag.empty()) start = {CatalogType::tag, {metalake, search.tag}};
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, start));
  TRY(require(way));
  return Finder(*this, call.tenant, search, way).find();
}

}  // namespace trellis
