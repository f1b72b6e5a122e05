#include "cluster_engine/range_change.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cluster_engine/range_audit.h"
#include "cluster_engine/range_lookup.h"
#include "cluster_engine/range_sweeper.h"
#include "codec/meta_keys.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

class RangeChange : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(bootstrap_ranges(store_)); }

  RangeHeader find(ByteView address) {
    const Result<RangeHeader> header = find_range(store_, address);
    EXPECT_OK(header);
    return header.value_or(RangeHeader{});
  }
  // As a client does: entry, version, structure; guarded.
  int put(ByteView address, ByteView value) {
    const RangeHeader header = find(address);
    const Bytes writer = encode_writer({1, ++sequence_});
    return store_.write("put", range_object_name(header.id),
                        {false,
                         {generation_is(header)},
                         {OmapSet{entry_key(EntryKind::payload, address), encode_payload(value)},
                          OmapSet{entry_key(EntryKind::version, address), writer},
                          OmapSet{entry_key(EntryKind::structure, {}), writer}}});
  }
  Bytes entry(EntryKind kind, ByteView address, RangeId id) {
    ReadAnswer answer;
    const Bytes key = entry_key(kind, address);
    store_.read("look", range_object_name(id), {.omap_keys = {key}}, answer);
    return answer.omap.contains(key) ? answer.omap[key] : "(none)";
  }
  Bytes get(ByteView address) { return entry(EntryKind::payload, address, find(address).id); }
  void split(ByteView at, uint64_t id) {
    ASSERT_OK(split_range(store_, find(at), at, RangeId{id}, 0, small_pages_));
  }
  void merge(ByteView at) {
    const RangeHeader left = find(at);
    ASSERT_OK(merge_ranges(store_, left, find(left.end), small_pages_));
  }
  std::string audit() {
    const Result<RangeAudit> audit = audit_ranges(store_);
    if (!audit.has_value()) return to_string(audit.error());
    std::string text = fmt::format("{} ranges", audit->ranges);
    for (const std::string& line : audit->problems) text += "; PROBLEM " + line;
    for (const std::string& line : audit->leftovers) text += "; " + line;
    return text;
  }

  FakeObjectStore store_{FakeObjectStoreLimits{.read_entries = 7}};
  const RangeChangeOptions small_pages_{.page_entries = 5, .page_bytes = 100};
  uint64_t sequence_ = 0;
};

TEST_F(RangeChange, ASplitMovesWhatLiesBehindItAndTheDirectoryKnows) {
  for (int i = 0; i < 100; ++i) ASSERT_EQ(put(fmt::format("k{:03}", i), std::to_string(i)), 0);
  EXPECT_EQ(audit(), "1 ranges");
  split("k050", 2);
  EXPECT_EQ(audit(), "2 ranges");
  const RangeHeader left = find("k049"), right = find("k050");
  EXPECT_EQ(left.id, RangeId{1});
  EXPECT_EQ(right.id, RangeId{2});
  EXPECT_EQ(left.generation, 3u);
  EXPECT_EQ(right.generation, 3u);
  EXPECT_EQ(left.right, RangeId{2});
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(get(fmt::format("k{:03}", i)), encode_payload(std::to_string(i)));
  EXPECT_EQ(entry(EntryKind::payload, "k050", RangeId{1}), "(none)");
  EXPECT_EQ(entry(EntryKind::version, "k050", RangeId{2}), encode_writer({1, 51}));
  // What was seen of the range before the split is compared on both sides.
  // In the left one the new record of the directory has changed it by now.
  EXPECT_EQ(entry(EntryKind::structure, "", RangeId{2}), encode_writer({1, 100}));

  split("k025", 3);
  split("k075", 4);
  EXPECT_EQ(audit(), "4 ranges");
  EXPECT_EQ(find("k074").id, RangeId{2});
  EXPECT_EQ(find("k080").id, RangeId{4});
}

TEST_F(RangeChange, AMergeBringsItBackWithNewCounters) {
  for (int i = 0; i < 40; ++i) ASSERT_EQ(put(fmt::format("k{:03}", i), "v"), 0);
  split("k020", 2);
  const Bytes before[] = {entry(EntryKind::structure, "", RangeId{1}),
                          entry(EntryKind::structure, "", RangeId{2})};
  merge("k000");
  EXPECT_EQ(audit(), "1 ranges; range 2 [6b303230, ffff) generation 5 \"gone 1\"");
  const RangeHeader all = find("k030");
  EXPECT_EQ(all.id, RangeId{1});
  EXPECT_EQ(all.generation, 5u);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(get(fmt::format("k{:03}", i)), encode_payload("v"));
  const Bytes after = entry(EntryKind::structure, "", RangeId{1});
  EXPECT_NE(after, before[0]);
  EXPECT_NE(after, before[1]);
  EXPECT_EQ(entry(EntryKind::structure, "", RangeId{2}), "(none)");
  split("k020", 3);
  EXPECT_EQ(find("k030").id, RangeId{3});
}

// Undoing a split removes what it made: that must never be a range that others made.
TEST_F(RangeChange, AnIdThatIsInUseIsRefused) {
  put("z", "1");
  split("m", 2);
  EXPECT_CODE(split_range(store_, find("a"), "b", RangeId{2}), Code::exists);
  EXPECT_EQ(get("z"), encode_payload("1"));
  EXPECT_EQ(audit(), "2 ranges");
}

TEST_F(RangeChange, ADamagedRangeDoesNotKeepOthersFromBeingSwept) {
  split("k", 2);
  split("p", 3);
  FaultyObjectStore dying(store_);
  dying.plan({.point = "split.commit", .mode = FaultMode::crash_before});
  EXPECT_FALSE(split_range(dying, find("p"), "z", RangeId{4}).has_value());
  store_.write("damage", "r.2", {.changes = {SetAttribute{"gen", "x"}}});
  RangeSweeper sweeper(store_);
  EXPECT_CODE(sweeper.sweep(), Code::corrupt);
  EXPECT_CODE(sweeper.sweep(), Code::corrupt);
  EXPECT_EQ(read_header(store_, "look", RangeId{3})->state, RangeState::live);
}

// Passes everything on, and remembers the largest answer and operation.
class Measured final : public ObjectStore {
 public:
  explicit Measured(ObjectStore& inner) : inner_(inner) {}
  int read(FaultPoint point, ByteView object, const ReadOperation& operation,
           ReadAnswer& answer) override {
    const int status = inner_.read(point, object, operation, answer);
    size_t bytes = 0;
    for (const auto& [key, value] : answer.omap) bytes += key.size() + value.size();
    for (const OmapPage& page : answer.pages)
      for (const auto& [key, value] : page.entries) bytes += key.size() + value.size();
    read_bytes_max = std::max(read_bytes_max, bytes);
    return status;
  }
  int write(FaultPoint point, ByteView object, const WriteOperation& operation) override {
    changes_max = std::max(changes_max, operation.changes.size());
    return inner_.write(point, object, operation);
  }
  void write_many(std::span<const ObjectWrite> writes, std::span<int> answers) override {
    inner_.write_many(writes, answers);
  }
  int list(ByteView prefix, FunctionRef<void(ByteView object)> visit) override {
    return inner_.list(prefix, visit);
  }
  size_t read_bytes_max = 0;
  size_t changes_max = 0;

 private:
  ObjectStore& inner_;
};

// Far more keys than a range is to have (50,000): who has let it grow so far can still split it.
TEST(LargeRange, IsSplitAndMergedInPages) {
  FakeObjectStore store;
  ASSERT_OK(bootstrap_ranges(store));
  constexpr size_t keys = 150'000;
  constexpr size_t large_values = 100;  // at the end, after many small ones
  const Bytes large(16 * 1024, 'v');
  for (size_t from = 0; from < keys; from += 10'000) {
    WriteOperation puts;
    for (size_t i = from; i < from + 10'000; i++) {
      const Bytes key = fmt::format("k{:06}", i);
      const bool is_large = i >= keys - large_values;
      puts.changes.emplace_back(
          OmapSet{entry_key(EntryKind::payload, key), encode_payload(is_large ? large : "v")});
      puts.changes.emplace_back(
          OmapSet{entry_key(EntryKind::version, key), encode_writer({1, i + 1})});
    }
    ASSERT_GE(store.write("fill", "r.1", puts), 0);
  }
  Measured client(store);
  const RangeChangeOptions options{.page_bytes = 64 * 1024};
  ASSERT_OK(split_range(client, *find_range(client, "k"), "k010000", RangeId{2}, 0, options));
  const RangeHeader left = *find_range(client, "a");
  ASSERT_OK(merge_ranges(client, left, *find_range(client, "k010000"), options));
  EXPECT_LE(client.changes_max, 3 * options.page_entries + 10);
  // The first page of large values was asked for as one of small ones.
  EXPECT_LE(client.read_bytes_max, (options.page_entries + 1) * large.size() + 100'000);
  size_t found = 0;
  OmapPageRequest request{.prefix = entry_key(EntryKind::payload, "k")};
  for (bool more = true; more;) {
    ReadAnswer answer;
    ASSERT_GE(store.read("count", "r.1", {.omap_pages = {request}}, answer), 0);
    found += answer.pages[0].entries.size();
    request.start_after = answer.pages[0].entries.back().first;
    more = answer.pages[0].more;
  }
  EXPECT_EQ(found, keys);
}

TEST_F(RangeChange, WhatIsNotAsReadIsAConflict) {
  put("a", "1");
  const RangeHeader stale = find("a");
  split("m", 2);
  EXPECT_CODE(split_range(store_, stale, "b", RangeId{3}), Code::conflict);
  const RangeHeader left = find("a"), right = find("m");
  split("p", 4);
  EXPECT_CODE(merge_ranges(store_, left, right), Code::conflict);
  EXPECT_EQ(find("a").state, RangeState::live);
  EXPECT_EQ(audit(), "3 ranges");
}

TEST_F(RangeChange, TheDirectoryItselfIsSplit) {
  for (int i = 0; i < 30; ++i) split(fmt::format("k{:03}", i), 10 + i);
  split("\x03k010", 100);
  split("\x03k020", 101);
  split("\x04", 102);
  EXPECT_EQ(audit(), "34 ranges");
  for (int i = 0; i < 30; ++i) EXPECT_EQ(find(fmt::format("k{:03}x", i)).id, RangeId{10u + i}) << i;
  EXPECT_EQ(find("\x03k015").id, RangeId{100});
  merge("k005");
  merge("\x03k010");
  EXPECT_EQ(find("k006").id, RangeId{15});
  EXPECT_EQ(find("\x03k025").id, RangeId{100});
  EXPECT_TRUE(audit().starts_with("32 ranges; range 16 ")) << audit();
}

TEST_F(RangeChange, WithoutADirectoryTheRangesAreFoundAllTheSame) {
  for (const auto& [at, id] : {std::pair("c", 2), std::pair("f", 3), std::pair("\x04", 4)})
    split(at, id);
  store_.write("break", "r.1", {false, {}, {OmapRemoveRange{"d\x02", "d\x04"}}});
  EXPECT_EQ(find("g").id, RangeId{3});
  EXPECT_EQ(find("d").id, RangeId{2});
  EXPECT_NE(audit(), "4 ranges");
  EXPECT_EQ(audit().find("PROBLEM"), std::string::npos) << audit();
  ASSERT_OK(for_each_range(store_, [&](const RangeHeader& range) {
    EXPECT_OK(record_range(store_, "rebuild", range));
    return Visit::go_on;
  }));
  EXPECT_EQ(audit(), "4 ranges");
}

// It was slow, somebody has undone it, and others are at work on the same range by now.
TEST_F(RangeChange, WhoIsToldThatItsSplitOrMergeIsUndoneLeavesThoseOfOthersAlone) {
  for (const bool is_merge : {false, true}) {
    SCOPED_TRACE(is_merge);
    if (is_merge) split("m", 2);
    for (int i = 0; i < 10; ++i) put(fmt::format("n{}", i), "v");
    FaultyObjectStore slow(store_), other(store_);
    const auto change = [&](ObjectStore& client, uint64_t id) {
      return is_merge ? merge_ranges(client, find("a"), find("m"), small_pages_)
                      : split_range(client, find("a"), "m", RangeId{id}, 0, small_pages_);
    };
    slow.before_each([&](const PassedPoint& passed) {
      if (!passed.point.ends_with(".copy") || passed.nth != 2) return;
      ASSERT_OK(settle_range(store_, first_range_id));
      other.plan({is_merge ? "merge.commit" : "split.commit", 1, FaultMode::crash_before});
      EXPECT_FALSE(change(other, 12).has_value());
    });
    EXPECT_FALSE(change(slow, 11).has_value());
    const RangeHeader now = *read_header(store_, "look", first_range_id);
    EXPECT_EQ(now.state, is_merge ? RangeState::merge : RangeState::split);
    ASSERT_OK(settle_range(store_, first_range_id));
    EXPECT_EQ(audit(), is_merge ? "2 ranges" : "1 ranges");
  }
}

TEST_F(RangeChange, LinksInACircleAreFoundOut) {
  split("m", 2);
  split("p", 3);
  store_.write("break", "r.2", {.changes = {SetAttribute{"right", "1"}}});
  EXPECT_CODE(find_range_from(store_, first_range_id, "z"), Code::corrupt);
}

TEST_F(RangeChange, AnOlderRecordNeverReplacesANewerOne) {
  const RangeHeader all = find("a");
  split("m", 2);
  EXPECT_OK(record_range(store_, "late", all));  // ends where r.2 ends now
  EXPECT_EQ(audit(), "2 ranges");
}

TEST_F(RangeChange, TheSweeperSettlesWhatDoesNotMove) {
  put("a", "1");
  FaultyObjectStore client(store_);
  client.plan({"split.copy", 1, FaultMode::crash_before});
  EXPECT_CODE(split_range(client, find("a"), "m", RangeId{2}), Code::unavailable);
  RangeSweeper sweeper(store_);
  EXPECT_EQ(sweeper.sweep().value_or(9), 0u);  // who knows whether it moves
  EXPECT_EQ(sweeper.sweep().value_or(9), 1u);
  EXPECT_EQ(audit(), "1 ranges");
  split("m", 3);
  merge("a");
  EXPECT_EQ(sweeper.sweep().value_or(9), 0u);
  EXPECT_EQ(sweeper.sweep().value_or(9), 1u);  // the tombstone
  EXPECT_EQ(audit(), "1 ranges");
  EXPECT_EQ(get("a"), encode_payload("1"));
}

TEST_F(RangeChange, TheAuditFindsWhatMustNotBe) {
  split("m", 2);
  ASSERT_EQ(audit(), "2 ranges");
  FakeObjectStore good;
  good.copy_from(store_);
  const auto broken = [&](ByteView object, ObjectChange change) {
    store_.copy_from(good);
    store_.write("break", object, {false, {}, {std::move(change)}});
    return audit().find("PROBLEM") != std::string::npos;
  };
  EXPECT_TRUE(broken("r.1", SetAttribute{"end", "l"}));          // a hole
  EXPECT_TRUE(broken("r.1", SetAttribute{"end", "n"}));          // an overlap
  EXPECT_TRUE(broken("r.1", SetAttribute{"right", "0"}));        // the end is lost
  EXPECT_TRUE(broken("r.1", SetAttribute{"gen", "1"}));          // the directory is newer
  EXPECT_TRUE(broken("r.2", RemoveObject{}));                    // the object is lost
  EXPECT_TRUE(broken("r.2", SetAttribute{"st", "building 1"}));  // not served
  EXPECT_TRUE(broken("r.2", SetAttribute{"gen", "x"}));          // damaged
  EXPECT_TRUE(broken("r.2", OmapSet{"da", "\x01stray"}));        // an entry of r.1
  EXPECT_TRUE(broken("r.1", OmapSet{entry_key(EntryKind::payload, "\x03m"), "\x01?"}));
  RangeHeader stray = find("m");
  stray.id = RangeId{9};
  store_.copy_from(good);
  store_.write("break", "r.9", {true, {}, header_changes(stray)});
  EXPECT_NE(audit().find("not reached"), std::string::npos);
}

}  // namespace
}  // namespace trellis
