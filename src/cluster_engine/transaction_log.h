// The decisions of one client's commits over several ranges, and what anybody does about intents
// that are met.
//
//   object tx.<incarnation>     st = live | fenced;  beat = a number that grows while it lives
//                               omap: <txn> -> decision (intent.h)
//
// A decision is made once: whoever is first, the committer with "C" or a helper with "A". "C" goes
// when all intents are resolved. "A" stays for as long as the log does: a "C" that was sent and not
// answered may still arrive. A log is removed when its client is dead, fenced off and swept; what
// is left of its intents was not decided. Who is dead nobody knows for sure (log_watch.h): one that
// is fenced off and lives commits nothing more before it has started again as a new incarnation.
//
// Threads: any. Blocking: every call.
#pragma once

#include <atomic>

#include "cluster_engine/intent.h"
#include "cluster_engine/range_router.h"

namespace trellis {

// Intents of one commit in one range, as they are stored.
struct StoredIntents {
  Writer txn;
  std::vector<std::pair<Bytes, Bytes>> intents;  // address, bytes
};

class TransactionLog {
 public:
  // Makes the log of a new incarnation.
  static Result<std::unique_ptr<TransactionLog>> open(ObjectStore& store, RangeRouter& router);

  TransactionLog(ObjectStore& store, RangeRouter& router, uint64_t incarnation)
      : store_(store), router_(router), incarnation_(incarnation) {}

  uint64_t incarnation() const { return incarnation_; }
  // Code::unavailable: it was found to be fenced off.
  Status check_not_fenced() const;
  // Says that this client lives. Code::unavailable if others say that it does not.
  Status beat();
  // Goes on with a new log. What was begun with the old one is refused, if it is fenced off.
  Status restart();
  Writer next_writer() { return {incarnation_, ++last_sequence_}; }

  // True: committed, for good. False: aborted, for good. Code::maybe: nobody knows yet; other
  // codes: it is not committed and will not be.
  Result<bool> decide(const Writer& txn, const Decision& decision);
  Status forget(const Writer& txn);

  // Makes the intents of a range what was decided on them. Code::conflict: the range or the intents
  // are not as they were read, nothing was done: look again.
  Status resolve(const RangeHeader& range, const StoredIntents& met, bool committed,
                 FaultPoint point, Patience& patience);
  // Of intents that were met: waits a little, then decides on them if nobody has, and resolves.
  // Look again after it.
  Status meet(const RangeHeader& range, const StoredIntents& met, Patience& patience);
  // All intents of one commit between two addresses.
  Status resolve_between(const Writer& txn, bool committed, ByteView first, ByteView last,
                         FaultPoint point);

  // Fences a client off that is dead, finishes what it had decided, removes its log.
  Status sweep(uint64_t incarnation);

 private:
  // What stands in the log, after "A" was put there if there was nothing. Absent: there is no log
  // any more.
  Result<std::optional<bool>> decision_of(const Writer& txn, FaultPoint point);
  // Of a log that is fenced. The first error, after all that can be finished is.
  Status finish_decisions(const Bytes& object);
  Status check_live(uint64_t incarnation);
  Error note_fenced(uint64_t incarnation);

  ObjectStore& store_;
  RangeRouter& router_;
  std::atomic<uint64_t> incarnation_;
  std::atomic<uint64_t> fenced_ = 0;  // the last incarnation that was found to be fenced off
  std::atomic<uint64_t> last_sequence_ = 0;
  std::atomic<uint64_t> last_beat_ = 0;
};

// What a client wrote with its last beat. Code::not_found if there is no such log.
Result<Bytes> read_heartbeat(ObjectStore& store, uint64_t incarnation);

// The operation that resolves intents, without the guard of the generation.
WriteOperation resolve_operation(const StoredIntents& met, bool committed);
// The first intents among (key, bytes) of a range that belong to one commit; none: no commit.
Result<StoredIntents> first_commit_of(std::span<const std::pair<Bytes, Bytes>> intents);

// Whether an answer leaves open if the operation was applied.
bool is_unknown(int answer);
// The error of something after which it does not matter whether it was done.
Error without_doubt(Error error);

}  // namespace trellis
