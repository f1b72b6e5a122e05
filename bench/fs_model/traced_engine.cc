#include "traced_engine.h"

#include "codec/fs_keys.h"

namespace trellis {
namespace {

Bytes key_of(const BlockId& id) { return encode(FsBlockKey{id.keyspace, id.data, id.index}); }

}  // namespace

Status TracedBlocks::read(std::span<const BlockId> blocks, std::span<Value> values) {
  for (const BlockId& id : blocks)
    trace_.push_back({.kind = EngineCall::Kind::read_block, .key = key_of(id)});
  return inner_.read(blocks, values);
}

Status TracedBlocks::write(std::span<const BlockWrite> writes) {
  EngineCall call{.kind = EngineCall::Kind::write_blocks};
  for (const BlockWrite& write : writes)
    call.writes.push_back(
        {WriteOp::put, key_of(write.block), Bytes(write.bytes), write.offset.has_value()});
  trace_.push_back(std::move(call));
  return inner_.write(writes);
}

Status TracedEngine::get(ByteView key, Value& value) {
  if (is_tracing_) trace_.push_back({.kind = EngineCall::Kind::get, .key = Bytes(key)});
  return inner_.get(key, value);
}

Status TracedEngine::multi_get(std::span<const ByteView> keys, std::span<Value> values) {
  if (is_tracing_)
    for (const ByteView key : keys)
      trace_.push_back({.kind = EngineCall::Kind::get, .key = Bytes(key)});
  return inner_.multi_get(keys, values);
}

Result<ScanPage> TracedEngine::scan(const ScanRequest& request, ScanVisitor visit) {
  auto page = inner_.scan(request, visit);
  if (is_tracing_ && page)
    trace_.push_back({.kind = EngineCall::Kind::scan,
                      .key = Bytes(request.begin),
                      .end = Bytes(request.end),
                      .entries_max = page->entries,
                      .reverse = request.reverse});
  return page;
}

CommitTicket TracedEngine::commit_many(std::span<const Commit* const> commits,
                                       std::span<Status> outcomes) {
  if (is_tracing_)
    for (const Commit* commit : commits) {
      EngineCall call{.kind = EngineCall::Kind::commit};
      for (const auto write : commit->writes)
        call.writes.push_back({write.op, Bytes(write.key), Bytes(write.value)});
      trace_.push_back(std::move(call));
    }
  return inner_.commit_many(commits, outcomes);
}

}  // namespace trellis
