#include "cluster_engine/range_object.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "codec/meta_keys.h"
#include "object_store/fake_object_store.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

RangeHeader sample_header() {
  return {.id = RangeId{7},
          .generation = 12,
          .start = "b",
          .end = Bytes("d\0", 2),
          .right = RangeId{9},
          .other = {},
          .split_at = {},
          .step = 4,
          .sticky_until_ms = 5};
}

std::string attributes(const RangeHeader& header) {
  std::string text;
  for (const ObjectChange& change : header_changes(header)) {
    const auto& set = std::get<SetAttribute>(change);
    text += set.name + "=" + quote(set.value) + " ";
  }
  return text;
}

// Stored by clusters: never change what is expected here.
TEST(RangeObject, GoldenHeaders) {
  EXPECT_EQ(range_object_name(RangeId{7}), "r.7");
  EXPECT_EQ(attributes(sample_header()),
            R"(gen="12" start="b" end="d\x00" right="9" st="live" step="4" sticky="5" )");
  const std::pair<RangeState, std::string_view> states[] = {
      {RangeState::live, "live"},           {RangeState::split, "split 8 c d"},
      {RangeState::unsplit, "unsplit 8"},   {RangeState::halved, "halved 8"},
      {RangeState::building, "building 8"}, {RangeState::merge, "merge 8"},
      {RangeState::unmerge, "unmerge 8"},   {RangeState::merged, "merged 8"},
      {RangeState::frozen, "frozen 8"},     {RangeState::gone, "gone 8"}};
  for (const auto& [state, text] : states) {
    RangeHeader header = sample_header();
    header.state = state;
    if (state != RangeState::live) header.other = RangeId{8};
    if (state == RangeState::split) header.split_at = "c d";
    ReadAnswer answer;
    for (const ObjectChange& change : header_changes(header)) {
      const auto& set = std::get<SetAttribute>(change);
      answer.attributes[set.name] = set.value;
    }
    EXPECT_EQ(answer.attributes["st"], text);
    const Result<RangeHeader> decoded = decode_header(header.id, answer);
    ASSERT_OK(decoded);
    EXPECT_EQ(*decoded, header);
  }
}

TEST(RangeObject, GoldenEntries) {
  EXPECT_EQ(entry_key(EntryKind::payload, "k"), "dk");
  EXPECT_EQ(entry_key(EntryKind::version, "k"), "vk");
  EXPECT_EQ(entry_key(EntryKind::intent, "k"), "ik");
  EXPECT_EQ(entry_key(EntryKind::structure, ""), "s");
  EXPECT_EQ(to_hex(encode_payload("ab")), "016162");
  EXPECT_EQ(to_hex(encode_payload("")), "01");
  EXPECT_EQ(to_hex(encode_writer({1, 0x0203})), "00000000000000010000000000000203");
  EXPECT_EQ(to_hex(encode_range_writer('m', RangeId{2}, 3, 4)),
            "6d000000000000000200000000000000030000000000000004");
  EXPECT_EQ(*decode_payload(encode_payload("v")), "v");
  EXPECT_CODE(decode_payload(""), Code::corrupt);
  EXPECT_CODE(decode_payload("\x02"), Code::corrupt);
}

TEST(RangeObject, HeadersThatMakeNoSenseAreRefused) {
  const std::pair<const char*, Bytes> bad[] = {{"gen", ""},
                                               {"gen", "0"},
                                               {"gen", "x"},
                                               {"gen", "1 "},
                                               {"start", "e"},
                                               {"end", ""},
                                               {"end", "\xff\xff\xff"},
                                               {"right", ""},
                                               {"right", "-1"},
                                               {"sticky", ""},
                                               {"st", ""},
                                               {"st", "live "},
                                               {"st", "live 8"},
                                               {"st", "split 8"},
                                               {"st", "split 8 "},
                                               {"st", "split 8 z"},
                                               {"st", "split x c"},
                                               {"st", "frozen"},
                                               {"st", "gone "},
                                               {"st", "merge 8 c"},
                                               {"st", "dead 8"}};
  for (const auto& [name, value] : bad) {
    ReadAnswer answer;
    for (const ObjectChange& change : header_changes(sample_header())) {
      const auto& set = std::get<SetAttribute>(change);
      answer.attributes[set.name] = set.value;
    }
    answer.attributes[name] = value;
    EXPECT_CODE(decode_header(RangeId{7}, answer), Code::corrupt);
    answer.attributes.erase(name);
    if (std::string_view(name) != "start")
      EXPECT_CODE(decode_header(RangeId{7}, answer), Code::corrupt);
  }
  EXPECT_CODE(decode_header(RangeId{7}, {}), Code::corrupt);
}

TEST(RangeObject, NamesOfOtherObjectsAreNone) {
  EXPECT_EQ(*parse_range_object_name("r.18446744073709551615"),
            RangeId{std::numeric_limits<uint64_t>::max()});
  for (const char* name : {"", "r.", "r.x", "r.07", "r.7 ", "tx.7", "r.18446744073709551616"})
    EXPECT_CODE(parse_range_object_name(name), Code::invalid);
}

TEST(RangeObject, WhatMayBeDoneInAState) {
  RangeHeader header = sample_header();
  EXPECT_TRUE(header.holds("b") && header.holds("d") && !header.holds(header.end));
  EXPECT_TRUE(header.may_read() && header.may_write("c"));
  header.state = RangeState::split;
  header.split_at = "c";
  EXPECT_TRUE(header.may_read() && header.may_write("b") && !header.may_write("c"));
  for (const RangeState state : {RangeState::unsplit, RangeState::halved, RangeState::merge,
                                 RangeState::unmerge, RangeState::merged}) {
    header.state = state;
    EXPECT_TRUE(header.may_read() && header.may_write("c"));
  }
  for (const RangeState state : {RangeState::building, RangeState::frozen, RangeState::gone}) {
    header.state = state;
    EXPECT_FALSE(header.may_read() || header.may_write("b"));
  }
}

TEST(RangeObject, BootstrapMakesTheFirstRangeOnceForAll) {
  FakeObjectStore store;
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back([&] { EXPECT_OK(bootstrap_ranges(store)); });
  for (std::thread& client : clients) client.join();
  const Result<RangeHeader> header = read_header(store, "test", first_range_id);
  ASSERT_OK(header);
  EXPECT_EQ(header->start, "");
  EXPECT_EQ(header->end, map_key_max);
  EXPECT_EQ(header->generation, 1u);
  EXPECT_EQ(header->state, RangeState::live);

  ReadAnswer answer;
  const Bytes record = entry_key(EntryKind::payload, meta1_key_max);
  ASSERT_GE(store.read("test", "r.1", {.omap_keys = {record}}, answer), 0);
  const Result<RangeDescriptor> recorded = decode_descriptor(*decode_payload(answer.omap[record]));
  ASSERT_OK(recorded);
  EXPECT_EQ(*recorded, to_descriptor(*header));
  EXPECT_CODE(read_header(store, "test", RangeId{2}), Code::not_found);
}

TEST(RangeObject, AnswersOfTheStore) {
  const std::pair<int, Code> answers[] = {
      {-ECANCELED, Code::conflict}, {-ENOENT, Code::not_found},     {-EEXIST, Code::exists},
      {-ETIMEDOUT, Code::maybe},    {-EMSGSIZE, Code::too_large},   {-EIO, Code::unavailable},
      {-ERANGE, Code::conflict},    {-ESHUTDOWN, Code::unavailable}};
  for (const auto& [answer, code] : answers) EXPECT_CODE(object_status(answer, "x"), code);
  EXPECT_OK(object_status(0, "x"));
  EXPECT_OK(object_status(1, "x"));
}

}  // namespace
}  // namespace trellis
