// Redis's settings, by the names that its clients know. They are kept per keyspace, as clients set
// them; what Trellis itself does is set elsewhere (trellis serve --help).
#pragma once

#include <map>
#include <mutex>
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
  using Values = std::map<std::string, std::string, std::less<>>;
  // `fixed`: those that are the server's own, the same for all keyspaces. Must outlive this.
  explicit RedisConfig(const Values& fixed) : fixed_(fixed) {}

  // Those whose name matches the pattern, in any case.
  void get(KeyspaceId keyspace, ByteView pattern,
           FunctionRef<void(std::string_view name, std::string_view value)> visit) const;
  // REQUIRES: is_known.
  Status set(KeyspaceId keyspace, std::string_view name, ByteView value);
  static bool is_known(std::string_view name);

 private:
  const Values& fixed_;
  mutable std::mutex mutex_;
  std::unordered_map<KeyspaceId, Values> values_;  // that differ from their default
};

}  // namespace trellis
