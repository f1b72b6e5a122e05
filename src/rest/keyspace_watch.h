// Keyspaces as a stream of server-sent events that can be taken up again where it broke off.
//
//   id: 17
//   event: upsert
//   data: {"revision":17,"type":"upsert","keyspace":{...}}
//
// Without a revision to go on from, every keyspace comes first, as an upsert. These carry the
// revision of before they were listed, so that nothing that changes meanwhile is missed; only the
// last one has an id, because a stream that broke off before it must start again.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "net/http_types.h"
#include "tenant/keyspaces.h"

namespace trellis {

constexpr uint32_t watch_heartbeat_ms = 15'000;

class KeyspaceWatch final : public BodySource {
 public:
  KeyspaceWatch(Keyspaces& keyspaces, Clock& clock, std::optional<uint64_t> since)
      : keyspaces_(keyspaces),
        clock_(clock),
        since_(since.value_or(0)),
        told_(since_),
        lists_(!since.has_value()) {}

  void on_start(Waker waker) override;
  Result<Chunk> next() override;

 private:
  Result<Chunk> list();
  Result<Chunk> follow();

  Keyspaces& keyspaces_;
  Clock& clock_;
  uint64_t since_;  // what was looked at
  uint64_t told_;   // the last id that was sent
  bool lists_;
  std::optional<KeyspaceId> list_from_;  // absent: the list has not begun
  std::optional<uint64_t> sent_us_;      // when the client last heard of us
  ChangeLog::Subscription subscription_;
};

}  // namespace trellis
