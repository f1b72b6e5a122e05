// Tenants at work beside each other through every interface: none touches what is another's. That
// is looked at where nothing can hide it, at the engine.
#include <fmt/format.h>

#include <map>

#include "base/log.h"
#include "json/json_text.h"
#include "redis/executor.h"
#include "support/rest_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using enum HttpMethod;

// Ids whose prefixes are neighbours, or differ in one byte only.
constexpr uint32_t ids[] = {1,      2,       3,       0xfe,     0xff,     0x100,    0x101,
                            0xffff, 0x10000, 0x10001, 0x7fffff, 0x800000, 0xfffffe, 0xffffff};

// %k is a key, %m a member or field, %n a number, %v a value, %d a database.
constexpr const char* redis_templates[] = {
    "SET %k %v",
    "SET %k %n PX 500",
    "GET %k",
    "GETEX %k EX 1",
    "GETDEL %k",
    "APPEND %k %v",
    "INCRBY %k %n",
    "SETRANGE %k %n %v",
    "SETBIT %k %n 1",
    "BITOP OR %k %k %k",
    "PFADD %k %m %m",
    "LCS %k %k",
    "MSET %k %v %k %v",
    "MGET %k %k %k",
    "RPUSH %k %v %v %v",
    "LPOP %k 2",
    "LRANGE %k 0 -1",
    "LMOVE %k %k LEFT RIGHT",
    "LINSERT %k BEFORE %v %v",
    "HSET %k %m %v %m %v",
    "HGETALL %k",
    "HDEL %k %m",
    "HSCAN %k 0 COUNT 2",
    "HRANDFIELD %k 2",
    "SADD %k %m %m",
    "SPOP %k",
    "SINTERSTORE %k %k %k",
    "SUNION %k %k",
    "SMOVE %k %k %m",
    "SSCAN %k 0 COUNT 2",
    "ZADD %k %n %m %n %m",
    "ZRANGE %k 0 -1 WITHSCORES",
    "ZRANGEBYLEX %k - +",
    "ZUNIONSTORE %k 2 %k %k",
    "ZPOPMIN %k",
    "ZRANGESTORE %k %k 0 2",
    "SORT %k BY nosort GET #",
    "RENAME %k %k",
    "COPY %k %k REPLACE",
    "COPY %k %k DB %d REPLACE",
    "MOVE %k %d",
    "DEL %k %k",
    "UNLINK %k",
    "EXPIRE %k 1",
    "PERSIST %k",
    "DUMP %k",
    "TYPE %k",
    "OBJECT ENCODING %k",
    "MEMORY USAGE %k",
    "SCAN 0 COUNT 5",
    "SCAN %n COUNT 5",
    "KEYS *",
    "RANDOMKEY",
    "DBSIZE",
    "EXISTS %k %k",
    "WATCH %k",
    "MULTI",
    "EXEC",
    "DISCARD",
    "SELECT %d",
    "SWAPDB 0 %d",
    "FLUSHDB",
    "FLUSHALL",
    "INFO",
    "CLIENT LIST",
    "SLOWLOG GET",
    "CONFIG GET *",
    "PING",
};

struct TenantModel {
  KeyspaceId id;
  std::string name;
  std::string token;
  std::string admin_token;
  std::unique_ptr<Session> session;
  std::map<Bytes, Bytes> entries;  // raw ones that never expire
};

class IsolationTest : public RestFixture {
 protected:
  void SetUp() override {
    RestFixture::SetUp();
    random_ = Random(test_seed(17));
    redis_ = std::make_unique<RedisServer>(*keyspaces_, *tokens_, RedisOptions());
    setup_log(LogLevel::error, LogFormat::text);
    for (const uint32_t id : ids) add_tenant(KeyspaceId{id});
    // What the process does once, for all.
    say(*tenants_[0].session, "SET first 1");
  }
  void TearDown() override {
    for (const TenantModel& tenant : tenants_) redis_->leave(*tenant.session);
  }

  void add_tenant(KeyspaceId id) {
    TenantModel tenant{.id = id,
                       .name = fmt::format("t{}", id.value),
                       .token = {},
                       .admin_token = {},
                       .session = std::make_unique<Session>(),
                       .entries = {}};
    ASSERT_OK(keyspaces_->create(
        {.name = tenant.name, .id = id.value, .config = {}, .request_id = {}}, root_));
    tenant.token = make_token(id, Role::write).secret;
    tenant.admin_token = make_token(id, Role::admin).secret;
    ASSERT_OK(redis_->greet(*tenant.session));
    redis_->clients().add(*tenant.session);
    ASSERT_EQ(say(*tenant.session, "AUTH " + tenant.name + " " + tenant.admin_token), "+OK\r\n");
    tenants_.push_back(std::move(tenant));
  }

  // --- what may be touched ---

  static bool is_within(const EngineAccess& access, ByteView prefix) {
    if (!access.begin.starts_with(prefix)) return false;
    return !access.end || (!access.end->empty() && *access.end <= prefix_end(prefix));
  }
  // Of the system's keys those that are about this keyspace.
  static bool is_about(const EngineAccess& access, const TenantModel& tenant) {
    const Bytes own[] = {encode(KeyspaceMetaKey{tenant.id}),
                         encode(KeyspaceTokenKey{tenant.id, {}}),
                         encode(KeyspaceGcSafePointKey{tenant.id}),
                         encode(KeyspaceTxnSafePointKey{tenant.id}),
                         encode(KeyspaceServiceSafePointKey{tenant.id, {}}),
                         encode(KeyspacePurgeKey{tenant.id})};
    return std::ranges::any_of(own, [&](const Bytes& prefix) { return is_within(access, prefix); });
  }
  // The log of changes is one for all keyspaces, and only appended to.
  static bool is_append_to_log(const EngineAccess& access) {
    return is_within(access, encode(KeyspaceRevisionKey{}));
  }
  // The first access that is none of the tenant's business. Beside its own data it reads its own
  // token and the name that it gave; an admin of it more.
  std::string strange_access(const TenantModel& tenant, bool is_admin) {
    std::vector<EngineAccess> accesses = engine_.take();
    looked_at_ += accesses.size();
    std::erase_if(accesses, [&](const EngineAccess& access) {
      const bool reads = access.kind != EngineAccess::Kind::write &&
                         access.kind != EngineAccess::Kind::remove_range;
      if (reads && access.begin == encode(KeyspaceNameKey{tenant.name})) return true;
      // Of all keyspaces: where the next versions of Redis keys begin.
      if (access.begin == encode(SystemKey{SystemKey::redis_version_generator})) return true;
      if (is_admin) return is_about(access, tenant) || is_append_to_log(access);
      const auto token = decode<KeyspaceTokenKey>(access.begin);
      return reads && !access.end && token && token->keyspace == tenant.id;
    });
    return outside_of(accesses, tenant.id);
  }

  // --- HTTP ---

  Bytes random_key() {
    return random_.one_in(3) ? random_.bytes(2) : Bytes(1, "xyz"[random_.below(3)]);
  }
  // A bound that tries to lead out: to the end of the keyspace, and to what its neighbours have.
  Bytes random_bound(const TenantModel& tenant) {
    switch (random_.below(4)) {
      case 0: return Bytes(1 + random_.below(4), '\xff');
      case 1: return Bytes(1 + random_.below(4), '\0');
      case 2: return keyspace_interval(KeyMode::raw, tenant.id).second;
      default: return random_key();
    }
  }

  // One random request for raw data.
  Ask raw_request(TenantModel& tenant) {
    Ask question{.token = tenant.token, .is_local = false};
    std::string base = "/v1/raw";
    switch (random_.below(3)) {
      case 0: base = "/k/" + tenant.name + base; break;
      case 1: question.headers.push_back({"X-Trellis-Keyspace", tenant.name}); break;
      default: break;
    }
    if (random_.one_in(2))
      ask_to_read(tenant, base, question);
    else
      ask_to_write(tenant, base, question);
    return question;
  }

  void ask_to_read(const TenantModel& tenant, const std::string& base, Ask& question) {
    const auto bound = [&] { return random_bound(tenant); };
    const std::string scan = fmt::format("{}/keys?limit=3&prefix={}&begin={}&end={}", base,
                                         random_.one_in(2) ? "" : percent_encode(bound()),
                                         percent_encode(bound()), percent_encode(bound()));
    switch (random_.below(9)) {
      case 0: question.target = base + "/keys/" + percent_encode(random_key()); break;
      case 1:
        question.method = head;
        question.target = base + "/keys/" + percent_encode(random_key());
        break;
      case 2: question.target = scan; break;
      case 3: question.target = scan + "&reverse=true"; break;
      case 4: question.target = scan + "&keys_only=true&cursor=" + to_hex(bound()); break;
      case 5: question.target = base + "/keys?reverse=true"; break;
      case 6: question.target = base + "/export"; break;
      case 7:
        question.method = post;
        question.target = base + "/export";
        question.body = fmt::format(R"({{"begin_base64":"{}","end_base64":"{}"}})",
                                    base64_encode(bound()), base64_encode(bound()));
        break;
      default: question.target = base + "/parts?prefix=" + percent_encode(random_key());
    }
  }

  // And the same to the model.
  void ask_to_write(TenantModel& tenant, const std::string& base, Ask& question) {
    const Bytes key = random_key();
    const Bytes value = random_.bytes(random_.below(30));
    Bytes entry;
    append_json_entry(entry, {.key = key, .value = value});
    question.method = post;
    switch (random_.below(6)) {
      case 0:
        question.method = del;
        question.target = base + "/keys/" + percent_encode(key);
        tenant.entries.erase(key);
        return;
      case 1: {
        const Bytes own_key = "cas" + key;  // that nothing else writes
        question.target = base + "/cas";
        question.body =
            fmt::format(R"({{"key_base64":"{}","expected":null,"new":{{"value_base64":"{}"}}}})",
                        base64_encode(own_key), base64_encode(value));
        tenant.entries.try_emplace(own_key, value);
        return;
      }
      case 2:
        question.method = put;
        question.target = base + "/keys/" + percent_encode(key) + "?ttl_ms=1000";
        question.body = value;
        tenant.entries.erase(key);  // it may be there, and is of no more interest
        return;
      case 3:
        question.target = base + "/import";
        question.body = entry;
        break;
      case 4:
        question.target = base + "/batch";
        question.body = "{\"operations\":[{\"put\":" + entry + "}]}";
        break;
      default:
        question.method = put;
        question.target = base + "/keys/" + percent_encode(key);
        question.body = value;
    }
    tenant.entries[key] = value;
  }

  // What an admin asks of its own keyspace.
  Ask admin_request(const TenantModel& tenant) {
    const std::string by_name = "/v1/keyspaces/" + tenant.name;
    const std::string id = std::to_string(tenant.id.value);
    const std::string point = std::to_string(timestamp_at_ms(clock_.unix_ms() - 60'000));
    const Ask all[] = {
        {get, by_name},
        {get, "/v1/keyspace-ids/" + id},
        {get, by_name + "/gc"},
        {get, "/v1/keyspace-ids/" + id + "/gc"},
        {get, by_name + "/tokens"},
        {post, by_name + "/tokens", R"({"role":"read","ttl_seconds":1})"},
        {get, "/pd/api/v2/keyspaces/" + tenant.name},
        {get, "/pd/api/v2/keyspaces/id/" + id},
        {patch, "/pd/api/v2/keyspaces/" + tenant.name + "/config", R"({"config":{"a":"b"}})"},
        {get, "/pd/api/v2/gc/state/" + id},
        {get, "/pd/api/v2/gc/service_safepoint/" + id},
        {put, "/pd/api/v2/gc/service_safepoint/" + id + "/job",
         R"({"ttl":1,"safe_point":)" + point + "}"},
        {put, "/pd/api/v2/gc/txn_safepoint/" + id, R"({"safe_point":)" + point + "}"},
        {put, "/pd/api/v2/gc/safepoint/" + id, R"({"safe_point":)" + point + "}"},
    };
    Ask question = all[random_.below(std::size(all))];
    question.token = tenant.admin_token;
    question.is_local = false;
    return question;
  }

  // --- Redis ---

  Bytes say(Session& session, std::string_view line) {
    std::vector<ByteView> args;
    while (!line.empty()) {
      const size_t end = std::min(line.find(' '), line.size());
      args.push_back(line.substr(0, end));
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    Bytes out;
    Request request{&session, args, &out};
    Executor(*redis_).run({&request, 1});
    return out;
  }
  std::string random_command() {
    std::string command;
    std::string_view rest = redis_templates[random_.below(std::size(redis_templates))];
    for (; !rest.empty(); rest.remove_prefix(1)) {
      if (rest[0] != '%') {
        command += rest[0];
        continue;
      }
      rest.remove_prefix(1);
      switch (rest[0]) {
        case 'k': command += "k" + std::to_string(random_.below(12)); break;
        case 'm': command += "m" + std::to_string(random_.below(6)); break;
        case 'd': command += std::to_string(random_.below(3)); break;
        default: command += std::to_string(random_.below(100));
      }
    }
    return command;
  }

  // --- the end ---

  std::map<Bytes, Bytes> stored(const TenantModel& tenant) {
    std::map<Bytes, Bytes> found;
    const auto held = keyspaces_->tenant(tenant.id);
    const auto visit = [&](ByteView key, ByteView value, uint64_t expires_at_ms) {
      if (expires_at_ms == 0) found.emplace(key, value);
      return Visit::go_on;
    };
    EXPECT_OK(raw_.scan(**held, root_, {.limit = 10'000}, visit));
    return found;
  }

  const Caller root_{Role::server_admin, "root"};
  std::unique_ptr<RedisServer> redis_;
  std::vector<TenantModel> tenants_;
  size_t looked_at_ = 0;
};

TEST_F(IsolationTest, RandomOperationsStayInside) {
  const uint64_t rounds = test_rounds(30'000);
  size_t refused = 0;  // of what Redis was asked for: keys of the wrong type
  for (uint64_t i = 0; i < rounds; ++i) {
    TenantModel& tenant = tenants_[random_.below(tenants_.size())];
    if (random_.one_in(20)) clock_.advance_ms(random_.below(500));
    engine_.take();
    const uint64_t which = random_.below(10);
    if (which < 5) {
      const std::string command = random_command();
      SCOPED_TRACE(tenant.name + ": " + command);
      refused += say(*tenant.session, command).starts_with('-') ? 1 : 0;
      ASSERT_EQ(strange_access(tenant, false), "");
      continue;
    }
    const bool is_admin = which == 5;
    const Ask question = is_admin ? admin_request(tenant) : raw_request(tenant);
    SCOPED_TRACE(tenant.name + ": " + question.target);
    const Answer answer = ask(question);
    ASSERT_TRUE(answer.status < 300 || answer.status == 404 || answer.status == 409 ||
                answer.status == 412 || (is_admin && answer.status == 422))
        << answer.status << " " << answer.body;
    ASSERT_EQ(strange_access(tenant, is_admin), "");
  }
  for (const TenantModel& tenant : tenants_) {
    EXPECT_EQ(stored(tenant), tenant.entries) << tenant.name;
    EXPECT_EQ(stored_figures(memory_, tenant.id).value(), recount(memory_, tenant.id).value());
  }
  // The check sees something.
  EXPECT_GT(looked_at_, 2 * rounds);
  EXPECT_LT(refused, rounds / 4);
}

TEST_F(IsolationTest, RefusedRequestsTouchNothing) {
  const TenantModel& one = tenants_[0];
  const TenantModel& other = tenants_[1];
  const std::string id = std::to_string(other.id.value);
  for (const std::string& target :
       {"/k/" + other.name + "/v1/raw/keys/x", "/k/" + other.name + "/v1/raw/keys",
        "/k/" + other.name + "/v1/raw/export", "/k/" + other.name + "/v1/raw/parts",
        "/v1/keyspaces/" + other.name, "/v1/keyspace-ids/" + id,
        "/pd/api/v2/keyspaces/" + other.name, "/pd/api/v2/gc/state/" + id,
        "/v1/keyspaces/" + other.name + "/gc", "/v1/keyspaces/" + other.name + "/tokens"}) {
    for (const std::string& token : {one.token, one.admin_token}) {
      engine_.take();
      EXPECT_EQ(ask({.target = target, .token = token, .is_local = false}).status, 403U) << target;
      EXPECT_EQ(strange_access(one, false), "") << target;
    }
  }
  engine_.take();
  Session stranger;
  EXPECT_EQ(say(stranger, "AUTH " + other.name + " " + one.admin_token).substr(0, 10),
            "-WRONGPASS");
  EXPECT_EQ(say(stranger, "GET first").substr(0, 7), "-NOAUTH");
  EXPECT_EQ(strange_access(one, false), "");
}

}  // namespace
}  // namespace trellis
