// What looks at all keys of a database: it cannot name them, so it runs alone.
//
// A cursor of SCAN is a place in the order of names, with nothing kept here: names that are there
// from the first call to the last are given, whatever comes and goes meanwhile, also by another
// process. A place is where a page could be cut: the first bytes of the next name, up to the one
// in which it differs from the last name of the page. Of these the cursor holds the last ones, how
// many come before them, and a checksum of those by which they are found again.
//
//   | 1 | skipped 8 | checksum of the skipped bytes 12 | the bytes behind them 32 |
//
// It is below 2^53: some clients in JavaScript keep cursors as numbers, which are exact only there.
#include <algorithm>

#include "base/crc32c.h"
#include "base/random.h"
#include "redis/cursor.h"
#include "redis/generic_handlers.h"
#include "redis/glob.h"
#include "redis/server.h"

namespace trellis {
namespace {

constexpr uint64_t cursor_mark = uint64_t{1} << 52;
constexpr size_t window_bytes = 4;
constexpr size_t skipped_max = 0xff;
constexpr uint64_t checksum_mask = (1U << 12) - 1;
constexpr size_t page_keys_max = 10'000;
constexpr size_t places_tried_max = 8;
// How many fronts may be looked at to find a place again. One that is handed out is found sooner:
// names may have come since.
constexpr size_t looks_max = 65'536;
constexpr size_t looks_at_first = 64;

struct FoundKey {
  Bytes name;
  std::optional<RedisType> type;  // absent: it is not there for clients
  size_t bytes = 0;               // of its record
};

// The names of one database.
class Names {
 public:
  Names(AloneCall& call, const DatabaseSlots& slots)
      : call_(call),
        prefix_(
            redis_metadata_key(call.session.tenant->id(), slots.of(call.session.database), {})) {}

  struct Page {
    std::vector<FoundKey> keys;
    bool more = false;
    size_t bytes = 0;  // that were read for it
  };
  // From the first at or behind `from` to before those that begin with `end`. It ends sooner than
  // at so many keys where these are large: it is read by so many scans at most.
  Result<Page> page(ByteView from, const std::optional<Bytes>& end, size_t keys_max,
                    size_t scans_max = 1) {
    Page page;
    const auto take = [&](ByteView key, ByteView record) {
      const auto metadata = decode_redis_metadata(record);
      FoundKey found{.name = Bytes(key.substr(prefix_.size())),
                     .type = std::nullopt,
                     .bytes = key.size() + record.size()};
      if (metadata && is_visible(*metadata, call_.now_ms)) found.type = metadata->type;
      page.bytes += found.bytes;
      page.keys.push_back(std::move(found));
      return Visit::go_on;
    };
    std::optional<Bytes> begin = prefix_ + Bytes(from);
    const Bytes behind = end ? prefix_ + *end : prefix_end(prefix_);
    for (size_t i = 0; begin && i < scans_max && page.keys.size() < keys_max; i++) {
      TRY_ASSIGN(
          ScanPage scanned,
          call_.scan({.begin = *begin, .end = behind, .entries_max = keys_max - page.keys.size()},
                     take));
      begin = std::move(scanned.resume);
    }
    page.more = begin.has_value();
    return page;
  }
  Result<std::optional<Bytes>> first(ByteView from) {
    TRY_ASSIGN(Page one, page(from, std::nullopt, 1));
    if (one.keys.empty()) return std::nullopt;
    return std::move(one.keys[0].name);
  }
  // Of those that begin with `front`.
  Result<std::optional<Bytes>> last(ByteView front) {
    std::optional<Bytes> name;
    const Bytes begin = prefix_ + Bytes(front);
    TRY(call_.scan({.begin = begin, .end = prefix_end(begin), .reverse = true, .entries_max = 1},
                   [&](ByteView key, ByteView) {
                     name = key.substr(prefix_.size());
                     return Visit::stop;
                   }));
    return name;
  }

 private:
  AloneCall& call_;
  const Bytes prefix_;
};

// --- cursors ---

uint64_t checksum_of(ByteView skipped) { return crc32c(skipped) & checksum_mask; }

// The place between two names that follow each other.
uint64_t cursor_between(ByteView last, ByteView next) {
  const size_t shared = shared_bytes(last, next);
  const size_t skipped =
      std::min(shared < window_bytes ? 0 : shared + 1 - window_bytes, skipped_max);
  Bytes window(next.substr(skipped, window_bytes));
  window.resize(window_bytes, '\0');
  return cursor_mark | static_cast<uint64_t>(skipped) << 44 |
         checksum_of(next.substr(0, skipped)) << 32 | load_be(window.data(), window_bytes);
}

// Where to go on. A place that is gone with all names near it, or would be found after so many
// looks, is the beginning: giving a name twice is allowed, to leave one out is not.
Result<Bytes> place_of(Names& names, uint64_t cursor, size_t looks) {
  if ((cursor & cursor_mark) == 0) return Bytes();
  const size_t skipped = cursor >> 44 & skipped_max;
  const uint64_t checksum = cursor >> 32 & checksum_mask;
  Bytes number;
  append_be64(number, cursor);
  Bytes window = number.substr(sizeof(uint64_t) - window_bytes);
  while (window.ends_with('\0')) window.pop_back();
  if (skipped == 0) return window;
  for (Bytes from; looks > 0; looks--) {
    TRY_ASSIGN(const std::optional<Bytes> name, names.first(from));
    if (!name) return Bytes();
    if (name->size() < skipped) {
      from = successor(*name);
      continue;
    }
    const ByteView front = ByteView(*name).substr(0, skipped);
    if (checksum_of(front) == checksum) return Bytes(front) + window;
    from = prefix_end(front);
    if (from.empty()) return Bytes();
  }
  return Bytes();
}

// --- SCAN ---

struct KeyScanOptions {
  ByteView pattern;
  bool has_pattern = false;
  size_t count = 10;
  std::optional<ByteView> type;
};

Result<KeyScanOptions> parse_scan_options(const AloneCall& call) {
  KeyScanOptions options;
  for (size_t i = 2; i < call.count(); i += 2) {
    if (i + 1 >= call.count()) return syntax_error();
    if (call.is_word(i, "count")) {
      TRY_ASSIGN(const int64_t count, call.integer(i + 1));
      if (count < 1) return syntax_error();
      options.count = static_cast<size_t>(std::min<int64_t>(count, page_keys_max));
    } else if (call.is_word(i, "match")) {
      options.pattern = call.arg(i + 1);
      options.has_pattern = options.pattern != "*";
    } else if (call.is_word(i, "type")) {
      options.type = call.arg(i + 1);
    } else {
      return syntax_error();
    }
  }
  return options;
}

// Cuts the page at the best place behind `count` keys, or in its second half if it has no more; 0:
// there is none that is found by so many looks.
Result<uint64_t> cut(Names& names, Names::Page& page, size_t count, size_t looks) {
  std::vector<size_t> places;
  if (page.keys.size() <= count) count = std::max<size_t>(page.keys.size() / 2, 1);
  for (size_t i = count; i < page.keys.size(); i++) places.push_back(i);
  const auto shared_at = [&](size_t i) {
    return shared_bytes(page.keys[i - 1].name, page.keys[i].name);
  };
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return shared_at(a) < shared_at(b); });
  // The checksum of a place is rarely that of an earlier one too: few are tried.
  places.resize(std::min(places.size(), places_tried_max));
  for (const size_t place : places) {
    const Bytes& last = page.keys[place - 1].name;
    const Bytes& next = page.keys[place].name;
    const uint64_t cursor = cursor_between(last, next);
    TRY_ASSIGN(const Bytes found, place_of(names, cursor, looks));
    if (found <= last || found > next) continue;
    page.keys.resize(place);
    return cursor;
  }
  return 0;
}

Result<uint64_t> next_page(Names& names, uint64_t cursor, const KeyScanOptions& options,
                           std::vector<FoundKey>& keys) {
  const Bytes front = options.has_pattern ? glob_prefix(options.pattern) : Bytes();
  std::optional<Bytes> end;
  if (!prefix_end(front).empty()) end = prefix_end(front);
  TRY_ASSIGN(Bytes from, place_of(names, cursor, looks_max));
  from = std::max(from, front);
  // A page that cannot be cut where its place is found soon ends behind more names that are alike.
  size_t looks = looks_at_first;
  size_t scans_max = 1;
  for (size_t keys_max = options.count * 3 / 2 + 16;; keys_max *= 2, looks *= 2, scans_max *= 2) {
    TRY_ASSIGN(Names::Page page, names.page(from, end, keys_max, scans_max));
    uint64_t next = 0;
    if (page.more) {
      TRY_ASSIGN(next, cut(names, page, options.count, std::min(looks, looks_max)));
      if (next == 0 && keys_max < scan_page_entries_max) continue;
      if (next == 0) return Error{Code::too_large, "so many names that are alike cannot be cut"};
    }
    keys = std::move(page.keys);
    return next;
  }
}

}  // namespace

Status scan_keys(AloneCall& call) {
  TRY_ASSIGN(const uint64_t cursor, parse_cursor(call.arg(1)));
  TRY_ASSIGN(const KeyScanOptions options, parse_scan_options(call));
  TRY(call.admit_read());
  TRY_ASSIGN(const DatabaseSlots slots, call.slots());
  Names names(call, slots);
  std::vector<FoundKey> keys;
  TRY_ASSIGN(const uint64_t next, next_page(names, cursor, options, keys));
  std::erase_if(keys, [&](const FoundKey& found) {
    return !found.type || (options.type && !equals_word(*options.type, type_name(*found.type))) ||
           (options.has_pattern && !glob_matches(options.pattern, found.name));
  });
  call.reply.array(2);
  call.reply.bulk(std::to_string(next));
  call.reply.array(keys.size());
  for (const FoundKey& found : keys) call.reply.bulk(found.name);
  return {};
}

// --- RANDOMKEY ---

namespace {

constexpr int key_tries_max = 100;
constexpr size_t piece_bytes_max = scan_page_bytes_max / 2;  // so that one scan reads it

void forget_hidden(Names::Page& page) {
  std::erase_if(page.keys, [](const FoundKey& found) { return !found.type; });
}

// Goes on with the walk by which pieces are found.
Status walk_names(Names& names, NamePieces& pieces, size_t piece_names) {
  constexpr size_t walked_keys = 8'192;
  const std::optional<Bytes> from = pieces.walked_to();
  if (!from) return {};
  TRY_ASSIGN(const Names::Page page, names.page(*from, std::nullopt, walked_keys));
  std::vector<Bytes> borders;
  size_t found = from->empty() ? 0 : piece_names;
  size_t bytes = 0;
  for (const FoundKey& key : page.keys) {
    if (found >= piece_names || bytes + key.bytes > piece_bytes_max) {
      borders.push_back(key.name);
      found = bytes = 0;
    }
    found++;
    bytes += key.bytes;
  }
  std::optional<Bytes> end;
  if (page.more) end = successor(page.keys.back().name);
  pieces.walked(*from, std::move(borders), std::move(end));
  return {};
}

// A name of some piece; absent: it was not to be, or there is none.
Result<std::optional<Bytes>> try_piece(Names& names, NamePieces& pieces, size_t names_max,
                                       Random& random) {
  const NamePieces::Piece piece = pieces.pick(random);
  TRY_ASSIGN(Names::Page page, names.page(piece.begin, piece.end, names_max + 1));
  const size_t found = page.keys.size();
  const bool is_cut_short = page.more && found > 0 && successor(page.keys.back().name) != piece.end;
  if (found > names_max || is_cut_short) {
    pieces.cut(found > 1 ? page.keys[found / 2].name : successor(page.keys[0].name));
    return std::nullopt;
  }
  if (found < names_max / 4 && page.bytes < piece_bytes_max / 2) pieces.join_next(piece);
  forget_hidden(page);
  const bool is_only_one = piece.begin.empty() && !piece.end;
  const bool is_taken =
      is_only_one ? !page.keys.empty() : random.below(names_max) < page.keys.size();
  if (!is_taken) return std::nullopt;
  return std::move(page.keys[random.below(page.keys.size())].name);
}

// As long as the pieces are not known: goes down where names differ, each time to a byte chosen by
// chance, and takes one of a few hundred from there. Where names are alike in form, one is about as
// likely as any other.
Result<std::optional<Bytes>> go_down(Names& names, Random& random) {
  constexpr size_t page_keys = 512;
  constexpr int depth_max = 8;
  Bytes front;
  for (int depth = 0; depth < depth_max; depth++) {
    TRY_ASSIGN(const std::optional<Bytes> first, names.first(front));
    TRY_ASSIGN(const std::optional<Bytes> last, names.last(front));
    if (!first || !last || *first >= *last) break;
    front = first->substr(0, shared_bytes(*first, *last));
    const auto low = static_cast<unsigned char>((*first + '\0')[front.size()]);
    const auto high = static_cast<unsigned char>((*last)[front.size()]);
    front.push_back(static_cast<char>(low + random.below(high - low + 1U)));
    TRY_ASSIGN(const std::optional<Bytes> near, names.first(front));
    if (near) front = near->substr(0, front.size());
  }
  const Bytes end = prefix_end(front);
  TRY_ASSIGN(Names::Page page,
             names.page(front, end.empty() ? std::nullopt : std::optional(end), page_keys));
  forget_hidden(page);
  if (page.keys.empty()) return std::nullopt;
  return std::move(page.keys[random.below(page.keys.size())].name);
}

}  // namespace

Status random_key(AloneCall& call) {
  TRY(call.admit_read());
  Random random(call.server.next_seed());
  TRY_ASSIGN(const DatabaseSlots slots, call.slots());
  TRY_ASSIGN(const int64_t keys, call.count_keys(slots, call.session.database));
  const size_t names_max = NamePieces::names_max(static_cast<uint64_t>(std::max<int64_t>(keys, 0)));
  Names names(call, slots);
  const auto pieces = call.server.name_pieces().of(call.session.tenant->id().value,
                                                   slots.of(call.session.database));
  TRY(walk_names(names, *pieces, names_max / 4 * 3));
  std::optional<Bytes> name;
  if (keys > 0 && !pieces->walked_to())
    for (int i = 0; i < key_tries_max && !name; i++) {
      TRY_ASSIGN(name, try_piece(names, *pieces, names_max, random));
    }
  // Also if almost all names are gone.
  for (int i = 0; keys > 0 && i < key_tries_max && !name; i++) {
    TRY_ASSIGN(name, go_down(names, random));
  }
  if (name)
    call.reply.bulk(*name);
  else
    call.reply.null();
  return {};
}

}  // namespace trellis
