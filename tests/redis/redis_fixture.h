// For tests: Redis on a map in memory, with a collector that takes a step when it is told to.
#pragma once

#include <charconv>
#include <memory>
#include <optional>
#include <vector>

#include "record_bytes.h"
#include "redis/executor.h"
#include "redis/garbage.h"
#include "support/tenant_fixture.h"
#include "tenant/tokens.h"

namespace trellis {

class RedisFixture : public TenantFixture {
 protected:
  void SetUp() override {
    TenantFixture::SetUp();
    restart();
  }
  void TearDown() override { stop(); }

  void restart() {
    stop();
    open_anew();
    tokens_.emplace(map_, keyspaces_->changes());
    server_.emplace(*keyspaces_, *tokens_, RedisOptions());
    gc_.emplace(map_, keyspaces_->changes());
    // What is flushed is collected in more parts than there are tables.
    owner_.emplace(*server_, [](ByteView begin, ByteView) {
      return std::vector<Bytes>{Bytes(begin) + "h", Bytes(begin) + "string1"};
    });
    collector_.emplace(*keyspaces_, *gc_, CollectorOptions());
    collector_->own(Model::redis, *owner_);
    session_ = connect();
  }
  void stop() {
    if (session_ != nullptr) server_->leave(*session_);
    session_.reset();
    collector_.reset();
    owner_.reset();
    gc_.reset();
    server_.reset();
    tokens_.reset();
  }

  std::unique_ptr<Session> connect() {
    auto session = std::make_unique<Session>();
    session->is_local = true;
    EXPECT_OK(server_->greet(*session));
    server_->clients().add(*session);
    return session;
  }
  Bytes say(Session& session, std::string_view line) {
    std::vector<ByteView> args;
    while (!line.empty()) {
      const size_t end = std::min(line.find(' '), line.size());
      args.push_back(line.substr(0, end));
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    return say(session, args);
  }
  Bytes say(Session& session, Args args) {
    Bytes out;
    Request request{&session, args, &out};
    Executor(*server_).run({&request, 1});
    return out;
  }
  Bytes say(std::string_view line) { return say(*session_, line); }
  Bytes say(Args args) { return say(*session_, args); }
  int64_t number(std::string_view line) {
    const Bytes reply = say(line);
    int64_t value = -1;
    std::from_chars(reply.data() + 1, reply.data() + reply.size(), value);
    return value;
  }

  // One step; false if nothing is due.
  bool step() {
    const auto wait_ms = collector_->step();
    EXPECT_OK(wait_ms);
    return wait_ms && *wait_ms == std::optional<uint64_t>(0);
  }
  void expect_exact() {
    const Figures counted = recount(memory_, default_keyspace).value();
    EXPECT_EQ(stored_figures(memory_, default_keyspace).value(), counted);
    expect_record_bytes(memory_, default_keyspace);
    if (GetParam() == Way::expecting) return;  // what the process knows may be a second old
    EXPECT_EQ(keyspaces_->tenant(default_keyspace).value()->figures().value(), counted);
  }
  // But for fences: how many there are is their own matter.
  size_t records() {
    const Bytes begin = redis_slot_prefix(default_keyspace, 'm', 0).substr(0, 5);
    return entries_in(begin, prefix_end(begin)) - entries_in(begin + 'c', begin + 'd') -
           entries_in(slots_key_, successor(slots_key_));
  }
  // Its record becomes as it was before the bytes of its records were added up, and has no fences.
  // Of database 0.
  void make_old(std::string_view name) {
    Value value;
    ASSERT_OK(memory_.get(slots_key_, value));
    const uint16_t slot = decode_slots(value).value().of(0);
    const Bytes stored_key = redis_metadata_key(default_keyspace, slot, name);
    ASSERT_OK(memory_.get(stored_key, value));
    RedisMetadata key = decode_redis_metadata(value.bytes()).value();
    Commit commit;
    int64_t bytes = -static_cast<int64_t>(value.bytes().size());
    visit_all(memory_, redis_life_prefix(default_keyspace, 'c', slot, name, key.version),
              [&](ByteView fence, ByteView number) {
                commit.writes.remove(fence);
                bytes -= static_cast<int64_t>(fence.size() + number.size());
              });
    key.has_fences = false;
    key.record_bytes.reset();
    Bytes record;
    append_redis_metadata(record, key);
    bytes += static_cast<int64_t>(record.size());
    commit.writes.put(stored_key, record);
    commit.writes.add(encode(CounterKey{default_keyspace, Model::redis, CounterName::bytes, 0}),
                      bytes);
    const Commit* const commits[] = {&commit};
    Status outcomes[1];
    memory_.commit_many(commits, outcomes);
    ASSERT_OK(outcomes[0]);
    restart();  // nobody knew
  }
  // Without latches a transaction may lose against others for ever.
  static bool may_conflict() { return GetParam() == Way::expecting; }

  const Bytes slots_key_ = encode(RedisDatabasesKey{default_keyspace});
  std::optional<Tokens> tokens_;
  std::optional<RedisServer> server_;
  std::optional<Gc> gc_;
  std::optional<RedisGarbageOwner> owner_;
  std::optional<Collector> collector_;
  std::unique_ptr<Session> session_;
};

}  // namespace trellis
