// Tokens: made once, checked against what is stored, dead when revoked or expired.
#include "tenant/tokens.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "base/limits.h"
#include "base/random.h"
#include "codec/system_keys.h"
#include "engine/faulty_engine.h"
#include "engine/memory_engine.h"
#include "support/test_seed.h"

namespace trellis {
namespace tokens_test {

constexpr uint64_t start_ms = 1'794'715'200'000;
constexpr KeyspaceId ks{0x201};
constexpr KeyspaceId other{0x202};
const Caller admin{Role::admin, "ann"};

struct World {
  explicit World(Way way = Way::latched)
      : transactor(engine, clock, {.way = way, .check_scope = true}) {
    for (const KeyspaceId id : {ks, other}) store(id, KeyspaceState::enabled);
  }
  void store(KeyspaceId id, KeyspaceState state, uint64_t purged_at_s = 0) {
    Keyspace keyspace;
    keyspace.id = id;
    keyspace.name = "tenant_" + std::to_string(id.value);
    keyspace.state = state;
    keyspace.purged_at_s = purged_at_s;
    put(encode(KeyspaceMetaKey{id}), encode_keyspace(keyspace));
  }
  void put(ByteView key, ByteView value) {
    Commit change;
    change.writes.put(key, value);
    ASSERT_TRUE(commit(memory, change).has_value());
  }
  std::map<Bytes, Bytes> entries(ByteView prefix = {}) {
    std::map<Bytes, Bytes> found;
    const Bytes end = prefix_end(prefix);
    EXPECT_TRUE(memory.scan({.begin = prefix, .end = end}, [&](ByteView key, ByteView value) {
      found.emplace(key, value);
      return Visit::go_on;
    }));
    return found;
  }
  Tokens::Made make(Role role = Role::write, uint64_t expires_at_ms = 0, KeyspaceId id = ks) {
    auto made = tokens.create(id, role, "ci", expires_at_ms, admin);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made ? std::move(*made) : Tokens::Made();
  }

  MemoryEngine memory;
  FaultyEngine engine{memory};
  FakeClock clock{start_ms};
  Transactor transactor;
  MapHandle map{engine, transactor, clock};
  ChangeLog changes{map};
  Tokens tokens{map, changes};
};

class TokensTest : public testing::TestWithParam<Way>, public World {
 protected:
  TokensTest() : World(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(BothWays, TokensTest, testing::Values(Way::latched, Way::expecting),
                         [](const auto& info) {
                           return info.param == Way::latched ? "latched" : "expecting";
                         });

template <class T>
void expect_error(const Result<T>& result, Code code, std::string_view reason) {
  ASSERT_FALSE(result.has_value()) << reason;
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_EQ(result.error().reason, reason) << result.error().message;
}

// Whatever is wrong, a stranger learns the same.
void expect_bad(World& world, std::string_view text) {
  const auto identity = world.tokens.authenticate(text);
  ASSERT_FALSE(identity.has_value()) << quote(text);
  EXPECT_EQ(identity.error().code, Code::denied);
  EXPECT_EQ(identity.error().reason, "bad_token");
  EXPECT_EQ(identity.error().message, world.tokens.authenticate("").error().message);
}

TEST_P(TokensTest, SpeaksForItsKeyspaceInItsRole) {
  for (const Role role : {Role::read, Role::write, Role::admin}) {
    const Tokens::Made made = make(role);
    EXPECT_EQ(made.secret.size(), 71u);
    EXPECT_TRUE(made.secret.starts_with("trl_000201_" + made.token.id + "_")) << made.secret;
    const auto identity = tokens.authenticate(made.secret);
    ASSERT_TRUE(identity.has_value()) << identity.error().message;
    EXPECT_EQ(identity->keyspace, ks);
    EXPECT_EQ(identity->caller.role, role);
    EXPECT_EQ(identity->caller.name, "token " + made.token.id + " of 513");
  }
}

TEST_P(TokensTest, EveryWrongLetterIsBad) {
  const std::string text = make().secret;
  for (size_t i = 0; i < text.size(); i++) {
    for (const char letter : {'0', 'A', '_', '-', '=', '\0', '\xff', static_cast<char>(text[i] ^ 1),
                              static_cast<char>(text[i] ^ 0x20)}) {
      std::string wrong = text;
      wrong[i] = letter;
      if (wrong != text) expect_bad(*this, wrong);
    }
    expect_bad(*this, text.substr(0, i));
    expect_bad(*this, text.substr(i + 1));
    expect_bad(*this, text.substr(0, i) + "A" + text.substr(i));
  }
  for (const std::string& wrong : {text + "=", text + "A", " " + text, text + "\n", text + text})
    expect_bad(*this, wrong);
  EXPECT_TRUE(tokens.authenticate(text).has_value());
}

TEST_P(TokensTest, ASecretOpensNothingElse) {
  const Tokens::Made mine = make();
  const Tokens::Made second = make();
  const Tokens::Made theirs = make(Role::write, 0, other);
  const auto part = [](const Tokens::Made& made, size_t begin, size_t size) {
    return made.secret.substr(begin, size);
  };
  expect_bad(*this, part(theirs, 0, 11) + part(mine, 11, 60));  // another keyspace
  expect_bad(*this, part(mine, 0, 11) + part(theirs, 11, 60));  // another keyspace's token
  expect_bad(*this, part(mine, 0, 28) + part(second, 28, 43));  // another token's secret
  expect_bad(*this, part(second, 0, 28) + part(mine, 28, 43));
  EXPECT_TRUE(tokens.authenticate(theirs.secret).has_value());
}

TEST_P(TokensTest, ExpiresToTheMillisecond) {
  const Tokens::Made made = make(Role::read, start_ms + 5'000);
  clock.advance_ms(4'999);
  EXPECT_TRUE(tokens.authenticate(made.secret).has_value());
  clock.advance_ms(1);
  expect_error(tokens.authenticate(made.secret), Code::denied, "token_expired");
  std::string wrong = made.secret;
  wrong[30] = wrong[30] == 'A' ? 'B' : 'A';
  expect_bad(*this, wrong);  // only who has the secret learns that it has expired
  EXPECT_EQ(tokens.list(ks)->size(), 1u);
  EXPECT_TRUE(tokens.revoke(ks, made.token.id, admin).has_value());
}

TEST_P(TokensTest, ARevokedTokenIsDeadAtOnce) {
  const Tokens::Made made = make();
  const Tokens::Made kept = make();
  expect_error(tokens.revoke(other, made.token.id, admin), Code::not_found, "token_not_found");
  ASSERT_TRUE(tokens.authenticate(made.secret).has_value());
  ASSERT_TRUE(tokens.revoke(ks, made.token.id, admin).has_value());
  expect_bad(*this, made.secret);
  EXPECT_TRUE(tokens.authenticate(kept.secret).has_value());
  expect_error(tokens.revoke(ks, made.token.id, admin), Code::not_found, "token_not_found");
  for (const std::string& id : {std::string(), std::string("x"), std::string(16, 'g'),
                                std::string(70'000, 'a'), std::string("9F3C5A7E01D2B4C6")})
    expect_error(tokens.revoke(ks, id, admin), Code::not_found, "token_not_found");
}

TEST_P(TokensTest, AreListedWithoutSecrets) {
  ASSERT_TRUE(tokens.create(ks, Role::admin, "Gärtnerei ✿", start_ms + 7, admin).has_value());
  make(Role::read);
  make(Role::read, 0, other);
  const auto listed = tokens.list(ks);
  ASSERT_TRUE(listed.has_value());
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_LT(listed->at(0).id, listed->at(1).id);
  const Token& token = listed->at(0).label == "ci" ? listed->at(1) : listed->at(0);
  EXPECT_EQ(token.role, Role::admin);
  EXPECT_EQ(token.label, "Gärtnerei ✿");
  EXPECT_EQ(token.created_at_ms, start_ms);
  EXPECT_EQ(token.expires_at_ms, start_ms + 7);
}

TEST_P(TokensTest, SecretsAreNowhere) {
  const Tokens::Made made = make();
  ASSERT_TRUE(tokens.authenticate(made.secret).has_value());
  const std::string letters = made.secret.substr(28);
  // The 32 bytes themselves, decoded here in another way.
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string bits;
  for (const char letter : letters)
    for (int bit = 5; bit >= 0; bit--) bits += (alphabet.find(letter) >> bit & 1) != 0 ? '1' : '0';
  Bytes raw;
  for (size_t i = 0; i + 8 <= bits.size(); i += 8)
    raw += static_cast<char>(std::stoi(bits.substr(i, 8), nullptr, 2));
  ASSERT_EQ(raw.size(), 32u);
  for (const bool revoked : {false, true}) {
    if (revoked) {
      ASSERT_TRUE(tokens.revoke(ks, made.token.id, admin).has_value());
    }
    for (const auto& [key, value] : entries()) {
      for (const Bytes& text : {key, value}) {
        EXPECT_EQ(text.find(letters.substr(0, 8)), Bytes::npos) << quote(key);
        EXPECT_EQ(text.find(raw.substr(0, 8)), Bytes::npos) << quote(key);
        EXPECT_EQ(text.find(to_hex(raw).substr(0, 12)), Bytes::npos) << quote(key);
      }
    }
  }
}

TEST_P(TokensTest, MadeAndRevokedIsLogged) {
  int woken = 0;
  const auto subscription = changes.subscribe([&] { woken++; });
  const Tokens::Made made = make(Role::read);
  const auto nameless = tokens.create(ks, Role::admin, "", 0, admin);
  ASSERT_TRUE(nameless.has_value());
  ASSERT_TRUE(tokens.authenticate(made.secret).has_value());
  ASSERT_TRUE(tokens.revoke(ks, made.token.id, {Role::server_admin, "root"}).has_value());
  ASSERT_FALSE(tokens.revoke(ks, made.token.id, admin).has_value());
  EXPECT_EQ(woken, 3);
  const auto log = changes.read(0, 10);
  ASSERT_TRUE(log.has_value());
  ASSERT_EQ(log->size(), 3u);
  EXPECT_EQ(log->at(0).action, "token.create");
  EXPECT_EQ(log->at(0).actor, "ann");
  EXPECT_EQ(log->at(0).name, "tenant_513");
  EXPECT_EQ(log->at(0).detail, made.token.id + ", read, ci");
  EXPECT_EQ(log->at(1).detail, nameless->token.id + ", admin");
  EXPECT_EQ(log->at(2).action, "token.revoke");
  EXPECT_EQ(log->at(2).actor, "root");
  EXPECT_EQ(log->at(2).detail, made.token.id + ", read, ci");
}

TEST_P(TokensTest, WhatIsIllegalIsRefused) {
  const auto create = [&](Role role, std::string_view label, uint64_t expires_at_ms) {
    return tokens.create(ks, role, label, expires_at_ms, admin);
  };
  expect_error(create(Role::server_admin, "", 0), Code::invalid, "illegal_token");
  expect_error(create(Role::read, "", start_ms), Code::invalid, "illegal_token");
  expect_error(create(Role::read, "", 1), Code::invalid, "illegal_token");
  const std::string longest(label_bytes_max, 'x');
  for (const std::string& label :
       {longest + "x", std::string("a\nb"), std::string(1, '\0'), std::string("\x7f"),
        std::string("\xc2\x85"), std::string("\xc3"), std::string("\xc0\x80"),
        std::string("\xe0\x80\x80"), std::string("\xed\xa0\x80"), std::string("\xf0\x80\x80\x80"),
        std::string("\xf4\x90\x80\x80"), std::string("\xf5\x80\x80\x80"), std::string("\xff"),
        std::string("a\x80")})
    expect_error(create(Role::read, label, 0), Code::invalid, "illegal_token");
  EXPECT_TRUE(entries("\x04/keyspaces/token/").empty());
  for (const std::string& label : {longest, std::string(), std::string("ü ✿ 🌿 ~")})
    EXPECT_TRUE(create(Role::read, label, start_ms + 1).has_value()) << label;
}

TEST_P(TokensTest, OnlyOfKeyspacesThatAreThere) {
  const std::string_view reason = "keyspace_not_found";
  const Tokens::Made made = make();
  store(KeyspaceId{9}, KeyspaceState::tombstone, 1);
  for (const KeyspaceId id : {KeyspaceId{8}, KeyspaceId{9}, KeyspaceId{0x1000000}}) {
    expect_error(tokens.create(id, Role::read, "", 0, admin), Code::not_found, reason);
    expect_error(tokens.list(id), Code::not_found, reason);
    expect_error(tokens.revoke(id, made.token.id, admin), Code::not_found, reason);
  }
  store(ks, KeyspaceState::tombstone);
  expect_error(tokens.create(ks, Role::read, "", 0, admin), Code::not_found, reason);
  EXPECT_EQ(tokens.list(ks)->size(), 1u);
  EXPECT_TRUE(tokens.revoke(ks, made.token.id, admin).has_value());
  store(ks, KeyspaceState::archived);
  EXPECT_TRUE(tokens.create(ks, Role::read, "", 0, admin).has_value());
}

TEST_P(TokensTest, ThereIsALimit) {
  const Tokens::Made made = make();
  const Bytes value = entries("\x04/keyspaces/token/").begin()->second;
  Commit change;
  for (size_t i = 0; i + 1 < keyspace_tokens_max; i++) {
    Bytes id;
    append_be64(id, i);
    change.writes.put(encode(KeyspaceTokenKey{ks, to_hex(id)}), value);
  }
  ASSERT_TRUE(commit(memory, change).has_value());
  expect_error(tokens.create(ks, Role::read, "", 0, admin), Code::too_large, "too_many_tokens");
  EXPECT_EQ(tokens.list(ks)->size(), keyspace_tokens_max);
  EXPECT_TRUE(tokens.create(other, Role::read, "", 0, admin).has_value());
  ASSERT_TRUE(tokens.revoke(ks, made.token.id, admin).has_value());
  EXPECT_TRUE(tokens.create(ks, Role::read, "", 0, admin).has_value());
}

// --- the stored form ---

constexpr ByteView golden_key = "\x04/keyspaces/token/00000513/9f3c5a7e01d2b4c6";
// Role write, "ci", made at 1794715200000, never expires, SHA-256 of the bytes 00 to 1f.
constexpr std::string_view golden_value =
    "010801120263691880d4f2ea9d342a20"
    "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd";
constexpr std::string_view golden_text =
    "trl_000201_9f3c5a7e01d2b4c6_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

TEST(TokenRecord, IsWhatIsWrittenDown) {
  World world;
  world.put(golden_key, *from_hex(golden_value));
  const auto identity = world.tokens.authenticate(golden_text);
  ASSERT_TRUE(identity.has_value()) << identity.error().message;
  EXPECT_EQ(identity->caller.role, Role::write);
  EXPECT_EQ(world.tokens.list(ks)->at(0).created_at_ms, start_ms);
  // The text of a secret has one form: the last letter's two free bits are zero.
  for (const char letter : {'9', '-', '_'})
    expect_bad(world, std::string(golden_text.substr(0, 70)) + letter);
  ASSERT_TRUE(world.tokens.revoke(ks, "9f3c5a7e01d2b4c6", admin).has_value());

  const Tokens::Made made = world.make();
  const auto stored = world.entries("\x04/keyspaces/token/");
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored.begin()->first, "\x04/keyspaces/token/00000513/" + made.token.id);
  EXPECT_EQ(to_hex(stored.begin()->second).substr(0, 32), golden_value.substr(0, 32));
  EXPECT_EQ(stored.begin()->second.size(), golden_value.size() / 2);
}

TEST(TokenRecord, NonsenseIsCorrupt) {
  Random random(test_seed(41));
  World world;
  const Bytes good = *from_hex(golden_value);
  std::vector<Bytes> bad = {"", "\x01", "\x02" + good.substr(1), good.substr(0, good.size() - 1),
                            good + "\x07"};
  bad.push_back(good);
  bad.back()[2] = 3;  // a role that there is not
  for (const Bytes& value : bad) {
    world.put(golden_key, value);
    expect_error(world.tokens.authenticate(golden_text), Code::corrupt, "");
    expect_error(world.tokens.list(ks), Code::corrupt, "");
    expect_error(world.tokens.revoke(ks, "9f3c5a7e01d2b4c6", admin), Code::corrupt, "");
  }
  for (uint64_t round = 0; round < test_rounds(2000); round++) {
    Bytes value = random.one_in(3) ? random.bytes(random.below(80)) : good;
    for (uint64_t changed = random.below(3); changed > 0 && !value.empty(); changed--)
      value[random.below(value.size())] = static_cast<char>(random.next() >> 56);
    world.put(golden_key, value);
    discard(world.tokens.authenticate(golden_text));  // any answer, no crash
    const auto listed = world.tokens.list(ks);
    if (!listed) {
      ASSERT_EQ(listed.error().code, Code::corrupt);
    }
  }
}

TEST(TokenText, AnyBytesAreRefused) {
  Random random(test_seed(42));
  World world;
  world.put(golden_key, *from_hex(golden_value));
  for (uint64_t round = 0; round < test_rounds(5000); round++) {
    Bytes text = random.one_in(3) ? random.bytes(random.below(200)) : Bytes(golden_text);
    for (uint64_t changed = random.below(4); changed > 0 && !text.empty(); changed--)
      text[random.below(text.size())] = static_cast<char>(random.next() >> 56);
    if (random.one_in(5)) text.resize(random.below(150), '_');
    if (text == golden_text) continue;
    ASSERT_NO_FATAL_FAILURE(expect_bad(world, text)) << quote(text);
  }
  expect_bad(world, Bytes(1'000'000, 'A'));
  EXPECT_TRUE(world.tokens.authenticate(golden_text).has_value());
}

TEST(AdminToken, IsRandomAndComparedWhole) {
  const std::string token = make_admin_token();
  EXPECT_EQ(token.size(), 53u);
  EXPECT_TRUE(token.starts_with("trl_admin_"));
  EXPECT_NE(token, make_admin_token());
  World world;
  expect_bad(world, token);
  EXPECT_TRUE(same_secret(token, std::string(token)));
  EXPECT_FALSE(same_secret(token, token.substr(0, 52)));
  EXPECT_FALSE(same_secret(token, token + '\0'));
  EXPECT_FALSE(same_secret(token, make_admin_token()));
  EXPECT_FALSE(same_secret(token, ""));
  EXPECT_TRUE(same_secret("", {}));
}

// --- together, and on an engine that fails ---

TEST_P(TokensTest, ManyThreadsMakeAndRevoke) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::string> kept;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([&, i] {
      for (int step = 0; step < 25; step++) {
        const Tokens::Made made = make(Role::read, 0, step % 2 == 0 ? ks : other);
        EXPECT_TRUE(tokens.authenticate(made.secret).has_value());
        if (i % 2 == 0) {
          EXPECT_TRUE(tokens.revoke(step % 2 == 0 ? ks : other, made.token.id, admin).has_value());
          EXPECT_FALSE(tokens.authenticate(made.secret).has_value());
          continue;
        }
        const std::lock_guard lock(mutex);
        kept.insert(made.token.id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> listed;
  for (const KeyspaceId id : {ks, other}) {
    const auto of_one = tokens.list(id);
    ASSERT_TRUE(of_one.has_value());
    for (const Token& token : *of_one) listed.insert(token.id);
  }
  EXPECT_EQ(listed, kept);
  EXPECT_EQ(*changes.revision(), 150u);
}

// A token exists if and only if the log says so, whatever failed.
TEST_P(TokensTest, TheLogIsRightWhenTheEngineFails) {
  const uint64_t seed = test_seed(43);
  Random random(seed);
  engine.set_options({.seed = seed,
                      .fail_read_one_in = 30,
                      .fail_commit_one_in = 10,
                      .conflict_one_in = 5,
                      .maybe_one_in = 8});
  std::vector<Tokens::Made> made;
  std::set<std::string> may_be_gone;
  for (uint64_t round = 0; round < test_rounds(300); round++) {
    if (made.empty() || random.one_in(2)) {
      auto token = tokens.create(ks, Role::read, "ci", 0, admin);
      if (token) made.push_back(std::move(*token));
      continue;
    }
    const size_t which = random.below(made.size());
    const Status revoked = tokens.revoke(ks, made[which].token.id, admin);
    if (revoked || revoked.error().code == Code::maybe) may_be_gone.insert(made[which].token.id);
    const auto identity = tokens.authenticate(made[which].secret);
    if (revoked) {
      EXPECT_FALSE(identity.has_value());
    } else if (!may_be_gone.contains(made[which].token.id)) {
      EXPECT_TRUE(identity || identity.error().code == Code::unavailable);
    }
  }
  engine.set_options({});
  EXPECT_GT(engine.counts().maybes_applied + engine.counts().maybes_dropped, 0u);
  std::set<std::string> logged;
  const auto log = changes.read(0, 100'000);
  ASSERT_TRUE(log.has_value());
  for (const Change& change : *log) {
    const std::string id = change.detail.substr(0, 16);
    if (change.action == "token.create")
      EXPECT_TRUE(logged.insert(id).second);
    else
      EXPECT_EQ(logged.erase(id), 1u);
  }
  std::set<std::string> listed;
  const auto tokens_left = tokens.list(ks);
  ASSERT_TRUE(tokens_left.has_value());
  for (const Token& token : *tokens_left) listed.insert(token.id);
  EXPECT_EQ(listed, logged);
}

TEST_P(TokensTest, AnEngineThatFailsIsNotABadToken) {
  const Tokens::Made made = make();
  engine.set_options({.fail_read_one_in = 1});
  expect_error(tokens.authenticate(made.secret), Code::unavailable, "");
  expect_bad(*this, "not a token");
}

}  // namespace tokens_test
}  // namespace trellis
