#include "redis/command_facts.h"

#include <algorithm>
#include <unordered_map>

#include "redis/call.h"

namespace trellis {
namespace {

using namespace command_flag;
using Find = KeySpec::Find;

// --- what commands do with their keys ---

constexpr KeySpec unknown_read{"RO access", Find::unknown};
constexpr KeySpec from_first{"RW access delete", Find::range, 1};
constexpr KeySpec to_first{"OW update", Find::range, 1};
constexpr KeySpec stored_behind(std::string_view word, int first) {
  return {"OW update", Find::after_word, first, 0, 1, word};
}

struct KeyUse {
  std::string_view commands;
  std::vector<KeySpec> specs;
};
const KeyUse key_uses[] = {
    {"append hsetnx linsert lpush lpushx rpush rpushx sadd xgroup|create xgroup|createconsumer",
     {{"RW insert"}}},
    {"decr decrby getex getset hgetex hincrby hincrbyfloat incr incrby incrbyfloat move zincrby",
     {{"RW access update"}}},
    {"expire expireat hexpire hexpireat hmset hpersist hpexpire hpexpireat hset hsetex lset "
     "persist pexpire pexpireat setrange xack xadd xclaim xsetid xgroup|setid zadd",
     {{"RW update"}}},
    {"getdel hgetdel lpop rpop spop zpopmax zpopmin", {{"RW access delete"}}},
    {"hdel lrem ltrim srem xautoclaim xdel xtrim xgroup|delconsumer xgroup|destroy zrem "
     "zremrangebylex zremrangebyrank zremrangebyscore",
     {{"RW delete"}}},
    {"exists touch watch hexists hlen hstrlen llen scard sismember strlen type xlen zcard "
     "memory|usage "
     "object|encoding object|freq object|idletime object|refcount",
     {{"RO"}}},
    {"del unlink", {{"RM delete"}}},
    {"mset psetex restore setex", {{"OW update"}}},
    {"msetnx setnx", {{"OW insert"}}},
    {"set", {{"RW access update variable_flags"}}},
    {"lmpop zmpop", {{"RW access delete", Find::counted, 1}}},
    {"sintercard zdiff zinter zintercard zunion", {{"RO access", Find::counted, 1}}},
    {"copy", {{"RO access", Find::range, 1}, {"OW update", Find::range, 2}}},
    {"lmove rpoplpush smove", {from_first, {"RW insert", Find::range, 2}}},
    {"rename", {from_first, {"OW update", Find::range, 2}}},
    {"renamenx", {from_first, {"OW insert", Find::range, 2}}},
    {"sdiffstore sunionstore", {to_first, {"RO access", Find::range, 2, -1}}},
    {"sinterstore", {{"RW update", Find::range, 1}, {"RO access", Find::range, 2, -1}}},
    {"zrangestore", {to_first, {"RO access", Find::range, 2}}},
    {"zdiffstore zinterstore zunionstore", {to_first, {"RO access", Find::counted, 2}}},
    {"migrate",
     {{"RW access delete", Find::range, 3},
      {"RW access delete incomplete", Find::after_word, -2, -1}}},
    {"sort", {{"RO access", Find::range, 1}, unknown_read, {"OW update", Find::unknown}}},
    {"sort_ro", {{"RO access", Find::range, 1}, unknown_read}},
    {"xread", {{"RO access", Find::after_word, 1, -1, 1, "STREAMS", 2}}},
    {"xreadgroup", {{"RO access", Find::after_word, 4, -1, 1, "STREAMS", 2}}},
    {"pfadd", {{"RW insert"}}},
    {"pfcount pfdebug", {{"RW access"}}},
    {"pfmerge", {{"RW access insert", Find::range, 1}, {"RO access", Find::range, 2, -1}}},
    {"geoadd", {{"RW update"}}},
    {"siadd", {{"RW insert"}}},
    {"sicard", {{"RO"}}},
    {"sirem", {{"RW delete"}}},
    {"geosearchstore", {to_first, {"RO access", Find::range, 2}}},
    {"georadius",
     {{"RO access", Find::range, 1}, stored_behind("STORE", 6), stored_behind("STOREDIST", 6)}},
    {"georadiusbymember",
     {{"RO access", Find::range, 1}, stored_behind("STORE", 5), stored_behind("STOREDIST", 5)}},
    {"setbit", {{"RW access update"}}},
    {"bitfield", {{"RW access update variable_flags"}}},
    {"bitop", {{"OW update", Find::range, 2}, {"RO access", Find::range, 3, -1}}},
};

// --- what they are called in ACLs, and what clients of clusters are told ---

struct Named {
  std::string_view commands;
  std::string_view names;
};
// In place of what the group says.
constexpr Named categories[] = {
    {"asking readonly readwrite wait waitaof command command|count command|docs command|getkeys "
     "command|getkeysandflags command|help command|info command|list",
     "connection"},
    {"dbsize", "keyspace"},
    {"flushall flushdb keys swapdb", "keyspace dangerous"},
    {"info", "dangerous"},
    {"lastsave role", "admin dangerous"},
    {"migrate restore", "keyspace dangerous"},
    {"sort sort_ro", "set sortedset list dangerous"},
};

constexpr Named tip_names[] = {
    {"client|info client|list dump hrandfield hscan lastsave migrate object|encoding object|freq "
     "object|idletime object|refcount pttl spop srandmember sscan time ttl xadd xautoclaim xclaim "
     "xinfo|consumers xpending xtrim zrandmember zscan",
     "nondeterministic_output"},
    {"command command|docs command|info command|list hgetall hkeys hvals sdiff sinter smembers "
     "sunion",
     "nondeterministic_output_order"},
    {"config|set latency|reset slowlog|reset",
     "request_policy:all_nodes response_policy:all_succeeded"},
    {"dbsize", "request_policy:all_shards response_policy:agg_sum"},
    {"del exists touch unlink", "request_policy:multi_shard response_policy:agg_sum"},
    {"flushall flushdb memory|purge ping",
     "request_policy:all_shards response_policy:all_succeeded"},
    {"info memory|doctor memory|malloc-stats memory|stats",
     "nondeterministic_output request_policy:all_shards response_policy:special"},
    {"keys", "request_policy:all_shards nondeterministic_output_order"},
    {"latency|doctor latency|graph latency|histogram latency|history latency|latest",
     "nondeterministic_output request_policy:all_nodes response_policy:special"},
    {"mget", "request_policy:multi_shard"},
    {"mset", "request_policy:multi_shard response_policy:all_succeeded"},
    {"msetnx", "request_policy:multi_shard response_policy:agg_min"},
    {"randomkey", "request_policy:all_shards nondeterministic_output"},
    {"scan", "nondeterministic_output request_policy:special"},
    {"slowlog|get", "request_policy:all_nodes nondeterministic_output"},
    {"slowlog|len", "request_policy:all_nodes response_policy:agg_sum nondeterministic_output"},
    {"wait waitaof", "request_policy:all_shards response_policy:agg_min"},
};

// --- how they are written (command_syntax.h) ---

constexpr Named syntaxes[] = {
    {"append getset setnx", "key value"},
    {"auth", "[username] password"},
    {"bgsave", "[SCHEDULE]"},
    {"client|kill",
     "filter(ip:port|new-format([ID client-id]|[TYPE "
     "normal_master_slave_pubsub(NORMAL|MASTER|SLAVE|REPLICA|PUBSUB)]|[USER username]|[ADDR "
     "ip:port]|[LADDR ip:port]|[SKIPME yes/no])...)"},
    {"client|list",
     "[TYPE normal_master_replica_pubsub(NORMAL|MASTER|REPLICA|PUBSUB)] [ID id(client-id...)]"},
    {"client|no-evict client|no-touch", "enabled(ON|OFF)"},
    {"client|pause", "timeout [mode(WRITE|ALL)]"},
    {"client|reply", "on_off_skip(ON|OFF|SKIP)"},
    {"client|setinfo", "attr(LIB-NAME libname|LIB-VER libver)"},
    {"client|setname", "connection-name"},
    {"client|unblock", "client-id [timeout_error(TIMEOUT|ERROR)]"},
    {"command|docs command|info", "[command-name...]"},
    {"command|list", "[FILTERBY filterby(MODULE module-name|ACLCAT category|PATTERN pattern)]"},
    {"config|get", "parameter(parameter)..."},
    {"config|set", "parameter_value(parameter value)..."},
    {"copy", "source destination [DB destination-db] [REPLACE]"},
    {"decr dump expiretime get getdel hgetall hkeys hlen hvals incr llen object|encoding "
     "object|freq object|idletime object|refcount persist pexpiretime pttl scard smembers strlen "
     "ttl type zcard",
     "key"},
    {"decrby", "key decrement"},
    {"del exists mget sdiff sinter sunion touch unlink watch", "key..."},
    {"echo", "message"},
    {"expire", "key seconds [condition(NX|XX|GT|LT)]"},
    {"expireat", "key unix-time-seconds [condition(NX|XX|GT|LT)]"},
    {"failover", "[TO target(host port [FORCE])] [ABORT] [TIMEOUT milliseconds]"},
    {"flushall flushdb", "[async(ASYNC|SYNC)]"},
    {"getex",
     "key [expiration(EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
     "unix-time-milliseconds|PERSIST)]"},
    {"getrange substr", "key start end"},
    {"hdel hmget", "key field..."},
    {"hello",
     "[arguments(protover [AUTH username_password(username password)] [SETNAME clientname])]"},
    {"hexists hget hstrlen", "key field"},
    {"hexpire", "key seconds [condition(NX|XX|GT|LT)] FIELDS fields(numfields field...)"},
    {"hexpireat",
     "key unix-time-seconds [condition(NX|XX|GT|LT)] FIELDS fields(numfields field...)"},
    {"hexpiretime hgetdel hpersist hpexpiretime hpttl httl",
     "key FIELDS fields(numfields field...)"},
    {"hgetex",
     "key [expiration(EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
     "unix-time-milliseconds|PERSIST)] FIELDS fields(numfields field...)"},
    {"hincrby", "key field increment"},
    {"hincrbyfloat", "key field increment<double>"},
    {"hmset hset", "key field_value(field value)..."},
    {"hpexpire", "key milliseconds [condition(NX|XX|GT|LT)] FIELDS fields(numfields field...)"},
    {"hpexpireat",
     "key unix-time-milliseconds [condition(NX|XX|GT|LT)] FIELDS fields(numfields field...)"},
    {"hrandfield", "key [options(count [WITHVALUES])]"},
    {"hscan sscan zscan", "key cursor [MATCH pattern] [COUNT count]"},
    {"hsetex",
     "key [condition(FNX|FXX)] [expiration(EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
     "unix-time-milliseconds|KEEPTTL)] FIELDS fields(numfields data(field value)...)"},
    {"hsetnx", "key field value"},
    {"incrby", "key increment"},
    {"incrbyfloat", "key increment<double>"},
    {"info", "[section...]"},
    {"keys", "pattern"},
    {"latency|graph latency|history", "event"},
    {"latency|histogram", "[command...]"},
    {"latency|reset", "[event...]"},
    {"lcs", "key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]"},
    {"lindex", "key index"},
    {"linsert", "key where(BEFORE|AFTER) pivot element"},
    {"lmove", "source destination wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT)"},
    {"lmpop", "numkeys key... where(LEFT|RIGHT) [COUNT count]"},
    {"lolwut", "[VERSION version]"},
    {"lpop rpop spop srandmember zpopmax zpopmin", "key [count]"},
    {"lpos", "key element [RANK rank] [COUNT num-matches] [MAXLEN len]"},
    {"lpush lpushx rpush rpushx", "key element..."},
    {"lrange ltrim zremrangebyrank", "key start stop"},
    {"lrem", "key count element"},
    {"lset", "key index element"},
    {"memory|usage", "key [SAMPLES count]"},
    {"migrate",
     "host port key_or_empty_string(key|<empty_string>) destination-db timeout [COPY] [REPLACE] "
     "[authentication([AUTH password]|[AUTH2 username_password(username password)])] [KEYS "
     "key...]"},
    {"move", "key db"},
    {"mset msetnx", "key_value(key value)..."},
    {"pexpire", "key milliseconds [condition(NX|XX|GT|LT)]"},
    {"pexpireat", "key unix-time-milliseconds [condition(NX|XX|GT|LT)]"},
    {"ping", "[message]"},
    {"psetex", "key milliseconds value"},
    {"rename renamenx", "key newkey"},
    {"replicaof slaveof", "args(host-port(host port)|no-one(NO ONE))"},
    {"restore", "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]"},
    {"rpoplpush", "source destination"},
    {"sadd smismember srem zmscore zrem", "key member..."},
    {"scan", "cursor [MATCH pattern] [COUNT count] [TYPE type]"},
    {"sdiffstore sinterstore sunionstore", "destination key..."},
    {"select", "index"},
    {"set",
     "key value [condition(NX|XX)] [GET] [expiration(EX seconds|PX milliseconds|EXAT "
     "unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL)]"},
    {"setex", "key seconds value"},
    {"setrange", "key offset value"},
    {"shutdown", "[nosave_save(NOSAVE|SAVE)] [NOW] [FORCE] [ABORT]"},
    {"sintercard zintercard", "numkeys key... [LIMIT limit]"},
    {"sismember zscore", "key member"},
    {"slowlog|get", "[count]"},
    {"smove", "source destination member"},
    {"sort",
     "key [BY pattern] [LIMIT offset_count(offset count)] [GET pattern]... [order(ASC|DESC)] "
     "[ALPHA<sorting>] [STORE destination]"},
    {"sort_ro",
     "key [BY pattern] [LIMIT offset_count(offset count)] [GET pattern]... [order(ASC|DESC)] "
     "[ALPHA<sorting>]"},
    {"swapdb", "index1<integer> index2<integer>"},
    {"wait", "numreplicas timeout"},
    {"waitaof", "numlocal numreplicas timeout"},
    {"zadd",
     "key [condition(NX|XX)] [comparison(GT|LT)] [CH<change>] [INCR<increment>] score_member(score "
     "member)..."},
    {"zcount zremrangebyscore", "key min<double> max<double>"},
    {"zdiff", "numkeys key... [WITHSCORES]"},
    {"zdiffstore", "destination numkeys key..."},
    {"zincrby", "key increment member"},
    {"zinter zunion",
     "numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate(SUM|MIN|MAX)] [WITHSCORES]"},
    {"zinterstore zunionstore",
     "destination numkeys key... [WEIGHTS weight...] [AGGREGATE aggregate(SUM|MIN|MAX)]"},
    {"zlexcount zremrangebylex", "key min max"},
    {"zmpop", "numkeys key... where(MIN|MAX) [COUNT count]"},
    {"zrandmember", "key [options(count [WITHSCORES])]"},
    {"zrange",
     "key start<string> stop<string> [sortby(BYSCORE|BYLEX)] [REV] [LIMIT offset_count(offset "
     "count)] [WITHSCORES]"},
    {"zrangebylex", "key min max [LIMIT offset_count(offset count)]"},
    {"xack", "key group id..."},
    {"xadd",
     "key [NOMKSTREAM] [trim(strategy(MAXLEN|MINID) [operator(=<equal>|~<approximately>)] "
     "threshold [LIMIT count])] id_or_auto(*<auto_id>|id) field_value(field value)..."},
    {"xautoclaim", "key group consumer min-idle-time start<string> [COUNT count] [JUSTID]"},
    {"xclaim",
     "key group consumer min-idle-time id... [IDLE ms<integer>] [TIME unix-time-milliseconds] "
     "[RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]"},
    {"xdel", "key id..."},
    {"xgroup|create",
     "key groupname id(id|$<new_id>) [MKSTREAM] [ENTRIESREAD entries_read<integer>]"},
    {"xgroup|createconsumer xgroup|delconsumer", "key groupname consumername"},
    {"xgroup|destroy xinfo|consumers", "key groupname"},
    {"xgroup|setid", "key groupname id(id|$<new_id>) [ENTRIESREAD entries_read<integer>]"},
    {"xinfo|groups xlen", "key"},
    {"xinfo|stream", "key [FULL full([COUNT count])]"},
    {"xpending",
     "key group [filters([IDLE min-idle-time<integer>] start<string> end<string> count "
     "[consumer])]"},
    {"xrange", "key start<string> end<string> [COUNT count]"},
    {"xread", "[COUNT count] [BLOCK milliseconds] STREAMS streams(key... id...)"},
    {"xreadgroup",
     "GROUP group_consumer(group consumer) [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS "
     "streams(key... id...)"},
    {"xrevrange", "key end<string> start<string> [COUNT count]"},
    {"xsetid",
     "key last-id [ENTRIESADDED entries_added<integer>] [MAXDELETEDID max_deleted_entry_id]"},
    {"xtrim",
     "key trim(strategy(MAXLEN|MINID) [operator(=<equal>|~<approximately>)] threshold [LIMIT "
     "count])"},
    {"zrangebyscore",
     "key min<double> max<double> [WITHSCORES] [LIMIT offset_count(offset count)]"},
    {"zrangestore",
     "dst src min max [sortby(BYSCORE|BYLEX)] [REV] [LIMIT offset_count(offset count)]"},
    {"zrank zrevrank", "key member [WITHSCORE]"},
    {"zrevrange", "key start stop [WITHSCORES]"},
    {"zrevrangebylex", "key max min [LIMIT offset_count(offset count)]"},
    {"zrevrangebyscore",
     "key max<double> min<double> [WITHSCORES] [LIMIT offset_count(offset count)]"},
    {"pfadd", "key [element...]"},
    {"pfcount", "key..."},
    {"pfdebug", "subcommand key"},
    {"pfmerge", "destkey sourcekey..."},
    {"geoadd",
     "key [condition(NX|XX)] [CH<change>] longitude_latitude_member(longitude latitude member)..."},
    {"geodist", "key member1 member2 [unit(M|KM|FT|MI)]"},
    {"geohash geopos", "key member..."},
    {"georadius",
     "key longitude latitude radius unit(M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] "
     "[count(COUNT count [ANY])] [order(ASC|DESC)] [STORE key] [STOREDIST key]"},
    {"georadius_ro",
     "key longitude latitude radius unit(M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] "
     "[count(COUNT count [ANY])] [order(ASC|DESC)]"},
    {"georadiusbymember",
     "key member radius unit(M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] [count(COUNT count "
     "[ANY])] [order(ASC|DESC)] [STORE key] [STOREDIST key]"},
    {"georadiusbymember_ro",
     "key member radius unit(M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] [count(COUNT count "
     "[ANY])] [order(ASC|DESC)]"},
    {"geosearch",
     "key from(FROMMEMBER member|FROMLONLAT longitude_latitude(longitude latitude)) "
     "by(circle(BYRADIUS radius unit(M|KM|FT|MI))|box(BYBOX width height unit(M|KM|FT|MI))) "
     "[order(ASC|DESC)] [count(COUNT count [ANY])] [WITHCOORD] [WITHDIST] [WITHHASH]"},
    {"geosearchstore",
     "destination source from(FROMMEMBER member|FROMLONLAT longitude_latitude(longitude latitude)) "
     "by(circle(BYRADIUS radius unit(M|KM|FT|MI))|box(BYBOX width height unit(M|KM|FT|MI))) "
     "[order(ASC|DESC)] [count(COUNT count [ANY])] [STOREDIST]"},
    {"bitcount", "key [index(start end [index_unit(BYTE|BIT)])]"},
    {"bitfield",
     "key [operation(GET encoding_offset(encoding offset)|write([OVERFLOW "
     "wrap_sat_fail(WRAP|SAT|FAIL)] write_operation(SET encoding_offset_value(encoding offset "
     "value<integer>)|INCRBY encoding_offset_increment(encoding offset increment))))...]"},
    {"bitfield_ro", "key [GET encoding_offset(encoding offset)]..."},
    {"bitop", "operation destkey key..."},
    {"bitpos", "key bit [index(start [end_index(end [index_unit(BYTE|BIT)])])]"},
    {"getbit", "key offset"},
    {"siadd siexists sirem", "key number..."},
    {"sicard", "key"},
    {"sirange sirevrange", "key offset count [CURSOR number]"},
    {"sirangebyvalue", "key min max [LIMIT offset_count(offset count)]"},
    {"sirevrangebyvalue", "key max min [LIMIT offset_count(offset count)]"},
    {"setbit", "key offset value<integer>"},
};

// As Redis tells them. No name is within one before it.
constexpr std::string_view category_order =
    "keyspace read write set sortedset list hash string bitmap hyperloglog geo stream admin fast "
    "slow "
    "blocking dangerous connection transaction";

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ';
    const size_t end = at + word.size();
    if (begins && (end == text.size() || text[end] == ' ')) return true;
  }
  return false;
}

template <class Table>
auto find_row(const Table& table, const Command& command) {
  const std::string name = full_name(command);
  const auto* row = std::find_if(std::begin(table), std::end(table),
                                 [&](const auto& one) { return has_word(one.commands, name); });
  return row == std::end(table) ? nullptr : row;
}

std::string_view category_of_group(std::string_view group) {
  if (group == "sorted-set") return "sortedset";
  if (group == "generic") return "keyspace";
  if (group == "transactions") return "transaction";
  return group == "server" ? "" : group;
}

// Whether a BITFIELD has nothing but GETs.
bool only_gets(Args args) {
  for (size_t i = 2; i < args.size(); i++) {
    const size_t left = args.size() - i - 1;
    if (equals_word(args[i], "get") && left >= 2)
      i += 2;
    else if (equals_word(args[i], "overflow") && left >= 1)
      i += 1;
    else
      return false;
  }
  return true;
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<KeySpec> key_specs(const Command& command) {
  if (command.keys.first == 0 && command.find_keys == nullptr) return {};
  const KeyUse* use = find_row(key_uses, command);
  std::vector<KeySpec> specs = use != nullptr ? use->specs : std::vector<KeySpec>{{"RO access"}};
  for (KeySpec& spec : specs) {
    if (spec.find != Find::same) continue;
    const KeyPositions& keys = command.keys;
    spec.find = Find::range;
    spec.first = keys.first;
    spec.last = keys.last < 0 ? keys.last : keys.last - keys.first;
    spec.step = keys.step;
  }
  return specs;
}

std::string_view key_flags(const Command& command, Args args, size_t position) {
  // Whether it reads the value depends on an option.
  if (command.name == "set")
    return std::any_of(args.begin() + 3, args.end(),
                       [](ByteView arg) { return equals_word(arg, "get"); })
               ? "RW access update"
               : "OW update";
  if (command.name == "bitfield") return only_gets(args) ? "RO access" : "RW access update";
  const std::vector<KeySpec> specs = key_specs(command);
  if (position > 1 && specs.back().find == Find::unknown) return specs.back().flags;
  std::string_view flags;
  for (const KeySpec& spec : specs)
    if (spec.find != Find::unknown && position >= static_cast<size_t>(spec.first))
      flags = spec.flags;
  return flags;
}

std::vector<std::string_view> acl_categories(const Command& command) {
  std::vector<std::string_view> names;
  const bool is_container = !command.subcommands.empty() && command.name != "command";
  if (const Named* row = find_row(categories, command); row != nullptr)
    names = words_of(row->names);
  else if (const auto group = category_of_group(group_of(command)); !group.empty() && !is_container)
    names.push_back(group);
  if (command.has(write)) names.push_back("write");
  if (command.has(readonly)) names.push_back("read");
  if (command.has(admin)) {
    names.push_back("admin");
    names.push_back("dangerous");
  }
  names.push_back(command.has(fast) ? "fast" : "slow");
  if (command.has(blocking)) names.push_back("blocking");
  std::ranges::sort(names, {}, [](std::string_view name) { return category_order.find(name); });
  return names;
}

std::string_view syntax_of(const Command& command) {
  const Named* row = find_row(syntaxes, command);
  return row == nullptr ? std::string_view() : row->names;
}

std::vector<std::string_view> tips(const Command& command) {
  const Named* row = find_row(tip_names, command);
  return row == nullptr ? std::vector<std::string_view>() : words_of(row->names);
}

}  // namespace trellis
