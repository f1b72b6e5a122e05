#include "range/address_walk.h"

#include <algorithm>

#include "base/assert.h"
#include "codec/address.h"

namespace trellis {
namespace {

constexpr size_t area_bytes = 5;  // 'x', keyspace, model: the same in key and address
constexpr size_t inode_bytes = 8;
constexpr ByteView inode_scopes = "\x01\x02\x03\x05\x07";

// Where keys and addresses are not the same.
bool is_moved_area(ByteView address) {
  return address.size() >= area_bytes && address[0] == 'x' &&
         (address[4] == 'd' || address[4] == 'f');
}

Bytes concat(ByteView a, ByteView b, ByteView c = {}) {
  Bytes out;
  out.reserve(a.size() + b.size() + c.size());
  out.append(a).append(b).append(c);
  return out;
}

unsigned char first_of(ByteView bytes) { return static_cast<unsigned char>(bytes[0]); }

// The least key of a scope whose address is at or after `address`, which is in the group of inodes.
Bytes scope_bound(ByteView area, char scope, ByteView address) {
  const ByteView inode = address.substr(area_bytes + 1, inode_bytes);
  const ByteView rest = address.substr(area_bytes + 1 + inode.size());
  Bytes bound = concat(area, {&scope, 1}, inode);
  if (rest.empty() || first_of(rest) < scope) return bound;
  if (first_of(rest) > scope) return prefix_end(bound);
  return bound.append(rest.substr(1));
}

}  // namespace

AddressWalk::AddressWalk(Engine& engine, ByteView begin, ByteView end, ByteView position)
    : engine_(engine), begin_(begin), end_(end) {
  const bool moved_begin = is_moved_area(begin);
  const bool moved_end = is_moved_area(end) && end.size() > area_bytes;
  const ByteView begin_area = moved_begin ? begin.substr(0, area_bytes) : ByteView();
  const ByteView end_area = moved_end ? end.substr(0, area_bytes) : ByteView();
  if (moved_begin && begin_area == end_area) {
    add_area(begin_area, begin, end);
  } else {
    if (moved_begin) add_area(begin_area, begin, std::min(Bytes(end), prefix_end(begin_area)));
    add_piece(moved_begin ? prefix_end(begin_area) : Bytes(begin),
              Bytes(moved_end ? end_area : end));
    if (moved_end) add_area(end_area, end_area, end);
  }
  std::ranges::sort(pieces_, {}, &Piece::begin);  // they are apart
  if (position.size() >= 4) {
    piece_ = std::min<size_t>(load_be(position.data(), 4), pieces_.size());
    key_ = position.substr(4);
  }
  if (!done()) key_ = std::max(key_, pieces_[piece_].begin);
}

Bytes AddressWalk::position() const {
  Bytes out;
  append_be32(out, static_cast<uint32_t>(piece_));
  return out.append(key_);
}

void AddressWalk::add_piece(Bytes begin, Bytes end) {
  if (begin < end) pieces_.push_back({std::move(begin), std::move(end), false, {}, {}});
}

void AddressWalk::add_area(ByteView area, ByteView begin, ByteView end) {
  area.back() == 'd' ? add_redis(area, begin, end) : add_files(area, begin, end);
}

void AddressWalk::add_files(ByteView area, ByteView begin, ByteView end) {
  // Scopes that belong to no inode are their own address.
  Bytes from(area);
  for (const char scope : inode_scopes) {
    const Bytes to = concat(area, {&scope, 1});
    add_piece(std::max(from, Bytes(begin)), std::min(to, Bytes(end)));
    from = prefix_end(to);
  }
  add_piece(std::max(from, Bytes(begin)), Bytes(end));

  const Bytes group = concat(area, "\x01");
  const Bytes group_end = prefix_end(group);
  if (begin >= group_end || end <= group) return;
  for (const char scope : inode_scopes) {
    const Bytes first = concat(area, {&scope, 1});
    add_piece(begin <= group ? first : scope_bound(area, scope, begin),
              end >= group_end ? prefix_end(first) : scope_bound(area, scope, end));
  }
}

// Absent: the bound is not inside of a namespace, so that no user key is cut by it.
std::optional<AddressWalk::RedisBound> AddressWalk::redis_bound(ByteView area, ByteView address) {
  ByteView rest = address.substr(area.size());
  if (rest.empty()) return {};
  const size_t ns_bytes = 1 + static_cast<unsigned char>(rest[0]);
  if (rest.size() <= ns_bytes) return {};
  RedisBound bound;
  bound.ns = rest.substr(0, ns_bytes);
  rest.remove_prefix(ns_bytes);
  while (!rest.empty()) {
    if (rest[0] != '\0') {
      bound.user_key.push_back(rest[0]);
      rest.remove_prefix(1);
      continue;
    }
    const unsigned char escaped = rest.size() < 2 ? 0 : static_cast<unsigned char>(rest[1]);
    if (escaped == 0) break;  // before the user key's end, and so before all of it
    rest.remove_prefix(2);
    if (escaped == 0xff) {
      bound.user_key.push_back('\0');
      continue;
    }
    // The end of the user key, or what no address has, above its end.
    bound.below_key = escaped == 1 && rest.empty();
    if (escaped == 1) bound.tail = rest;
    break;
  }
  return bound;
}

namespace {

enum class Cut { at, above, inside };

// Where the bound lies in what a table has of the bound's own user key.
Cut cut_of(char tag, bool below_key, ByteView tail) {
  if (below_key) return Cut::at;
  if (tail.empty() || first_of(tail) > tag) return Cut::above;
  return first_of(tail) < tag || tail.size() == 1 ? Cut::at : Cut::inside;
}

}  // namespace

// prefix: area, tag and namespace.
Bytes AddressWalk::plain_bound(ByteView prefix, char tag, const RedisBound& bound) {
  Bytes key = concat(prefix, bound.user_key);
  return cut_of(tag, bound.below_key, bound.tail) == Cut::at ? key : successor(key);
}

Bytes AddressWalk::sized_bound(ByteView prefix, char tag, uint32_t size, const RedisBound& bound) {
  Bytes key(prefix);
  append_be32(key, size);
  key.append(bound.user_key, 0, size);
  if (bound.user_key.size() < size) return key;
  if (bound.user_key.size() > size) return prefix_end(key);
  switch (cut_of(tag, bound.below_key, bound.tail)) {
    case Cut::at: return key;
    case Cut::above: return prefix_end(key);
    case Cut::inside: return key.append(bound.tail, 1);
  }
  return key;
}

void AddressWalk::add_redis(ByteView area, ByteView begin, ByteView end) {
  const Bytes area_end = prefix_end(area);
  const auto lower = redis_bound(area, begin);
  const auto upper = end >= area_end ? std::nullopt : redis_bound(area, end);
  const auto table_end = [&](ByteView table) {
    return end >= area_end ? prefix_end(table) : concat(table, end.substr(area_bytes));
  };
  for (const char tag : redis_tables) {
    const Bytes table = concat(area, {&tag, 1});
    if (!is_of_lives(tag)) {
      add_piece(lower ? plain_bound(concat(table, lower->ns), tag, *lower)
                      : concat(table, begin.substr(area_bytes)),
                upper ? plain_bound(concat(table, upper->ns), tag, *upper) : table_end(table));
      continue;
    }
    const bool one_ns = lower && upper && lower->ns == upper->ns;
    const auto add_ns = [&](const RedisBound& bound, bool has_lower, bool has_upper) {
      Bytes ns = concat(table, bound.ns);
      Bytes ns_end = prefix_end(ns);
      pieces_.push_back({std::move(ns), std::move(ns_end), true, has_lower ? lower : std::nullopt,
                         has_upper ? upper : std::nullopt});
    };
    if (lower) add_ns(*lower, true, one_ns);
    if (one_ns) continue;
    add_piece(
        lower ? prefix_end(concat(table, lower->ns)) : concat(table, begin.substr(area_bytes)),
        upper ? concat(table, upper->ns) : table_end(table));
    if (upper) add_ns(*upper, false, true);
  }
}

Result<std::optional<std::pair<Bytes, Bytes>>> AddressWalk::next_interval(const Piece& piece) {
  using Interval = std::optional<std::pair<Bytes, Bytes>>;
  if (key_ >= piece.end) return Interval();
  if (!piece.by_length) return Interval({key_, piece.end});
  const char tag = piece.begin[area_bytes];
  while (key_ < piece.end) {
    Bytes found;
    const auto keep = [&](ByteView key, ByteView) {
      found = key;
      return Visit::stop;
    };
    TRY_ASSIGN(const ScanPage page,
               engine_.scan({.begin = key_, .end = piece.end, .entries_max = 1}, keep));
    if (page.entries == 0) break;
    const ByteView behind = ByteView(found).substr(piece.begin.size());
    if (behind.size() < 4) {
      figures_.malformed++;
      key_ = successor(found);
      continue;
    }
    const auto size = static_cast<uint32_t>(load_be(behind.data(), 4));
    Bytes all = piece.begin;
    append_be32(all, size);
    Bytes from = piece.lower ? sized_bound(piece.begin, tag, size, *piece.lower) : all;
    Bytes to = piece.upper ? sized_bound(piece.begin, tag, size, *piece.upper) : prefix_end(all);
    from = std::max(from, found);
    if (from < to) return Interval({std::move(from), std::move(to)});
    key_ = prefix_end(all);
  }
  return Interval();
}

bool AddressWalk::is_inside(ByteView key) {
  address_.clear();
  if (!append_address(address_, key)) {
    figures_.malformed++;
    return false;
  }
  return address_ >= begin_ && address_ < end_;
}

Status AddressWalk::next(ScanVisitor visit, size_t bytes_max) {
  ASSERT(!done());
  uint64_t seen = 0;
  bool stopped = false;
  while (!done() && !stopped && seen < bytes_max) {
    TRY_ASSIGN(const auto interval, next_interval(pieces_[piece_]));
    if (!interval) {
      piece_++;
      key_ = done() ? Bytes() : pieces_[piece_].begin;
      continue;
    }
    const auto& [from, to] = *interval;
    Bytes last;
    const auto look = [&](ByteView key, ByteView value) {
      seen += key.size() + value.size();
      if (is_inside(key)) {
        figures_.entries++;
        figures_.bytes += key.size() + value.size();
        stopped = visit(key, value) == Visit::stop;
      }
      if (stopped) last = key;
      return stopped ? Visit::stop : Visit::go_on;
    };
    TRY_ASSIGN(const ScanPage page, engine_.scan({.begin = from,
                                                  .end = to,
                                                  .bytes_max = bytes_max,
                                                  .reading = ScanRequest::Reading::once},
                                                 look));
    key_ = stopped ? successor(last) : page.resume.value_or(to);
  }
  return {};
}

}  // namespace trellis
