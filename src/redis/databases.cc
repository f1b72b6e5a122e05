#include "redis/databases.h"

#include <algorithm>

namespace trellis {
namespace {

constexpr char slots_format = 0x01;
constexpr size_t number_bytes = 2;
constexpr size_t stored_bytes = 1 + number_bytes * (1 + databases_max);

}  // namespace

std::optional<uint32_t> DatabaseSlots::database_of(uint16_t slot) const {
  const auto found = std::find(slots.begin(), slots.end(), slot);
  if (found == slots.end()) return std::nullopt;
  return static_cast<uint32_t>(found - slots.begin());
}

DatabaseSlots initial_slots() {
  DatabaseSlots initial{.next = databases_max};
  for (uint32_t i = 0; i < databases_max; i++) initial.slots[i] = static_cast<uint16_t>(i);
  return initial;
}

Bytes encode_slots(const DatabaseSlots& slots) {
  Bytes out(1, slots_format);
  append_be16(out, slots.next);
  for (const uint16_t slot : slots.slots) append_be16(out, slot);
  return out;
}

Result<DatabaseSlots> decode_slots(const Value& stored) {
  if (!stored.found()) return initial_slots();
  const ByteView bytes = stored.bytes();
  if (bytes.size() != stored_bytes || bytes[0] != slots_format)
    return Error{Code::corrupt, "the record of the slots of databases does not make sense"};
  const auto number = [&](size_t i) {
    return static_cast<uint16_t>(load_be(bytes.data() + 1 + i * number_bytes, number_bytes));
  };
  DatabaseSlots slots{.next = number(0)};
  for (uint32_t i = 0; i < databases_max; i++) slots.slots[i] = number(1 + i);
  return slots;
}

DatabaseSlots Databases::last() const {
  DatabaseSlots seen{.revision = revision_.load(std::memory_order_acquire)};
  for (uint32_t i = 0; i < databases_max; i++)
    seen.slots[i] = slots_[i].load(std::memory_order_relaxed);
  seen.next = next_.load(std::memory_order_relaxed);
  return seen;
}

void Databases::publish(const DatabaseSlots& slots) {
  for (uint32_t i = 0; i < databases_max; i++)
    slots_[i].store(slots.slots[i], std::memory_order_relaxed);
  next_.store(slots.next, std::memory_order_relaxed);
  revision_.fetch_add(1, std::memory_order_release);
}

Status Databases::reload(const Tenant& tenant) {
  const std::lock_guard lock(mutex_);
  if (tenant.map().latched() && !doubtful_.load()) return {};
  Value stored;
  TRY(tenant.map().engine.get(encode(RedisDatabasesKey{tenant.id()}), stored));
  TRY_ASSIGN(const DatabaseSlots slots, decode_slots(stored));
  if (doubtful_.load() || !slots.same_as(last())) publish(slots);
  doubtful_.store(false);
  return {};
}

Result<DatabaseSlots> Databases::current(Tenant& tenant) {
  if (!tenant.map().latched()) {
    TRY(reload(tenant));
  } else if (doubtful_.load()) {
    // Under this latch nobody is changing it.
    TRY(tenant.map().transactor.transact(
        Scope::in(tenant.id()), [&](View&) { return reload(tenant); }, Durability::off));
  }
  return last();
}

Status Databases::check(const Tenant& tenant, CountedView& view, const DatabaseSlots& seen) {
  const auto changed = [] {
    return Error{Code::conflict, "the slots of the databases changed", slots_changed};
  };
  if (tenant.map().latched()) {
    if (doubtful_.load()) TRY(reload(tenant));
    if (revision_.load(std::memory_order_acquire) == seen.revision) return {};
    return changed();
  }
  Value stored;
  TRY(view.get(encode(RedisDatabasesKey{tenant.id()}), stored));
  TRY_ASSIGN(const DatabaseSlots slots, decode_slots(stored));
  if (slots.same_as(seen)) return {};
  const std::lock_guard lock(mutex_);
  publish(slots);
  return changed();
}

}  // namespace trellis
