// Commits on range objects.
//
//   what is wanted   the writes, last one wins; what they expect
//   load             the versions of what is written blindly, the counters that are added to, what
//                    lies in ranges that are removed; after a failed attempt also everything that
//                    is expected, which must be as it was seen
//   one range        one operation: generation, versions, structure, no intents -> the values
//   several          PREPARE    per written range   the same guards -> intents
//                    VALIDATE   what was only read, after all prepares: as it was, no intents
//                    DECIDE     the log (transaction_log.h): now it is done
//                    RESOLVE    per written range   intents -> values
//                    FORGET     the decision
//
// An attempt that meets a guard that does not hold is followed by another one, until what is
// expected turns out not to hold. Structure counters are of a whole range: that they have changed
// says only that the interval has to be looked at again.
//
// Every written key is guarded by its version, so an operation that arrives late, after somebody
// else has written, does nothing. What the store must not do is apply one twice: an insert would be
// done again after somebody has removed its key, as absent is absent.
#pragma once

#include "base/random.h"
#include "cluster_engine/cluster_read.h"

namespace trellis {

class ClusterCommitter {
 public:
  ClusterCommitter(ObjectStore& store, RangeRouter& router, TransactionLog& log,
                   ClusterReader& reader)
      : store_(store), router_(router), log_(log), reader_(reader) {}

  // With the answers of engine.h.
  Status commit(const Commit& commit);

 private:
  struct Wanted;
  struct Plan;
  struct Part;
  enum class Step : bool { done, again };

  Status load(const Wanted& wanted, bool all, Plan& plan);
  Status load_keys(const Wanted& wanted, bool all, Plan& plan);
  Status load_intervals(const Wanted& wanted, bool all, Plan& plan);
  Result<PageEvidence> look_at(ByteView begin, ByteView end);
  Result<std::vector<Part>> divide(const Plan& plan, bool& contradictory);
  Result<Step> attempt(const Wanted& wanted, bool all, Patience& patience);
  Result<Step> commit_in_one(Part& part);
  Result<Step> commit_across(std::vector<Part>& parts);
  Status capture_structure(Part& part);
  Result<Step> prepare(const std::vector<Part>& parts, const Writer& txn);
  Status validate(const std::vector<Part>& parts, const Writer& txn);
  bool resolve(const std::vector<Part>& parts, const Writer& txn, bool committed);
  Status look_for(const Part& part, const Bytes& version);

  ObjectStore& store_;
  RangeRouter& router_;
  TransactionLog& log_;
  ClusterReader& reader_;
};

}  // namespace trellis
