#include "redis/versions.h"

#include <algorithm>
#include <charconv>

#include "codec/system_keys.h"

namespace trellis {
namespace {

constexpr unsigned counter_bits = 11;
constexpr uint64_t reserved_us = 60ull * 1'000'000;  // a durable write a minute

}  // namespace

Status Versions::reserve(uint64_t from) {
  const Bytes key = encode(SystemKey{SystemKey::redis_version_generator});
  return map_.transact_durably(Scope::system().exclusive(key), [&](View& view) -> Status {
    Value value;
    TRY(view.get(key, value));
    uint64_t end = 0;
    if (value.found()) {
      const ByteView text = value.bytes();
      const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), end);
      if (error != std::errc() || last != text.data() + text.size())
        return Error{Code::corrupt, "the stored mark of Redis versions does not make sense"};
    }
    // A lost race runs this again: what is set here is set anew.
    last_ = std::max(from, end);
    end_ = last_ + (reserved_us << counter_bits);
    view.put(key, std::to_string(end_));
    return {};
  });
}

Status Versions::prepare() {
  const std::lock_guard lock(mutex_);
  const uint64_t from = std::max(now(), last_ + 1);
  if (from + (reserved_us << counter_bits) / 2 < end_) return {};
  return reserve(from);
}

Status Versions::skip_to(uint64_t end) {
  const std::lock_guard lock(mutex_);
  if (last_ >= end) return {};
  return reserve(std::max(now(), end));
}

uint64_t Versions::next() {
  const std::lock_guard lock(mutex_);
  const uint64_t by_clock = now();
  // A clock that jumped ahead since prepare() has to wait for the next reservation.
  last_ = by_clock < end_ ? std::max(by_clock, last_ + 1) : last_ + 1;
  return last_;
}

uint64_t Versions::now() const { return (map_.clock.unix_ms() * 1'000) << counter_bits; }

}  // namespace trellis
