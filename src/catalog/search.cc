// Finding things of a metalake by name, column or tag, wherever they stand.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "catalog/catalog.h"

namespace trellis {
namespace {

constexpr size_t found_max = 1'000;
// How many records one call looks at, whatever it finds.
constexpr size_t looks_max = 2'000;
constexpr size_t look_at_once = 256;
// Of tables that one call decodes for their columns: such a look may cost what thousands do.
constexpr size_t decoded_bytes_max = 16 * 1024 * 1024;

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
      for (const Hit& hit : hits) {
        TRY_ASSIGN(std::optional<CatalogFound> found, what_fits(hit.ref));
        if (found) page.found.push_back(std::move(*found));
        if (page.found.size() < search_.limit && decoded_bytes_ < decoded_bytes_max) continue;
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

  // A table that columns were looked for in: decoded once, however many of them are found.
  struct Table {
    CatalogRef ref;
    EntityPath path = {};                                    // without names: it does not live
    std::unordered_map<uint64_t, std::string> columns = {};  // that fit, by id
    std::optional<uint64_t> first = {};                      // of them
    std::optional<bool> is_seen = {};                        // if somebody has asked
  };
  Result<Table*> table_at(const EntityId& number) {
    const auto ref = CatalogRef::of(CatalogType::table, number);
    const auto [at, is_new] = tables_.try_emplace(number.value, Table{ref});
    Table& table = at->second;
    if (!is_new) return &table;
    TRY_ASSIGN(std::optional<EntityWay> way, catalog_.way_of(tenant_, ref));
    if (!way) return &table;
    Value value;
    TRY(tenant_.map().engine.get(entity_key(tenant_.id(), way->above(), ref), value));
    if (!value.found()) return &table;
    decoded_bytes_ += value.bytes().size();
    TRY_ASSIGN(const Entity entity, decode_entity(way->above(), ref, value.bytes()));
    for (const stored::CatalogColumn& column : entity.stored.table().columns()) {
      if (!matches_pattern(searched(column.name()), column_)) continue;
      if (!table.first) table.first = column.id();
      table.columns.try_emplace(column.id(), column.name());
    }
    table.path = std::move(way->path);
    return &table;
  }

  // What was looked through fits already as far as it says.
  Result<std::optional<CatalogFound>> what_fits(const CatalogRef& ref) {
    const bool is_table = ref.type == CatalogType::table && !search_.column.empty();
    if (ref.type == CatalogType::column || is_table) {
      TRY_ASSIGN(Table * table, table_at(ref.number()));
      return ref.type == CatalogType::column ? column_that_fits(*table, ref.column_number().value)
                                             : table_that_fits(*table);
    }
    std::optional<CatalogFound> found;
    if (!search_.column.empty()) return found;
    TRY_ASSIGN(std::optional<EntityPath> path, catalog_.path_of(tenant_, ref));
    if (!path || !has_name(path->name()) || !has_type(ref.type)) return found;
    bool is_seen = true;
    if (search_.sees) {
      TRY_ASSIGN(is_seen, search_.sees(*path));
    }
    if (is_seen) found = {ref, std::move(*path)};
    return found;
  }

  Result<std::optional<CatalogFound>> table_that_fits(Table& table) {
    std::optional<CatalogFound> found;
    if (!table.first || !has_name(table.path.name()) || !has_type(CatalogType::table)) return found;
    TRY_ASSIGN(const bool is_seen, sees(table));
    if (is_seen) found = {table.ref, table.path};
    return found;
  }

  Result<std::optional<CatalogFound>> column_that_fits(Table& table, uint64_t id) {
    std::optional<CatalogFound> found;
    const auto column = table.columns.find(id);
    if (column == table.columns.end()) return found;
    // Only the first is asked for its table: so each is found once, on whatever page.
    if (makes_tables_) return id == table.first ? table_that_fits(table) : found;
    const bool is_named = has_name(search_.column.empty() ? column->second : table.path.name());
    if (!is_named || !has_type(CatalogType::column)) return found;
    TRY_ASSIGN(const bool is_seen, sees(table));
    if (!is_seen) return found;
    found = {CatalogRef::column(table.ref.number(), EntityId{id}), table.path};
    found->path.type = CatalogType::column;
    found->path.names.push_back(column->second);
    return found;
  }

  bool has_name(std::string_view name) const {
    return search_.name.empty() || matches_pattern(searched(name), name_);
  }
  bool has_type(CatalogType type) const { return !search_.type || *search_.type == type; }
  // Nobody has a privilege on a column, or owns one: whoever sees its table sees it.
  Result<bool> sees(Table& table) {
    if (!search_.sees) return true;
    if (!table.is_seen) {
      TRY_ASSIGN(table.is_seen, search_.sees(table.path));
    }
    return *table.is_seen;
  }

  Catalog& catalog_;
  Tenant& tenant_;
  const CatalogSearch& search_;
  const Bytes name_;
  const Bytes column_;
  const Bytes& pattern_;     // of what is looked through
  const bool makes_tables_;  // of the columns that are found
  Bytes prefix_;
  std::unordered_map<uint64_t, Table> tables_;  // by id
  size_t decoded_bytes_ = 0;
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
