#include "catalog/catalog_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "catalog/counter.h"
#include "catalog/entity.h"
#include "catalog/log_trim.h"
#include "codec/stored_message.h"
#include "codec/tenant_keys.h"
#include "tenant/tenant.h"

namespace trellis {
namespace {

class Check {
 public:
  Check(Engine& engine, KeyspaceId keyspace) : engine_(engine), keyspace_(keyspace) {}

  std::vector<std::string> run() {
    read_notes();
    read_records();
    for (const auto& [ref, entity] : entities_) check_entity(entity);
    check_names();
    check_places();
    check_dropped();
    check_search();
    check_relations();
    check_grants();
    check_members();
    check_aliases();
    check_logs();
    check_figures();
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  static std::string text(const CatalogRef& ref) { return CatalogRefBytes::text(ref); }

  void scan(ByteView prefix, FunctionRef<void(ByteView, ByteView)> visit) {
    std::optional<Bytes> from = Bytes(prefix);
    while (from) {
      auto page = engine_.scan({.begin = *from, .end = prefix_end(prefix)},
                               [&](ByteView key, ByteView value) {
                                 visit(key, value);
                                 return Visit::go_on;
                               });
      if (!page) return problem("scan failed: {}", page.error().message);
      from = std::move(page->resume);
    }
  }

  Bytes prefix(std::string_view tag) const {
    Bytes out;
    append_keyspace_prefix(out, KeyMode::txn, keyspace_);
    out += tag;
    return out;
  }

  void read_notes() {
    scan(prefix("g"), [&](ByteView key, ByteView) {
      const auto note = decode<GarbageKey>(key);
      if (!note) return problem("note {}", to_hex(key));
      if (note->model != Model::catalog) return;
      if (const auto trim = decode_log_trim(note->target)) {
        trims_.emplace(trim->metalake, trim->number);
        return;
      }
      const auto ref = decode_ref(note->target);
      if (!ref) return problem("note of nothing {}", to_hex(key));
      if (!notes_.emplace(*ref, note->due_ms).second) problem("two notes of {}", text(*ref));
    });
  }

  void read_records() {
    scan(prefix("c"), [&](ByteView key, ByteView value) {
      const ByteView letters = key.substr(5, 2);
      for (size_t i = 0; i < std::size(catalog_types); i++)
        if (catalog_types[i].bytes == letters)
          return read_entity(static_cast<CatalogType>(i), key, value);
      records_[Bytes(letters)].emplace(key, value);
    });
  }

  void read_entity(CatalogType type, ByteView key, ByteView value) {
    std::vector<CatalogRef> refs;
    ByteView rest = key.substr(8);
    for (size_t depth = 1; depth <= catalog_depth(type); depth++) {
      CatalogRef ref{catalog_type_at(type, depth), {}};
      if (rest.size() < ref.id_bytes()) return problem("short key {}", to_hex(key));
      std::copy_n(rest.begin(), ref.id_bytes(), ref.id.begin());
      rest.remove_prefix(std::min(rest.size(), ref.id_bytes() + 1));
      refs.push_back(ref);
    }
    const CatalogRef own = refs.back();
    refs.pop_back();
    auto entity = decode_entity(refs, own, value);
    if (!entity) return problem("entity {}: {}", text(own), entity.error().message);
    if (!entities_.emplace(own, std::move(*entity)).second) problem("{} is there twice", text(own));
  }

  // Whether it, or what it stands in, is dropped.
  bool is_doomed(const Entity& entity) const {
    if (notes_.contains(entity.ref)) return true;
    for (const CatalogRef& above : entity.above)
      if (notes_.contains(above)) return true;
    return false;
  }
  bool is_doomed(const Uuid& metalake) const {
    return notes_.contains(CatalogRef::of(CatalogType::metalake, metalake));
  }
  static CatalogRef parent_ref(const Entity& entity) {
    return entity.above.empty() ? CatalogRef() : entity.above.back();
  }
  const Value get(const Bytes& key) {
    Value value;
    if (const Status status = engine_.get(key, value); !status)
      problem("get failed: {}", status.error().message);
    return value;
  }

  void check_entity(const Entity& entity) {
    if (entity.stored.version() == 0) problem("{} has no version", text(entity.ref));
    const Value place = get(place_key(keyspace_, entity.ref));
    if (!place.found()) return problem("{} has no place", text(entity.ref));
    const auto at = decode_place(place.bytes());
    if (!at || at->name != entity.name() || at->above != entity.above)
      problem("{} is said to be elsewhere", text(entity.ref));
    if (!entity.ref.has_uuid() && entity.ref.number().value >= next_id())
      problem("{} has an id that may be given again", text(entity.ref));
    const Value named =
        get(name_key(keyspace_, parent_ref(entity), entity.ref.type, entity.name()));
    bool has_name = false;
    if (named.found()) {
      const auto names = decode_named(entity.ref.type, named.bytes());
      has_name = names && names->ref == entity.ref;
      if (has_name && names->disabled != entity.stored.disabled())
        problem("the name of {} says that it is (not) in use", text(entity.ref));
    }
    if (has_name && notes_.contains(entity.ref)) problem("{} lives and is noted", text(entity.ref));
    if (is_doomed(entity)) return;
    if (!has_name) problem("{} {} has no name", text(entity.ref), entity.name());
    if (!entity.above.empty() && !entities_.contains(entity.above.back()))
      problem("{} stands in nothing", text(entity.ref));
    for (const Bytes& key : search_keys(keyspace_, entity))
      if (!get(key).found()) problem("{} is not found by {}", text(entity.ref), to_hex(key));
  }

  uint64_t next_id() {
    for (const auto& [key, value] : records_["sq"]) return decode_counter(value, "").value_or(0);
    return 0;
  }

  void check_names() {
    for (const auto& [key, value] : records_["nm"]) {
      CatalogType type{};
      Bytes name;
      if (const auto high = decode<CatalogNameKey>(key)) {
        type = high->type;
        name = high->name;
      } else if (const auto low = decode<CatalogLeafNameKey>(key)) {
        type = low->type;
        name = low->name;
      } else {
        problem("name {}", to_hex(key));
        continue;
      }
      const auto named = decode_named(type, value);
      const auto entity = named ? entities_.find(named->ref) : entities_.end();
      if (entity == entities_.end())
        problem("name {} of nothing", quote(name));
      else if (entity->second.name() != name)
        problem("name {} of {}", quote(name), quote(entity->second.name()));
    }
  }

  void check_places() {
    for (const auto& [key, value] : records_["id"]) {
      CatalogRef ref;
      if (const auto high = decode<CatalogUuidKey>(key))
        ref = CatalogRef::of(high->type, high->id);
      else if (const auto low = decode<CatalogIdKey>(key))
        ref = CatalogRef::of(low->type, low->id);
      if (!entities_.contains(ref)) problem("a place of nothing: {}", text(ref));
    }
  }

  void check_dropped() {
    for (const auto& [key, value] : records_["dl"]) {
      Bytes scratch;
      const auto dropped = decode<CatalogDroppedKey>(key, scratch);
      if (!dropped) {
        problem("dropped {}", to_hex(key));
        continue;
      }
      const auto note = notes_.find(dropped->ref);
      if (note == notes_.end() || note->second != dropped->due_ms)
        problem("{} is dropped and not noted", text(dropped->ref));
      if (!entities_.contains(dropped->ref)) problem("{} is dropped and gone", text(dropped->ref));
    }
  }

  void check_search() {
    std::map<CatalogRef, std::vector<Bytes>> keys_of;
    for (const auto& [key, value] : records_["ix"]) {
      Bytes scratch;
      const auto found = decode<CatalogSearchKey>(key, scratch);
      if (!found) {
        problem("search {}", to_hex(key));
        continue;
      }
      if (is_doomed(found->metalake)) continue;
      CatalogRef ref = found->ref;
      if (ref.type == CatalogType::column) ref = CatalogRef::of(CatalogType::table, ref.number());
      const auto entity = entities_.find(ref);
      if (entity == entities_.end()) {
        problem("{} is found and is not there", text(ref));
        continue;
      }
      const auto [at, is_new] = keys_of.try_emplace(ref);
      std::vector<Bytes>& keys = at->second;
      if (is_new) keys = search_keys(keyspace_, entity->second);
      if (!std::binary_search(keys.begin(), keys.end(), key))
        problem("{} is found by {}", text(ref), quote(found->name));
    }
  }

  bool is_there(const CatalogRef& ref) const {
    if (ref.type != CatalogType::column) return entities_.contains(ref);
    const auto table = entities_.find(CatalogRef::of(CatalogType::table, ref.number()));
    if (table == entities_.end()) return false;
    const auto& columns = table->second.stored.table().columns();
    return std::any_of(columns.begin(), columns.end(), [&](const stored::CatalogColumn& column) {
      return CatalogRef::column(ref.number(), EntityId{column.id()}) == ref;
    });
  }

  void check_relations() {
    for (const auto& [key, value] : records_["rl"]) {
      const auto relation = decode<CatalogRelationKey>(key);
      if (!relation) problem("relation {}", to_hex(key));
      if (!relation || is_doomed(relation->metalake)) continue;
      if (!is_there(relation->from) || !is_there(relation->to))
        problem("a relation of {} to {}, and one is not there", text(relation->from),
                text(relation->to));
      const Bytes other = encode(CatalogInverseKey{
          keyspace_, relation->metalake, relation->relation, relation->to, relation->from});
      if (!records_["ri"].contains(other))
        problem("a relation of {} to {} and not back", text(relation->from), text(relation->to));
    }
    for (const auto& [key, value] : records_["ri"]) {
      const auto inverse = decode<CatalogInverseKey>(key);
      if (!inverse) problem("inverse {}", to_hex(key));
      if (!inverse || is_doomed(inverse->metalake)) continue;
      const Bytes other = encode(CatalogRelationKey{keyspace_, inverse->metalake, inverse->relation,
                                                    inverse->from, inverse->to});
      if (!records_["rl"].contains(other))
        problem("a relation back from {} to {} alone", text(inverse->to), text(inverse->from));
    }
  }

  // What a role may do stands with the role, once, by where the thing is.
  void check_grants() {
    for (const auto& [key, value] : records_["rl"]) {
      const auto relation = decode<CatalogRelationKey>(key);
      if (!relation || relation->relation != CatalogRelation::grant) continue;
      const auto entity = entities_.find(relation->to);
      if (entity == entities_.end() || is_doomed(entity->second)) continue;
      const Bytes grant = encode(CatalogGrantKey{keyspace_, relation->from.number(),
                                                 parent_ref(entity->second), relation->to});
      if (!records_["ga"].contains(grant))
        problem("{} may do something with {}, and nobody knows what", text(relation->from),
                text(relation->to));
    }
    for (const auto& [key, value] : records_["ga"]) {
      const auto grant = decode<CatalogGrantKey>(key);
      if (!grant) problem("grant {}", to_hex(key));
      const auto entity = grant ? entities_.find(grant->ref) : entities_.end();
      if (entity == entities_.end()) continue;
      if (is_doomed(entity->second)) continue;
      const CatalogRef role = CatalogRef::of(CatalogType::role, grant->role);
      const Bytes relation = encode(CatalogRelationKey{keyspace_, entity->second.metalake(),
                                                       CatalogRelation::grant, role, grant->ref});
      if (!records_["rl"].contains(relation) || grant->above != parent_ref(entity->second))
        problem("{} has a grant on {} that is out of place", text(role), text(grant->ref));
    }
  }

  void check_members() {
    for (const auto& [letters, type] :
         {std::pair("pt", CatalogType::table), std::pair("mv", CatalogType::model),
          std::pair("al", CatalogType::model), std::pair("ga", CatalogType::role)})
      for (const auto& [key, value] : records_[letters]) {
        const CatalogRef ref = CatalogRef::of(type, EntityId{load_be(key.data() + 8, 8)});
        if (!is_there(ref)) problem("{} of nothing: {}", letters, text(ref));
      }
    for (const auto& [key, value] : records_["st"]) {
      Bytes scratch;
      const auto statistic = decode<CatalogStatisticKey>(key, scratch);
      if (!statistic || (!is_doomed(statistic->metalake) && !is_there(statistic->ref)))
        problem("a statistic of nothing: {}", to_hex(key));
    }
  }

  // An alias names a version, which has it.
  void check_aliases() {
    std::map<std::pair<uint64_t, uint64_t>, std::set<std::string>> named;
    for (const auto& [key, value] : records_["al"]) {
      const auto alias = decode<CatalogAliasKey>(key);
      const auto version = decode_counter(value, "");
      if (!alias || !version)
        problem("alias {}", to_hex(key));
      else
        named[{alias->model.value, *version}].emplace(alias->alias);
    }
    for (const auto& [key, value] : records_["mv"]) {
      const auto place = decode<CatalogModelVersionKey>(key);
      stored::CatalogModelVersion version;
      if (!place || !decode_message(value, version, "")) {
        problem("version {}", to_hex(key));
        continue;
      }
      const auto found = named.extract({place->model.value, place->version});
      const std::set<std::string> own(version.aliases().begin(), version.aliases().end());
      if ((found ? found.mapped() : std::set<std::string>()) != own)
        problem("version {} of model {} has other aliases", place->version, place->model.value);
    }
    for (const auto& [version, aliases] : named)
      problem("aliases of no version: model {}, {}", version.first, version.second);
  }

  void check_logs() {
    std::map<Uuid, uint64_t> last;
    for (const auto& [key, value] : records_["lg"]) {
      if (const auto log = decode<CatalogLogKey>(key)) {
        last[log->metalake] = decode_counter(value, "").value_or(0);
        if (!entities_.contains(CatalogRef::of(CatalogType::metalake, log->metalake)))
          problem("a log of no metalake");
      }
    }
    std::map<Uuid, uint64_t> counted;
    for (const auto& [key, value] : records_["lg"]) {
      const auto change = decode<CatalogChangeKey>(key);
      if (!change || is_doomed(change->metalake)) continue;
      // The oldest ones may be gone.
      counted.try_emplace(change->metalake, change->number - 1);
      uint64_t& before = counted[change->metalake];
      // Steps go side by side: who reads passes over what is before a gap, which is to go.
      const uint64_t step = (before + log_step - 1) / log_step * log_step;
      if (change->number != before + 1 && !trims_.contains({change->metalake, step}))
        problem("change {} where {} should be", change->number, before + 1);
      before = change->number;
    }
    for (const auto& [metalake, number] : last)
      if (!is_doomed(metalake) && counted.contains(metalake) && counted[metalake] != number)
        problem("{} changes, and the last is {}", counted[metalake], number);
  }

  void check_figures() {
    const auto stored = stored_figures(engine_, keyspace_);
    const auto counted = recount(engine_, keyspace_);
    if (!stored || !counted) return problem("figures cannot be read");
    if (*stored != *counted)
      problem("figures are {} bytes, {} keys and should be {}, {}", stored->bytes, stored->keys,
              counted->bytes, counted->keys);
  }

  Engine& engine_;
  const KeyspaceId keyspace_;
  std::map<CatalogRef, uint64_t> notes_;
  std::set<std::pair<Uuid, uint64_t>> trims_;  // of logs of metalakes, up to that number
  std::map<CatalogRef, Entity> entities_;
  std::map<Bytes, std::map<Bytes, Bytes>, std::less<>> records_;  // by their letters
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_catalog(Engine& engine, KeyspaceId keyspace) {
  return Check(engine, keyspace).run();
}

}  // namespace trellis
