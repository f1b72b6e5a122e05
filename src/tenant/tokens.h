// Tokens: how a caller proves which keyspace it belongs to, and in which role.
//
//   trl_000201_9f3c5a7e01d2b4c6_<43 characters of base64url>
//       id of the keyspace, id of the token, secret of 32 random bytes
//
//   04 '/keyspaces/token/' keyspace '/' token id -> | 01 | Token of keyspace.proto |
//
// A token is shown once, when it is made; stored is the SHA-256 of its secret, which needs no salt
// and no slowness because the secret is random. A check is one read of the map, so that a token
// that was revoked is dead for every server and connection with its next operation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "map/map_handle.h"
#include "tenant/change_log.h"
#include "tenant/keyspace.h"

namespace trellis {

struct Token {
  std::string id;
  Role role = Role::read;
  std::string label;  // for people: "ci", "grafana"; in the catalog the user whose token it is
  uint64_t created_at_ms = 0;
  uint64_t expires_at_ms = 0;  // 0: never
};

// Who a token speaks for.
struct Identity {
  KeyspaceId keyspace;
  Caller caller;
  std::string label = {};      // of the token
  uint64_t expires_at_ms = 0;  // 0: never
};

// Reasons: bad_token (unknown, revoked or not a token) and token_expired (Code::denied),
// token_not_found and keyspace_not_found (Code::not_found), too_many_tokens (Code::too_large),
// illegal_token (Code::invalid).
//
// Any thread.
class Tokens {
 public:
  Tokens(MapHandle map, ChangeLog& changes) : map_(map), changes_(changes) {}

  struct Made {
    Token token;
    std::string secret;  // the whole text, for the only time
  };
  // The role is at most admin; the label printable UTF-8 of up to label_bytes_max; expires_at_ms in
  // the future, or 0. A tombstone counts as not found.
  Result<Made> create(KeyspaceId keyspace, Role role, std::string_view label,
                      uint64_t expires_at_ms, const Caller& caller);
  // In the order of their ids, expired ones too.
  Result<std::vector<Token>> list(KeyspaceId keyspace);
  Status revoke(KeyspaceId keyspace, std::string_view token_id, const Caller& caller);

  // Any bytes. Every token that is refused is refused with the same words, unless it has expired.
  // Whether the keyspace serves is asked elsewhere (Tenant::admit).
  Result<Identity> authenticate(std::string_view text);

 private:
  MapHandle map_;
  ChangeLog& changes_;
};

// A secret for the server's admin: trl_admin_<43 characters of base64url>.
std::string make_admin_token();
// In constant time.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace trellis
