#include "redis/fences.h"

#include <algorithm>

#include "redis/cursor.h"

namespace trellis {
namespace {

constexpr uint64_t fence_members_max = 128;  // of a fence
constexpr uint64_t fence_members_cut = 64;
constexpr size_t fence_group_max = 128;  // fences
constexpr size_t fence_group_cut = 64;
// What the collector does at once: cuts, and numbers that it writes.
constexpr size_t tended_pieces_max = 32;
constexpr size_t cleaned_max = 1'024;
// A longer place would make keys that are too long; where members are that alike none is cut.
constexpr size_t fence_place_bytes_max = 1'024;
constexpr size_t first_place_bytes_max = 64;

Error wrong_counts() { return {Code::corrupt, "the fences of a collection do not make sense"}; }

constexpr char fence_number_format = '\x01';
constexpr char fence_mark_format = '\x02';
constexpr size_t fence_value_bytes = 9;

Bytes encode_fence(FenceBook::Stored as, uint64_t members) {
  const bool is_number = as == FenceBook::Stored::number;
  Bytes value(1, is_number ? fence_number_format : fence_mark_format);
  append_be64(value, is_number ? members : 0);
  return value;
}

bool decode_fence(ByteView value, FenceBook::Fence& fence) {
  if (value.size() != fence_value_bytes) return false;
  if (value[0] != fence_number_format && value[0] != fence_mark_format) return false;
  fence.is_known = value[0] == fence_number_format;
  fence.stored = fence.is_known ? FenceBook::Stored::number : FenceBook::Stored::mark;
  fence.members = fence.stored_members = load_be(value.data() + 1, sizeof(uint64_t));
  return true;
}

// The shortest that is behind `last` and not behind `next`.
Bytes place_between(ByteView last, ByteView next) {
  return Bytes(next.substr(0, shared_bytes(last, next) + 1));
}

bool is_possible(uint64_t members, int64_t difference) {
  return difference >= 0 || members >= static_cast<uint64_t>(-difference);
}

// How many of those, in the order of their places, are not behind one.
template <class T>
size_t not_behind(const std::vector<T>& those, ByteView place) {
  const auto behind = std::upper_bound(those.begin(), those.end(), place,
                                       [](ByteView a, const T& b) { return a < b.place; });
  return static_cast<size_t>(behind - those.begin());
}

template <class T>
auto place_in(std::vector<T>& vector, size_t i) {
  return vector.begin() + static_cast<ptrdiff_t>(i);
}

}  // namespace

Fences::Fences(Keys& keys, const Key& key)
    : keys_(keys),
      key_(key),
      fences_(keys.fences_prefix(key)),
      members_(keys.places_prefix(key)),
      book_(keys.book_of(key, fences_)),
      lock_(book_->mutex) {}

// --- records ---

Bytes Fences::key_of(Level level, ByteView place) const {
  Bytes key;
  key.reserve(fences_.size() + 1 + place.size());
  key += fences_;
  key += static_cast<char>(level);
  key += place;
  return key;
}

void Fences::put(Level level, Fence& fence, Stored as) {
  if (level == Level::fences)
    book_->marked_groups += (as == Stored::mark) - (fence.stored == Stored::mark);
  Value was;
  const Bytes old_value = encode_fence(fence.stored, fence.stored_members);
  if (fence.stored != Stored::nothing) was.set_borrowed(old_value);
  keys_.put(key_, key_of(level, fence.place), encode_fence(as, fence.members), was);
  fence.stored = as;
  fence.stored_members = fence.members;
}

void Fences::remove_record(Level level, Fence& fence) {
  if (fence.stored == Stored::nothing) return;
  if (level == Level::fences && fence.stored == Stored::mark) book_->marked_groups--;
  Value was;
  const Bytes old_value = encode_fence(fence.stored, fence.stored_members);
  was.set_borrowed(old_value);
  keys_.remove(key_, key_of(level, fence.place), was);
  fence.stored = Stored::nothing;
}

// Without books it is written by write_numbers.
void Fences::changed(Level level, Fence& fence) {
  if (!book_->is_kept || fence.stored == Stored::mark) return;
  put(level, fence, Stored::mark);
  if (!book_->is_noted.exchange(true)) keys_.leave_fences(key_, marked_ms);
}

void Fences::changed(Position at) {
  changed(Level::members, fence(at));
  changed(Level::fences, book_->groups[at.group]);
}

void Fences::write_numbers() {
  if (book_->is_kept) return;
  const auto write = [&](Level level, Fence& fence) {
    const bool is_written = fence.stored == Stored::number && fence.stored_members == fence.members;
    if (!is_written && fence.is_known) put(level, fence, Stored::number);
  };
  for (Group& group : book_->groups) {
    if (!group.is_read) continue;
    for (Fence& one : group.fences) write(Level::members, one);
    write(Level::fences, group);
  }
}

// It is going to change.
void Fences::own() { keys_.own_book(key_, fences_); }

Status Fences::scan(Level level, ByteView begin, std::optional<ByteView> end,
                    FunctionRef<void(ByteView place, Fence read)> visit) {
  bool is_whole = true;
  TRY(keys_.scan(
      key_of(level, {}), key_of(level, begin),
      end ? key_of(level, *end) : prefix_end(key_of(level, {})), false,
      [&](ByteView place, ByteView value) {
        Fence read;
        is_whole = decode_fence(value, read);
        if (!is_whole) return Visit::stop;
        read.place = place;
        visit(place, std::move(read));
        return Visit::go_on;
      },
      Reading::once));
  return is_whole ? Status() : wrong_counts();
}

Status Fences::scan_members(ByteView begin, std::optional<ByteView> end, bool reverse,
                            FunctionRef<Visit(ByteView place)> visit, Reading reading) {
  return keys_.scan(
      members_, members_ + Bytes(begin), end ? members_ + Bytes(*end) : prefix_end(members_),
      reverse, [&](ByteView place, ByteView) { return visit(place); }, reading);
}

Status Fences::walk_once(ByteView begin, std::optional<ByteView> end,
                         FunctionRef<Visit(ByteView place)> visit) {
  return scan_members(begin, end, false, visit, Reading::once);
}

// --- the book ---

Status Fences::read_groups() {
  if (!book_->groups.empty()) return {};
  std::vector<Group> groups;
  size_t marked = 0;
  TRY(scan(Level::fences, {}, std::nullopt, [&](ByteView, Fence read) {
    marked += read.stored == Stored::mark;
    groups.push_back({std::move(read)});
  }));
  if (groups.empty()) return wrong_counts();
  book_->groups = std::move(groups);
  book_->marked_groups = marked;
  book_->is_noted = marked != 0;
  return {};
}

Status Fences::read_fences(size_t index) {
  Group& group = book_->groups[index];
  if (group.is_read) return {};
  std::optional<ByteView> end;
  if (index + 1 < book_->groups.size()) end = book_->groups[index + 1].place;
  std::vector<Fence> fences;
  TRY(scan(Level::members, index == 0 ? ByteView() : ByteView(group.place), end,
           [&](ByteView, Fence read) { fences.push_back(std::move(read)); }));
  group.fences = std::move(fences);
  group.is_read = true;
  return {};
}

Status Fences::count_members(Position at) {
  TRY_ASSIGN(const Found behind, next(at));
  std::optional<ByteView> end;
  if (behind) end = fence(*behind).place;
  uint64_t members = 0;
  TRY(walk_once(fence(at).place, end, [&](ByteView) {
    members++;
    return Visit::go_on;
  }));
  fence(at).members = members;
  fence(at).is_known = true;
  return {};
}

Status Fences::know(size_t index) {
  if (book_->groups[index].is_known) return {};
  TRY(read_fences(index));
  uint64_t members = 0;
  for (size_t i = 0; i < book_->groups[index].fences.size(); i++) {
    if (!fence({index, i}).is_known) TRY(count_members({index, i}));
    members += fence({index, i}).members;
  }
  book_->groups[index].members = members;
  book_->groups[index].is_known = true;
  return {};
}

Result<Fences::Found> Fences::find(ByteView place) {
  TRY(read_groups());
  const size_t groups = not_behind(book_->groups, place);
  for (size_t g = std::max<size_t>(groups, 1); g-- > 0;) {
    TRY(read_fences(g));
    const size_t fences = not_behind(book_->groups[g].fences, place);
    if (fences > 0) return Position{g, fences - 1};
  }
  return std::nullopt;
}

Result<Fences::Found> Fences::next(Position at) {
  if (at.fence + 1 < book_->groups[at.group].fences.size()) return Position{at.group, at.fence + 1};
  for (size_t g = at.group + 1; g < book_->groups.size(); g++) {
    TRY(read_fences(g));
    if (!book_->groups[g].fences.empty()) return Position{g, 0};
  }
  return std::nullopt;
}

Result<Fences::Found> Fences::previous(Position at) {
  if (at.fence > 0) return Position{at.group, at.fence - 1};
  for (size_t g = at.group; g-- > 0;) {
    TRY(read_fences(g));
    const size_t fences = book_->groups[g].fences.size();
    if (fences > 0) return Position{g, fences - 1};
  }
  return std::nullopt;
}

Result<Fences::Position> Fences::first() {
  TRY(read_groups());
  for (size_t g = 0; g < book_->groups.size(); g++) {
    TRY(read_fences(g));
    if (!book_->groups[g].fences.empty()) return Position{g, 0};
  }
  return wrong_counts();
}

Result<Fences::Position> Fences::last() {
  TRY(read_groups());
  TRY_ASSIGN(const Found found, previous({book_->groups.size(), 0}));
  if (!found) return wrong_counts();
  return *found;
}

// --- reading ---

Result<uint64_t> Fences::before(ByteView place) {
  TRY_ASSIGN(const Found found, find(place));
  if (!found) return 0;
  uint64_t members = 0;
  for (size_t g = 0; g <= found->group; g++) {
    TRY(know(g));
    if (g < found->group) members += book_->groups[g].members;
  }
  for (size_t i = 0; i < found->fence; i++) members += fence({found->group, i}).members;
  TRY_ASSIGN(const Found behind, next(*found));
  if (!behind) {
    // To the end, more often than not.
    bool is_end = true;
    TRY(scan_members(place, std::nullopt, false, [&](ByteView) {
      is_end = false;
      return Visit::stop;
    }));
    if (is_end) return members + fence(*found).members;
  }
  TRY(scan_members(fence(*found).place, place, false, [&](ByteView) {
    members++;
    return Visit::go_on;
  }));
  return members;
}

Result<Bytes> Fences::nth(uint64_t index) {
  TRY(read_groups());
  uint64_t left = index;
  Position at{0, 0};
  for (;; at.group++) {
    if (at.group == book_->groups.size()) return wrong_counts();
    TRY(know(at.group));
    if (left < book_->groups[at.group].members) break;
    left -= book_->groups[at.group].members;
  }
  TRY(read_fences(at.group));
  for (; at.fence < book_->groups[at.group].fences.size(); at.fence++) {
    if (left < fence(at).members) break;
    left -= fence(at).members;
  }
  if (at.fence == book_->groups[at.group].fences.size()) return wrong_counts();
  // From the nearer end, if it is known where that is.
  Found behind;
  if (left >= fence(at).members / 2) {
    TRY_ASSIGN(behind, next(at));
  }
  uint64_t steps = behind ? fence(at).members - 1 - left : left;
  std::optional<Bytes> member;
  std::optional<ByteView> end;
  if (behind) end = fence(*behind).place;
  TRY(scan_members(fence(at).place, end, behind.has_value(), [&](ByteView place) {
    if (steps-- > 0) return Visit::go_on;
    member = place;
    return Visit::stop;
  }));
  if (!member) return wrong_counts();
  return std::move(*member);
}

Result<Bytes> Fences::begin() {
  TRY_ASSIGN(const Position at, first());
  return fence(at).place;
}

Result<std::optional<Bytes>> Fences::end() {
  TRY_ASSIGN(const Position at, last());
  std::optional<Bytes> end;
  if (fence(at).is_known && fence(at).members == 0) end = fence(at).place;
  return end;
}

// --- writing ---

Result<Fences::Position> Fences::place_for(ByteView place) {
  TRY_ASSIGN(const Found found, find(place));
  if (found) return *found;
  // Before all others: the first one moves there, or if it is rather full makes room for one more.
  TRY_ASSIGN(const Position at, first());
  const Bytes begin(place.substr(0, first_place_bytes_max));
  Group& group = book_->groups[at.group];
  if (fence(at).is_known && fence(at).members < fence_members_cut) {
    remove_record(Level::members, fence(at));
    fence(at).place = begin;
    return at;
  }
  group.fences.insert(group.fences.begin(), Fence{.place = begin});
  changed(at);
  if (group.fences.size() > fence_group_max) cut_group(at.group);
  return Position{at.group, 0};
}

void Fences::remove(Position at) {
  Group& group = book_->groups[at.group];
  remove_record(Level::members, fence(at));
  changed(Level::fences, group);
  group.fences.erase(place_in(group.fences, at.fence));
  if (!group.fences.empty()) return;
  remove_record(Level::fences, group);
  book_->groups.erase(place_in(book_->groups, at.group));
}

// Of a fence that may be empty now. The last one says where the members end, so one stays.
Status Fences::forget_empty(const Bytes& place) {
  TRY_ASSIGN(const Found found, find(place));
  if (!found || fence(*found).place != place || fence(*found).members != 0) return {};
  TRY_ASSIGN(const Found behind, next(*found));
  if (!behind) return {};
  const bool is_last_empty = fence(*behind).is_known && fence(*behind).members == 0;
  remove(is_last_empty ? *behind : *found);
  return {};
}

namespace {

// In order, with one for each place.
void sum_up(std::vector<Fences::Change>& changes) {
  const auto by_place = [](const Fences::Change& a, const Fences::Change& b) {
    return a.first < b.first;
  };
  if (!std::is_sorted(changes.begin(), changes.end(), by_place))
    std::sort(changes.begin(), changes.end(), by_place);
  size_t kept = 0;
  for (size_t i = 0; i < changes.size(); i++) {
    if (kept > 0 && changes[kept - 1].first == changes[i].first)
      changes[kept - 1].second += changes[i].second;
    else if (kept++ != i)
      changes[kept - 1] = std::move(changes[i]);
  }
  changes.resize(kept);
  std::erase_if(changes, [](const Fences::Change& change) { return change.second == 0; });
}

}  // namespace

// What is not known is counted when somebody asks, with these changes in it.
Status Fences::count(std::vector<Change> changes) {
  TRY(read_groups());
  own();
  sum_up(changes);
  std::vector<Bytes> empty;
  std::vector<Bytes> full;
  for (const auto& [place, difference] : changes) {
    TRY_ASSIGN(const Position at, place_for(place));
    Group& group = book_->groups[at.group];
    if (group.is_known) {
      if (!is_possible(group.members, difference)) return wrong_counts();
      group.members += static_cast<uint64_t>(difference);
    }
    Fence& counted = fence(at);
    const uint64_t before = counted.members;
    if (counted.is_known) {
      if (!is_possible(before, difference)) return wrong_counts();
      counted.members += static_cast<uint64_t>(difference);
      if (counted.members == 0) empty.push_back(counted.place);
      // What was too large before is cut by the collector.
      if (before <= fence_members_max && counted.members > fence_members_max)
        full.push_back(counted.place);
    }
    changed(at);
  }
  for (size_t i = empty.size(); i-- > 0;) TRY(forget_empty(empty[i]));
  for (const Bytes& place : full) {
    TRY_ASSIGN(const Found found, find(place));
    const bool is_full = found && fence(*found).is_known;
    if (is_full && fence(*found).members > fence_members_max) TRY(cut(*found, SIZE_MAX));
  }
  write_numbers();
  return {};
}

Result<bool> Fences::cut(Position at, size_t pieces_max) {
  const uint64_t members = fence(at).members;
  std::vector<Fence> pieces{{.place = fence(at).place}};
  uint64_t walked = 0;
  Bytes last;
  bool stopped = false;
  TRY(walk_once(fence(at).place, std::nullopt, [&](ByteView place) {
    if (pieces.back().members >= fence_members_cut && members - walked >= fence_members_cut) {
      Bytes begin = place_between(last, place);
      if (begin.size() <= fence_place_bytes_max) {
        pieces.push_back({.place = std::move(begin)});
        stopped = pieces.size() > pieces_max;
        if (stopped) return Visit::stop;
      }
    }
    last = place;
    pieces.back().members++;
    stopped = ++walked == members;
    return stopped ? Visit::stop : Visit::go_on;
  }));
  if (!stopped) return wrong_counts();
  pieces.back().members += members - walked;
  if (pieces.size() == 1) return false;
  Group& group = book_->groups[at.group];
  fence(at).members = pieces[0].members;
  group.fences.insert(place_in(group.fences, at.fence + 1),
                      std::make_move_iterator(pieces.begin() + 1),
                      std::make_move_iterator(pieces.end()));
  for (size_t i = 0; i < pieces.size(); i++) changed({at.group, at.fence + i});
  if (group.fences.size() > fence_group_max) cut_group(at.group);
  return true;
}

void Fences::cut_group(size_t index) {
  Group whole = std::move(book_->groups[index]);
  // The first one may have fences before its place: they are not to be another one's.
  if (whole.place > whole.fences[0].place) {
    remove_record(Level::fences, whole);
    whole.place = whole.fences[0].place;
  }
  std::vector<Group> pieces;
  for (Fence& one : whole.fences) {
    if (pieces.empty() || pieces.back().fences.size() == fence_group_cut) {
      Group piece;
      static_cast<Fence&>(piece) = {.place = one.place};
      piece.is_read = true;
      pieces.push_back(std::move(piece));
    }
    Group& piece = pieces.back();
    piece.is_known = piece.is_known && one.is_known;
    piece.members += one.members;
    piece.fences.push_back(std::move(one));
  }
  pieces[0].place = std::move(whole.place);
  pieces[0].stored = whole.stored;
  pieces[0].stored_members = whole.stored_members;
  book_->groups[index] = std::move(pieces[0]);
  book_->groups.insert(place_in(book_->groups, index + 1),
                       std::make_move_iterator(pieces.begin() + 1),
                       std::make_move_iterator(pieces.end()));
  for (size_t i = 0; i < pieces.size(); i++) changed(Level::fences, book_->groups[index + i]);
}

Status Fences::make(uint64_t members, bool whole) {
  own();
  Group group;
  group.members = members;
  group.is_read = true;
  TRY(walk_once({}, std::nullopt, [&](ByteView place) {
    group.place = place.substr(0, first_place_bytes_max);
    return Visit::stop;
  }));
  group.fences.push_back({.place = group.place, .members = members});
  book_->groups.clear();
  book_->groups.push_back(std::move(group));
  if (!whole) {
    book_->is_noted = true;
    keys_.leave_fences(key_, 0);
  }
  changed(Position{0, 0});
  if (whole) TRY(cut({0, 0}, SIZE_MAX));
  write_numbers();
  return {};
}

Result<Fences::Left> Fences::tend() {
  TRY(read_groups());
  own();
  // What is left to be cut is the last one, but for one that is empty.
  TRY_ASSIGN(Found at, last());
  TRY(know(at->group));
  if (fence(*at).members == 0) {
    TRY_ASSIGN(at, previous(*at));
    if (at) TRY(know(at->group));
  }
  bool is_cut = false;
  if (at && fence(*at).members > fence_members_max) {
    TRY_ASSIGN(is_cut, cut(*at, tended_pieces_max));
  }
  if (!is_cut) {
    TRY_ASSIGN(is_cut, clean());
  }
  write_numbers();
  if (is_cut) return Left::something;
  if (book_->marked_groups != 0) return Left::marks;
  book_->is_noted = false;
  return Left::nothing;
}

Result<bool> Fences::clean() {
  size_t written = 0;
  std::vector<Bytes> full;  // of which nobody knew
  size_t g = not_behind(book_->groups, book_->cleaned_to);
  for (g = book_->cleaned_to.empty() ? 0 : g - 1; g < book_->groups.size(); g++) {
    if (book_->groups[g].stored != Stored::mark) continue;
    if (written >= cleaned_max) break;
    TRY(know(g));
    TRY(read_fences(g));
    for (Fence& one : book_->groups[g].fences) {
      if (one.members > fence_members_max) full.push_back(one.place);
      if (one.stored != Stored::mark) continue;
      put(Level::members, one, Stored::number);
      written++;
    }
    put(Level::fences, book_->groups[g], Stored::number);
  }
  bool is_more = g < book_->groups.size();
  book_->cleaned_to = is_more ? book_->groups[g].place : Bytes();
  for (const Bytes& place : full) {
    TRY_ASSIGN(const Found found, find(place));
    if (!found || fence(*found).members <= fence_members_max) continue;
    TRY_ASSIGN(const bool is_cut, cut(*found, tended_pieces_max));
    is_more = is_more || is_cut;
  }
  return is_more;
}

Status Fences::remove_all() {
  TRY(read_groups());
  own();
  for (size_t g = 0; g < book_->groups.size(); g++) {
    TRY(read_fences(g));
    for (Fence& one : book_->groups[g].fences) remove_record(Level::members, one);
    remove_record(Level::fences, book_->groups[g]);
  }
  book_->groups.clear();
  book_->cleaned_to.clear();
  return {};
}

Result<bool> Fences::copy_to(const Key& other) {
  TRY(read_groups());
  const Bytes prefix = keys_.fences_prefix(other);
  size_t bytes = 0;
  bool is_too_large = false;
  const auto put_copy = [&](Level level, const Fence& fence) {
    Bytes key = prefix;
    key += static_cast<char>(level);
    key += fence.place;
    bytes += key.size() + fence_value_bytes;
    keys_.put(other, key, encode_fence(Stored::number, fence.members), Value());
  };
  for (size_t g = 0; g < book_->groups.size(); g++) {
    TRY(know(g));
    TRY(read_fences(g));
    for (const Fence& one : book_->groups[g].fences) {
      put_copy(Level::members, one);
      is_too_large = is_too_large || one.members > fence_members_max;
    }
    put_copy(Level::fences, book_->groups[g]);
    TRY(keys_.check_written(bytes));
  }
  return is_too_large;
}

}  // namespace trellis
