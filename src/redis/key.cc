#include "redis/key.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>

#include "base/assert.h"
#include "codec/address.h"
#include "codec/counter_value.h"
#include "codec/redis_keys.h"
#include "codec/system_keys.h"
#include "redis/fence_book.h"
#include "redis/fences.h"
#include "redis/field_expiry.h"
#include "redis/stream_group.h"

namespace trellis {
namespace {

// What a record of a collection takes on the disk, roughly: for `explain`, nothing else.
constexpr uint64_t record_bytes_guess = 64;

}  // namespace

// --- a key ---

bool is_visible(const RedisMetadata& metadata, uint64_t now_ms) {
  const bool is_counted = metadata.type != RedisType::string && metadata.type != RedisType::stream;
  return (metadata.expire_ms == 0 || metadata.expire_ms > now_ms) &&
         !(is_counted && metadata.size == 0);
}

void Key::touch() { changed_ = is_told_ = true; }

void Key::count_written() {
  const int64_t written = std::exchange(written_bytes_, 0);
  if (!now_.record_bytes) return;
  const uint64_t bytes = *now_.record_bytes + static_cast<uint64_t>(written);
  // Less than nothing cannot be: then who removes them counts them.
  const bool is_possible = written >= 0 || bytes < *now_.record_bytes;
  now_.record_bytes = is_possible ? std::optional(bytes) : std::nullopt;
}

void Key::end_life() {
  count_written();
  uncounted_.clear();
  group_.reset();
  over_.clear();
  has_unknown_ = false;
  if (exists_ && now_.type != RedisType::string) {
    const bool in_fragments = now_.type == RedisType::bitmap;
    ended_.push_back({now_.version,
                      in_fragments ? now_.size / redis_bitmap_fragment_bytes + 1 : now_.size,
                      now_.record_bytes});
  }
  now_ = {};
  exists_ = false;
}

void Key::create(RedisType type, uint64_t version) {
  ASSERT(type != RedisType::string);
  end_life();
  touch();
  scores_begin_.clear();
  scores_end_.clear();
  exists_ = true;
  is_new_life_ = true;
  now_.type = type;
  now_.version = version;
  if (may_know_bytes(type)) now_.record_bytes = 0;
  if (type == RedisType::list) now_.head = now_.tail = redis_list_middle;
}

void Key::set_text(Bytes text) {
  if (exists_ && now_.type != RedisType::string) {
    const uint64_t expire_ms = is_text(now_.type) ? now_.expire_ms : 0;
    end_life();
    now_.expire_ms = expire_ms;
  }
  touch();
  exists_ = true;
  now_.type = RedisType::string;
  text_ = std::move(text);
  now_.payload = text_;
}

void Key::keep_text(Bytes text) {
  ASSERT(exists_ && now_.type == RedisType::bitmap);
  text_ = std::move(text);
  now_.payload = text_;
}

void Key::forget_text() {
  if (now_.type != RedisType::bitmap) return;
  now_.payload = {};
  Bytes().swap(text_);  // its memory too
}

void Key::set_expire(uint64_t expire_ms) {
  ASSERT(exists_);
  // The same time again is a change to whoever watches the key.
  if (now_.expire_ms == 0 && expire_ms == 0) return;
  touch();
  now_.expire_ms = expire_ms;
}

void Key::set_size(uint64_t size) {
  ASSERT(exists_);
  touch();
  now_.payload = {};
  now_.size = size + over_.size();
  if (size == 0) remove();
}

void Key::set_ends(uint64_t head, uint64_t tail) {
  ASSERT(exists_ && now_.type == RedisType::list && head <= tail);
  now_.head = head;
  now_.tail = tail;
  set_size(tail - head);
}

void Key::set_stream(uint64_t size, const RedisMetadata::Stream& stream) {
  ASSERT(exists_ && now_.type == RedisType::stream);
  touch();
  now_.size = size;
  now_.stream = stream;
}

void Key::set_stream_quietly(const RedisMetadata::Stream& stream) {
  ASSERT(exists_ && now_.type == RedisType::stream);
  changed_ = true;
  now_.stream = stream;
}

void Key::remove() {
  if (!exists_) return;
  touch();
  // One that was emptied record by record has nothing left to collect, but for fences; a stream may
  // have groups.
  if (now_.type != RedisType::string && now_.type != RedisType::stream && now_.size == 0 &&
      !now_.has_fences) {
    now_ = {};
    exists_ = false;
    return;
  }
  end_life();
}

void Key::drop() {
  remove();
  if (stored_.found()) touch();
}

// --- opening ---

Keys::~Keys() { forget_opened(); }

void Keys::forget_opened() {
  with_text_ = nullptr;
  for (Key* const key : keys_) key->~Key();
  keys_.clear();
  std::fill(places_.begin(), places_.end(), Place{});
}

void Keys::grow_places() {
  constexpr size_t places_min = 16;
  const auto old = std::exchange(
      places_, std::pmr::vector<Place>(std::max(places_min, 2 * places_.size()), &memory_));
  for (const Place& place : old) {
    if (place.number == 0) continue;
    size_t i = place.hash % places_.size();
    while (places_[i].number != 0) i = (i + 1) % places_.size();
    places_[i] = place;
  }
}

Key* Keys::find(const StoredName& name, Place*& place) {
  if (2 * keys_.size() >= places_.size()) grow_places();
  const size_t mask = places_.size() - 1;
  const auto hash = static_cast<uint32_t>(std::hash<ByteView>{}(name.name) + name.slot);
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    place = &places_[i];
    if (place->number == 0) break;
    Key* const key = keys_[place->number - 1];
    if (place->hash == hash && key->slot_ == name.slot && key->name_ == name.name) return key;
  }
  place->hash = hash;
  return nullptr;
}

Key& Keys::add(const StoredName& name, Place& place) {
  const ByteView encoded = metadata_keys_.of(name.slot, name.name);
  auto* const stored_key = static_cast<char*>(memory_.allocate(encoded.size(), 1));
  std::copy(encoded.begin(), encoded.end(), stored_key);
  Key* const key = new (memory_.allocate(sizeof(Key), alignof(Key))) Key();
  key->slot_ = name.slot;
  key->stored_key_ = {stored_key, encoded.size()};
  key->name_ = key->stored_key_.substr(encoded.size() - name.name.size());
  keys_.push_back(key);
  place.number = static_cast<uint32_t>(keys_.size());
  return *key;
}

Status Keys::read(Key& key) {
  if (!key.stored_.found()) return {};
  auto metadata = decode_redis_metadata(key.stored_.bytes());
  if (!metadata)
    return with_context(fmt::format("the record of Redis key {}", quote(key.name_)),
                        std::move(metadata).error());
  key.was_ = *metadata;
  if (!is_visible(*metadata, now_ms_)) {
    if (metadata->type != RedisType::string)
      key.ended_.push_back({key.was_.version, key.was_.size, key.was_.record_bytes});
    return {};
  }
  key.exists_ = true;
  key.now_ = *metadata;
  key.now_.encoding = 1;
  key.has_unknown_ = key.now_.next_field_ms != 0 && key.now_.next_field_ms <= now_ms_;
  if (staging_ != nullptr && key.now_.type != RedisType::string &&
      !lives_.contains(key.now_.version) && staging_->renewed.contains(key.stored_key_))
    TRY(renew(key, {}));
  return {};
}

Status Keys::prefetch(std::span<const Name> names) {
  std::vector<Key*> added;
  std::vector<ByteView> wanted;
  added.reserve(names.size());
  wanted.reserve(names.size());
  for (const Name& name : names) {
    const StoredName stored{slots_.of(name.database), name.name};
    Place* place = nullptr;
    if (find(stored, place) != nullptr) continue;
    added.push_back(&add(stored, *place));
    wanted.push_back(added.back()->stored_key_);
  }
  if (added.empty()) return {};
  std::vector<Value> values(added.size());
  TRY(view_.multi_get(wanted, values));
  for (size_t i = 0; i < added.size(); i++) {
    added[i]->stored_ = std::move(values[i]);
    TRY(read(*added[i]));
  }
  return {};
}

Status Keys::hide_over(const Key& key) {
  if (!std::exchange(key.has_unknown_, false)) return {};
  return FieldTimes(*this, key).find_over();
}

Result<Key*> Keys::open_in(uint16_t slot, ByteView name) {
  TRY_ASSIGN(Key* const key, open_by_field_in(slot, name));
  if (!key->has_unknown_) return key;
  TRY(hide_over(*key));
  if (key->size() == 0) key->end_life();
  return key;
}

Result<Key*> Keys::open_whole(uint32_t database, ByteView name) {
  TRY_ASSIGN(Key* const key, open_by_field(database, name));
  if (!key->has_unknown_ || key->has_others_) return key;
  TRY_ASSIGN(key->has_others_, FieldTimes(*this, *key).has_others());
  if (!key->has_others_) key->end_life();
  return key;
}

Result<Key*> Keys::open_by_field_in(uint16_t slot, ByteView name) {
  Place* place = nullptr;
  if (Key* const known = find({slot, name}, place); known != nullptr) return known;
  Key& key = add({slot, name}, *place);
  TRY(view_.get(key.stored_key_, key.stored_));
  TRY(read(key));
  return &key;
}

void Keys::keep_text(Key& key, Bytes text) {
  if (with_text_ != nullptr) with_text_->forget_text();
  with_text_ = &key;
  key.keep_text(std::move(text));
}

// --- records of collections ---

Bytes Keys::prefix_in(char table, const Key& key, size_t more_bytes) const {
  if (key.life_prefix_.empty() || key.life_prefix_version_ != key.now_.version) {
    key.life_prefix_version_ = key.now_.version;
    key.life_prefix_ = redis_life_prefix(keyspace_, table, key.slot_, key.name_, key.now_.version);
  }
  Bytes prefix;
  prefix.reserve(key.life_prefix_.size() + more_bytes);
  prefix += key.life_prefix_;
  prefix[redis_table_offset] = table;
  return prefix;
}

Bytes Keys::sub_key(const Key& key, ByteView sub) const {
  const char table = key.now_.type == RedisType::stream ? 't' : 's';
  Bytes stored = prefix_in(table, key, sub.size());
  stored += sub;
  return stored;
}

Bytes Keys::score_key(const Key& key, double score, ByteView member) const {
  Bytes stored = scores_prefix(key);
  stored += scored_place(score, member);
  return stored;
}

Status Keys::prefetch_subs(std::span<const Sub> subs) {
  std::vector<Bytes> keys;
  std::vector<ByteView> views;
  keys.reserve(subs.size());
  for (const Sub& sub : subs) views.push_back(keys.emplace_back(sub_key(*sub.key, sub.sub)));
  return view_.prefetch(views);
}

Status Keys::get_sub(const Key& key, ByteView sub, Value& value) {
  if (key.has_unknown_) return get_subs(key, {&sub, 1}, {&value, 1});
  if (!key.over_.empty() && key.is_over(sub)) {
    value.set_absent();
    return {};
  }
  return view_.get(sub_key(key, sub), value);
}

Status Keys::get_subs(const Key& key, std::span<const ByteView> subs, std::span<Value> values) {
  std::vector<Bytes> keys;
  std::vector<ByteView> views;
  keys.reserve(subs.size());
  for (const ByteView sub : subs) views.push_back(keys.emplace_back(sub_key(key, sub)));
  TRY(view_.multi_get(views, values));
  for (size_t i = 0; i < subs.size() && !key.over_.empty(); i++)
    if (key.is_over(subs[i])) values[i].set_absent();
  if (!key.has_unknown_) return {};
  TRY_ASSIGN(const std::vector<uint64_t> times, FieldTimes(*this, key).times(subs));
  for (size_t i = 0; i < subs.size(); i++)
    if (times[i] != 0 && times[i] <= now_ms_) values[i].set_absent();
  return {};
}

void Keys::note_written(const Key& key, size_t written_bytes, int64_t difference_bytes) {
  key.written_bytes_ += difference_bytes;
  if (staging_ != nullptr) stage(key, written_bytes, difference_bytes);
}

void Keys::put(const Key& key, ByteView stored_key, ByteView value, const Value& old) {
  if (!staged_) return;  // it fails with that
  const int64_t before = view_.difference().bytes;
  view_.put(stored_key, value, old);
  note_written(key, stored_key.size() + value.size(), view_.difference().bytes - before);
}

void Keys::remove(const Key& key, ByteView stored_key, const Value& old) {
  if (!staged_) return;
  const int64_t before = view_.difference().bytes;
  view_.remove(stored_key, old);
  note_written(key, stored_key.size(), view_.difference().bytes - before);
}

void Keys::put_sub(const Key& key, ByteView sub, ByteView value, const Value& old) {
  put(key, sub_key(key, sub), value, old);
  if (key.now_.type != RedisType::zset && !old.found()) note_count(key, sub, 1);
}

void Keys::put_new(const Key& key, WriteSet puts) {
  if (!staged_ || puts.empty()) return;
  const size_t bytes = puts.content_bytes();
  view_.put_new(std::move(puts));
  note_written(key, bytes, static_cast<int64_t>(bytes));
}

void Keys::remove_sub(const Key& key, ByteView sub, const Value& old) {
  remove(key, sub_key(key, sub), old);
  key.has_others_ = false;
  if (key.now_.type != RedisType::zset && old.found()) note_count(key, sub, -1);
}

void Keys::leave_trimmed(const Key& key, StreamId last, uint64_t entries) {
  view_.leave_garbage(now_ms_, trimmed_target(key.slot_, key.name_, key.now_.version, last),
                      entries * record_bytes_guess);
}

void Keys::put_score(const Key& key, double score, ByteView member) {
  const Bytes stored_key = score_key(key, score, member);
  if (stored_key < key.scores_begin_) key.scores_begin_ = stored_key;
  if (!key.scores_end_.empty() && stored_key >= key.scores_end_)
    key.scores_end_ = stored_key + '\0';
  put(key, stored_key, {}, Value());
  if (key.now_.has_fences) note_count(key, scored_place(score, member), 1);
}

void Keys::remove_score(const Key& key, double score, ByteView member) {
  Value old;
  old.set_borrowed({});
  remove(key, score_key(key, score, member), old);
  if (key.now_.has_fences) note_count(key, scored_place(score, member), -1);
}

Status Keys::scan(ByteView prefix, Bytes begin, Bytes end, bool reverse,
                  FunctionRef<Visit(ByteView, ByteView)> visit, ScanRequest::Reading reading,
                  size_t page_entries) {
  if (begin >= end) return {};
  bool stopped = false;
  const auto pass_on = [&](ByteView key, ByteView value) {
    const Visit next = visit(key.substr(prefix.size()), value);
    stopped = next == Visit::stop;
    return next;
  };
  for (;;) {
    TRY_ASSIGN(ScanPage page, view_.scan({.begin = begin,
                                          .end = end,
                                          .reverse = reverse,
                                          .entries_max = page_entries,
                                          .reading = reading},
                                         pass_on));
    if (stopped || !page.resume) return {};
    (reverse ? end : begin) = std::move(*page.resume);
  }
}

Status Keys::scan_subs(const Key& key, const SubRange& range, SubVisitor visit) {
  const Bytes prefix = sub_key(key, {});
  Bytes begin = prefix + Bytes(range.begin);
  Bytes end = range.end.empty() ? prefix_end(prefix) : prefix + Bytes(range.end);
  TRY(hide_over(key));
  if (range.end.empty() || range.end > stream_delimiter.bytes) write_group(key);
  if (key.now_.type != RedisType::zset) TRY(narrow(key, range.reverse, begin, end));
  const auto visit_rest = [&](ByteView sub, ByteView value) {
    return key.is_over(sub) ? Visit::go_on : visit(sub, value);
  };
  if (!key.over_.empty())
    return scan(prefix, std::move(begin), std::move(end), range.reverse, visit_rest);
  return scan(prefix, std::move(begin), std::move(end), range.reverse, visit, range.reading,
              range.page_entries);
}

Status Keys::scan_scores(const Key& key, const ScoreRange& range, ScoreVisitor visit) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Bytes prefix = scores_prefix(key);
  Bytes begin = score_key(key, range.begin_score, range.begin_member);
  Bytes end = score_key(key, range.end_score, range.end_member);
  if (range.end_is_inclusive) end = prefix_end(end.substr(0, prefix.size() + sizeof(double)));
  const bool from_lowest =
      range.begin_score == -infinity && range.begin_member.empty() && range.from.empty();
  const bool from_highest =
      range.end_score == infinity && range.end_is_inclusive && range.from.empty();
  // Whole: then a leaf says that there is nothing before or behind it (map/scan_leaves.h).
  if (from_lowest) begin = prefix;
  if (from_highest) end = prefix_end(prefix);
  if ((range.reverse ? key.scores_end_ : key.scores_begin_).empty())
    TRY(narrow(key, range.reverse, begin, end));
  if (!range.from.empty()) {
    if (range.reverse)
      end = std::min(end, successor(prefix + Bytes(range.from)));
    else
      begin = std::max(begin, prefix + Bytes(range.from));
  }
  if (begin < key.scores_begin_) begin = key.scores_begin_;
  if (!key.scores_end_.empty() && key.scores_end_ < end) end = key.scores_end_;
  if (begin >= end) return {};
  bool is_first = true;
  Status bad;
  const auto decoded = [&](ByteView sub, ByteView) {
    Reader reader(sub, nullptr);
    double score = 0;
    if (!OrderedScore::read(reader, score)) {
      bad = Error{Code::corrupt, "a stored score does not make sense"};
      return Visit::stop;
    }
    if (is_first && from_lowest && !range.reverse) key.scores_begin_ = prefix + Bytes(sub);
    if (is_first && from_highest && range.reverse) key.scores_end_ = prefix + Bytes(sub) + '\0';
    is_first = false;
    return visit(score, reader.rest());
  };
  TRY(scan(prefix, std::move(begin), std::move(end), range.reverse, decoded));
  return bad;
}

// --- fences ---

Bytes Keys::places_prefix(const Key& key) const {
  return key.now_.type == RedisType::zset ? scores_prefix(key) : sub_key(key, {});
}

void Keys::note_count(const Key& key, ByteView place, int64_t difference) {
  if (key.now_.has_fences) key.uncounted_.emplace_back(place, difference);
}

Status Keys::count_noted(const Key& key) {
  if (key.uncounted_.empty()) return {};
  return Fences(*this, key).count(std::exchange(key.uncounted_, {}));
}

Status Keys::narrow(const Key& key, bool reverse, Bytes& begin, Bytes& end) {
  if (!key.now_.has_fences) return {};
  const Bytes prefix = places_prefix(key);
  if (reverse ? end != prefix_end(prefix) : begin != prefix) return {};
  TRY(count_noted(key));
  if (!reverse) {
    TRY_ASSIGN(const Bytes place, Fences(*this, key).begin());
    begin += place;
    return {};
  }
  TRY_ASSIGN(const std::optional<Bytes> place, Fences(*this, key).end());
  if (place) end = prefix + *place;
  return {};
}

Result<uint64_t> Keys::count_before(const Key& key, ByteView place) {
  TRY(count_noted(key));
  if (key.now_.has_fences) return Fences(*this, key).before(place);
  const Bytes prefix = places_prefix(key);
  uint64_t members = 0;
  TRY(scan(prefix, prefix, prefix + Bytes(place), false, [&](ByteView, ByteView) {
    members++;
    return Visit::go_on;
  }));
  return members;
}

Result<Bytes> Keys::nth_place(const Key& key, uint64_t index) {
  TRY(count_noted(key));
  if (key.now_.has_fences) return Fences(*this, key).nth(index);
  const Bytes prefix = places_prefix(key);
  const bool reverse = index > key.stored_size() / 2;
  uint64_t left = reverse ? key.stored_size() - 1 - index : index;
  std::optional<Bytes> found;
  TRY(scan(prefix, prefix, prefix_end(prefix), reverse, [&](ByteView place, ByteView) {
    if (left-- > 0) return Visit::go_on;
    found = place;
    return Visit::stop;
  }));
  if (!found) return Error{Code::corrupt, "a collection has fewer members than it says"};
  return std::move(*found);
}

Result<Keys::FencesNote> Keys::tend_fences(const Key& key) {
  if (!key.now_.has_fences) {
    // The next one to mark a fence leaves a note again.
    book_of(key, fences_prefix(key))->is_noted = false;
    return FencesNote::goes;
  }
  TRY_ASSIGN(const Fences::Left left, Fences(*this, key).tend());
  if (left == Fences::Left::something) return FencesNote::stays;
  return left == Fences::Left::marks ? FencesNote::is_for_later : FencesNote::goes;
}

void Keys::leave_fences(const Key& key, uint64_t in_ms) {
  view_.leave_garbage(now_ms_ + in_ms, fences_target(key.slot_, key.name_, key.now_.version), 0,
                      CountedView::When::at_once);
}

std::shared_ptr<FenceBook> Keys::book_of(const Key& key, ByteView collection) {
  if (key.book_ == nullptr || key.book_version_ != key.now_.version) {
    key.book_ =
        books_ == nullptr ? std::make_shared<FenceBook>() : books_->get(collection, key.now_.size);
    key.book_version_ = key.now_.version;
  }
  return key.book_;
}

void Keys::own_book(const Key& key, ByteView collection) {
  if (!key.book_->is_kept || std::exchange(key.book_->is_owned, true)) return;
  books_->take(collection);
  view_.once_committed([books = books_, collection = Bytes(collection), book = key.book_,
                        members = key.now_.size]() mutable {
    book->is_owned = false;
    const bool is_of_use = !book->groups.empty() || book->is_noted;
    if (is_of_use) books->put(collection, std::move(book), members);
  });
}

// Once for all that a transaction did to the collection.
Status Keys::write_fences(Key& key) {
  constexpr uint64_t made_at_once_max = 4'096;
  if (!key.exists_ || !may_have_fences(key.now_.type)) return {};
  if (key.now_.has_fences) {
    if (key.now_.size > Fences::size_gone) return count_noted(key);
    key.uncounted_.clear();
    key.now_.has_fences = false;
    return Fences(*this, key).remove_all();
  }
  if (key.now_.size < Fences::size_made) return {};
  const bool is_made_at_once = key.is_new_life_ || key.was_.size <= made_at_once_max;
  key.now_.has_fences = true;
  return Fences(*this, key).make(key.now_.size, is_made_at_once);
}

// --- new lives ---

uint64_t Keys::new_version() {
  const uint64_t version = versions_.next();
  if (staging_ != nullptr) lives_.emplace(version, StagedLife());
  return version;
}

void Keys::stage(const Key& key, size_t written_bytes, int64_t difference_bytes) {
  const auto found = lives_.find(key.now_.version);
  if (found == lives_.end()) {
    staging_->written_bytes[Bytes(key.stored_key_)] += written_bytes;
    return;
  }
  StagedLife& life = found->second;
  if (life.target.empty()) {
    life.target = staged_target(key.slot_, key.name_, key.now_.version);
    life.subs = sub_key(key, {});
    life.scores = scores_prefix(key);
    life.fences = fences_prefix(key);
    life.fields = fields_prefix(key);
  }
  life.is_written = true;
  difference_bytes_ += difference_bytes;
  written_bytes_ += written_bytes;
  const size_t part_bytes = staging_->is_validated ? shared_part_bytes : staged_part_bytes;
  if (staged_ && written_bytes_ >= part_bytes) staged_ = commit_ahead();
}

Status Keys::commit_ahead() {
  // Where reads are validated the new slot was seen to be empty, and must be so in the end.
  if (has_new_slots_ && staging_->is_validated)
    return Error{Code::too_large, "FLUSHDB and so much else", commit_too_large};
  const uint64_t due_ms = now_ms_ + staged_due_ms;
  const Bytes due_entry = encode_expire_span(keyspace_, expire_span(due_ms, now_ms_));
  std::vector<Bytes> notes;
  std::vector<ByteView> prefixes = {due_entry};
  notes.reserve(lives_.size());
  for (auto& [version, life] : lives_) {
    if (!std::exchange(life.is_written, false)) continue;
    prefixes.insert(prefixes.end(), {life.subs, life.scores, life.fences, life.fields});
    if (std::exchange(life.is_noted, true)) continue;
    const int64_t before = view_.difference().bytes;
    view_.leave_garbage(due_ms, life.target, staged_part_bytes, CountedView::When::at_once);
    difference_bytes_ += view_.difference().bytes - before;
    staging_->notes.push_back({due_ms, life.target});
    prefixes.push_back(
        notes.emplace_back(encode(GarbageKey{keyspace_, due_ms, Model::redis, life.target})));
  }
  written_bytes_ = 0;
  return view_.commit_ahead(std::move(prefixes), std::exchange(difference_bytes_, 0));
}

Status Keys::check_written(size_t bytes) const {
  if (staging_ == nullptr && bytes > commit_bytes_max)
    return Error{Code::too_large, "the records are too large for one commit", commit_too_large};
  return staged_;
}

Status Keys::copy_records(ByteView from, Bytes begin, const Bytes& end, const Key& key,
                          ByteView to) {
  constexpr size_t page_entries_max = 1'000;
  constexpr size_t page_bytes_max = 1024 * 1024;
  size_t bytes = 0;
  for (;;) {
    std::vector<std::pair<Bytes, Bytes>> records;
    TRY_ASSIGN(ScanPage page, view_.scan({.begin = begin,
                                          .end = end,
                                          .entries_max = page_entries_max,
                                          .bytes_max = page_bytes_max},
                                         [&](ByteView stored_key, ByteView value) {
                                           records.emplace_back(to, value);
                                           records.back().first += stored_key.substr(from.size());
                                           return Visit::go_on;
                                         }));
    for (const auto& [stored_key, value] : records) {
      bytes += stored_key.size() + value.size();
      put(key, stored_key, value, Value());
    }
    TRY(check_written(bytes));
    if (!page.resume) return {};
    begin = std::move(*page.resume);
  }
}

Status Keys::live_on(const Key& from, const SubRange& kept, Key& to) {
  TRY(count_noted(from));
  write_group(from);
  RedisMetadata was = from.now_;
  const Bytes subs = sub_key(from, {});
  const Bytes scores = scores_prefix(from);
  const Bytes fields = fields_prefix(from);
  std::set<Bytes, std::less<>> over = from.over_;
  std::optional<Fences> fences;  // of the old life, also if it is the same key
  if (was.has_fences) fences.emplace(*this, from);
  const bool has_unknown = from.has_unknown_;
  to.create(was.type, new_version());
  was.version = to.now_.version;
  was.record_bytes = to.now_.record_bytes;
  was.payload = {};
  to.now_ = was;
  to.over_ = std::move(over);
  to.has_unknown_ = has_unknown;
  const Bytes end = kept.end.empty() ? prefix_end(subs) : subs + Bytes(kept.end);
  Bytes begin(kept.begin);
  // What was trimmed stays behind.
  if (was.type == RedisType::stream)
    begin = was.size == 0 ? Bytes(stream_delimiter.bytes)
                          : encode(StreamEntrySub{was.stream.first.ms, was.stream.first.seq});
  TRY(copy_records(subs, subs + begin, end, to, sub_key(to, {})));
  if (was.type == RedisType::zset)
    TRY(copy_records(scores, scores, prefix_end(scores), to, scores_prefix(to)));
  if (was.next_field_ms != 0)
    TRY(copy_records(fields, fields, prefix_end(fields), to, fields_prefix(to)));
  if (fences) {
    TRY_ASSIGN(const bool is_to_be_cut, fences->copy_to(to));
    if (is_to_be_cut) leave_fences(to, 0);
  }
  return {};
}

Status Keys::renew(Key& key, const SubRange& kept) { return live_on(key, kept, key); }

Status Keys::copy(const Key& from, Key& to) {
  if (from.type() == RedisType::string) {
    to.set_text(Bytes(from.text()));
    to.set_expire(from.expire_ms());
    return {};
  }
  return live_on(from, {}, to);
}

// --- the end of a transaction ---

// Of what expires: of a key that changed a note is taken back, and one is left.
void Keys::write_notes(const Key& key) {
  const bool was_there = key.stored_.found();
  const uint64_t expire_was = was_there ? key.was_.expire_ms : 0;
  const uint64_t expire_is = key.exists_ ? key.now_.expire_ms : 0;
  if (expire_was != expire_is) {
    const Bytes expiry = expiry_target(key.slot_, key.name_);
    if (expire_was != 0) view_.forget_garbage(expire_was, expiry);
    if (expire_is != 0)
      view_.leave_garbage(expire_is, expiry, record_bytes_guess, CountedView::When::at_once);
  }
  const uint64_t field_was = was_there ? key.was_.next_field_ms : 0;
  const uint64_t field_is = key.exists_ ? key.now_.next_field_ms : 0;
  if (field_was == field_is && (field_is == 0 || key.was_.version == key.now_.version)) return;
  if (field_was != 0)
    view_.forget_garbage(field_was, fields_target(key.slot_, key.name_, key.was_.version));
  if (field_is != 0)
    view_.leave_garbage(field_is, fields_target(key.slot_, key.name_, key.now_.version),
                        record_bytes_guess, CountedView::When::at_once);
}

void Keys::write_group(const Key& key) {
  if (key.group_ != nullptr) key.group_->save();
}

Status Keys::write(Key& key) {
  const bool was_there = key.stored_.found();
  write_notes(key);
  for (const Key::Life& life : key.ended_) {
    const auto target = life.record_bytes ? measured_target : life_target;
    view_.leave_garbage(now_ms_, target(key.slot_, key.name_, life.version),
                        life.record_bytes.value_or(life.size * record_bytes_guess));
    if (books_ != nullptr)
      books_->take(redis_life_prefix(keyspace_, 'c', key.slot_, key.name_, life.version));
  }
  if (was_there != key.exists_) view_.count_keys(key.exists_ ? 1 : -1, key.slot_);
  if (!key.exists_) {
    if (was_there) view_.remove(key.stored_key_, key.stored_);
    return {};
  }
  TRY(write_fences(key));
  key.count_written();
  record_.clear();
  append_redis_metadata(record_, key.now_);
  view_.put(key.stored_key_, record_, key.stored_);
  constexpr uint64_t few = 100;
  if (key.is_new_life_ && key.now_.type != RedisType::string && key.now_.size <= few &&
      staging_ == nullptr) {
    view_.begins(sub_key(key, {}));
    if (key.now_.type == RedisType::zset) view_.begins(scores_prefix(key));
  }
  return {};
}

void Keys::touch(const Key& key) {
  if (watches_.empty()) return;
  if (const auto database = slots_.database_of(key.slot_))
    watches_.touch(watched_key(keyspace_, *database, key.name_), own_watch_);
}

Status Keys::finish() {
  TRY(write_changed());
  TRY(staged_);
  for (const auto& [version, life] : lives_)
    if (life.is_noted) view_.forget_garbage(now_ms_ + staged_due_ms, life.target);
  return {};
}

Status Keys::write_changed() {
  for (Key* const key : keys_) {
    write_group(*key);
    const bool has_other_bytes = key->now_.record_bytes && key->written_bytes_ != 0;
    if (!key->changed_ && !has_other_bytes) continue;
    TRY(write(*key));
    if (key->is_told_) touch(*key);
    key->changed_ = key->is_told_ = false;
  }
  return {};
}

Status Keys::settle() {
  TRY(write_changed());
  forget_opened();  // what they were read from has changed
  return {};
}

// --- databases ---

Result<int64_t> stored_count(const Value& counter) {
  if (!counter.found()) return 0;
  const auto count = decode_counter_value(counter.bytes());
  if (!count) return Error{Code::corrupt, "the counter of keys does not make sense"};
  return *count;
}

Result<int64_t> Keys::count_keys(uint32_t database) {
  TRY(settle());
  const uint16_t slot = slots_.of(database);
  Value value;
  TRY(view_.get(encode(CounterKey{keyspace_, Model::redis, CounterName::keys, slot}), value));
  TRY_ASSIGN(int64_t keys, stored_count(value));
  for (const auto& [of, difference] : view_.slot_keys())
    if (of == slot) keys += difference;
  return keys;
}

Status Keys::touch_all(uint32_t database, uint16_t next_slot) {
  const Bytes prefix = watched_key(keyspace_, database, {});
  for (const Bytes& watched : watches_.watched(prefix)) {
    const ByteView name = ByteView(watched).substr(prefix.size());
    TRY_ASSIGN(const Key* const key, open(database, name));
    TRY_ASSIGN(const Key* const next, open_in(next_slot, name));
    if (key->exists() || next->exists()) watches_.touch(watched, own_watch_);
  }
  return {};
}

Result<bool> Keys::is_empty(uint16_t slot) {
  for (const char table : redis_tables) {
    const Bytes prefix = redis_slot_prefix(keyspace_, table, slot);
    TRY_ASSIGN(const ScanPage page,
               view_.scan({.begin = prefix, .end = prefix_end(prefix), .entries_max = 1},
                          [](ByteView, ByteView) { return Visit::stop; }));
    if (page.entries != 0) return false;
  }
  return true;
}

Result<uint16_t> Keys::free_slot() {
  constexpr int tries_max = 1'000;
  for (int i = 0; i < tries_max; i++) {
    const uint16_t slot = slots_.next++;
    if (slots_.database_of(slot)) continue;
    TRY_ASSIGN(const bool empty, is_empty(slot));
    if (empty) return slot;
  }
  return Error{Code::exhausted,
               "so many databases were flushed that the collector is behind: retry"};
}

Status Keys::store_slots() {
  const Bytes key = encode(RedisDatabasesKey{keyspace_});
  Value old;
  TRY(view_.get(key, old));
  view_.put_note(key, encode_slots(slots_), old);
  has_new_slots_ = true;
  return {};
}

Status Keys::flush(uint32_t database) {
  TRY_ASSIGN(const int64_t keys, count_keys(database));
  if (keys == 0) return {};
  TRY_ASSIGN(const uint16_t slot, free_slot());
  TRY(touch_all(database, slot));
  uint16_t& now = slots_.slots[database];
  view_.leave_garbage(now_ms_, flush_target(now), static_cast<uint64_t>(keys) * record_bytes_guess,
                      CountedView::When::at_once);
  now = slot;
  return store_slots();
}

Status Keys::swap(uint32_t database, uint32_t other) {
  TRY(settle());
  if (database == other) return {};
  TRY(touch_all(database, slots_.of(other)));
  TRY(touch_all(other, slots_.of(database)));
  std::swap(slots_.slots[database], slots_.slots[other]);
  return store_slots();
}

}  // namespace trellis
