// Removes a key from a store that no server has open, so that tests can damage one as a disk would.
//
//   edit_store FOLDER KEY      the key in hex
#include <cstdio>

#include "base/clock.h"
#include "rocksdb_engine/rocksdb_engine.h"

namespace trellis {
namespace {

Status remove_key(const char* folder, const char* key_hex) {
  SystemClock clock;
  TRY_ASSIGN(const auto engine, open_rocksdb_engine({.path = folder, .clock = clock}));
  TRY_ASSIGN(const Bytes key, from_hex(key_hex));
  Value value;
  TRY(engine->get(key, value));
  if (!value.found()) return Error{Code::not_found, "there is no such key"};
  value.set_absent();
  Commit removal;
  removal.writes.remove(key);
  removal.durability = Durability::always;
  return commit(*engine, removal);
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const trellis::Status done = trellis::remove_key(argv[1], argv[2]);
  if (!done) std::fprintf(stderr, "%s\n", to_string(done.error()).c_str());
  return done ? 0 : 1;
}
