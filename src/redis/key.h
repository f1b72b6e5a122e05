// The Redis keys of one tenant, inside one transaction.
//
//   TRY_ASSIGN(Key* const key, keys.open(database, "cart"));
//   if (!key->exists()) key->create(RedisType::hash, keys.new_version());
//   TRY(keys.put_sub(*key, "field", "value"));
//   key->set_size(key->size() + 1);
//   TRY(keys.finish());     // once, at the end of the transaction
//
// A key is opened once, and its record is written once, by finish(), which also settles what the
// change of its life means: the records of a life that ended become garbage, its expiry is noted,
// the database's keys are counted. A key whose time has come is not there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <set>
#include <vector>

#include "codec/redis_metadata.h"
#include "redis/databases.h"
#include "redis/record_keys.h"
#include "redis/staging.h"
#include "redis/versions.h"
#include "redis/watch.h"
#include "tenant/tenant.h"

namespace trellis {

// Whether clients see a key with that record: its time has not come, and it is no empty collection,
// of which Kvrocks leaves records.
bool is_visible(const RedisMetadata& metadata, uint64_t now_ms);

class FieldExpiry;
class FieldTimes;
class Fences;
class FenceBooks;
struct FenceBook;
class StreamGroup;
// What is a string to clients: a bitmap is one too (redis/bitmap.h).
constexpr bool is_text(RedisType type) {
  return type == RedisType::string || type == RedisType::bitmap;
}

class Key {
 public:
  bool exists() const { return exists_; }
  // All of these REQUIRE: exists().
  RedisType type() const { return now_.type; }
  uint64_t size() const { return now_.size - over_.size(); }
  uint64_t version() const { return now_.version; }
  uint64_t expire_ms() const { return now_.expire_ms; }  // 0: never
  ByteView text() const { return now_.payload; }         // of a string, or see load_text
  uint64_t head() const { return now_.head; }            // of a list
  uint64_t tail() const { return now_.tail; }
  const RedisMetadata::Stream& stream() const { return now_.stream; }
  bool has_fences() const { return now_.has_fences; }
  uint64_t next_field_ms() const { return now_.next_field_ms; }  // of a hash; 0: none expires
  // Also those that clients do not see any more.
  uint64_t stored_size() const { return now_.size; }
  // Whether the collector's note about its fields that expire is one of that life and time.
  bool has_field_note(uint64_t version, uint64_t due_ms) const {
    return stored_.found() && was_.version == version && was_.next_field_ms == due_ms;
  }
  // Of a field of a hash: its time has come. REQUIRES: it was opened with Keys::open.
  bool is_over(ByteView field) const { return over_.contains(field); }

  // As it is stored, also if its time has come; 0: never, or there is no record.
  uint64_t stored_expire_ms() const { return stored_.found() ? was_.expire_ms : 0; }

  ByteView name() const { return name_; }
  ByteView stored_key() const { return stored_key_; }

  // A new life, without expiry and empty. Not for strings.
  void create(RedisType type, uint64_t version);
  // Becomes a string; one that was a string to clients keeps its expiry.
  void set_text(Bytes text);
  // Of a bitmap: what it is as a string, for text(), until its size is set. See Keys::keep_text.
  void keep_text(Bytes text);
  void forget_text();
  void set_expire(uint64_t expire_ms);
  // Of a collection; one that is empty is not there. Of a bitmap: its bytes.
  void set_size(uint64_t size);
  void set_ends(uint64_t head, uint64_t tail);  // of a list; its size is what lies between
  // Of a stream, which is there also if it is empty.
  void set_stream(uint64_t size, const RedisMetadata::Stream& stream);
  // What whoever watches the key is not told of, as in Redis: its groups and its last id.
  void set_stream_quietly(const RedisMetadata::Stream& stream);
  void remove();
  // What is left of it goes too: of one whose time has come.
  void drop();

 private:
  friend class FieldExpiry;
  friend class FieldTimes;
  friend class Keys;
  friend class StreamGroup;
  struct Life {
    uint64_t version;
    uint64_t size;
    std::optional<uint64_t> record_bytes;
  };
  void end_life();
  // Adds up what was written to its records.
  void count_written();
  void touch();

  uint16_t slot_ = 0;
  ByteView stored_key_;
  ByteView name_;      // the end of it
  Value stored_;       // as it was read
  RedisMetadata was_;  // decoded; meaningful if stored_ is found
  bool exists_ = false;
  RedisMetadata now_;
  Bytes text_;  // what now_.payload points to, once it was changed
  bool changed_ = false;
  bool is_told_ = false;  // to whoever watches it
  bool is_new_life_ = false;
  std::vector<Life> ended_;  // lives with records of their own
  // What writes made of the bytes of the records of this life, as far as now_ does not say it.
  mutable int64_t written_bytes_ = 0;
  // What records of the life of that version begin with, in some table; empty: nobody has asked.
  mutable Bytes life_prefix_;
  mutable uint64_t life_prefix_version_ = 0;
  // As far as this transaction has seen there are "z" records of this life only from here, and only
  // to before there; empty: not known. Pops would else pass all that was popped before, each time.
  mutable Bytes scores_begin_;
  mutable Bytes scores_end_;
  // Of members that came and went since its fences were written: where, and how many.
  mutable std::vector<std::pair<Bytes, int64_t>> uncounted_;
  mutable std::shared_ptr<FenceBook> book_;  // of its fences; null: nobody has asked yet
  mutable uint64_t book_version_ = 0;
  // Of a stream: the one that was used last, whose records are written later. May be null.
  mutable std::shared_ptr<StreamGroup> group_;
  // Fields whose time has come, and that are stored as yet; if has_unknown_ there may be more.
  mutable std::set<Bytes, std::less<>> over_;
  mutable bool has_unknown_ = false;
  mutable bool has_others_ = false;  // it is known that not all are over
};

class Keys {
 public:
  // `slots` is what the transaction's scope was made of. Who watches a key that changes is told.
  // `books` may be null. With `staging` new lives may be larger than a commit. `own_watch`: of
  // EXEC, which must not break what it watches itself, for it may have to start over.
  Keys(CountedView& view, KeyspaceId keyspace, Versions& versions, WatchTable& watches,
       FenceBooks* books, const DatabaseSlots& slots, uint64_t now_ms, Staging* staging = nullptr,
       WatchFlag own_watch = nullptr)
      : view_(view),
        keyspace_(keyspace),
        versions_(versions),
        watches_(watches),
        books_(books),
        slots_(slots),
        now_ms_(now_ms),
        staging_(staging),
        own_watch_(std::move(own_watch)) {}
  ~Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  uint64_t now_ms() const { return now_ms_; }
  KeyspaceId keyspace() const { return keyspace_; }
  uint64_t new_version();
  CountedView& view() { return view_; }
  // Of a transaction that only reads.
  void forbid_writes() { may_write_ = false; }
  bool may_write() const { return may_write_; }

  // Reads the records of those that are not open yet, together.
  struct Name {
    uint32_t database;
    ByteView name;
    bool operator==(const Name&) const = default;
  };
  Status prefetch(std::span<const Name> names);
  Result<Key*> open(uint32_t database, ByteView name) { return open_in(slots_.of(database), name); }
  Result<Key*> open_in(uint16_t slot, ByteView name);
  // The same for who names each field of a hash that it looks at, or looks at none: what fields are
  // over is not looked for, they may be many. They are counted in its size, and it may have no
  // others.
  Result<Key*> open_by_field(uint32_t database, ByteView name) {
    return open_by_field_in(slots_.of(database), name);
  }
  Result<Key*> open_by_field_in(uint16_t slot, ByteView name);
  // The same, but it has others if it is there.
  Result<Key*> open_whole(uint32_t database, ByteView name);

  // Reads such records together, so that to get them costs less. Only a hint.
  struct Sub {
    const Key* key;
    Bytes sub;
  };
  Status prefetch_subs(std::span<const Sub> subs);
  // Lets a bitmap have a text: only one has at a time, for each may be large.
  void keep_text(Key& key, Bytes text);
  // A record of a collection, by field, member or index ("s" records), or of a stream ("t").
  Status get_sub(const Key& key, ByteView sub, Value& value);
  Status get_subs(const Key& key, std::span<const ByteView> subs, std::span<Value> values);
  // `old` is what get_sub gave; absent if there can be none.
  void put_sub(const Key& key, ByteView sub, ByteView value, const Value& old);
  // New ones of a bitmap, in order, with the keys that they are stored under.
  void put_new(const Key& key, WriteSet puts);
  void remove_sub(const Key& key, ByteView sub, const Value& old);
  // In the order of subs, from `begin` to before `end` (empty: all), until the visitor stops.
  using SubVisitor = FunctionRef<Visit(ByteView sub, ByteView value)>;
  struct SubRange {
    ByteView begin = {};
    ByteView end = {};
    bool reverse = false;
    ScanRequest::Reading reading = ScanRequest::Reading::often;
    // About how many are wanted, where that is known: engines that fetch pages fetch no more.
    size_t page_entries = scan_page_entries_max;
  };
  Status scan_subs(const Key& key, const SubRange& range, SubVisitor visit);

  // A sorted set's members by score ("z" records). -0.0 counts as 0.0.
  // put_score REQUIRES: the member has no record with that score.
  void put_score(const Key& key, double score, ByteView member);
  void remove_score(const Key& key, double score, ByteView member);
  using ScoreVisitor = FunctionRef<Visit(double score, ByteView member)>;
  struct ScoreRange {
    // Where the order by (score, member) begins and ends; a member left empty is before all others.
    double begin_score;
    ByteView begin_member = {};
    double end_score;  // exclusive, unless end_is_inclusive: then all of that score
    ByteView end_member = {};
    bool end_is_inclusive = true;
    bool reverse = false;
    ByteView from = {};  // a place to begin at, in the direction of the scan; empty: none
  };
  Status scan_scores(const Key& key, const ScoreRange& range, ScoreVisitor visit);

  // So many entries of a stream, up to that id, which it has forgotten: the collector removes them.
  // REQUIRES: the id is larger with every call in a life.
  void leave_trimmed(const Key& key, StreamId last, uint64_t entries);
  // Places in the order of a collection (redis/fences.h): the subs of a set or hash, of a sorted
  // set what scored_place gives. Where there are no fences it is walked.
  // How many members are before a place.
  Result<uint64_t> count_before(const Key& key, ByteView place);
  // The place of the member with so many before it. REQUIRES: there is one.
  Result<Bytes> nth_place(const Key& key, uint64_t index);
  // Does some of what was left to the collector; what to do with its note is said.
  enum class FencesNote : uint8_t { stays, is_for_later, goes };
  Result<FencesNote> tend_fences(const Key& key);
  // A note for it, due in such a time.
  void leave_fences(const Key& key, uint64_t in_ms);
  // What records of any life begin with, here and in the view: for scans of several at a time.
  Bytes subs_prefix(const Key& key) const { return sub_key(key, {}); }
  // Of who writes more and more: whether that is still one commit, or is staged.
  Status check_written(size_t bytes) const;

  // A new life with the same records, or those in `kept`; its size and ends stay as they are.
  // REQUIRES: it exists and is a collection; a sorted set keeps all.
  Status renew(Key& key, const SubRange& kept);
  // What `from` is, with its expiry. REQUIRES: from exists, and is another key.
  Status copy(const Key& from, Key& to);

  // What became of the parts that were committed ahead. If that is an error it is the reason for
  // whatever else fails.
  const Status& staged() const { return staged_; }

  // Writes what changed: once, at the end.
  Status finish();
  // The same on the way, so that scans see it. REQUIRES: nobody holds an opened key.
  Status settle();

  // All of these settle, and REQUIRE the keyspace to itself, but for the first.
  const DatabaseSlots& slots() const { return slots_; }
  bool has_new_slots() const { return has_new_slots_; }
  Result<int64_t> count_keys(uint32_t database);  // also those whose time has come
  // Takes all keys from a database at once; the collector removes them.
  Status flush(uint32_t database);
  Status swap(uint32_t database, uint32_t other);

 private:
  friend class FieldExpiry;
  friend class FieldTimes;
  friend class Fences;
  struct StoredName {
    uint16_t slot;
    ByteView name;
  };
  // Where one that is open is found by its name.
  struct Place {
    uint32_t hash;
    uint32_t number = 0;  // of keys_, from 1; 0: empty
  };
  // A life of which something is committed ahead, or to be.
  struct StagedLife {
    Bytes target;
    Bytes subs;    // what its records begin with
    Bytes scores;  // of a sorted set
    Bytes fences;
    Bytes fields;  // of a hash: when they expire
    bool is_noted = false;
    bool is_written = false;  // since the last part
  };
  // Of a key that is open, or null; then `place` says where it goes.
  Key* find(const StoredName& name, Place*& place);
  Key& add(const StoredName& name, Place& place);
  void grow_places();
  Status read(Key& key);
  Status write(Key& key);
  // What commands left to be written of the group that they used.
  static void write_group(const Key& key);
  Status hide_over(const Key& key);
  // What the records of its life in a table begin with; there is room for `more_bytes` behind it.
  Bytes prefix_in(char table, const Key& key, size_t more_bytes = 0) const;
  Bytes sub_key(const Key& key, ByteView sub) const;
  Bytes score_key(const Key& key, double score, ByteView member) const;
  Bytes scores_prefix(const Key& key) const { return prefix_in('z', key); }
  Bytes fences_prefix(const Key& key) const { return prefix_in('c', key); }
  Bytes fields_prefix(const Key& key) const { return prefix_in('h', key); }
  Bytes places_prefix(const Key& key) const;  // of the records that are counted
  void put(const Key& key, ByteView stored_key, ByteView value, const Value& old);
  void remove(const Key& key, ByteView stored_key, const Value& old);
  void note_written(const Key& key, size_t written_bytes, int64_t difference_bytes);
  // REQUIRES: staging_.
  void stage(const Key& key, size_t written_bytes, int64_t difference_bytes);
  Status commit_ahead();
  // A new life of `to` as another is, which may be its own, with those records that are kept.
  Status live_on(const Key& from, const SubRange& kept, Key& to);
  // Of an interval of records that begin with `from`: they come to begin with `to`.
  Status copy_records(ByteView from, Bytes begin, const Bytes& end, const Key& key, ByteView to);
  Status scan(ByteView prefix, Bytes begin, Bytes end, bool reverse,
              FunctionRef<Visit(ByteView, ByteView)> visit,
              ScanRequest::Reading reading = ScanRequest::Reading::often,
              size_t page_entries = scan_page_entries_max);

  // A scan from an end begins where the members do.
  Status narrow(const Key& key, bool reverse, Bytes& begin, Bytes& end);
  static void note_count(const Key& key, ByteView place, int64_t difference);
  Status count_noted(const Key& key);
  void write_notes(const Key& key);
  Status write_fences(Key& key);
  std::shared_ptr<FenceBook> book_of(const Key& key, ByteView collection);
  // Its book is about to change.
  void own_book(const Key& key, ByteView collection);

  Status write_changed();
  void forget_opened();
  void touch(const Key& key);
  // Who watches a key of `database` that is there now, or will be there with that slot.
  Status touch_all(uint32_t database, uint16_t next_slot);
  Result<uint16_t> free_slot();
  Result<bool> is_empty(uint16_t slot);
  Status store_slots();

  CountedView& view_;
  const KeyspaceId keyspace_;
  Versions& versions_;
  WatchTable& watches_;
  FenceBooks* const books_;  // may be null
  DatabaseSlots slots_;
  bool has_new_slots_ = false;
  bool may_write_ = true;
  const uint64_t now_ms_;
  Staging* const staging_;                // may be null; then the rest of it is not used
  std::map<uint64_t, StagedLife> lives_;  // by version: all that began here
  size_t written_bytes_ = 0;              // to new lives, since the last part
  int64_t difference_bytes_ = 0;          // what they came to
  Status staged_;                         // what became of the parts
  const WatchFlag own_watch_;             // may be null
  MetadataKeys metadata_keys_{keyspace_};
  Bytes record_;  // as long as it is needed: its memory is used again
  Key* with_text_ = nullptr;
  // Keys, what they are called and what leads to them.
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::vector<Key*> keys_{&memory_};  // in the order in which they were opened
  // A power of two of them, half of them empty at least; who is not where the hash says is behind.
  std::pmr::vector<Place> places_{&memory_};
};

// What a counter of keys holds.
Result<int64_t> stored_count(const Value& counter);

}  // namespace trellis
