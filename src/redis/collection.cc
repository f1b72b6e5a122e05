#include "redis/collection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>

#include "base/crc32c.h"
#include "base/random.h"
#include "redis/cursor.h"
#include "redis/glob.h"
#include "redis/server.h"

namespace trellis {
namespace {

struct Ends {
  Bytes first;
  Bytes last;
  size_t shared() const { return shared_bytes(first, last); }  // what all begin with
};

// Of the records whose subs begin with `prefix`.
Result<Ends> ends_of(Call& call, const Key& key, ByteView prefix) {
  Ends ends;
  const Bytes end = prefix_end(prefix);
  const auto into = [](Bytes& sub) {
    return [&sub](ByteView found, ByteView) {
      sub = found;
      return Visit::stop;
    };
  };
  TRY(call.keys.scan_subs(key, {.begin = prefix, .end = end}, into(ends.first)));
  TRY(call.keys.scan_subs(key, {.begin = prefix, .end = end, .reverse = true}, into(ends.last)));
  return ends;
}

}  // namespace

std::vector<size_t> distinct_args(const Call& call, size_t first, size_t step) {
  std::vector<size_t> positions;
  for (size_t i = first; i < call.count(); i += step) positions.push_back(i);
  if (positions.size() == 1) return positions;
  // The last of equal ones first, so that it is the one that is kept.
  std::sort(positions.begin(), positions.end(), [&](size_t a, size_t b) {
    const int order = call.arg(a).compare(call.arg(b));
    return order != 0 ? order < 0 : a > b;
  });
  const auto same = [&](size_t a, size_t b) { return call.arg(a) == call.arg(b); };
  positions.erase(std::unique(positions.begin(), positions.end(), same), positions.end());
  return positions;
}

std::vector<ByteView> args_at(const Call& call, std::span<const size_t> positions) {
  std::vector<ByteView> args;
  args.reserve(positions.size());
  for (const size_t i : positions) args.push_back(call.arg(i));
  return args;
}

Result<uint64_t> remove_args(Call& call, Key& key, size_t first) {
  if (!key.exists()) return 0;
  const std::vector<size_t> positions = distinct_args(call, first);
  std::vector<Value> old(positions.size());
  TRY(call.keys.get_subs(key, args_at(call, positions), old));
  uint64_t removed = 0;
  for (size_t i = 0; i < positions.size(); i++) {
    if (!old[i].found()) continue;
    call.keys.remove_sub(key, call.arg(positions[i]), old[i]);
    removed++;
  }
  if (removed > 0) key.set_size(key.size() - removed);
  return removed;
}

Status visit_records(Call& call, const Key& key, RecordVisitor visit) {
  if (!key.exists()) return {};
  return call.keys.scan_subs(key, {}, [&](ByteView sub, ByteView value) {
    visit(sub, value);
    return Visit::go_on;
  });
}

// --- scanning ---
//
// Up to 512 records come in one page, as Redis does it with those that it keeps packed. The cursor
// of a larger collection is a place in it, and all that a scan knows:
//
//   | shared: 7 bits | group: 4 bytes | hash: 14 bits |
//
// It is below 2^53: some clients in JavaScript keep cursors as numbers, which are exact only there.
// All records began with the same `shared` bytes when the scan began; the group is the bytes behind
// them, and zeros behind a shorter one. Groups come in order. A page ends between two groups; only
// one that is too large for a page is dealt out in the order of the members' hashes, for which it
// is read anew for every page: then pages are large, so that these are few.
//
// What is there during all of the scan is found, whatever else comes and goes: group and hash of a
// record never change while `shared` does not. It is kept for as long as all records still agree on
// so many bytes; if they do not, the scan begins again, with fewer, which can happen only so often.

namespace {

constexpr uint64_t packed_max = 512;
constexpr size_t shared_max = 127;
constexpr size_t group_bytes = 4;
constexpr uint32_t hash_bits = 14;
static_assert((shared_max >> (53 - 8 * group_bytes - hash_bits)) == 0);
constexpr uint32_t hash_end = 1U << hash_bits;
// What a group may have to be given in one page, whatever COUNT says, and in how many pages a
// larger one comes at most, about.
constexpr size_t group_records = 1'024;
constexpr size_t group_pages = 16;

struct Place {
  size_t shared = 0;
  uint64_t group = 0;
  uint32_t hash = 0;
};

uint64_t encode_place(const Place& place) {
  return uint64_t{place.shared} << (8 * group_bytes + hash_bits) | place.group << hash_bits |
         place.hash;
}

Place decode_place(uint64_t cursor) {
  constexpr uint64_t group_mask = (uint64_t{1} << (8 * group_bytes)) - 1;
  return {.shared = cursor >> (8 * group_bytes + hash_bits),
          .group = cursor >> hash_bits & group_mask,
          .hash = static_cast<uint32_t>(cursor & (hash_end - 1))};
}

uint64_t group_of(ByteView sub, size_t shared) {
  Bytes bytes(sub.substr(std::min(shared, sub.size()), group_bytes));
  bytes.resize(group_bytes, '\0');
  return load_be(bytes.data(), group_bytes);
}

// Not behind any record of the group.
Bytes group_begin(ByteView shared, uint64_t group) {
  Bytes bytes;
  append_be64(bytes, group);
  bytes.erase(0, sizeof(group) - group_bytes);
  bytes.erase(bytes.find_last_not_of('\0') + 1);
  return Bytes(shared) + bytes;
}

struct Record {
  uint32_t hash;
  Bytes sub;
  Bytes value;
};

// Takes the records of a page, and says where the next one begins.
class PageReader {
 public:
  PageReader(Place from, size_t count, uint64_t size)
      : place_(from),
        count_(count),
        group_max_(std::max({count, group_records, static_cast<size_t>(size / group_pages)})),
        trim_at_(2 * group_max_) {}

  Visit take(ByteView sub, ByteView value) {
    const uint64_t group = group_of(sub, place_.shared);
    if (group != place_.group) {
      if (is_cut()) return Visit::stop;
      place_.group = group;
      place_.hash = 0;
      if (records_.size() >= count_) {
        ended_ = true;
        return Visit::stop;
      }
      group_at_ = records_.size();
    }
    const uint32_t hash = crc32c(sub) & (hash_end - 1);
    if (hash < place_.hash || hash >= hash_end_) return Visit::go_on;
    records_.push_back({hash, Bytes(sub), Bytes(value)});
    if (records_.size() - group_at_ >= trim_at_) trim();
    return Visit::go_on;
  }

  // 0: nowhere.
  uint64_t next() {
    if (is_cut()) place_.hash = hash_end_;
    return is_cut() || ended_ ? encode_place(place_) : 0;
  }
  std::span<const Record> records() const { return records_; }

 private:
  bool is_cut() const { return hash_end_ != hash_end; }

  // Leaves the rest of the group to later pages.
  void trim() {
    const auto by_hash = [](const Record& a, const Record& b) { return a.hash < b.hash; };
    const auto begin = records_.begin() + static_cast<std::ptrdiff_t>(group_at_);
    const auto middle = begin + static_cast<std::ptrdiff_t>(group_max_);
    std::nth_element(begin, middle, records_.end(), by_hash);
    uint32_t end = middle->hash;
    // All of one hash come together.
    if (std::min_element(begin, middle, by_hash)->hash == end) end++;
    if (end < hash_end_) hash_end_ = end;
    std::erase_if(records_, [&, at = group_at_, i = size_t{0}](const Record& record) mutable {
      return i++ >= at && record.hash >= hash_end_;
    });
    trim_at_ = std::max(trim_at_, 2 * (records_.size() - group_at_));
  }

  Place place_;
  const size_t count_;
  const size_t group_max_;
  std::vector<Record> records_;
  size_t group_at_ = 0;  // where its records begin
  size_t trim_at_;
  uint32_t hash_end_ = hash_end;  // of the group's records; those behind come later
  bool ended_ = false;            // before place_
};

struct ScanOptions {
  ByteView pattern = "*";
  size_t count = 10;
};

Result<ScanOptions> parse_scan_options(const Call& call) {
  ScanOptions options;
  for (size_t i = 3; i < call.count(); i += 2) {
    const bool has_value = i + 1 < call.count();
    if (call.is_word(i, "count") && has_value) {
      TRY_ASSIGN(const int64_t count, call.integer(i + 1));
      if (count < 1) return syntax_error();
      options.count = static_cast<size_t>(count);
    } else if (call.is_word(i, "match") && has_value) {
      options.pattern = call.arg(i + 1);
    } else {
      return syntax_error();
    }
  }
  return options;
}

Result<PageReader> read_page(Call& call, const Key& key, uint64_t cursor, size_t count) {
  TRY_ASSIGN(const Ends ends, ends_of(call, key, {}));
  const size_t shared = std::min(ends.shared(), shared_max);
  Place from = decode_place(cursor);
  if (cursor == 0 || from.shared > shared) from = {.shared = shared};
  PageReader reader(from, count, key.size());
  const Bytes begin = group_begin(ByteView(ends.first).substr(0, from.shared), from.group);
  TRY(call.keys.scan_subs(key, {.begin = begin},
                          [&](ByteView sub, ByteView value) { return reader.take(sub, value); }));
  return reader;
}

}  // namespace

Status reply_scan(Call& call, RedisType type, size_t parts, RecordVisitor show) {
  TRY_ASSIGN(const uint64_t cursor, parse_cursor(call.arg(2)));
  TRY_ASSIGN(const Key* const key, call.open(1, type));
  call.reply.array(2);
  if (!key->exists()) {
    call.reply.bulk("0");
    call.reply.array(0);
    return {};
  }
  TRY_ASSIGN(const ScanOptions options, parse_scan_options(call));
  size_t shown = 0;
  const auto show_matching = [&](ByteView sub, ByteView value) {
    if (!glob_matches(options.pattern, sub)) return;
    show(sub, value);
    shown++;
  };
  if (key->size() <= packed_max) {
    call.reply.bulk("0");
    const size_t mark = call.reply.mark();
    TRY(visit_records(call, *key, show_matching));
    call.reply.insert_array(mark, parts * shown);
    return {};
  }
  TRY_ASSIGN(PageReader page, read_page(call, *key, cursor, options.count));
  call.reply.bulk(std::to_string(page.next()));
  const size_t mark = call.reply.mark();
  for (const Record& record : page.records()) show_matching(record.sub, record.value);
  call.reply.insert_array(mark, parts * shown);
  return {};
}

// --- random picks ---

namespace {

// One pass over all of them costs less than to find so many times fewer by their number.
constexpr uint64_t pass_factor = 128;
// What has no fences is read as a whole, up to this size.
constexpr uint64_t whole_max = 4'096;
constexpr size_t sample_reply_bytes_max = 256 * 1024 * 1024;

// In the order of the collection, each subset as likely as any other (Knuth's algorithm S).
Status visit_sample(Call& call, const Key& key, uint64_t count, Random& random,
                    RecordVisitor visit) {
  uint64_t left = key.size();
  uint64_t wanted = std::min(count, left);
  if (wanted == 0) return {};
  return call.keys.scan_subs(key, {}, [&](ByteView sub, ByteView value) {
    if (random.below(std::max<uint64_t>(left--, 1)) < wanted) {
      visit(sub, value);
      wanted--;
    }
    return wanted == 0 ? Visit::stop : Visit::go_on;
  });
}

// The same record may come any number of times: that must not fill the memory.
Status check_reply(const Call& call, size_t begin) {
  if (call.reply.mark() - begin <= sample_reply_bytes_max) return {};
  return reply_with(
      fmt::format("ERR the reply is over {} bytes: ask for less", sample_reply_bytes_max));
}

Status visit_draws(Call& call, const Key& key, RandomPick pick, Random& random,
                   RecordVisitor visit) {
  std::vector<std::pair<Bytes, Bytes>> all;
  TRY(visit_records(call, key, [&](ByteView sub, ByteView value) {
    all.emplace_back(sub, pick.with_values ? value : ByteView());
  }));
  const size_t begin = call.reply.mark();
  for (; pick.count > 0 && !all.empty(); pick.count--) {
    const auto& [sub, value] = all[random.below(all.size())];
    visit(sub, value);
    TRY(check_reply(call, begin));
  }
  return {};
}

// The record with so many before it; false: it is one that nobody sees any more.
Result<bool> visit_nth(Call& call, const Key& key, uint64_t index, bool with_value,
                       RecordVisitor visit) {
  TRY_ASSIGN(const Bytes place, call.keys.nth_place(key, index));
  if (key.type() == RedisType::zset) {  // the score as in the record of the member
    visit(ByteView(place).substr(sizeof(double)), ByteView(place).substr(0, sizeof(double)));
    return true;
  }
  if (key.is_over(place)) return false;
  Value value;
  if (with_value) TRY(call.keys.get_sub(key, place, value));
  visit(place, value.found() ? value.bytes() : ByteView());
  return true;
}

Status visit_numbered(Call& call, const Key& key, RandomPick pick, Random& random,
                      RecordVisitor visit) {
  std::set<uint64_t> taken;
  const size_t reply_begin = call.reply.mark();
  while (pick.count > 0) {
    const uint64_t index = random.below(key.stored_size());
    if (pick.distinct && !taken.insert(index).second) continue;
    TRY_ASSIGN(const bool visited, visit_nth(call, key, index, pick.with_values, visit));
    TRY(check_reply(call, reply_begin));
    pick.count -= visited ? 1 : 0;
  }
  return {};
}

// Where most of what is stored is over: any number of draws, some thousands by each pass.
Status visit_passes(Call& call, const Key& key, RandomPick pick, Random& random,
                    RecordVisitor visit) {
  constexpr uint64_t draws_max = 4'096;
  const size_t reply_begin = call.reply.mark();
  while (pick.count > 0) {
    std::vector<std::pair<uint64_t, size_t>> wanted(std::min(pick.count, draws_max));
    for (size_t i = 0; i < wanted.size(); i++) wanted[i] = {random.below(key.size()), i};
    std::sort(wanted.begin(), wanted.end());
    std::vector<std::pair<Bytes, Bytes>> drawn(wanted.size());
    auto next = wanted.begin();
    uint64_t place = 0;
    TRY(call.keys.scan_subs(key, {}, [&](ByteView sub, ByteView value) {
      for (; next != wanted.end() && next->first == place; ++next)
        drawn[next->second] = {Bytes(sub), Bytes(pick.with_values ? value : ByteView())};
      place++;
      return next == wanted.end() ? Visit::stop : Visit::go_on;
    }));
    for (const auto& [sub, value] : drawn) {
      visit(sub, value);
      TRY(check_reply(call, reply_begin));
    }
    pick.count -= wanted.size();
  }
  return {};
}

}  // namespace

Result<RandomPick> random_pick(const Call& call) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  TRY_ASSIGN(const int64_t count, call.integer(2));
  if (count < -most)
    return reply_with(
        fmt::format("ERR value is out of range, value must between {} and {}", -most, most));
  return RandomPick{.count = static_cast<uint64_t>(count < 0 ? -count : count),
                    .distinct = count >= 0};
}

Status visit_random(Call& call, const Key& key, RandomPick pick, RecordVisitor visit) {
  if (!key.exists()) return {};
  Random random(call.server.next_seed());
  const bool are_most_over = key.size() < key.stored_size() / 2;
  if (pick.distinct && (are_most_over || pick.count >= key.size() / pass_factor))
    return visit_sample(call, key, pick.count, random, visit);
  if (are_most_over) return visit_passes(call, key, pick, random, visit);
  if (!pick.distinct && !key.has_fences() && key.size() <= whole_max)
    return visit_draws(call, key, pick, random, visit);
  return visit_numbered(call, key, pick, random, visit);
}

}  // namespace trellis
