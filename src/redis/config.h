// Redis's settings, by the names that its clients know. They are kept per keyspace, as clients set
// them; what Trellis itself does is set elsewhere (trellis serve --help).
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace trellis {

// Any thread.
class RedisConfig {
 public:
  // Those whose name matches the pattern, in any case.
  void get(KeyspaceId keyspace, ByteView pattern,
           FunctionRef<void(std::string_view name, std::string_view value)> visit) const;
  std::string value(KeyspaceId keyspace, std::string_view name) const;
  int64_t number(KeyspaceId keyspace, std::string_view name) const;  // of one that is a number

  // All of them or, with the error that is the reply, none.
  struct Change {
    ByteView name;
    ByteView value;
  };
  Status set(KeyspaceId keyspace, std::span<const Change> changes);

  // What the server is set to, for every keyspace: port, bind, appendfsync.
  void set_fact(std::string_view name, std::string value);

 private:
  using Values = std::map<std::string, std::string, std::less<>>;
  std::string value_of(KeyspaceId keyspace, std::string_view name,
                       std::string_view default_value) const;

  mutable std::mutex mutex_;
  Values facts_;
  std::unordered_map<KeyspaceId, Values> values_;  // that differ from their default
};

}  // namespace trellis
