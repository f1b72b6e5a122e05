// What a client's connection means to commands.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redis/command.h"
#include "redis/databases.h"
#include "redis/watch.h"
#include "tenant/tenant.h"

namespace trellis {

// A command that waits for EXEC, with its own copy of the arguments.
struct QueuedCommand {
  const Command* command;
  std::vector<Bytes> args;
};

class Usage;

// One thread, that of its loop. Others see it by Clients: they read what is atomic here, what never
// changes, and what is only changed with Clients::change (names, tenant, user).
struct Session {
  uint64_t id = 0;
  std::string name;
  std::string address;        // "127.0.0.1:51234"
  std::string local_address;  // where it came in
  std::string library_name;
  std::string library_version;
  bool is_local = false;  // from this machine
  uint64_t connected_ms = 0;
  std::atomic<uint64_t> active_ms = 0;
  std::atomic<const Command*> last_command = nullptr;
  std::atomic<size_t> input_bytes = 0;   // received and not run
  std::atomic<size_t> output_bytes = 0;  // to be sent

  // Set by whoever has the socket, before the first command. Any thread, but not behind
  // RedisServer::leave: closes the connection; lets commands that were held run.
  std::function<void()> kill = [] {};
  std::function<void()> go_on = [] {};

  std::shared_ptr<Tenant> tenant;  // null: not authenticated yet
  std::shared_ptr<Usage> usage;    // the tenant's; null as long as that is
  std::shared_ptr<Databases> databases;
  Caller caller{Role::read, {}};
  std::string user = "default";
  // The token that it came in with, which may be revoked or expire: see RedisServer::is_welcome.
  std::string secret;  // empty: none
  uint64_t secret_checked = 0;
  uint64_t secret_expires_ms = 0;  // 0: never

  std::atomic<uint32_t> database = 0;
  std::atomic<int> protocol = 2;
  // After what is to be sent; what it asked for behind that is not run. Others set it by Clients.
  std::atomic<bool> closing = false;
  bool no_reply = false;    // CLIENT REPLY OFF
  bool skip_reply = false;  // CLIENT REPLY SKIP: of the next command
  bool skips_this = false;  // of the one that runs
  std::atomic<bool> no_evict = false;
  std::atomic<bool> no_touch = false;

  std::atomic<bool> is_held = false;  // its next command waits for the end of a pause
  bool held_write = false;

  std::atomic<int64_t> queued = -1;  // commands behind MULTI; -1: there was none
  bool in_multi = false;
  bool multi_failed = false;  // EXEC will refuse
  std::vector<QueuedCommand> queue;
  size_t queued_bytes = 0;  // about what the queue takes
  // What it watches; the flag is set, by any thread, when one of them changes.
  struct Watched {
    uint32_t database;
    Bytes name;
    uint64_t expire_ms = 0;  // when it was watched; 0: never, or it was not there
  };
  std::map<Bytes, Watched> watched;  // by watched_key()
  size_t watched_bytes = 0;          // about what they take
  WatchFlag watch_flag;
};

}  // namespace trellis
