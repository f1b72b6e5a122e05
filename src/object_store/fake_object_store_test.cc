#include "object_store/fake_object_store.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <thread>

// Each test is a row of what was measured of RADOS, named by it.

namespace trellis {
namespace {

class Rados : public testing::Test {
 protected:
  int write(std::vector<Guard> guards, std::vector<ObjectChange> changes, ByteView object = "o") {
    return store_.write("test", object, {false, std::move(guards), std::move(changes)});
  }
  int create(ByteView object = "o") { return store_.write("test", object, {true, {}, {}}); }
  int read(ReadOperation operation, ByteView object = "o") {
    return store_.read("test", object, operation, answer_);
  }
  bool guard_holds(Guard guard) {
    const int answer = write({std::move(guard)}, {});
    EXPECT_TRUE(answer == 0 || answer == -ECANCELED) << answer;
    return answer == 0;
  }
  Bytes omap(ByteView key) {
    EXPECT_GE(read({.omap_keys = {Bytes(key)}}), 0);
    const auto found = answer_.omap.find(key);
    return found == answer_.omap.end() ? "(none)" : found->second;
  }

  FakeObjectStore store_;
  ReadAnswer answer_;
};

TEST_F(Rados, AGuardThatFailsIsECanceledAndNothingIsApplied) {
  EXPECT_EQ(write({}, {OmapSet{"k", "1"}, SetAttribute{"gen", "7"}}), 0);
  EXPECT_EQ(
      write({NumberAttributeIs{"gen", Compare::equal, 7}, OmapIs{"k", Compare::equal, "2"}},
            {OmapSet{"k", "3"}, OmapSet{"l", "3"}, SetAttribute{"gen", "8"}, WriteWhole{"b"}}),
      -ECANCELED);
  EXPECT_EQ(omap("k"), "1");
  EXPECT_EQ(omap("l"), "(none)");
  EXPECT_EQ(read({.want_attributes = true, .bytes = BytesRequest{0, 9}}), 0);
  EXPECT_EQ(answer_.attributes["gen"], "7");
  EXPECT_EQ(answer_.bytes, "");
}

TEST_F(Rados, OmapCompareIsStoredOpGivenAndKnowsThreeComparisons) {
  write({}, {OmapSet{"k", "m"}});
  EXPECT_TRUE(guard_holds(OmapIs{"k", Compare::greater, "a"}));
  EXPECT_FALSE(guard_holds(OmapIs{"k", Compare::greater, "z"}));
  EXPECT_TRUE(guard_holds(OmapIs{"k", Compare::less, "z"}));
  EXPECT_FALSE(guard_holds(OmapIs{"k", Compare::less, "m"}));
  EXPECT_TRUE(guard_holds(OmapIs{"k", Compare::equal, "m"}));
  for (const Compare other : {Compare::not_equal, Compare::less_equal, Compare::greater_equal})
    EXPECT_EQ(write({OmapIs{"k", other, "m"}}, {}), -EINVAL);
}

TEST_F(Rados, OmapCompareTakesAMissingKeyForTheEmptyValue) {
  write({}, {OmapSet{"empty", ""}});
  for (const char* key : {"missing", "empty"}) {
    EXPECT_TRUE(guard_holds(OmapIs{key, Compare::equal, ""}));
    EXPECT_TRUE(guard_holds(OmapIs{key, Compare::less, "a"}));
    EXPECT_FALSE(guard_holds(OmapIs{key, Compare::greater, ""}));
  }
  EXPECT_EQ(omap("empty"), "");
  EXPECT_EQ(omap("missing"), "(none)");
}

TEST_F(Rados, OmapCompareSeesNothingThatItsOwnOperationSets) {
  create();
  EXPECT_EQ(write({OmapIs{"k", Compare::equal, "new"}}, {OmapSet{"k", "new"}}), -ECANCELED);
  EXPECT_EQ(write({OmapIs{"k", Compare::equal, ""}}, {OmapSet{"k", "new"}}), 0);
}

TEST_F(Rados, NumbersOfAttributesCompareGivenOpStoredInDecimal) {
  write({}, {SetAttribute{"gen", "10"}, SetAttribute{"text", "x"}});
  const auto is = [&](Compare compare, uint64_t given) {
    return guard_holds(NumberAttributeIs{"gen", compare, given});
  };
  EXPECT_TRUE(is(Compare::greater, 11));  // 11 > stored
  EXPECT_FALSE(is(Compare::greater, 9));
  EXPECT_TRUE(is(Compare::less, 9));  // also: not as text, where "9" is greater
  EXPECT_TRUE(is(Compare::equal, 10));
  EXPECT_TRUE(is(Compare::not_equal, 11));
  EXPECT_TRUE(is(Compare::less_equal, 10));
  EXPECT_TRUE(is(Compare::greater_equal, 10));
  EXPECT_FALSE(is(Compare::greater_equal, 9));
  EXPECT_TRUE(guard_holds(NumberAttributeIs{"missing", Compare::equal, 0}));
  EXPECT_TRUE(guard_holds(NumberAttributeIs{"text", Compare::equal, 0}));
}

TEST_F(Rados, AMissingAttributeEqualsTheEmptyText) {
  write({}, {SetAttribute{"st", "live"}});
  EXPECT_TRUE(guard_holds(AttributeIs{"st", "live"}));
  EXPECT_FALSE(guard_holds(AttributeIs{"st", "gone"}));
  EXPECT_TRUE(guard_holds(AttributeIs{"missing", ""}));
}

TEST_F(Rados, AGuardOnAMissingObjectIsENoentAndCreatesNothing) {
  const Guard guards[] = {NumberAttributeIs{"gen", Compare::equal, 0}, AttributeIs{"st", ""},
                          OmapIs{"k", Compare::equal, ""}, VersionIs{1}};
  for (const Guard& guard : guards) {
    EXPECT_EQ(write({guard}, {OmapSet{"k", "v"}}), -ENOENT);
    EXPECT_EQ(read({.guards = {guard}}), -ENOENT);
    EXPECT_EQ(read({}), -ENOENT);
  }
}

TEST_F(Rados, AGuardedReadMayAnswerOne) {
  create();
  EXPECT_EQ(read({}), 0);
  EXPECT_EQ(read({.guards = {AttributeIs{"st", ""}}}), 1);
  EXPECT_EQ(read({.guards = {AttributeIs{"st", "x"}}}), -ECANCELED);
}

TEST_F(Rados, AssertedVersionsAndFailedWritesThatUseThemUp) {
  create();
  read({});
  const uint64_t first = answer_.version;
  EXPECT_EQ(write({VersionIs{first}}, {OmapSet{"k", "1"}}), 0);
  EXPECT_EQ(write({VersionIs{first}}, {OmapSet{"k", "2"}}), -ERANGE);
  read({});
  const uint64_t second = answer_.version;
  EXPECT_EQ(write({VersionIs{second + 1}}, {OmapSet{"k", "2"}}), -EOVERFLOW);
  EXPECT_EQ(read({.guards = {VersionIs{second}}}), 1);
  for (int i = 0; i < 3; ++i) write({AttributeIs{"st", "never"}}, {OmapSet{"k", "2"}});
  read({});
  EXPECT_EQ(answer_.version, second);
  EXPECT_EQ(write({}, {OmapSet{"k", "2"}}), 0);
  read({});
  EXPECT_GT(answer_.version, second + 1);
}

TEST_F(Rados, AReadGivesAtMost1024EntriesWhateverIsAsked) {
  std::vector<ObjectChange> changes;
  for (int i = 0; i < 2'500; ++i) changes.emplace_back(OmapSet{"d" + std::to_string(i), "v"});
  changes.emplace_back(OmapSet{"e", "v"});
  write({}, changes);
  OmapPageRequest request{"", "d", 1'000'000};
  std::vector<size_t> sizes;
  std::set<Bytes> seen;
  for (bool more = true; more;) {
    ASSERT_EQ(read({.omap_pages = {request}}), 0);
    const OmapPage& page = answer_.pages.at(0);
    sizes.push_back(page.entries.size());
    for (const auto& [key, value] : page.entries) seen.insert(key);
    more = page.more;
    if (more) request.start_after = page.entries.back().first;
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{1'024, 1'024, 452}));
  EXPECT_EQ(seen.size(), 2'500u);
}

TEST_F(Rados, AReadGivesAtMostSoManyBytes) {
  FakeObjectStore small({.read_bytes = 10});
  for (const char* key : {"a", "b", "c"})
    small.write("test", "o", {false, {}, {OmapSet{key, "12345678"}}});
  ReadAnswer answer;
  ASSERT_EQ(small.read("test", "o", {.omap_pages = {OmapPageRequest{}}}, answer), 0);
  EXPECT_EQ(answer.pages[0].entries.size(), 2u);
  EXPECT_TRUE(answer.pages[0].more);
}

TEST_F(Rados, KeysAreOrderedByBytesAndSafeForNul) {
  const Bytes keys[] = {Bytes("a"),    Bytes("a\0", 2), Bytes("a\0b", 3), Bytes("a\x01"),
                        Bytes("\x7f"), Bytes("\x80"),   Bytes("\xff\xff")};
  for (const Bytes& key : keys) write({}, {OmapSet{key, "v"}});
  ASSERT_EQ(read({.omap_pages = {OmapPageRequest{}}}), 0);
  std::vector<Bytes> found;
  for (const auto& [key, value] : answer_.pages[0].entries) found.push_back(key);
  EXPECT_EQ(found, std::vector<Bytes>(std::begin(keys), std::end(keys)));
  EXPECT_FALSE(answer_.pages[0].more);
}

TEST_F(Rados, PagesStartAfterAKeyAndTheEmptyKeyIsInvisibleToThem) {
  write({}, {OmapSet{"", "hidden"}, OmapSet{"a", "1"}, OmapSet{"b", "2"}});
  EXPECT_EQ(omap(""), "hidden");
  ASSERT_EQ(read({.omap_pages = {OmapPageRequest{}, OmapPageRequest{"a"}}}), 0);
  ASSERT_EQ(answer_.pages.size(), 2u);
  EXPECT_EQ(answer_.pages[0].entries.front().first, "a");
  EXPECT_EQ(answer_.pages[1].entries.front().first, "b");
}

TEST_F(Rados, RemovedRangesEndBeforeTheirEnd) {
  write({}, {OmapSet{"a", "1"}, OmapSet{"b", "1"}, OmapSet{"c", "1"}});
  EXPECT_EQ(write({}, {OmapRemoveRange{"a", "c"}}), 0);
  EXPECT_EQ(omap("a"), "(none)");
  EXPECT_EQ(omap("b"), "(none)");
  EXPECT_EQ(omap("c"), "1");
  EXPECT_EQ(write({}, {OmapRemoveRange{"z", "a"}}), 0);
  EXPECT_EQ(omap("c"), "1");
}

TEST_F(Rados, AnOperationOver90MiBIsRefused) {
  const auto megabytes = [](size_t count) { return Bytes(count << 20, 'x'); };
  EXPECT_EQ(write({}, {OmapSet{"k", megabytes(89)}}), 0);
  EXPECT_EQ(write({}, {OmapSet{"l", megabytes(91)}}), -EMSGSIZE);
  EXPECT_EQ(write({}, {OmapSet{"l", megabytes(46)}, WriteWhole{megabytes(46)}}), -EMSGSIZE);
  EXPECT_EQ(omap("l"), "(none)");
}

TEST_F(Rados, NamesHaveAtMost2048BytesAndKeysOf4MiBAreAccepted) {
  EXPECT_EQ(create(Bytes(2'048, 'o')), 0);
  EXPECT_EQ(create(Bytes(2'049, 'o')), -ENAMETOOLONG);
  const Bytes key(4 << 20, 'k');
  EXPECT_EQ(write({}, {OmapSet{key, "v"}}), 0);
  EXPECT_EQ(omap(key), "v");
}

TEST_F(Rados, LargeObjectsAreWarnedOf) {
  FakeObjectStore small({.object_keys = 2, .object_omap_bytes = 10});
  small.write("test", "ok", {false, {}, {OmapSet{"a", "1"}, OmapSet{"b", "1"}}});
  small.write("test", "many", {false, {}, {OmapSet{"a", ""}, OmapSet{"b", ""}, OmapSet{"c", ""}}});
  small.write("test", "big", {false, {}, {OmapSet{"a", "12345678901"}}});
  EXPECT_EQ(small.large_objects(), (std::vector<Bytes>{"big", "many"}));
}

TEST_F(Rados, ObjectsAreCreatedExclusivelyOrByWhatSetsAndRemovedOnce) {
  EXPECT_EQ(create(), 0);
  EXPECT_EQ(create(), -EEXIST);
  EXPECT_EQ(store_.write("test", "o", {true, {}, {OmapSet{"k", "v"}}}), -EEXIST);
  EXPECT_EQ(omap("k"), "(none)");
  EXPECT_EQ(write({}, {RemoveObject{}}), 0);
  EXPECT_EQ(write({}, {RemoveObject{}}), -ENOENT);
  EXPECT_EQ(write({}, {OmapRemove{"k"}}), -ENOENT);
  EXPECT_EQ(write({}, {OmapRemoveRange{"a", "z"}}), -ENOENT);
  EXPECT_EQ(read({}), -ENOENT);
  EXPECT_EQ(write({}, {OmapSet{"k", "v"}}), 0);
  EXPECT_EQ(omap("k"), "v");
}

TEST_F(Rados, BytesAreWrittenAtOffsetsAndAsAWhole) {
  EXPECT_EQ(write({}, {WriteBytes{3, "abc"}}), 0);
  read({.bytes = BytesRequest{0, 100}});
  EXPECT_EQ(answer_.bytes, Bytes("\0\0\0abc", 6));
  write({}, {WriteBytes{4, "X"}});
  read({.bytes = BytesRequest{3, 2}});
  EXPECT_EQ(answer_.bytes, "aX");
  write({}, {WriteWhole{"z"}});
  read({.bytes = BytesRequest{0, 100}});
  EXPECT_EQ(answer_.bytes, "z");
  read({.bytes = BytesRequest{9, 1}});
  EXPECT_EQ(answer_.bytes, "");
}

TEST_F(Rados, ListsByPrefix) {
  for (const char* name : {"r.1", "r.2", "tx.1"}) create(name);
  std::vector<Bytes> names;
  EXPECT_EQ(store_.list("r.", [&](ByteView name) { names.emplace_back(name); }), 0);
  EXPECT_EQ(names, (std::vector<Bytes>{"r.1", "r.2"}));
}

TEST_F(Rados, OperationsOfManyClientsAreAtomic) {
  write({}, {SetAttribute{"n", "0"}});
  const auto count = [&] {
    for (int done = 0; done < 500;) {
      ReadAnswer seen;
      store_.read("test", "o", {.want_attributes = true}, seen);
      const uint64_t n = std::stoull(seen.attributes["n"]);
      if (write({NumberAttributeIs{"n", Compare::equal, n}},
                {SetAttribute{"n", std::to_string(n + 1)}}) == 0)
        ++done;
    }
  };
  std::thread first(count), second(count);
  first.join();
  second.join();
  read({.want_attributes = true});
  EXPECT_EQ(answer_.attributes["n"], "1000");
}

}  // namespace
}  // namespace trellis
