// The watch of keyspaces: everything once, then every change, from wherever a client was.
#include "rest/keyspace_watch.h"

#include "net/wake_target.h"
#include "support/rest_fixture.h"

namespace trellis {
namespace keyspace_watch_test {

using enum HttpMethod;
namespace json = boost::json;

const Caller root{Role::server_admin, "root"};

class CountingTarget final : public WakeTarget {
 public:
  void wake() override { ++wakes; }
  int wakes = 0;
};

// An event as a browser would see it: "5 upsert shop ENABLED"; "-" for no id.
std::vector<std::string> events_of(std::string_view text) {
  std::vector<std::string> events;
  std::string id = "-";
  std::string type;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    if (line.starts_with("id: ")) id = line.substr(4);
    if (line.starts_with("event: ")) type = line.substr(7);
    if (line.starts_with("data: ")) {
      const json::value data = json::parse(line.substr(6));
      EXPECT_EQ(data.at("type").as_string(), type);
      const json::value& keyspace = data.at("keyspace");
      events.push_back(id + " " + type + " " + keyspace.at("name").as_string().c_str() + " " +
                       keyspace.at("state").as_string().c_str());
    }
    if (line.empty()) id = "-";
  }
  return events;
}

using Events = std::vector<std::string>;

class KeyspaceWatchTest : public RestFixture {
 protected:
  // What there is until it would wait.
  Events events(const std::string& query, std::vector<HttpHeader> headers = {}) {
    const Answer answer =
        ask({.target = "/v1/watch/keyspaces" + query, .headers = std::move(headers)});
    EXPECT_EQ(answer.status, 200U) << answer.body;
    EXPECT_EQ(answer.content_type, "text/event-stream");
    return events_of(answer.body);
  }
};

TEST_F(KeyspaceWatchTest, ListsThenFollows) {
  make("a");
  make("b");
  EXPECT_EQ(events(""),
            (Events{"- upsert DEFAULT ENABLED", "- upsert a ENABLED", "3 upsert b ENABLED"}));
  EXPECT_EQ(events("?since=3"), Events());
  EXPECT_EQ(events("?since=1"), (Events{"2 upsert a ENABLED", "3 upsert b ENABLED"}));
  EXPECT_EQ(events("?since=1", {{"Last-Event-ID", "2"}}), (Events{"3 upsert b ENABLED"}));
  EXPECT_EQ(events("", {{"last-event-id", "2"}}), (Events{"3 upsert b ENABLED"}));
}

TEST_F(KeyspaceWatchTest, EveryChangeOfAKeyspaceAndNoOther) {
  const KeyspaceId shop = make("shop");
  ASSERT_OK(keyspaces_->set_state("shop", KeyspaceState::disabled, root));
  make_token(shop, Role::read);  // no change of the keyspace
  ASSERT_OK(keyspaces_->rename("shop", "store", root));
  ASSERT_OK(keyspaces_->set_quota("store", {.keys = 1}, root));
  ASSERT_OK(keyspaces_->set_state("store", KeyspaceState::archived, root));
  ASSERT_OK(keyspaces_->set_state("store", KeyspaceState::tombstone, root));
  Collector collector(*keyspaces_, *gc_);
  collector.own(Model::raw, raw_);
  for (int i = 0; i < 100 && keyspaces_->load(shop)->purged_at_s == 0; ++i) {
    ASSERT_OK(collector.step());
  }
  EXPECT_EQ(events("?since=1"),
            (Events{"2 upsert shop ENABLED", "3 upsert shop DISABLED", "5 upsert store DISABLED",
                    "6 upsert store DISABLED", "7 upsert store ARCHIVED",
                    "8 upsert store TOMBSTONE", "9 delete store TOMBSTONE"}));
  EXPECT_EQ(events(""), (Events{"9 upsert DEFAULT ENABLED"}));
}

TEST_F(KeyspaceWatchTest, ResumesAnywhereWithoutLossOrRepetition) {
  for (int i = 0; i < 30; ++i) make("k" + std::to_string(i));
  const Events all = events("?since=0");
  ASSERT_EQ(all.size(), 31U);
  for (size_t since = 0; since <= all.size(); ++since) {
    const Events rest = events("?since=" + std::to_string(since));
    EXPECT_EQ(rest, Events(all.begin() + static_cast<ptrdiff_t>(since), all.end()));
  }
}

TEST_F(KeyspaceWatchTest, ChangesWhileItListsFollow) {
  for (int i = 0; i < 1'200; ++i) make("k" + std::to_string(i));
  KeyspaceWatch watch(*keyspaces_, clock_, std::nullopt);
  watch.on_start(Waker());
  Bytes text = watch.next()->bytes;
  ASSERT_OK(keyspaces_->set_state("k0", KeyspaceState::disabled, root));
  ASSERT_OK(keyspaces_->set_state("k1199", KeyspaceState::disabled, root));
  for (;;) {
    const auto chunk = watch.next();
    ASSERT_OK(chunk);
    text += chunk->bytes;
    if (chunk->then == Chunk::Then::wait) break;
  }
  const Events events = events_of(text);
  ASSERT_EQ(events.size(), 1'203U);
  EXPECT_EQ(events[1'200], "1201 upsert k1199 DISABLED");  // listed as it was by then
  EXPECT_EQ(events[1'201], "1202 upsert k0 DISABLED");
  EXPECT_EQ(events[1'202], "1203 upsert k1199 DISABLED");
}

TEST_F(KeyspaceWatchTest, WakesForChangesAndSendsHeartbeats) {
  KeyspaceWatch watch(*keyspaces_, clock_, 1);
  const auto target = std::make_shared<CountingTarget>();
  watch.on_start(Waker(target));
  const auto next = [&] {
    auto chunk = watch.next();
    EXPECT_OK(chunk);
    return *chunk;
  };
  EXPECT_EQ(next().bytes, ": still here\n\n");  // at once, so that the client knows
  const KeyspaceId shop = make("shop");
  EXPECT_EQ(target->wakes, 1);
  EXPECT_EQ(events_of(next().bytes), (Events{"2 upsert shop ENABLED"}));
  clock_.advance_ms(10'000);
  make_token(shop, Role::read);
  EXPECT_EQ(target->wakes, 2);
  Chunk quiet = next();
  EXPECT_EQ(quiet.bytes, "");
  EXPECT_EQ(quiet.then, Chunk::Then::wait);
  EXPECT_EQ(quiet.wait_ms, 5'000U);
  clock_.advance_ms(5'000);
  EXPECT_EQ(next().bytes, ": still here\n\nid: 3\n\n");
  clock_.advance_ms(15'000);
  EXPECT_EQ(next().bytes, ": still here\n\n");
  EXPECT_EQ(next().wait_ms, 15'000U);
}

TEST_F(KeyspaceWatchTest, Refusals) {
  open({.changes = {.entries_max = 5}});
  for (int i = 0; i < 20; ++i) make("k" + std::to_string(i));
  const auto refused = [&](const std::string& query, std::vector<HttpHeader> headers = {}) {
    const Answer answer =
        ask({.target = "/v1/watch/keyspaces" + query, .headers = std::move(headers)});
    return std::to_string(answer.status) + " " + answer.code();
  };
  EXPECT_EQ(refused("?since=3"), "410 compacted");
  EXPECT_EQ(refused("", {{"Last-Event-ID", "3"}}), "410 compacted");
  EXPECT_EQ(refused("?since=22"), "422 revision_in_future");
  EXPECT_EQ(refused("?since=x"), "400 bad_query");
  EXPECT_EQ(refused("", {{"Last-Event-ID", "x"}}), "400 bad_query");
  EXPECT_EQ(refused("?from=1"), "400 bad_query");
  EXPECT_EQ(events("?since=16").size(), 5U);
}

}  // namespace keyspace_watch_test
}  // namespace trellis
