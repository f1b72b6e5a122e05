#include "range/range_log.h"

#include "codec/stored_message.h"
#include "codec/system_keys.h"
#include "range.pb.h"
#include "range/descriptor_message.h"

namespace trellis {
namespace {

Bytes encode_event(const RangeEvent& event) {
  stored::RangeEvent message;
  message.set_time_ms(event.time_ms);
  message.set_action(event.action);
  message.set_reason(event.reason);
  fill_message(event.left, *message.mutable_left());
  if (event.right) fill_message(*event.right, *message.mutable_right());
  return encode_message(message);
}

Result<RangeEvent> decode_event(ByteView key, ByteView bytes) {
  TRY_ASSIGN(const RangeLogKey log_key, decode<RangeLogKey>(key));
  stored::RangeEvent message;
  TRY(decode_message(bytes, message, "entry of the log of ranges"));
  RangeEvent event{.sequence = log_key.sequence,
                   .time_ms = message.time_ms(),
                   .action = message.action(),
                   .reason = message.reason(),
                   .left = {},
                   .right = {}};
  TRY_ASSIGN(event.left, descriptor_of(message.left()));
  if (message.has_right()) {
    TRY_ASSIGN(event.right, descriptor_of(message.right()));
  }
  return event;
}

}  // namespace

// By the key alone: an entry that is damaged stops no later one.
Result<uint64_t> RangeLog::last_sequence() const {
  uint64_t last = 0;
  const auto visit = [&](ByteView key, ByteView) {
    if (const auto entry = decode<RangeLogKey>(key)) last = entry->sequence;
    return Visit::stop;
  };
  TRY(engine_.scan({.begin = encode(RangeLogKey{0}),
                    .end = successor(encode(RangeLogKey{~0ull})),
                    .reverse = true,
                    .entries_max = 1},
                   visit));
  return last;
}

Status RangeLog::append(Commit& commit, const RangeEvent& event) {
  TRY_ASSIGN(const uint64_t last, last_sequence());
  const uint64_t sequence = last + 1;
  Bytes key = encode(RangeLogKey{sequence});
  commit.writes.put(key, encode_event(event));
  commit.expectations.push_back({.begin = std::move(key), .end = {}, .seen = {}});
  if (sequence > entries_max_) commit.writes.remove(encode(RangeLogKey{sequence - entries_max_}));
  return {};
}

Status RangeLog::record(const RangeEvent& event) {
  constexpr unsigned attempts_max = 100;
  for (unsigned attempt = 1;; attempt++) {
    Commit entry;
    TRY(append(entry, event));
    Status done = commit(engine_, entry);
    if (done || done.error().code != Code::conflict || attempt == attempts_max) return done;
  }
}

Result<std::vector<RangeEvent>> RangeLog::read(uint64_t before, size_t limit) const {
  const Bytes begin = encode(RangeLogKey{0});
  Bytes end = before == 0 ? successor(encode(RangeLogKey{~0ull})) : encode(RangeLogKey{before});
  std::vector<RangeEvent> events;
  // What is damaged is passed over: its number is missing.
  const auto visit = [&](ByteView key, ByteView value) {
    if (auto event = decode_event(key, value)) events.push_back(std::move(*event));
    return events.size() < limit ? Visit::go_on : Visit::stop;
  };
  while (events.size() < limit) {
    TRY_ASSIGN(
        ScanPage page,
        engine_.scan(
            {.begin = begin, .end = end, .reverse = true, .entries_max = limit - events.size()},
            visit));
    if (!page.resume) break;
    end = std::move(*page.resume);
  }
  return events;
}

}  // namespace trellis
