// The fuzzers' entry points on seeded random input: any bytes give a record or an error.
#include <gtest/gtest.h>

#include "codec/key_kinds.h"
#include "support/codec_fuzz.h"
#include "support/key_probes.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// Half of them start like something.
Bytes random_input(Random& random) {
  Bytes input = random.bytes(random.below(48));
  constexpr std::string_view starts{"\x01\x02\x03\x04xrmt\xfe\x88", 10};
  if (!input.empty() && random.one_in(2)) input[0] = starts[random.below(starts.size())];
  if (input.size() > 5 && input[0] == 'x') input[4] = "cdfgk"[random.below(5)];
  return input;
}

// 10^7 of them with TRELLIS_TEST_SCALE=long.
TEST(AnyBytes, RandomKeysAreExplained) {
  Random random(test_seed(8));
  uint64_t keys = 0;
  for (uint64_t round = 0; round < test_rounds(100'000); round++) {
    const Bytes input = random_input(random);
    const auto explained = explain_key(input);
    keys += explained ? 1 : 0;
    if (!explained) {
      ASSERT_LE(explained.error().offset, input.size()) << to_hex(input);
    }
  }
  EXPECT_GT(keys, test_rounds(100'000) / 20) << "too few of the inputs are keys to mean much";
}

TEST(AnyBytes, RandomInputs) {
  Random random(test_seed(10));
  for (uint64_t round = 0; round < test_rounds(20'000); round++) {
    const Bytes input = random_input(random);
    for (const CodecFuzzTarget& target : codec_fuzz_targets) target.run(input);
  }
}

void mutate(Random& random, Bytes& key) {
  const size_t at = random.below(key.size());
  switch (random.below(4)) {
    case 0: key[at] = static_cast<char>(random.next()); break;
    case 1: key.erase(at, 1); break;
    case 2: key.insert(at, 1, static_cast<char>(random.next())); break;
    default: key.resize(at); break;
  }
}

TEST(AnyBytes, MutatedKeys) {
  Random random(test_seed(9));
  for (const KeyProbe& probe : key_probes()) {
    for (uint64_t round = 0; round < test_rounds(200); round++) {
      Bytes key = probe.sample(random);
      for (uint64_t changes = random.below(4); changes > 0 && !key.empty(); changes--)
        mutate(random, key);
      for (const CodecFuzzTarget& target : codec_fuzz_targets) target.run(key);
    }
  }
}

}  // namespace
}  // namespace trellis
