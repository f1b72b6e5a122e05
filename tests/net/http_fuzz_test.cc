// The fuzzers' entry points on seeded input: what must be refused, what must be answered, and
// mutations of both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "support/http_fuzz.h"
#include "support/http_fuzz_inputs.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr std::string_view good_chunks =
    "POST /worker-echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5\r\nhello\r\n1;a=\"b\"\r\n!\r\n0\r\nT: u\r\n\r\n";
constexpr std::string_view good_inputs[] = {
    "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /worker HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "DELETE /hello HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://b/hello?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "PUT /echo/a%2Fb HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "PUT /echo/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
    good_chunks,
    "PUT /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "PUT /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "\r\n",
};

Bytes random_stream(Random& random) {
  Bytes out;
  for (uint64_t i = 0, parts = 1 + random.below(6); i < parts; ++i) {
    if (random.one_in(4)) {
      out += hostile_inputs[random.below(std::size(hostile_inputs))].bytes;
    } else {
      out += good_inputs[random.below(std::size(good_inputs))];
    }
  }
  return out;
}

void mutate(Random& random, Bytes& bytes) {
  for (uint64_t i = 0, changes = random.below(4); i < changes && !bytes.empty(); ++i) {
    const size_t at = random.below(bytes.size());
    static constexpr std::string_view specials = "\r\n :;,\0\t0fF%/\x7f\x80"sv;
    switch (random.below(4)) {
      case 0: bytes[at] = specials[random.below(specials.size())]; break;
      case 1: bytes.insert(at, 1, specials[random.below(specials.size())]); break;
      case 2: bytes.erase(at, 1 + random.below(4)); break;
      default: bytes.insert(at, bytes.substr(random.below(bytes.size()), random.below(40)));
    }
  }
}

TEST(HttpFuzz, KnownInputs) {
  for (const HttpFuzzTarget& target : http_fuzz_targets) {
    for (const std::string_view input : good_inputs) target.run("abcd" + Bytes(input));
    for (const HostileInput& input : hostile_inputs) target.run("abcd" + Bytes(input.bytes));
    target.run("");
    target.run("ab");
  }
}

TEST(HttpFuzz, LongInputs) {
  for (const size_t size : {1000U, 2047U, 2048U, 2049U, 17'000U, 70'000U}) {
    const Bytes filler(size, 'a');
    fuzz_http("abcdGET /" + filler + " HTTP/1.1\r\nHost: a\r\n\r\n");
    fuzz_http("abcdGET /hello HTTP/1.1\r\nHost: a\r\nX: " + filler + "\r\n\r\n");
    fuzz_http("abcdGET /" + filler + "\nHost: a\r\n\r\n");
    for (const std::string_view path : {"/echo/", "/sink"}) {
      const Bytes head = fmt::format("abcdPUT {} HTTP/1.1\r\nHost: a\r\n", path);
      fuzz_http(fmt::format("{}Content-Length: {}\r\n\r\n{}", head, size, filler));
      const Bytes chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
      fuzz_http(fmt::format("{}{:x}\r\n{}\r\n0\r\n\r\n", chunked, size, filler));
      fuzz_http(fmt::format("{}1;x={}\r\na\r\n0\r\n\r\n", chunked, filler));
      fuzz_http(fmt::format("{}0\r\nT: {}\r\n\r\n", chunked, filler));
    }
  }
}

TEST(HttpFuzz, RandomStreams) {
  Random random(test_seed(5));
  for (uint64_t round = 0; round < test_rounds(30'000); ++round) {
    SCOPED_TRACE(round);
    Bytes input = random.bytes(4) + random_stream(random);
    if (random.one_in(2)) mutate(random, input);
    fuzz_http(input);
    fuzz_http_text(input);
  }
}

}  // namespace
}  // namespace trellis
