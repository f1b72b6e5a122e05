#include "cluster_engine/stored_order.h"

#include <algorithm>
#include <map>
#include <optional>

#include "codec/address.h"
#include "codec/field_codecs.h"

namespace trellis {
namespace {

constexpr size_t group_bytes = 5;  // 'x', keyspace, model
constexpr size_t inode_bytes = 8;

bool in_group(ByteView bytes) {
  return bytes.size() >= group_bytes && bytes[0] == 'x' && (bytes[4] == 'd' || bytes[4] == 'f');
}

bool before_end(ByteView key, ByteView end) { return end.empty() || key < end; }

// The lesser of two ends.
ByteView first_end(ByteView a, ByteView b) {
  return a.empty() ? b : b.empty() ? a : std::min(a, b);
}

enum class PieceKind : uint8_t {
  plain,  // every address of it is a key of it
  table,  // one address in each granule: 'm', 'n'
  scope,  // one scope of each inode
  many,   // sub keys of many user keys
};

struct Piece {
  PieceKind kind;
  char tag = 0;          // of a table or scope
  Bytes key_begin = {};  // its keys
  Bytes key_end = {};
  Bytes begin = {};  // their addresses
  Bytes end = {};
};

// The parts of a bound behind its group and tag: a bound is any bytes.
struct RedisBound {
  ByteView ns;    // with its length byte, or as much as there is of it
  ByteView rest;  // what follows a namespace that is whole
  bool has_namespace = false;
};

RedisBound split_bound(ByteView behind_tag) {
  if (behind_tag.empty()) return {};
  const size_t size = 1 + static_cast<unsigned char>(behind_tag[0]);
  if (size > behind_tag.size()) return {.ns = behind_tag, .rest = {}};
  return {.ns = behind_tag.substr(0, size), .rest = behind_tag.substr(size), .has_namespace = true};
}

// Where in the addresses of a group the keys of 'm' or 'n' from this bound on begin.
Bytes table_address(ByteView group, ByteView bound) {
  const RedisBound parts = split_bound(bound.substr(group_bytes + 1));
  Bytes address(group);
  address.append(parts.ns);
  if (!parts.has_namespace) return address;
  Terminated::append(address, parts.rest);
  address.resize(address.size() - 2);  // its end: a bound has none
  return address;
}

// The same for one scope of inodes.
Bytes scope_address(ByteView group, ByteView bound) {
  const ByteView rest = bound.substr(group_bytes + 1);
  Bytes address(group);
  address.push_back('\x01');
  address.append(rest.substr(0, inode_bytes));
  if (rest.size() < inode_bytes) return address;
  address.push_back(bound[group_bytes]);
  address.append(rest.substr(inode_bytes));
  return address;
}

// If all keys of the piece belong to one user key, they are in the order of addresses.
bool narrow_to_one_key(Piece& piece) {
  const ByteView begin = piece.key_begin;
  const RedisBound parts = split_bound(begin.substr(group_bytes + 1));
  if (!parts.has_namespace || parts.rest.size() < 4) return false;
  const size_t size = load_be(parts.rest.data(), 4);
  if (parts.rest.size() - 4 < size) return false;
  const ByteView head = begin.substr(0, begin.size() - parts.rest.size() + 4 + size);
  if (piece.key_end.empty() || piece.key_end > prefix_end(head)) return false;
  Bytes granule(begin.substr(0, group_bytes));
  granule.append(parts.ns);
  Terminated::append(granule, parts.rest.substr(4, size));
  granule.push_back(piece.tag);
  piece.kind = PieceKind::plain;
  piece.begin = granule + Bytes(begin.substr(head.size()));
  piece.end = piece.key_end.starts_with(head) ? granule + piece.key_end.substr(head.size())
                                              : prefix_end(granule);
  return true;
}

void place_many(Piece& piece, ByteView group) {
  if (narrow_to_one_key(piece)) return;
  const RedisBound parts = split_bound(ByteView(piece.key_begin).substr(group_bytes + 1));
  const Bytes head = piece.key_begin.substr(0, group_bytes + 1) + Bytes(parts.ns);
  const bool one_namespace =
      parts.has_namespace && !piece.key_end.empty() && piece.key_end <= prefix_end(head);
  piece.begin = Bytes(group) + (one_namespace ? Bytes(parts.ns) : Bytes());
  piece.end = prefix_end(piece.begin);
}

// The piece of a group whose keys begin with `tag` (plain: from begin to end).
void add_tagged(std::vector<Piece>& pieces, PieceKind kind, ByteView group, char tag,
                const StoredWalk& walk) {
  Piece piece{.kind = kind, .tag = tag};
  const Bytes first = Bytes(group) + tag;
  const Bytes last = prefix_end(first);
  piece.key_begin = std::max(ByteView(first), walk.begin);
  piece.key_end = first_end(last, walk.end);
  if (piece.key_begin >= piece.key_end) return;
  const bool whole_end = piece.key_end == last;
  switch (kind) {
    case PieceKind::table:
      piece.begin = table_address(group, piece.key_begin);
      piece.end = whole_end ? prefix_end(group) : table_address(group, piece.key_end);
      break;
    case PieceKind::scope:
      piece.begin = scope_address(group, piece.key_begin);
      piece.end =
          whole_end ? prefix_end(Bytes(group) + '\x01') : scope_address(group, piece.key_end);
      break;
    case PieceKind::many: place_many(piece, group); break;
    case PieceKind::plain: break;
  }
  pieces.push_back(std::move(piece));
}

void add_plain(std::vector<Piece>& pieces, Bytes begin, Bytes end, const StoredWalk& walk) {
  begin = std::max(ByteView(begin), walk.begin);
  end = first_end(end, walk.end);
  if (begin >= end) return;
  pieces.push_back(
      {.kind = PieceKind::plain, .key_begin = begin, .key_end = end, .begin = begin, .end = end});
}

std::vector<Piece> pieces_of(ByteView group, const StoredWalk& walk) {
  std::vector<Piece> pieces;
  const auto from = [&](char scope) { return Bytes(group) + scope; };
  if (group[4] == 'd') {
    for (const char table : redis_tables)
      add_tagged(pieces, is_of_lives(table) ? PieceKind::many : PieceKind::table, group, table,
                 walk);
    return pieces;
  }
  add_plain(pieces, Bytes(group), from(1), walk);
  for (const char scope : {1, 2, 3}) add_tagged(pieces, PieceKind::scope, group, scope, walk);
  add_plain(pieces, from(4), from(5), walk);
  add_tagged(pieces, PieceKind::scope, group, 5, walk);
  add_plain(pieces, from(6), from(7), walk);
  add_tagged(pieces, PieceKind::scope, group, 7, walk);
  add_plain(pieces, from(8), prefix_end(group), walk);
  return pieces;
}

// The address up to its tag (of Redis, the granule; of files, the inode), and the tag.
struct Tagged {
  ByteView head;
  char tag;
};

Result<Tagged> split_tag(const Piece& piece, ByteView address) {
  size_t size = group_bytes + 1 + inode_bytes;
  if (piece.kind != PieceKind::scope) {
    const RedisBound parts = split_bound(address.substr(group_bytes));
    Bytes scratch;
    Reader reader(parts.rest, &scratch);
    ByteView user_key;
    if (!parts.has_namespace || !Terminated::read(reader, user_key))
      return Error{Code::corrupt, "no address of a Redis record: " + quote(address)};
    size = address.size() - reader.rest().size();
  }
  if (address.size() <= size)
    return Error{Code::corrupt, "an address that ends before its tag: " + quote(address)};
  return Tagged{address.substr(0, size), address[size]};
}

class Walker {
 public:
  Walker(const StoredWalk& walk, ChunkReader read, StoredVisitor visit)
      : walk_(walk), read_(read), visit_(visit) {}

  Result<std::optional<Bytes>> run() {
    TRY(walk_.reverse ? run_backward() : run_forward());
    return std::move(cut_);
  }

 private:
  Status run_forward() {
    Bytes at(walk_.begin);
    while (before_end(at, walk_.end) && !stopped_) {
      if (in_group(at)) {
        const Bytes group = at.substr(0, group_bytes);
        for (const Piece& piece : pieces_of(group, {at, walk_.end, false, 0}))
          if (!stopped_) TRY(walk_piece(piece));
        at = prefix_end(group);
        continue;
      }
      // What is plain, up to the first group that there is something of.
      const ByteView end = in_group(walk_.end) ? walk_.end.substr(0, group_bytes) : walk_.end;
      if (!before_end(at, end)) {
        at = end;
        continue;
      }
      AddressChunk chunk;
      TRY(read_(at, end, false, chunk));
      std::optional<Bytes> next = chunk.covered;
      if (next && in_group(*next)) next->resize(group_bytes);
      for (StoredEntry& entry : chunk.entries) {
        if (in_group(entry.address)) {
          next = entry.address.substr(0, group_bytes);
          break;
        }
        if (visit(entry.address, entry) == Visit::stop) return {};
      }
      if (!next && end == walk_.end) return {};
      at = next ? std::move(*next) : Bytes(end);
    }
    return {};
  }

  Status run_backward() {
    Bytes at(walk_.end);
    while ((at.empty() || walk_.begin < at) && !stopped_) {
      if (in_group(at) && at.size() > group_bytes) {
        TRY(group_backward(at));
        continue;
      }
      const ByteView begin =
          in_group(walk_.begin) ? walk_.begin.substr(0, group_bytes) : walk_.begin;
      AddressChunk chunk;
      TRY(read_(begin, at, true, chunk));
      std::optional<Bytes> next = chunk.covered;
      bool group = next && in_group(*next) && next->size() > group_bytes;
      if (group) next = prefix_end(ByteView(*next).substr(0, group_bytes));
      for (StoredEntry& entry : chunk.entries) {
        if (in_group(entry.address)) {
          next = prefix_end(ByteView(entry.address).substr(0, group_bytes));
          group = true;
          break;
        }
        if (visit(entry.address, entry) == Visit::stop) return {};
      }
      if (!next) return {};
      at = std::move(*next);
      if (group) TRY(group_backward(at));
    }
    return {};
  }

  // The pieces of the group just below `at`, which is then where the group begins.
  Status group_backward(Bytes& at) {
    Bytes group = at.substr(0, group_bytes);
    if (!in_group(at)) group[4]--;  // `at` is the end of the group
    const std::vector<Piece> pieces = pieces_of(group, {walk_.begin, at, true, 0});
    for (auto piece = pieces.rbegin(); piece != pieces.rend() && !stopped_; ++piece)
      TRY(walk_piece(*piece));
    at = std::move(group);
    return {};
  }

  Visit visit(ByteView key, StoredEntry& entry) {
    if (stopped_ || visit_(key, entry) == Visit::stop) {
      stopped_ = true;
      return Visit::stop;
    }
    return Visit::go_on;
  }

  Status visit_at(const Piece& piece, StoredEntry& entry) {
    Bytes key;
    TRY(append_key_at(key, entry.address));
    if (piece.key_begin <= key && before_end(key, piece.key_end)) visit(key, entry);
    return {};
  }

  Status walk_piece(const Piece& piece) {
    if (piece.kind == PieceKind::many) return walk_many(piece);
    Bytes begin = piece.begin;
    Bytes end = piece.end;
    while (begin < end) {
      AddressChunk chunk;
      TRY(read_(begin, end, walk_.reverse, chunk));
      std::optional<Bytes> skip;
      for (StoredEntry& entry : chunk.entries) {
        if (piece.kind != PieceKind::plain) {
          TRY_ASSIGN(const Tagged tagged, split_tag(piece, entry.address));
          if (tagged.tag != piece.tag) {
            skip = behind(piece, tagged);
            continue;
          }
        }
        TRY(visit_at(piece, entry));
        if (stopped_) return {};
      }
      if (!chunk.covered) return {};
      Bytes& next = walk_.reverse ? end : begin;
      next = std::move(*chunk.covered);
      if (skip) next = walk_.reverse ? std::min(next, *skip) : std::max(next, *skip);
    }
    return {};
  }

  // Where to go on when an entry has another tag than the piece.
  Bytes behind(const Piece& piece, const Tagged& tagged) const {
    const Bytes head(tagged.head);
    if (tagged.tag < piece.tag) return walk_.reverse ? head : head + piece.tag;
    return walk_.reverse ? prefix_end(head + piece.tag) : prefix_end(head);
  }

  Status walk_many(const Piece& piece) {
    std::map<Bytes, StoredEntry> kept;
    bool more = false;
    Bytes begin = piece.begin;
    while (begin < piece.end) {
      AddressChunk chunk;
      TRY(read_(begin, piece.end, false, chunk));
      for (StoredEntry& entry : chunk.entries) {
        TRY_ASSIGN(const Tagged tagged, split_tag(piece, entry.address));
        if (tagged.tag != piece.tag) continue;
        Bytes key;
        TRY(append_key_at(key, entry.address));
        if (key < piece.key_begin || !before_end(key, piece.key_end)) continue;
        kept.emplace(std::move(key), std::move(entry));
        if (kept.size() <= walk_.kept_max) continue;
        kept.erase(walk_.reverse ? kept.begin() : std::prev(kept.end()));
        more = true;
      }
      if (!chunk.covered) break;
      begin = std::move(*chunk.covered);
    }
    return visit_kept(kept, more);
  }

  Status visit_kept(std::map<Bytes, StoredEntry>& kept, bool more) {
    if (walk_.reverse) {
      for (auto at = kept.rbegin(); at != kept.rend() && !stopped_; ++at)
        visit(at->first, at->second);
    } else {
      for (auto at = kept.begin(); at != kept.end() && !stopped_; ++at)
        visit(at->first, at->second);
    }
    if (!more || stopped_) return {};
    stopped_ = true;
    cut_ = walk_.reverse ? kept.begin()->first : successor(kept.rbegin()->first);
    return {};
  }

  const StoredWalk& walk_;
  ChunkReader read_;
  StoredVisitor visit_;
  bool stopped_ = false;
  std::optional<Bytes> cut_;
};

}  // namespace

Result<std::optional<Bytes>> walk_stored_order(const StoredWalk& walk, ChunkReader read,
                                               StoredVisitor visit) {
  return Walker(walk, read, visit).run();
}

}  // namespace trellis
