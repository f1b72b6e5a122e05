// Consumer groups of streams: what was delivered to whom, and is not acknowledged yet.
//
//   ff*8 | 01 | group                      -> consumers, pending, last id, entries read; furthest
//   ff*8 | 02 | group | consumer           -> pending, times
//   ff*8 | 03 | group | id                 -> when, how often, to whom
//   ff*8 | 04 | group | consumer | id      -> nothing: the same by consumer
//
// (codec/redis_keys.h.) The last two are written and removed together, here and nowhere else, and
// the counters of the group and of the consumer with them; these are written once for all that the
// commands of a transaction do, before somebody else looks (Keys::write_group).
#pragma once

#include <map>

#include "redis/stream.h"

namespace trellis {

// What Redis does not know of how many entries a group has read.
constexpr int64_t entries_read_unknown = -1;

struct PendingEntry {
  StreamId id;
  uint64_t delivered_ms = 0;
  uint64_t deliveries = 0;
  Bytes consumer = {};
};

class StreamGroup {
 public:
  struct Consumer {
    StreamConsumerValue value = {};
    Value stored = {};
    Bytes written = {};  // since, by save()
    bool exists = false;
    bool changed = false;
  };

  // Null: there is none of that name, or no stream. Valid until another one of the key is opened,
  // or this one destroyed. What changes in it need not be saved.
  static Result<StreamGroup*> open(Keys& keys, const Key& key, ByteView name);
  // REQUIRES: there is none of that name.
  static StreamGroup create(Keys& keys, Key& key, ByteView name, StreamId last,
                            int64_t entries_read);

  ByteView name() const { return name_; }
  uint64_t consumers() const { return value_.consumers; }
  uint64_t pending() const { return value_.pending; }
  StreamId last() const { return {value_.last_ms, value_.last_seq}; }
  int64_t entries_read() const { return value_.entries_read; }
  void set_last(const StreamId& id);
  void set_entries_read(int64_t count);
  // Goes on to an entry that was delivered.
  void pass(const StreamId& id);
  // How many entries there are behind what it has read. Absent: that cannot be told.
  std::optional<int64_t> lag() const;

  // Valid as long as the group is.
  Result<Consumer*> consumer(ByteView name);
  // Makes it if it is not there, and notes that it was seen. Says whether it was made.
  Result<bool> see(ByteView name);
  // The same for one that got something.
  Status serve(ByteView name);
  // Makes one that was seen then. REQUIRES: it is not there.
  Status add_consumer(ByteView name, uint64_t seen_ms);
  // With all that is pending. Says how much that was. REQUIRES: it is there.
  Result<uint64_t> remove_consumer(ByteView name);

  // By name.
  Result<std::map<Bytes, StreamConsumerValue>> all_consumers() const;

  using Pending = std::optional<PendingEntry>;
  Result<std::vector<Pending>> get_pending(std::span<const StreamId> ids) const;
  // In order, of all or of one consumer. The visitor must not use `Keys`.
  using PendingVisitor = FunctionRef<Visit(const PendingEntry& entry)>;
  Status visit_pending(std::optional<ByteView> consumer, const IdRange& range,
                       PendingVisitor visit) const;
  // The first and the last. REQUIRES: there are some.
  Result<IdRange> pending_ends() const;
  // `was` is what get_pending says. The consumer must be there.
  Status put_pending(const PendingEntry& entry, const Pending& was);
  Status remove_pending(const PendingEntry& was);

  // With all that it has; it was opened.
  Status destroy(Key& key);
  // Of one that was created. Once more costs nothing.
  void save();

 private:
  StreamGroup(Keys& keys, const Key& key, ByteView name) : keys_(&keys), key_(&key), name_(name) {}
  // Of one of the kinds of records above.
  Bytes prefix(char kind) const;
  Status read(ByteView stored);
  Result<uint64_t> remove_all(const Bytes& prefix);

  Keys* keys_;
  const Key* key_;
  Bytes name_;
  StreamGroupValue value_ = {};
  StreamId furthest_;  // nothing behind it is pending
  Value stored_;
  Bytes written_;  // since, by save()
  bool changed_ = false;
  std::map<Bytes, Consumer, std::less<>> known_;
};

// Of the record of what is pending.
Bytes pending_sub(ByteView group, const StreamId& id);

// The names of all groups, in order.
Result<std::vector<Bytes>> group_names(Keys& keys, const Key& key);

// How many entries were added up to that id, as Redis guesses it.
int64_t entries_up_to(const Key& key, const StreamId& id);

}  // namespace trellis
