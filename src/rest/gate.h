// Who calls, and whose keyspace is meant: the first thing that every handler asks.
//
// A token that is sent is checked, whoever sends it. Without one a caller on this machine is the
// server's admin, if nothing was configured against that; so that no web page can borrow that power
// from a browser, the request must then name this machine in Host (against DNS rebinding), come
// from no other origin (against cross-site requests) and not be passed on by a proxy.
//
// A token of a keyspace is good for nothing else: what it may not see is refused in the same words
// whether it exists or not.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_types.h"
#include "rest/rest.h"

namespace trellis {

struct Call {
  Caller caller;
  std::optional<KeyspaceId> keyspace;  // whose token it is; absent: a server admin
  std::string label = {};              // of the token, if it is a keyspace's
};

// Reasons: no_token, bad_token, token_expired, browser_refused.
Result<Call> identify(const RestContext& context, const HttpRequest& request);

// Reason role_too_weak, whatever keyspace the token is of.
Result<Caller> identify_server_admin(const RestContext& context, const HttpRequest& request);

// A caller and the keyspace that a path names, which it may act on in that role. Reasons:
// wrong_keyspace, role_too_weak, keyspace_not_found.
struct KeyspaceCall {
  Caller caller;
  Keyspace keyspace;
};
Result<KeyspaceCall> enter_keyspace(const RestContext& context, const HttpRequest& request,
                                    std::string_view name, Role role);
Result<KeyspaceCall> enter_keyspace(const RestContext& context, const HttpRequest& request,
                                    KeyspaceId id, Role role);

// The same for data, where the tenant itself checks the role: the keyspace that `named` (of the
// path; absent: none), else X-Trellis-Keyspace, else the token says, else the default one.
struct DataCall {
  Caller caller;
  std::shared_ptr<Tenant> tenant;
};
Result<DataCall> enter_data(const RestContext& context, const HttpRequest& request,
                            std::optional<std::string_view> named);

// The same for clients of the catalog, which may call themselves something: Basic USER:PASSWORD,
// where the password is a token if one is needed. Whoever says nothing is anonymous, or whom the
// label of its token names. With authorization on only admins call themselves what they like
// (reason not_your_token).
struct UserCall {
  DataCall data;
  std::string user;
  std::string authorization;  // for check_still_valid()
};
Result<UserCall> enter_data_as_user(const RestContext& context, const HttpRequest& request,
                                    std::optional<std::string_view> named);

// For streams, which may last longer than the right to them: whether what the header Authorization
// said when it began ("" if it was not there) is still good.
Status check_still_valid(const RestContext& context, std::string_view authorization);

}  // namespace trellis
