#include "command_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace trellis {
namespace {

// A key is of a type, mostly: string, list, hash, set, sorted set, bitmap, stream, HyperLogLog,
// sorted ints. Two of each.
constexpr std::string_view types = "slhezbxpi";
constexpr size_t keys_per_lane = 2 * types.size();
constexpr size_t names = 20;  // of members and fields
constexpr size_t accounts = 4;
constexpr size_t flushed_elements = 50;
constexpr uint64_t expiry_ms = 4'000'000'000'000;  // never while this runs

Error wrong(std::string what) { return {Code::corrupt, std::move(what)}; }

Bytes own_key(size_t lane, size_t i) { return fmt::format("lane{}:{}", lane, i); }
Bytes book_key(size_t lane) { return fmt::format("lane{}:book", lane); }
Bytes seen_key(size_t lane) { return fmt::format("lane{}:seen", lane); }
Bytes account_key(size_t i) { return fmt::format("account:{}", i); }

std::vector<Bytes> own_keys(size_t lane) {
  std::vector<Bytes> keys{book_key(lane), seen_key(lane)};
  for (size_t i = 0; i < keys_per_lane; i++) keys.push_back(own_key(lane, i));
  return keys;
}

// Errors that are answers: of a command that did not fit what its key holds.
bool is_answer(ByteView reply) {
  constexpr ByteView answers[] = {"-WRONGTYPE",
                                  "-ERR no such key",
                                  "-ERR value is not an integer",
                                  "-ERR hash value is not an integer",
                                  "-ERR source and destination objects are the same",
                                  "-ERR The XGROUP subcommand requires the key to exist",
                                  "-INVALIDOBJ",
                                  "-NOGROUP",
                                  "-BUSYGROUP"};
  if (reply.starts_with('-'))
    return std::any_of(std::begin(answers), std::end(answers),
                       [&](ByteView answer) { return reply.starts_with(answer); });
  if (!reply.starts_with('*')) return true;
  for (ByteView rest = reply.substr(reply.find("\n") + 1); !rest.empty();) {
    const size_t size = reply_size(rest);
    if (!is_answer(rest.substr(0, size))) return false;
    rest.remove_prefix(size);
  }
  return true;
}

Words field_times(const Bytes& key) {
  Words words{"HPEXPIRETIME", key, "FIELDS", std::to_string(names)};
  for (size_t i = 0; i < names; i++) words.push_back(fmt::format("m{}", i));
  return words;
}

// All that a key holds, but for times at which something happened.
Bytes state_of(RedisClient& client, const Bytes& key) {
  Bytes state = client.say_one({"TYPE", key});
  std::vector<Words> pipeline{{"PEXPIRETIME", key}};
  if (state.starts_with("+stream")) {
    pipeline.insert(
        pipeline.end(),
        {{"XRANGE", key, "-", "+"}, {"XINFO", "GROUPS", key}, {"XPENDING", key, "group"}});
  } else if (state.starts_with("+sortedint")) {
    pipeline.push_back({"SIRANGE", key, "0", "100000"});
  } else {
    pipeline.push_back({"DUMP", key});
  }
  if (state.starts_with("+hash")) pipeline.push_back(field_times(key));
  for (const Bytes& reply : client.say(pipeline)) state += reply;
  return state;
}

// A command that changes keys of the lane: mostly of the type that it is for, some of any (%k). %v
// is a value, %m a member or field, %n a number, %t a time, %o an offset, %a the id of a new entry
// and %d one that was.
constexpr const char* templates[] = {
    "SET %s %v",
    "SET %s %n",
    "SET %k %n PXAT %t",
    "INCR %s",
    "INCR %s",
    "APPEND %s %v",
    "MSET %s %v %s %n %k %v",
    "RPUSH %l %v %v %v",
    "RPUSH %l %v %v",
    "LPUSH %l %n",
    "LPOP %l 2",
    "LTRIM %l 0 20",
    "LMOVE %l %l LEFT RIGHT",
    "HSET %h %m %v %m %v %m %n",
    "HSET %h %m %v %m %v",
    "HINCRBY %h %m %n",
    "HDEL %h %m %m",
    "SADD %e %m %m %m",
    "SADD %e %m %m",
    "SREM %e %m",
    "SMOVE %e %e %m",
    "ZADD %z %n %m %n %m %n %m",
    "ZADD %z %n %m",
    "ZINCRBY %z %n %m",
    "ZREM %z %m %m",
    "ZPOPMIN %z 2",
    "ZUNIONSTORE %z 2 %z %e",
    "HPEXPIREAT %h %t FIELDS 2 %m %m",
    "HPERSIST %h FIELDS 1 %m",
    "SETBIT %b %o 1",
    "SETBIT %b %o 0",
    "BITFIELD %b SET u16 %o %n INCRBY i8 %o %n",
    "SETRANGE %b %o %v",
    "BITOP XOR %b %b %b",
    "XADD %x %a field %v",
    "XADD %x %a field %v",
    "XADD %x MAXLEN 10 %a field %v",
    "XDEL %x %d %d",
    "XGROUP CREATE %x group 0",
    "XGROUP DELCONSUMER %x group one",
    "XREADGROUP GROUP group one COUNT 3 STREAMS %x >",
    "XREADGROUP GROUP group two COUNT 2 STREAMS %x >",
    "XACK %x group %d %d",
    "XAUTOCLAIM %x group two 0 0 COUNT 2 JUSTID",
    "PFADD %p %m %v",
    "PFMERGE %p %p %p",
    "SIADD %i %n %n",
    "SIREM %i %n",
    "RENAME %k %k",
    "PEXPIREAT %k %t",
    "PERSIST %k",
    "DEL %k",
    "DEL %k %k",
    "COPY %k %k REPLACE",
};

// What Redis's payload has no place for: times of fields, and that a set is one of sorted ints.
void adopt_rest(RedisClient& from, RedisClient& to, const Bytes& key, const Bytes& expiry) {
  const Bytes type = from.say_one({"TYPE", key});
  if (type.starts_with("+hash")) {
    const std::vector<Bytes> times = texts_of(from.say_one(field_times(key)));
    for (size_t i = 0; i < times.size(); i++)
      if (times[i][0] != '-')
        to.say_one({"HPEXPIREAT", key, times[i], "FIELDS", "1", fmt::format("m{}", i)});
  } else if (type.starts_with("+sortedint")) {
    Words add{"SIADD", key};
    for (Bytes& number : texts_of(from.say_one({"SIRANGE", key, "0", "100000"})))
      add.push_back(std::move(number));
    to.say_one({"DEL", key});
    to.say_one(add);
    if (expiry != "0") to.say_one({"PEXPIREAT", key, expiry});
  }
}

Status check_count(RedisClient& client, const Bytes& key) {
  struct Form {
    const char* type;
    const char* count;
    Words content;
    size_t texts_per_element;
  };
  const Form forms[] = {{"list", "LLEN", {"LRANGE", key, "0", "-1"}, 1},
                        {"hash", "HLEN", {"HGETALL", key}, 2},
                        {"set", "SCARD", {"SMEMBERS", key}, 1},
                        {"zset", "ZCARD", {"ZRANGE", key, "0", "-1", "WITHSCORES"}, 2},
                        {"sortedint", "SICARD", {"SIRANGE", key, "0", "100000"}, 1},
                        {"stream", "XLEN", {"XRANGE", key, "-", "+"}, 3}};
  const Bytes type = texts_of(client.say_one({"TYPE", key})).at(0);
  for (const Form& form : forms) {
    if (type != form.type) continue;
    const size_t count = std::stoul(texts_of(client.say_one({form.count, key})).at(0));
    const std::vector<Bytes> content = texts_of(client.say_one(form.content));
    const bool may_be_empty = type == "stream";
    if ((count == 0 && !may_be_empty) || content.size() != count * form.texts_per_element)
      return wrong(
          fmt::format("{} {} says {} and holds {} texts", type, key, count, content.size()));
    if (type != "zset") continue;
    // By score it is one set of records, by member another.
    std::map<Bytes, Bytes> by_score;
    for (size_t i = 0; i < content.size(); i += 2) by_score.emplace(content[i], content[i + 1]);
    std::vector<Bytes> scan = texts_of(client.say_one({"ZSCAN", key, "0", "COUNT", "100000"}));
    std::map<Bytes, Bytes> by_member;
    for (size_t i = 1; i + 1 < scan.size(); i += 2) by_member.emplace(scan[i], scan[i + 1]);
    if (scan.at(0) != "0" || by_member != by_score)
      return wrong(fmt::format("sorted set {}: its two orders differ", key));
  }
  return {};
}

}  // namespace

Status check_counts(RedisClient& client) {
  const std::vector<Bytes> keys = texts_of(client.say_one({"KEYS", "*"}));
  const Bytes size = texts_of(client.say_one({"DBSIZE"})).at(0);
  if (size != std::to_string(keys.size()))
    return wrong(fmt::format("DBSIZE is {}, but there are {} keys", size, keys.size()));
  for (const Bytes& key : keys) TRY(check_count(client, key));
  return {};
}

// --- what lanes say ---

class CommandLoad::Draw {
 public:
  Draw(const CommandLoad& load, size_t lane, uint64_t seed)
      : load_(load), lane_(lane), random_(seed) {}

  size_t pipeline_length() { return random_.one_in(3) ? 1 : 1 + random_.below(16); }

  // `n` is its number.
  Operation operation(uint64_t n) {
    n_ = n;
    Operation operation;
    if (random_.one_in(6)) return transfer();
    if (random_.one_in(8)) return shared(n);
    if (!random_.one_in(6)) {
      add_command(operation);
      return operation;
    }
    operation.commands.push_back({"MULTI"});
    for (uint64_t left = 1 + random_.below(5); left > 0; left--) add_command(operation);
    operation.commands.push_back({"EXEC"});
    return operation;
  }

 private:
  void add_command(Operation& operation) {
    Words words;
    const std::string_view text = templates[random_.below(std::size(templates))];
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(' ', at), text.size());
      words.push_back(word(text.substr(at, end - at), operation));
      at = end + 1;
    }
    operation.commands.push_back(std::move(words));
  }

  Bytes word(std::string_view form, Operation& operation) {
    if (form == "%n") return std::to_string(random_.below(1000));
    if (form == "%m") return fmt::format("m{}", random_.below(names));
    if (form == "%o") return std::to_string(random_.below(random_.one_in(4) ? 1 << 22 : 1 << 14));
    if (form == "%a") return fmt::format("{}-*", n_);
    if (form == "%d") return fmt::format("{}-0", n_ - std::min(n_, random_.below(200)));
    if (form == "%t") return std::to_string(expiry_ms + random_.below(1000));
    if (form == "%v") return random_.bytes(random_.one_in(50) ? 20'000 : random_.below(60));
    if (form[0] != '%') return Bytes(form);
    const bool any = form == "%k" || random_.one_in(20);
    const size_t key =
        any ? random_.below(keys_per_lane) : 2 * types.find(form[1]) + random_.below(2);
    operation.keys.push_back(own_key(lane_, key));
    return operation.keys.back();
  }

  Operation transfer() {
    const size_t from = random_.below(accounts);
    const size_t to = (from + 1 + random_.below(accounts - 1)) % accounts;
    const Bytes amount = std::to_string(1 + random_.below(100));
    Bytes seen;
    for (const auto& answered : load_.answered_) seen += std::to_string(answered.load()) + " ";
    return {.commands = {{"MULTI"},
                         {"HINCRBY", account_key(from), "amount", "-" + amount},
                         {"HINCRBY", account_key(to), "amount", amount},
                         {"HINCRBY", book_key(lane_), account_key(from), "-" + amount},
                         {"HINCRBY", book_key(lane_), account_key(to), amount},
                         {"SET", seen_key(lane_), seen},
                         {"EXEC"}},
            .keys = {book_key(lane_), seen_key(lane_)}};
  }

  // Of collections that all lanes change: their counts are checked, not what they hold.
  Operation shared(uint64_t n) {
    const Bytes member = fmt::format("{}:{}", lane_, n);
    const Words all[] = {{"ZADD", "all:zset", std::to_string(n), member},
                         {"RPUSH", "all:list", member, member},
                         {"LPOP", "all:list", "3"},
                         {"SADD", "all:set", member},
                         {"SPOP", "all:set", "2"},
                         {"ZPOPMAX", "all:zset", "2"},
                         {"HSET", "all:hash", member, member, "last", member},
                         {"RENAME", "all:hash", "all:hash:old"}};
    return {.commands = {all[random_.below(std::size(all))]}, .keys = {}};
  }

  const CommandLoad& load_;
  const size_t lane_;
  Random random_;
  uint64_t n_ = 0;  // of the operation
};

CommandLoad::CommandLoad() {
  model_stack_ = RedisStack::open(memory_, clock_, Durability::off).value();
  model_ = model_stack_->connect();
}

// More answers than anyone waits for.
constexpr uint64_t lane_ended = uint64_t{1} << 32;

void CommandLoad::run_lane(RedisClient& client, size_t lane, uint64_t seed) {
  Draw draw(*this, lane, seed);
  said_[lane].clear();
  acknowledged_[lane].clear();
  failures_[lane].clear();
  for (;;) {
    const size_t first = said_[lane].size();
    std::vector<Words> pipeline;
    for (size_t left = draw.pipeline_length(); left > 0; left--) {
      said_[lane].push_back(draw.operation(positions_[lane] + said_[lane].size() + 1));
      for (const Words& words : said_[lane].back().commands) pipeline.push_back(words);
    }
    const std::vector<Bytes> replies = client.say(pipeline);
    size_t at = 0;
    for (size_t i = first; i < said_[lane].size(); i++) {
      for (size_t end = at + said_[lane][i].commands.size(); at < end; at++) {
        if (at < replies.size() && is_answer(replies[at])) continue;
        failures_[lane] = at < replies.size() ? replies[at] : "gone";
        answers_ += lane_ended;
        answers_.notify_all();
        return;
      }
      answered_[lane]++;
      answers_++;
      answers_.notify_all();
      acknowledged_[lane].push_back({std::chrono::steady_clock::now(), answered_[lane]});
    }
  }
}

void CommandLoad::wait_for_answers(uint64_t wanted) const {
  for (uint64_t seen = answers_; seen < wanted; seen = answers_) answers_.wait(seen);
}

uint64_t CommandLoad::acknowledged_total() const {
  uint64_t total = 0;
  for (const auto& lane : acknowledged_) total += lane.size();
  return total;
}

CommandLoad::Positions CommandLoad::promised(Time before) const {
  Positions promised = positions_;
  for (size_t lane = 0; lane < lanes; lane++)
    for (const Acknowledged& one : acknowledged_[lane])
      if (one.time < before) promised[lane] = one.n;
  return promised;
}

// The n-th flush leaves n in one database and n - 1 in the other.
void CommandLoad::run_flusher(RedisClient& client) {
  for (uint64_t n = flushes_ + 1;; n++) {
    const Bytes number = std::to_string(n);
    Words push{"RPUSH", "list"};
    push.insert(push.end(), flushed_elements, number);
    const std::vector<Words> pipeline{
        {"SELECT", "8"},
        {"MULTI"},
        {"FLUSHDB"},
        {"MSET", "a", number, "b", number},
        {"PEXPIREAT", "b", std::to_string(expiry_ms)},
        push,
        {"SWAPDB", "8", "9"},
        {"EXEC"},
    };
    const std::vector<Bytes> replies = client.say(pipeline);
    if (replies.size() < pipeline.size() || !replies.back().starts_with('*')) return;
  }
}

// --- what is left of it ---

Status CommandLoad::check_flushed(RedisClient& client) {
  std::array<uint64_t, 2> found{};
  for (size_t i = 0; i < found.size(); i++) {
    client.say_one({"SELECT", std::to_string(8 + i)});
    TRY(check_counts(client));
    const std::vector<Bytes> texts = texts_of(client.say_one({"MGET", "a", "b"}));
    const std::vector<Bytes> list = texts_of(client.say_one({"LRANGE", "list", "0", "-1"}));
    if (texts.empty() && list.empty()) continue;
    if (texts.size() != 2 || texts[0] != texts[1] ||
        list != std::vector<Bytes>(flushed_elements, texts[0]))
      return wrong(fmt::format("a part of a flush is in database {}", 8 + i));
    found[i] = std::stoull(texts[0]);
  }
  client.say_one({"SELECT", "0"});
  if (found[1] != 0 && found[1] != found[0] + 1)
    return wrong(fmt::format("{} was flushed last, and before it {}", found[1], found[0]));
  flushes_ = found[1];
  return {};
}

Status CommandLoad::check_lane(RedisClient& client, size_t lane, uint64_t promised) {
  std::map<Bytes, Bytes> found;
  std::set<Bytes> different;
  const auto compare = [&](const Bytes& key) {
    if (state_of(*model_, key) == found.at(key))
      different.erase(key);
    else
      different.insert(key);
  };
  for (const Bytes& key : own_keys(lane)) {
    found[key] = state_of(client, key);
    compare(key);
  }
  const uint64_t begin = positions_[lane];
  std::optional<uint64_t> latest;
  std::string different_at_promise;
  for (uint64_t n = begin;; n++) {
    if (different.empty()) latest = n;
    if (n == promised)
      for (const Bytes& key : different) different_at_promise += key + " ";
    if (n == begin + said_[lane].size()) break;
    const Operation& operation = said_[lane][n - begin];
    model_->say(operation.commands);
    for (const Bytes& key : operation.keys) compare(key);
  }
  if (!latest)
    return wrong(
        fmt::format("lane {}: no prefix of {} to {} gives what is there; after {}, which "
                    "was promised, these differ: {}",
                    lane, begin, begin + said_[lane].size(), promised, different_at_promise));
  if (*latest < promised)
    return wrong(fmt::format("lane {}: {} was promised, {} is there", lane, promised, *latest));
  positions_[lane] = *latest;
  return {};
}

Status CommandLoad::check_seen(RedisClient& client, size_t lane) {
  const std::vector<Bytes> seen = texts_of(client.say_one({"GET", seen_key(lane)}));
  if (seen.empty()) return {};
  const char* at = seen[0].c_str();
  for (size_t other = 0; other < lanes; other++) {
    char* end = nullptr;
    const uint64_t before = std::strtoull(at, &end, 10);
    at = end;
    if (positions_[other] < before)
      return wrong(fmt::format("lane {} saw {} of lane {}, which is at {}", lane, before, other,
                               positions_[other]));
  }
  return {};
}

// The model holds what is there. (It has run ahead, and knows nothing of what lanes share.)
Status CommandLoad::adopt(RedisClient& client) {
  model_->say_one({"FLUSHALL"});
  for (size_t lane = 0; lane < lanes; lane++) {
    said_[lane].clear();
    answered_[lane] = positions_[lane];
    for (const Bytes& key : own_keys(lane)) {
      const std::vector<Bytes> dump = texts_of(client.say_one({"DUMP", key}));
      if (dump.empty()) continue;
      Bytes expiry = texts_of(client.say_one({"PEXPIRETIME", key})).at(0);
      if (expiry == "-1") expiry = "0";
      const Bytes reply = model_->say_one({"RESTORE", key, expiry, dump[0], "ABSTTL"});
      if (reply != "+OK\r\n") return wrong("RESTORE: " + reply);
      adopt_rest(client, *model_, key, expiry);
      if (state_of(client, key) != state_of(*model_, key))
        return wrong(fmt::format("{} is not what it was dumped from", key));
    }
  }
  return {};
}

Result<CommandLoad::Positions> CommandLoad::check(RedisClient& client, const Positions& promised) {
  TRY(check_counts(client));
  TRY(check_flushed(client));
  for (size_t lane = 0; lane < lanes; lane++) TRY(check_lane(client, lane, promised[lane]));
  for (size_t lane = 0; lane < lanes; lane++) TRY(check_seen(client, lane));
  for (size_t i = 0; i < accounts; i++) {
    const auto amount = [&](const Bytes& key, const Bytes& field) {
      const std::vector<Bytes> texts = texts_of(client.say_one({"HGET", key, field}));
      return texts.empty() ? 0 : std::stoll(texts[0]);
    };
    int64_t booked = 0;
    for (size_t lane = 0; lane < lanes; lane++) booked += amount(book_key(lane), account_key(i));
    if (const int64_t held = amount(account_key(i), "amount"); held != booked)
      return wrong(fmt::format("account {} holds {}, the lanes have booked {}", i, held, booked));
  }
  TRY(adopt(client));
  return positions_;
}

}  // namespace trellis
