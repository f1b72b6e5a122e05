// SORT and SORT_RO. With patterns they read keys that they cannot name, so they run alone.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "codec/redis_keys.h"
#include "redis/alone_transaction.h"
#include "redis/bitmap.h"
#include "redis/generic_handlers.h"

namespace trellis {
namespace {

struct SortOptions {
  bool descending = false;
  bool alpha = false;
  int64_t limit_start = 0;
  int64_t limit_count = -1;
  std::optional<ByteView> by;
  std::vector<ByteView> gets;
  std::optional<ByteView> store;

  bool reads_other_keys() const {
    const auto has_star = [](ByteView pattern) { return pattern.find('*') != ByteView::npos; };
    return (by && has_star(*by)) || std::any_of(gets.begin(), gets.end(), has_star);
  }
};

Result<SortOptions> parse_options(const AloneCall& call, bool may_store) {
  SortOptions options;
  for (size_t i = 2; i < call.count(); i++) {
    const size_t left = call.count() - i - 1;
    if (call.is_word(i, "asc")) {
      options.descending = false;
    } else if (call.is_word(i, "desc")) {
      options.descending = true;
    } else if (call.is_word(i, "alpha")) {
      options.alpha = true;
    } else if (call.is_word(i, "limit") && left >= 2) {
      TRY_ASSIGN(options.limit_start, call.integer(i + 1));
      TRY_ASSIGN(options.limit_count, call.integer(i + 2));
      i += 2;
    } else if (may_store && call.is_word(i, "store") && left >= 1) {
      options.store = call.arg(++i);
    } else if (call.is_word(i, "by") && left >= 1) {
      options.by = call.arg(++i);
    } else if (call.is_word(i, "get") && left >= 1) {
      options.gets.push_back(call.arg(++i));
    } else {
      return syntax_error();
    }
  }
  return options;
}

// What a pattern names for an element: a string, or a field of a hash behind "->"; absent if it is
// not there or of another type.
Result<std::optional<Bytes>> find_named(Call& call, ByteView pattern, ByteView element) {
  if (pattern == "#") return Bytes(element);
  const size_t star = pattern.find('*');
  if (star == ByteView::npos) return std::nullopt;
  const size_t arrow = pattern.find("->", star + 1);
  const bool has_field = arrow != ByteView::npos && arrow + 2 < pattern.size();
  const ByteView behind =
      has_field ? pattern.substr(star + 1, arrow - star - 1) : pattern.substr(star + 1);
  const Bytes name = Bytes(pattern.substr(0, star)) + Bytes(element) + Bytes(behind);
  TRY_ASSIGN(Key* const key, call.keys.open(call.session.database, name));
  if (!key->exists()) return std::nullopt;
  if (!has_field) {
    if (!is_text(key->type())) return std::nullopt;
    TRY(load_text(call.keys, *key));
    return Bytes(key->text());
  }
  if (key->type() != RedisType::hash) return std::nullopt;
  Value value;
  TRY(call.keys.get_sub(*key, pattern.substr(arrow + 2), value));
  if (!value.found()) return std::nullopt;
  return Bytes(value.bytes());
}

// The same, as much of it as may be in memory at a time.
class LookUp {
 public:
  explicit LookUp(Call& call) : call_(call) {}
  Result<std::optional<Bytes>> operator()(ByteView pattern, ByteView element) {
    TRY_ASSIGN(std::optional<Bytes> found, find_named(call_, pattern, element));
    if (found) bytes_ += found->size();
    if (bytes_ > reply_bytes_max)
      return reply_with("ERR what BY and GET name is too large to be read at once");
    return found;
  }

 private:
  Call& call_;
  size_t bytes_ = 0;
};

struct Element {
  Bytes text;
  double score = 0;
  std::optional<Bytes> weight = {};  // of ALPHA with BY
};

// In the order that they have, or against it.
Result<std::vector<Element>> read_elements(Call& call, const Key& key, bool descending) {
  std::vector<Element> elements;
  if (!key.exists()) return elements;
  if (key.type() == RedisType::zset) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    TRY(call.keys.scan_scores(
        key, {.begin_score = -infinity, .end_score = infinity, .reverse = descending},
        [&](double, ByteView member) {
          elements.push_back({.text = Bytes(member)});
          return Visit::go_on;
        }));
    return elements;
  }
  const bool is_list = key.type() == RedisType::list;
  TRY(call.keys.scan_subs(key, {.reverse = descending}, [&](ByteView sub, ByteView value) {
    elements.push_back({.text = Bytes(is_list ? value : sub)});
    return Visit::go_on;
  }));
  return elements;
}

// As strtod reads it, blanks and nothing at all included.
Result<double> score_of(const Bytes& text) {
  char* end = nullptr;
  errno = 0;
  const double score = std::strtod(text.c_str(), &end);
  if (*end != '\0' || errno == ERANGE || std::isnan(score))
    return reply_with("ERR One or more scores can't be converted into double");
  return score;
}

Status weigh(LookUp& look_up, const SortOptions& options, std::vector<Element>& elements) {
  bool bad = false;
  for (Element& element : elements) {
    if (!options.by && options.alpha) continue;
    std::optional<Bytes> weight = element.text;
    if (options.by) {
      TRY_ASSIGN(weight, look_up(*options.by, element.text));
    }
    if (options.alpha) {
      element.weight = std::move(weight);
    } else if (weight) {
      const Result<double> score = score_of(*weight);
      bad = bad || !score;
      element.score = score ? *score : 0;
    }
  }
  if (bad) return reply_with("ERR One or more scores can't be converted into double");
  return {};
}

// Those without a weight come first. Equal ones are told apart by their own bytes.
void sort_elements(const SortOptions& options, std::vector<Element>& elements) {
  std::sort(elements.begin(), elements.end(), [&](const Element& a, const Element& b) {
    const Element& low = options.descending ? b : a;
    const Element& high = options.descending ? a : b;
    if (options.alpha)
      return low.weight != high.weight ? low.weight < high.weight : low.text < high.text;
    return low.score != high.score ? low.score < high.score : low.text < high.text;
  });
}

void limit(const SortOptions& options, std::vector<Element>& elements) {
  const auto size = static_cast<int64_t>(elements.size());
  const int64_t start = std::clamp<int64_t>(options.limit_start, 0, size);
  const int64_t count =
      options.limit_count < 0 ? size - start : std::min(options.limit_count, size - start);
  elements.erase(elements.begin() + start + count, elements.end());
  elements.erase(elements.begin(), elements.begin() + start);
}

// Replaces what is under `name`.
Status store(Call& call, ByteView name, const std::vector<std::optional<Bytes>>& results) {
  TRY_ASSIGN(Key* const key, call.keys.open(call.session.database, name));
  call.reply.integer(static_cast<int64_t>(results.size()));
  key->remove();
  if (results.empty()) return {};
  key->create(RedisType::list, call.keys.new_version());
  uint64_t tail = key->tail();
  for (const std::optional<Bytes>& result : results)
    call.keys.put_sub(*key, encode(RedisListSub{tail++}), result.value_or(Bytes()), Value());
  key->set_ends(key->head(), tail);
  return {};
}

Status sort_in(Call& call, SortOptions options) {
  TRY_ASSIGN(const Key* const key, call.open(1));
  const bool fits = !key->exists() || key->type() == RedisType::list ||
                    key->type() == RedisType::set || key->type() == RedisType::zset;
  if (!fits) return wrong_type();
  bool sorts = !options.by || options.by->find('*') != ByteView::npos;
  // What is stored must not depend on an order that a set does not have.
  if (!sorts && options.store && key->exists() && key->type() == RedisType::set) {
    sorts = options.alpha = true;
    options.by.reset();
  }
  TRY_ASSIGN(std::vector<Element> elements, read_elements(call, *key, options.descending));
  LookUp look_up(call);
  if (sorts) {
    TRY(weigh(look_up, options, elements));
    sort_elements(options, elements);
  }
  limit(options, elements);
  std::vector<std::optional<Bytes>> results;
  for (Element& element : elements) {
    for (const ByteView get : options.gets) {
      TRY_ASSIGN(std::optional<Bytes> found, look_up(get, element.text));
      results.push_back(std::move(found));
    }
    if (options.gets.empty()) results.emplace_back(std::move(element.text));
  }
  if (options.store) return store(call, *options.store, results);
  call.reply.array(results.size());
  for (const std::optional<Bytes>& result : results)
    result ? call.reply.bulk(*result) : call.reply.null();
  return {};
}

Status sort_alone(AloneCall& alone, bool may_store) {
  TRY_ASSIGN(const SortOptions options, parse_options(alone, may_store));
  const auto run = [&](Call& call) { return sort_in(call, options); };
  if (options.reads_other_keys())
    return transact_all(alone, options.store ? Access::write : Access::read, run);
  const uint32_t database = alone.session.database;
  std::vector<NamedKey> names{{database, alone.arg(1), Access::read}};
  if (options.store) names.push_back({database, *options.store, Access::write});
  return transact_alone(alone, names, run);
}

}  // namespace

Status sort(AloneCall& call) { return sort_alone(call, true); }
Status sort_read_only(AloneCall& call) { return sort_alone(call, false); }

Status find_sort_keys(Args args, std::vector<size_t>& positions) {
  positions.push_back(1);
  std::optional<size_t> store;
  for (size_t i = 2; i < args.size(); i++) {
    if (equals_word(args[i], "limit"))
      i += 2;
    else if (equals_word(args[i], "get") || equals_word(args[i], "by"))
      i++;
    else if (equals_word(args[i], "store") && i + 1 < args.size())
      store = ++i;
  }
  if (store) positions.push_back(*store);
  return {};
}

}  // namespace trellis
