// What was dropped goes, with all below it and all that belongs to it, a page at a time.
//
// Everything below a metalake, catalog or schema has its id in its key, so that nothing has to be
// walked: for each type one interval of keys is emptied. What was dropped by itself before has a
// note of its own and is left to it; what has too many members for one page gets one.
#include <algorithm>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/members.h"

namespace trellis {
namespace {

constexpr size_t page_entries = 64;
constexpr size_t page_bytes = 1024 * 1024;
constexpr size_t pages_max = 8;  // of one call
// Of one entity that goes in a page with others.
constexpr size_t members_max = 128;
constexpr size_t collected_at_once_max = 1'000;  // large ones whose progress is known

struct Found {
  Bytes key;
  size_t value_bytes;
};

// Types of what stands below, at any depth, the deepest last.
std::span<const CatalogType> types_below(CatalogType type) {
  static constexpr CatalogType all[] = {
      CatalogType::role,     CatalogType::group,   CatalogType::user,   CatalogType::policy,
      CatalogType::tag,      CatalogType::catalog, CatalogType::broker, CatalogType::schema,
      CatalogType::function, CatalogType::view,    CatalogType::model,  CatalogType::fileset,
      CatalogType::topic,    CatalogType::table};
  const std::span<const CatalogType> types(all);
  switch (type) {
    case CatalogType::metalake: return types;
    case CatalogType::catalog: return types.last(8);
    case CatalogType::schema: return types.last(6);
    default: return {};
  }
}

// One thing that is being collected.
class Burial {
 public:
  Burial(Tenant& tenant, const Garbage& note, const CatalogRef& ref, EntityPlace place)
      : tenant_(tenant),
        note_(note),
        ref_(ref),
        place_(std::move(place)),
        metalake_goes_(ref.type == CatalogType::metalake) {}

  Bytes note_key() const {
    return encode(GarbageKey{keyspace(), note_.due_ms, Model::catalog, note_.target});
  }
  bool is_container() const { return !types_below(ref_.type).empty(); }
  std::vector<KeyPart> parts(const KeyBorders& borders) const;
  // It cannot come back any more. False: it did, and the note is gone.
  Result<bool> begin();
  // With all of its members, if they are few. Whether all is gone.
  Result<bool> remove_small();
  // A page of a part, which begins behind it afterwards.
  Status remove_page(KeyPart& part);
  // What is left when all parts are empty.
  Status finish();

 private:
  KeyspaceId keyspace() const { return tenant_.id(); }
  const Uuid& metalake() const { return place_.above.empty() ? ref_.id : place_.above[0].id; }
  Status change(FunctionRef<Status(CountedView&)> run) {
    return tenant_.collect(Model::catalog, Scope::all_of(keyspace()), run);
  }
  Status remove_itself(CountedView& view);
  Status remove_entity(CountedView& view, const Entity& entity, const Value& stored);
  // False: there are too many.
  Result<bool> remove_members(CountedView& view, const Entity& entity);
  Status remove_member(CountedView& view, ByteView key, size_t value_bytes);
  Status remove_other_end(CountedView& view, ByteView key);
  Status remove_below(CountedView& view, ByteView key);
  Result<std::optional<Entity>> entity_of(ByteView key, ByteView value) const;

  Tenant& tenant_;
  const Garbage& note_;
  const CatalogRef ref_;
  const EntityPlace place_;
  const bool metalake_goes_;
};

Status remove_stored(CountedView& view, ByteView key) {
  Value old;
  TRY(view.get(key, old));
  if (old.found()) view.remove(key, old);
  return {};
}

std::vector<KeyPart> Burial::parts(const KeyBorders& borders) const {
  std::vector<KeyPart> parts;
  for (Bytes& prefix : members_of(keyspace(), metalake(), ref_, metalake_goes_))
    append_parts(parts, borders, prefix, prefix_end(prefix));
  for (const CatalogType type : types_below(ref_.type)) {
    // | letters | '_' | ids from the metalake down to it | '_' |
    Bytes prefix = entity_key(keyspace(), place_.above, ref_);
    prefix.replace(5, 2, catalog_word(type).bytes);
    prefix += '_';
    append_parts(parts, borders, prefix, prefix_end(prefix));
  }
  return parts;
}

Result<bool> Burial::begin() {
  const CatalogRef parent = place_.above.empty() ? CatalogRef() : place_.above.back();
  const Bytes dropped =
      encode(CatalogDroppedKey{keyspace(), parent, ref_.type, place_.name, note_.due_ms, ref_});
  bool is_there = false;
  TRY(tenant_.collect(Model::catalog,
                      Scope::in(keyspace()).exclusive(dropped).exclusive(note_key()),
                      [&](CountedView& view) -> Status {
                        Value noted;
                        TRY(view.get(note_key(), noted));
                        is_there = noted.found();
                        return is_there ? remove_stored(view, dropped) : Status();
                      }));
  return is_there;
}

Result<bool> Burial::remove_small() {
  bool all = false;
  TRY(change([&](CountedView& view) -> Status {
    Entity entity{ref_, place_.above, {}};
    TRY_ASSIGN(all, remove_members(view, entity));
    return all ? remove_itself(view) : Status();
  }));
  return all;
}

Status Burial::finish() {
  return change([&](CountedView& view) { return remove_itself(view); });
}

Status Burial::remove_itself(CountedView& view) {
  Value noted;
  TRY(view.get(note_key(), noted));
  if (!noted.found()) return {};
  view.forget_garbage(note_.due_ms, note_.target);
  Value stored;
  TRY(view.get(entity_key(keyspace(), place_.above, ref_), stored));
  if (!stored.found()) return remove_stored(view, place_key(keyspace(), ref_));
  TRY_ASSIGN(const Entity entity, decode_entity(place_.above, ref_, stored.bytes()));
  return remove_entity(view, entity, stored);
}

// Its own records but for its name.
Status Burial::remove_entity(CountedView& view, const Entity& entity, const Value& stored) {
  view.remove(entity_key(keyspace(), entity), stored);
  view.count_keys(-1);
  if (!metalake_goes_)  // though it may have gone before
    for (const Bytes& key : search_keys(keyspace(), entity)) TRY(remove_stored(view, key));
  return remove_stored(view, place_key(keyspace(), entity.ref));
}

Result<bool> Burial::remove_members(CountedView& view, const Entity& entity) {
  size_t left = members_max;
  for (const Bytes& prefix :
       members_of(keyspace(), entity.metalake(), entity.ref, metalake_goes_)) {
    std::vector<Found> found;
    TRY_ASSIGN(const ScanPage page,
               view.scan({.begin = prefix, .end = prefix_end(prefix), .entries_max = left + 1},
                         [&](ByteView key, ByteView value) {
                           found.push_back({Bytes(key), value.size()});
                           return Visit::go_on;
                         }));
    if (found.size() > left || page.resume) return false;
    for (const auto& [key, value_bytes] : found) TRY(remove_member(view, key, value_bytes));
    left -= found.size();
  }
  return true;
}

Status Burial::remove_member(CountedView& view, ByteView key, size_t value_bytes) {
  view.remove_found(key, value_bytes);
  return metalake_goes_ ? Status() : remove_other_end(view, key);
}

// Of a relation. What a role may do with a thing also stands with the role.
Status Burial::remove_other_end(CountedView& view, ByteView key) {
  if (const auto relation = decode<CatalogRelationKey>(key))
    return remove_stored(
        view, encode(CatalogInverseKey{relation->keyspace, relation->metalake, relation->relation,
                                       relation->to, relation->from}));
  const auto inverse = decode<CatalogInverseKey>(key);
  if (!inverse) return {};
  TRY(remove_stored(
      view, encode(CatalogRelationKey{inverse->keyspace, inverse->metalake, inverse->relation,
                                      inverse->from, inverse->to})));
  if (inverse->relation != CatalogRelation::grant) return {};
  Value place;
  TRY(view.get(place_key(keyspace(), inverse->to), place));
  if (!place.found()) return {};
  TRY_ASSIGN(const EntityPlace at, decode_place(place.bytes()));
  const CatalogRef above = at.above.empty() ? CatalogRef() : at.above.back();
  return remove_stored(
      view, encode(CatalogGrantKey{keyspace(), inverse->from.number(), above, inverse->to}));
}

// Absent: the key is no entity's.
Result<std::optional<Entity>> Burial::entity_of(ByteView key, ByteView value) const {
  constexpr size_t letters_offset = 5;
  constexpr size_t ids_offset = 8;
  const ByteView letters = key.substr(letters_offset, 2);
  const auto* const word = std::find_if(std::begin(catalog_types), std::end(catalog_types),
                                        [&](const Word& each) { return each.bytes == letters; });
  if (word == std::end(catalog_types)) return std::optional<Entity>();
  const auto type = static_cast<CatalogType>(word - std::begin(catalog_types));
  std::vector<CatalogRef> refs;
  ByteView rest = key.substr(ids_offset);
  for (size_t depth = 1; depth <= catalog_depth(type); depth++) {
    CatalogRef ref{catalog_type_at(type, depth), {}};
    if (rest.size() < ref.id_bytes()) return Error{Code::corrupt, "an entity's key is too short"};
    std::copy_n(rest.begin(), ref.id_bytes(), ref.id.begin());
    rest.remove_prefix(std::min(rest.size(), ref.id_bytes() + 1));
    refs.push_back(ref);
  }
  TRY_ASSIGN(Entity entity,
             decode_entity(std::span(refs).first(refs.size() - 1), refs.back(), value));
  return std::optional(std::move(entity));
}

// An entity below. Its name goes with it.
Status Burial::remove_below(CountedView& view, ByteView key) {
  Value stored;
  TRY(view.get(key, stored));
  if (!stored.found()) return {};
  TRY_ASSIGN(const std::optional<Entity> entity, entity_of(key, stored.bytes()));
  if (!entity) return remove_member(view, key, stored.bytes().size());
  Value named;
  const Bytes name = name_key(keyspace(), entity->above.back(), entity->ref.type, entity->name());
  TRY(view.get(name, named));
  if (!named.found()) return {};
  TRY_ASSIGN(const NamedRef names, decode_named(entity->ref.type, named.bytes()));
  if (names.ref != entity->ref) return {};  // it was dropped by itself, and its name taken
  view.remove(name, named);
  TRY_ASSIGN(const bool all, remove_members(view, *entity));
  if (all) return remove_entity(view, *entity, stored);
  view.leave_garbage(note_.due_ms, encode_ref(entity->ref), stored.bytes().size());
  return {};
}

Status Burial::remove_page(KeyPart& part) {
  std::vector<Bytes> keys;
  TRY_ASSIGN(ScanPage page, tenant_.map().engine.scan({.begin = part.from,
                                                       .end = part.end,
                                                       .entries_max = page_entries,
                                                       .bytes_max = page_bytes},
                                                      [&](ByteView key, ByteView) {
                                                        keys.emplace_back(key);
                                                        return Visit::go_on;
                                                      }));
  if (!keys.empty())
    TRY(change([&](CountedView& view) -> Status {
      for (const Bytes& key : keys) TRY(remove_below(view, key));
      return {};
    }));
  part.from = page.resume ? std::move(*page.resume) : part.end;
  return {};
}

}  // namespace

bool Catalog::is_shared(const Garbage& note) const {
  const auto ref = decode_ref(note.target);
  return ref && !types_below(ref->type).empty();
}

Result<size_t> Catalog::collect(Tenant& tenant, std::span<const Garbage> notes) {
  size_t gone = 0;
  for (const Garbage& note : notes) {
    TRY_ASSIGN(const bool is_gone, collect_one(tenant, note));
    gone += is_gone ? 1 : 0;
  }
  return gone;
}

// Absent: others have the rest. A part without an end: all are empty.
std::optional<KeyPart> Catalog::take_part(const NoteId& id,
                                          FunctionRef<std::vector<KeyPart>()> parts) {
  const std::lock_guard lock(collect_mutex_);
  auto known = under_way_.find(id);
  if (known == under_way_.end()) {
    if (under_way_.size() >= collected_at_once_max) under_way_.clear();
    known = under_way_.try_emplace(id, UnderWay{parts(), 0}).first;
  }
  UnderWay& under_way = known->second;
  if (under_way.parts.empty() && under_way.taken > 0) return std::nullopt;
  KeyPart part;
  if (!under_way.parts.empty()) {
    part = std::move(under_way.parts.back());
    under_way.parts.pop_back();
  }
  under_way.taken++;
  return part;
}

void Catalog::put_back(const NoteId& id, KeyPart part) {
  const std::lock_guard lock(collect_mutex_);
  const auto known = under_way_.find(id);
  if (known == under_way_.end() || known->second.taken == 0) return;  // forgotten meanwhile
  known->second.taken--;
  if (part.from < part.end) known->second.parts.push_back(std::move(part));
}

bool Catalog::is_under_way(const NoteId& id) {
  const std::lock_guard lock(collect_mutex_);
  return under_way_.contains(id);
}

// Some pages of it, beside others who do the same. Whether the note is gone.
Result<bool> Catalog::collect_one(Tenant& tenant, const Garbage& note) {
  const Error senseless{Code::corrupt, "a note of the catalog does not make sense"};
  TRY_ASSIGN(const CatalogRef ref, decode_ref(note.target));
  if (ref.type == CatalogType::column) return senseless;
  Value value;
  TRY(tenant.map().engine.get(place_key(tenant.id(), ref), value));
  EntityPlace place;
  place.above.resize(catalog_depth(ref.type) - 1);
  if (value.found()) {
    TRY_ASSIGN(place, decode_place(value.bytes()));
  }
  if (place.above.size() + 1 != catalog_depth(ref.type)) return senseless;
  Burial burial(tenant, note, ref, std::move(place));
  TRY_ASSIGN(const bool is_there, burial.begin());
  if (!is_there) return true;
  if (!value.found()) {
    TRY(burial.finish());
    return true;
  }
  const NoteId id{tenant.id(), burial.note_key()};
  if (!burial.is_container() && !is_under_way(id)) {
    TRY_ASSIGN(const bool all, burial.remove_small());
    if (all) return true;
  }
  for (size_t i = 0; i < pages_max; i++) {
    std::optional<KeyPart> part = take_part(id, [&] { return burial.parts(borders_); });
    if (!part) return false;
    const bool is_last = part->end.empty();
    const Status done = is_last ? burial.finish() : burial.remove_page(*part);
    put_back(id, std::move(*part));
    TRY(done);
    if (!is_last) continue;
    const std::lock_guard lock(collect_mutex_);
    under_way_.erase(id);
    return true;
  }
  return false;
}

}  // namespace trellis
