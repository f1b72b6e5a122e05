// Which slot each database of a keyspace has. Keys, notes and counters are stored under slots.
//
// SWAPDB exchanges two slots, and FLUSHDB gives its database one that holds nothing: both write one
// record ('x' keyspace 'd' 'n', below) whatever the databases hold. Without the record each
// database has the slot of its number.
//
//   | 01 | the next slot to try u16 | slot u16 of each database |
//
// Who changes the record has the keyspace to itself. All others name their keys by what the process
// last saw of it, and look in their transaction whether that still holds; if not they start over.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "codec/redis_keys.h"
#include "tenant/tenant.h"

namespace trellis {

inline constexpr uint32_t databases_max = 16;

struct DatabaseSlots {
  std::array<uint16_t, databases_max> slots = {};
  uint16_t next = 0;
  uint64_t revision = 0;  // of what this process saw; not stored

  uint16_t of(uint32_t database) const { return slots[database]; }
  // Absent: what is in the slot is no database's any more.
  std::optional<uint32_t> database_of(uint16_t slot) const;
  bool same_as(const DatabaseSlots& other) const {
    return slots == other.slots && next == other.next;
  }
};

DatabaseSlots initial_slots();
Bytes encode_slots(const DatabaseSlots& slots);
Result<DatabaseSlots> decode_slots(const Value& stored);

// The reason of an error that says: another transaction changed the slots, start over.
inline constexpr std::string_view slots_changed = "slots_changed";

// Of one keyspace in this process. Any thread.
class Databases {
 public:
  // What was last seen: cheap, and perhaps old.
  DatabaseSlots last() const;
  // As of now, for who reads in no transaction.
  Result<DatabaseSlots> current(Tenant& tenant);
  // In a transaction of the keyspace: whether `seen` is what is stored, else slots_changed. Where
  // nothing is latched its scope has to name the record.
  Status check(const Tenant& tenant, CountedView& view, const DatabaseSlots& seen);
  // The record is about to change. REQUIRES: the caller has the keyspace to itself.
  void doubt() { doubtful_.store(true); }

 private:
  Status reload(const Tenant& tenant);
  void publish(const DatabaseSlots& slots);  // REQUIRES: mutex_ is held

  std::atomic<bool> doubtful_{true};
  // Goes up behind each change of the slots: who saw some of both saw the old one.
  std::atomic<uint64_t> revision_{0};
  std::array<std::atomic<uint16_t>, databases_max> slots_ = {};
  std::atomic<uint16_t> next_{0};
  std::mutex mutex_;
};

}  // namespace trellis
