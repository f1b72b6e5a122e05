#include "redis/fences.h"

#include <algorithm>

#include "redis/cursor.h"

namespace trellis {
namespace {

constexpr uint64_t fence_members_max = 256;  // of a fence
constexpr uint64_t fence_members_cut = 128;
constexpr size_t fence_group_max = 128;  // fences
constexpr size_t fence_group_cut = 64;
// A longer place would make keys that are too long; where members are that alike none is cut.
constexpr size_t fence_place_bytes_max = 1'024;
constexpr size_t first_place_bytes_max = 64;

Error wrong_counts() { return {Code::corrupt, "the fences of a collection do not make sense"}; }

constexpr char fence_value_format = '\x01';
constexpr size_t fence_value_bytes = 9;

Bytes encode_members(uint64_t members) {
  Bytes value(1, fence_value_format);
  append_be64(value, members);
  return value;
}

std::optional<uint64_t> decode_members(ByteView value) {
  if (value.size() != fence_value_bytes || value[0] != fence_value_format) return std::nullopt;
  return load_be(value.data() + 1, sizeof(uint64_t));
}

// The shortest that is behind `last` and not behind `next`.
Bytes place_between(ByteView last, ByteView next) {
  return Bytes(next.substr(0, shared_bytes(last, next) + 1));
}

}  // namespace

Fences::Fences(Keys& keys, const Key& key)
    : keys_(keys), key_(key), fences_(keys.fences_prefix(key)), members_(keys.places_prefix(key)) {}

// --- records ---

Bytes Fences::key_of(Level level, ByteView place) const {
  Bytes key;
  key.reserve(fences_.size() + 1 + place.size());
  key += fences_;
  key += static_cast<char>(level);
  key += place;
  return key;
}

void Fences::put(Level level, ByteView place, uint64_t members, std::optional<uint64_t> old) {
  Value was;
  const Bytes old_value = old ? encode_members(*old) : Bytes();
  if (old) was.set_borrowed(old_value);
  keys_.put(key_, key_of(level, place), encode_members(members), was);
}

void Fences::remove(Level level, const Fence& fence) {
  Value was;
  const Bytes old_value = encode_members(fence.members);
  was.set_borrowed(old_value);
  keys_.remove(key_, key_of(level, fence.place), was);
}

Result<Fences::Found> Fences::one_of(Level level, ByteView begin, std::optional<ByteView> end,
                                     bool reverse) {
  const Bytes from = key_of(level, begin);
  const Bytes to = end ? key_of(level, *end) : prefix_end(key_of(level, {}));
  Found found;
  bool is_whole = true;
  TRY(keys_.view_.scan({.begin = from, .end = to, .reverse = reverse, .entries_max = 1},
                       [&](ByteView key, ByteView value) {
                         const auto members = decode_members(value);
                         is_whole = members.has_value();
                         if (members) found = {Bytes(key.substr(fences_.size() + 1)), *members};
                         return Visit::stop;
                       }));
  if (!is_whole) return wrong_counts();
  return found;
}

Result<Fences::Found> Fences::at(Level level, ByteView place) {
  const Bytes end = successor(place);
  return one_of(level, {}, end, true);
}

Result<Fences::Found> Fences::next(Level level, ByteView place) {
  const Bytes begin = successor(place);
  return one_of(level, begin, std::nullopt, false);
}

Status Fences::scan(Level level, ByteView begin, std::optional<ByteView> end,
                    FunctionRef<Visit(ByteView place, uint64_t members)> visit) {
  bool is_whole = true;
  TRY(keys_.scan(key_of(level, {}), key_of(level, begin),
                 end ? key_of(level, *end) : prefix_end(key_of(level, {})), false,
                 [&](ByteView place, ByteView value) {
                   const auto members = decode_members(value);
                   is_whole = members.has_value();
                   return members ? visit(place, *members) : Visit::stop;
                 }));
  return is_whole ? Status() : wrong_counts();
}

Status Fences::scan_members(ByteView begin, std::optional<ByteView> end, bool reverse,
                            FunctionRef<Visit(ByteView place)> visit) {
  return keys_.scan(members_, members_ + Bytes(begin),
                    end ? members_ + Bytes(*end) : prefix_end(members_), reverse,
                    [&](ByteView place, ByteView) { return visit(place); });
}

// --- reading ---

Result<Fences::Fence> Fences::group_of(ByteView fence_place) {
  TRY_ASSIGN(Found group, at(Level::fences, fence_place));
  if (!group) {
    TRY_ASSIGN(group, first(Level::fences));
  }
  if (!group) return wrong_counts();
  return std::move(*group);
}

Result<uint64_t> Fences::before(ByteView place) {
  TRY_ASSIGN(const Found fence, at(Level::members, place));
  if (!fence) return 0;
  TRY_ASSIGN(const Found group, at(Level::fences, fence->place));
  uint64_t members = 0;
  const auto add = [&](ByteView, uint64_t counted) {
    members += counted;
    return Visit::go_on;
  };
  const ByteView group_place = group ? ByteView(group->place) : ByteView();
  // The fences of the first group may begin before it does.
  bool is_first = true;
  if (group)
    TRY(scan(Level::fences, {}, group_place, [&](ByteView, uint64_t counted) {
      is_first = false;
      return add({}, counted);
    }));
  TRY(scan(Level::members, is_first ? ByteView() : group_place, fence->place, add));
  TRY(scan_members(fence->place, place, false, [&](ByteView) {
    members++;
    return Visit::go_on;
  }));
  return members;
}

Result<Bytes> Fences::nth(uint64_t index) {
  uint64_t left = index;
  // Passes fences until one has the member that is wanted.
  Found found;
  bool is_first = true;
  const auto pass = [&](ByteView place, uint64_t members) {
    if (left < members) {
      found = {Bytes(place), members};
      return Visit::stop;
    }
    left -= members;
    is_first = false;
    return Visit::go_on;
  };
  TRY(scan(Level::fences, {}, std::nullopt, pass));
  if (!found) return wrong_counts();
  const Bytes group_place = is_first ? Bytes() : std::move(found->place);
  found.reset();
  TRY(scan(Level::members, group_place, std::nullopt, pass));
  if (!found) return wrong_counts();
  // From the nearer end, if it is known where that is.
  Found behind;
  const bool is_nearer_back = left >= found->members / 2;
  if (is_nearer_back) {
    TRY_ASSIGN(behind, next(Level::members, found->place));
  }
  uint64_t steps = behind ? found->members - 1 - left : left;
  std::optional<Bytes> member;
  std::optional<ByteView> end;
  if (behind) end = behind->place;
  TRY(scan_members(found->place, end, behind.has_value(), [&](ByteView place) {
    if (steps-- > 0) return Visit::go_on;
    member = place;
    return Visit::stop;
  }));
  if (!member) return wrong_counts();
  return std::move(*member);
}

Result<Bytes> Fences::begin() {
  TRY_ASSIGN(Found fence, first(Level::members));
  if (!fence) return wrong_counts();
  return std::move(fence->place);
}

Result<std::optional<Bytes>> Fences::end() {
  TRY_ASSIGN(Found fence, one_of(Level::members, {}, std::nullopt, true));
  if (!fence) return wrong_counts();
  std::optional<Bytes> end;
  if (fence->members == 0) end = std::move(fence->place);
  return end;
}

// --- writing ---

Result<Fences::Fence> Fences::fence_for(ByteView place) {
  TRY_ASSIGN(Found fence, at(Level::members, place));
  if (fence) return std::move(*fence);
  // Before all others: the first one moves there, or if it is rather full makes room for one more.
  TRY_ASSIGN(Found first_one, first(Level::members));
  if (!first_one) return wrong_counts();
  Fence moved{Bytes(place.substr(0, first_place_bytes_max)), 0};
  if (first_one->members < fence_members_cut) {
    moved.members = first_one->members;
    remove(Level::members, *first_one);
  }
  put(Level::members, moved.place, moved.members, std::nullopt);
  return moved;
}

// Of fences that are empty now. The last one says where the members end, so one stays.
Status Fences::forget_empty(const Bytes& place) {
  TRY_ASSIGN(const Found behind, next(Level::members, place));
  if (!behind) return {};
  if (behind->members == 0)
    remove(Level::members, *behind);
  else
    remove(Level::members, {place, 0});
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

bool is_possible(uint64_t members, int64_t difference) {
  return difference >= 0 || members >= static_cast<uint64_t>(-difference);
}

}  // namespace

Status Fences::count_groups(const std::vector<Change>& changes) {
  Found group;
  int64_t difference = 0;
  const auto write = [&]() -> Status {
    if (!group || difference == 0) return {};
    if (!is_possible(group->members, difference)) return wrong_counts();
    const uint64_t members = group->members + static_cast<uint64_t>(difference);
    put(Level::fences, group->place, members, group->members);
    if (members != 0) return {};
    // Its fences, which are empty, go to the one before it, or the one behind the first.
    size_t groups = 0;
    TRY(scan(Level::fences, {}, std::nullopt,
             [&](ByteView, uint64_t) { return ++groups == 2 ? Visit::stop : Visit::go_on; }));
    if (groups == 2) remove(Level::fences, {group->place, 0});
    return {};
  };
  for (const auto& [place, by] : changes) {
    TRY_ASSIGN(Fence of, group_of(place));
    if (!group || group->place != of.place) {
      TRY(write());
      group = std::move(of);
      difference = 0;
    }
    difference += by;
  }
  return write();
}

Status Fences::count(std::vector<Change> changes) {
  sum_up(changes);
  std::vector<Change> counted;  // by fence
  std::vector<Bytes> empty;
  std::vector<Fence> full;
  Found fence;
  const auto write = [&]() -> Status {
    if (!fence || counted.back().second == 0) return {};
    const int64_t difference = counted.back().second;
    if (!is_possible(fence->members, difference)) return wrong_counts();
    const uint64_t members = fence->members + static_cast<uint64_t>(difference);
    put(Level::members, fence->place, members, fence->members);
    if (members == 0) empty.push_back(fence->place);
    // What was too large before is cut by the collector.
    if (members > fence_members_max && fence->members <= fence_members_max)
      full.push_back({fence->place, members});
    return {};
  };
  for (const auto& [place, difference] : changes) {
    TRY_ASSIGN(Fence of, fence_for(place));
    if (!fence || fence->place != of.place) {
      TRY(write());
      fence = std::move(of);
      counted.emplace_back(fence->place, 0);
    }
    counted.back().second += difference;
  }
  TRY(write());
  TRY(count_groups(counted));
  for (size_t i = empty.size(); i-- > 0;) TRY(forget_empty(empty[i]));
  for (const Fence& one : full) TRY(cut(one, SIZE_MAX));
  return {};
}

Result<bool> Fences::cut(const Fence& fence, size_t pieces_max) {
  std::vector<Fence> pieces{{fence.place, 0}};
  uint64_t walked = 0;
  Bytes last;
  bool stopped = false;
  TRY(scan_members(fence.place, std::nullopt, false, [&](ByteView place) {
    if (pieces.back().members >= fence_members_cut && fence.members - walked >= fence_members_cut) {
      Bytes begin = place_between(last, place);
      if (begin.size() <= fence_place_bytes_max) {
        pieces.push_back({std::move(begin), 0});
        stopped = pieces.size() > pieces_max;
        if (stopped) return Visit::stop;
      }
    }
    last = place;
    pieces.back().members++;
    stopped = ++walked == fence.members;
    return stopped ? Visit::stop : Visit::go_on;
  }));
  if (!stopped) return wrong_counts();
  pieces.back().members += fence.members - walked;
  if (pieces.size() == 1) return false;
  put(Level::members, fence.place, pieces[0].members, fence.members);
  for (size_t i = 1; i < pieces.size(); i++)
    put(Level::members, pieces[i].place, pieces[i].members, std::nullopt);
  TRY_ASSIGN(const Fence group, group_of(fence.place));
  TRY(cut_group(group));
  return true;
}

Status Fences::cut_group(const Fence& group) {
  TRY_ASSIGN(const Found before, one_of(Level::fences, {}, group.place, true));
  TRY_ASSIGN(const Found behind, next(Level::fences, group.place));
  std::optional<ByteView> end;
  if (behind) end = behind->place;
  const ByteView begin = before ? ByteView(group.place) : ByteView();
  size_t fences = 0;
  std::vector<Fence> pieces;
  TRY(scan(Level::members, begin, end, [&](ByteView place, uint64_t members) {
    if (fences++ % fence_group_cut == 0) pieces.push_back({Bytes(place), 0});
    pieces.back().members += members;
    return Visit::go_on;
  }));
  if (fences <= fence_group_max) return {};
  put(Level::fences, group.place, pieces[0].members, group.members);
  for (size_t i = 1; i < pieces.size(); i++)
    put(Level::fences, pieces[i].place, pieces[i].members, std::nullopt);
  return {};
}

Status Fences::make(uint64_t members, bool whole) {
  Fence all{{}, members};
  TRY(scan_members({}, std::nullopt, false, [&](ByteView place) {
    all.place = place.substr(0, first_place_bytes_max);
    return Visit::stop;
  }));
  put(Level::members, all.place, members, std::nullopt);
  put(Level::fences, all.place, members, std::nullopt);
  if (whole) TRY(cut(all, SIZE_MAX));
  return {};
}

Result<bool> Fences::cut_some() {
  // What is left is the last one, but for one that is empty.
  TRY_ASSIGN(Found fence, one_of(Level::members, {}, std::nullopt, true));
  if (fence && fence->members == 0) {
    const Bytes end = std::move(fence->place);
    TRY_ASSIGN(fence, one_of(Level::members, {}, end, true));
  }
  if (!fence || fence->members <= fence_members_max) return false;
  return cut(*fence, pieces_max);
}

Status Fences::remove_all() {
  std::vector<std::pair<Level, Fence>> all;
  for (const Level level : {Level::members, Level::fences})
    TRY(scan(level, {}, std::nullopt, [&](ByteView place, uint64_t members) {
      all.push_back({level, {Bytes(place), members}});
      return Visit::go_on;
    }));
  for (const auto& [level, fence] : all) remove(level, fence);
  return {};
}

}  // namespace trellis
