#include "cluster_engine/intent.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster_engine/evidence.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

TEST(Intent, BytesAsDrawn) {
  const Writer txn{0x0102030405060708, 9};
  const Bytes put = encode_intent({txn, "value"});
  EXPECT_EQ(to_hex(put), "010102030405060708000000000000000970" + to_hex("value"));
  const auto decoded = decode_intent(put);
  ASSERT_OK(decoded);
  EXPECT_EQ(decoded->txn.incarnation, txn.incarnation);
  EXPECT_EQ(decoded->txn.sequence, txn.sequence);
  EXPECT_EQ(decoded->value, "value");
  EXPECT_EQ(decode_intent(encode_intent({txn, ""}))->value, "");
  EXPECT_EQ(decode_intent(encode_intent({txn, std::nullopt}))->value, std::nullopt);
}

TEST(Intent, DecisionsAndLogs) {
  EXPECT_EQ(encode_decision({}), "A");
  const Decision decision{.committed = true, .written = {{"a", "b"}, {"", "c"}}};
  EXPECT_EQ(to_hex(encode_decision(decision)),
            "43000000016100000001620000000000000001"
            "63");
  EXPECT_EQ(decode_decision(encode_decision(decision))->written, decision.written);
  EXPECT_FALSE(decode_decision("A")->committed);
  EXPECT_EQ(log_object_name(7), "tx.7");
  EXPECT_EQ(parse_log_object_name("tx.18446744073709551615"), ~uint64_t{0});
  for (const char* wrong : {"tx.", "tx.07", "tx.x", "tx.1x", "r.1", "tx.18446744073709551616"})
    EXPECT_EQ(parse_log_object_name(wrong), std::nullopt) << wrong;
}

// Any bytes are refused, or are what would be written again.
TEST(Intent, AnyBytes) {
  Random random(test_seed(3));
  const Bytes starts[] = {encode_intent({{1, 2}, "value"}),
                          encode_decision({true, {{"first", "last"}}}),
                          encode_page_evidence({{{"a", "b", "s"}}, {{"a", "v"}, {"aa", "v"}}})};
  for (uint64_t i = test_rounds(20'000); i > 0; i--) {
    Bytes bytes = starts[random.below(3)];
    for (uint64_t edits = 1 + random.below(3); edits > 0; edits--) {
      if (random.one_in(3)) bytes.resize(random.below(bytes.size() + 4));
      if (!bytes.empty()) bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    }
    if (const auto intent = decode_intent(bytes); intent.has_value()) {
      EXPECT_EQ(encode_intent(*intent), bytes);
    }
    if (const auto decision = decode_decision(bytes); decision.has_value()) {
      EXPECT_EQ(encode_decision(*decision), bytes);
    }
    if (const auto evidence = decode_page_evidence(bytes); evidence.has_value()) {
      EXPECT_EQ(encode_page_evidence(*evidence), bytes);
    }
  }
}

}  // namespace
}  // namespace trellis
