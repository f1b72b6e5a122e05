#include "range/id_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/limits.h"

namespace trellis {

namespace {

constexpr char id_value_format = 0x01;

Result<uint64_t> decode_last_id(ByteView key, const Value& value) {
  if (!value.found()) return 0;
  const ByteView bytes = value.bytes();
  if (bytes.size() != 9 || bytes[0] != id_value_format)
    return Error{Code::corrupt, fmt::format("the id generator {} holds {}, which is no number",
                                            quote(key.substr(1)), to_hex(bytes))};
  return load_be(bytes.data() + 1, 8);
}

}  // namespace

IdGenerator::IdGenerator(Engine& engine, SystemKey::What generator, uint64_t taken)
    : engine_(engine), key_(encode(SystemKey{generator})), taken_(taken) {}

Status IdGenerator::take_block() {
  for (unsigned attempt = 0; attempt < transact_attempts_max; attempt++) {
    Value value;
    TRY(engine_.get(key_, value));
    TRY_ASSIGN(uint64_t stored, decode_last_id(key_, value));
    if (stored < block_end_)
      return Error{
          Code::corrupt,
          fmt::format("the id generator {} went back from {} to {}: was an old copy of the "
                      "map restored under a running server? Stop it and restore again",
                      quote(ByteView(key_).substr(1)), block_end_, stored)};
    stored = std::max(stored, taken_);
    if (stored > std::numeric_limits<uint64_t>::max() - id_block)
      return Error{Code::exhausted, fmt::format("the id generator {} has no numbers left",
                                                quote(ByteView(key_).substr(1)))};
    Bytes next(1, id_value_format);
    append_be64(next, stored + id_block);
    Commit change;
    change.writes.put(key_, next);
    change.expectations.push_back({key_, std::nullopt, engine_.evidence(value)});
    change.durability = Durability::always;
    const Status done = commit(engine_, change);
    if (done.has_value()) {
      last_ = stored;
      block_end_ = stored + id_block;
      return {};
    }
    // A block of which nobody knows whether it was taken is a gap.
    if (done.error().code != Code::conflict && done.error().code != Code::maybe) return done;
  }
  return Error{Code::conflict, fmt::format("the id generator {} is changed by others all the time; "
                                           "try again",
                                           quote(ByteView(key_).substr(1)))};
}

Result<uint64_t> IdGenerator::next() {
  const std::lock_guard lock(mutex_);
  if (last_ == block_end_) TRY(take_block());
  return ++last_;
}

}  // namespace trellis
