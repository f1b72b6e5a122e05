#include "tenant/tokens.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "codec/stored_message.h"
#include "codec/system_keys.h"
#include "keyspace.pb.h"
#include "tenant/keyspace_lookup.h"
#include "tenant/sha256.h"

namespace trellis {
namespace {

// --- the text ---

constexpr std::string_view token_start = "trl_";
constexpr std::string_view admin_start = "trl_admin_";
constexpr size_t keyspace_digits = 6;
constexpr size_t id_bytes = 8;
constexpr size_t id_digits = 2 * id_bytes;
constexpr size_t secret_bytes = 32;
constexpr size_t secret_letters = 43;  // six bits each, the last one four
constexpr size_t digest_bytes = 32;
constexpr size_t id_offset = token_start.size() + keyspace_digits + 1;
constexpr size_t secret_offset = id_offset + id_digits + 1;
constexpr size_t token_letters = secret_offset + secret_letters;

constexpr std::string_view base64url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

using Secret = std::array<unsigned char, secret_bytes>;

std::string secret_text(const Secret& secret) {
  std::string text;
  unsigned bits = 0;
  unsigned waiting = 0;
  for (const unsigned char byte : secret) {
    bits = (bits << 8 | byte) & 0xffff;
    for (waiting += 8; waiting >= 6; waiting -= 6) text += base64url[bits >> (waiting - 6) & 63];
  }
  text += base64url[bits << (6 - waiting) & 63];
  return text;
}

// REQUIRES: secret_letters of them. Each secret has one text: bits that stand for nothing are zero.
std::optional<Secret> parse_secret(std::string_view text) {
  Secret secret{};
  unsigned bits = 0;
  unsigned waiting = 0;
  size_t size = 0;
  for (const char letter : text) {
    const size_t six = base64url.find(letter);
    if (six == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<unsigned>(six)) & 0xffff;
    waiting += 6;
    if (waiting < 8) continue;
    waiting -= 8;
    secret[size++] = static_cast<unsigned char>(bits >> waiting);
  }
  if ((bits & ((1u << waiting) - 1)) != 0) return std::nullopt;
  return secret;
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

struct ParsedToken {
  KeyspaceId keyspace;
  std::string_view id;
  Secret secret;
};

std::optional<ParsedToken> parse_token(std::string_view text) {
  if (text.size() != token_letters || !text.starts_with(token_start) ||
      text[id_offset - 1] != '_' || text[secret_offset - 1] != '_')
    return std::nullopt;
  const std::string_view keyspace = text.substr(token_start.size(), keyspace_digits);
  const std::string_view id = text.substr(id_offset, id_digits);
  const auto secret = parse_secret(text.substr(secret_offset));
  if (!is_hex(keyspace) || !is_hex(id) || !secret) return std::nullopt;
  const auto number = from_hex(keyspace);
  if (!number) return std::nullopt;
  return ParsedToken{KeyspaceId{static_cast<uint32_t>(load_be(number->data(), number->size()))}, id,
                     *secret};
}

// --- secrets ---

Bytes digest_of(const Secret& secret) {
  return sha256(ByteView(reinterpret_cast<const char*>(secret.data()), secret.size()));
}

// In constant time.
bool same_digest(ByteView a, ByteView b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

template <size_t Size>
Status fill_random(std::array<unsigned char, Size>& out) {
  if (RAND_bytes(out.data(), static_cast<int>(out.size())) == 1) return {};
  return Error{Code::unavailable, "the system has no random bytes for a secret: try again"};
}

// --- the stored form ---

Bytes encode_token(const Token& token, ByteView digest) {
  stored::Token message;
  message.set_role(static_cast<stored::Role>(token.role));
  message.set_label(token.label);
  message.set_created_at_ms(token.created_at_ms);
  message.set_expires_at_ms(token.expires_at_ms);
  message.set_secret_sha256(Bytes(digest));
  return encode_message(message);
}

struct StoredToken {
  Token token;
  Bytes digest;
};

Result<StoredToken> decode_token(std::string_view id, ByteView bytes) {
  stored::Token message;
  TRY(decode_message(bytes, message, "token"));
  if (message.role() < stored::READ || message.role() > stored::ADMIN ||
      message.secret_sha256().size() != digest_bytes)
    return Error{Code::corrupt, "the stored token does not make sense"};
  return StoredToken{.token = {.id = std::string(id),
                               .role = static_cast<Role>(message.role()),
                               .label = message.label(),
                               .created_at_ms = message.created_at_ms(),
                               .expires_at_ms = message.expires_at_ms()},
                     .digest = message.secret_sha256()};
}

// --- what is refused ---

// UTF-8 without control characters: those below U+0020, and U+007F to U+009F.
bool is_printable(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0 || byte(0) < 0x20 || byte(0) == 0x7f || (byte(0) == 0xc2 && byte(1) < 0xa0))
      return false;
    text.remove_prefix(length);
  }
  return true;
}

Status check_new_token(Role role, std::string_view label, uint64_t expires_at_ms, uint64_t now_ms) {
  const auto illegal = [](std::string message) {
    return Error{Code::invalid, std::move(message), "illegal_token"};
  };
  if (role > Role::admin)
    return illegal("a token belongs to one keyspace: its role is read, write or admin");
  if (label.size() > label_bytes_max || !is_printable(label))
    return illegal(fmt::format("illegal label {}: use up to {} bytes of printable text",
                               quote(label.substr(0, 2 * label_bytes_max)), label_bytes_max));
  if (expires_at_ms != 0 && expires_at_ms <= now_ms)
    return illegal(
        fmt::format("a token that expires at {} has expired: it is {} now, in unix "
                    "milliseconds; 0 is never",
                    expires_at_ms, now_ms));
  return {};
}

// One error for all that could tell a stranger what is there.
Error bad_token() {
  return {Code::denied, "this is no valid token: ask an admin of the keyspace for one",
          "bad_token"};
}

Error no_such_token(KeyspaceId keyspace, std::string_view id) {
  return {Code::not_found,
          fmt::format("keyspace {} has no token {}: list its tokens to see which there are",
                      keyspace.value, quote(id.substr(0, 2 * id_digits))),
          "token_not_found"};
}

// --- the tokens of a keyspace ---

// All of one keyspace. Map is a View or an Engine.
template <class Map>
Result<std::vector<Token>> read_tokens(Map& map, KeyspaceId keyspace) {
  std::vector<Token> tokens;
  Status bad;
  const auto visit = [&](ByteView key, ByteView value) {
    const auto decoded = decode<KeyspaceTokenKey>(key);
    auto found = decode_token(decoded ? decoded->token : ByteView(), value);
    if (!found) {
      bad = std::move(found).error();
      return Visit::stop;
    }
    tokens.push_back(std::move(found->token));
    return Visit::go_on;
  };
  const Bytes prefix = encode(KeyspaceTokenKey{keyspace, {}});
  const Bytes end = prefix_end(prefix);
  std::optional<Bytes> begin = prefix;
  while (begin && bad.has_value()) {
    TRY_ASSIGN(ScanPage page, map.scan({.begin = *begin, .end = end}, visit));
    begin = std::move(page.resume);
  }
  TRY(bad);
  return tokens;
}

Status append_token_change(View& view, const ChangeLog& changes, const Keyspace& keyspace,
                           const char* action, const Token& token, const Caller& caller) {
  Change change{.actor = caller.name,
                .action = action,
                .keyspace = keyspace.id,
                .name = keyspace.name,
                .detail = fmt::format("{}, {}{}{}", token.id, to_string(token.role),
                                      token.label.empty() ? "" : ", ", token.label),
                .after = std::nullopt};
  TRY(changes.append(view, change));
  return {};
}

// Those who watch the log look once more for nothing if it was not done after all.
Status transact_logged(const MapHandle& map, const ChangeLog& changes, const Scope& scope,
                       FunctionRef<Status(View&)> update) {
  Status status = map.transact_durably(scope, update);
  if (status || status.error().code == Code::maybe) changes.announce();
  return status;
}

}  // namespace

Result<Tokens::Made> Tokens::create(KeyspaceId keyspace, Role role, std::string_view label,
                                    uint64_t expires_at_ms, const Caller& caller) {
  Scope scope = Scope::system();
  TRY(lock_keyspace_meta(scope, keyspace));
  const uint64_t now_ms = map_.clock.unix_ms();
  TRY(check_new_token(role, label, expires_at_ms, now_ms));
  std::array<unsigned char, id_bytes> id{};
  Secret secret{};
  TRY(fill_random(id));
  TRY(fill_random(secret));
  const Token token{.id = to_hex(ByteView(reinterpret_cast<const char*>(id.data()), id.size())),
                    .role = role,
                    .label = std::string(label),
                    .created_at_ms = now_ms,
                    .expires_at_ms = expires_at_ms};
  const Bytes value = encode_token(token, digest_of(secret));
  const Bytes key = encode(KeyspaceTokenKey{keyspace, token.id});
  scope.exclusive(key);  // and all tokens of the keyspace
  ChangeLog::lock(scope);
  const auto update = [&](View& view) -> Status {
    TRY_ASSIGN(const Keyspace found, look_up_living_keyspace(view, keyspace));
    TRY_ASSIGN(const std::vector<Token> tokens, read_tokens(view, keyspace));
    if (tokens.size() >= keyspace_tokens_max)
      return Error{Code::too_large,
                   fmt::format("keyspace {} has {} tokens, and keyspace_tokens_max is {}: revoke "
                               "some, expired ones for example",
                               keyspace.value, tokens.size(), keyspace_tokens_max),
                   "too_many_tokens"};
    if (std::ranges::find(tokens, token.id, &Token::id) != tokens.end())
      return Error{Code::conflict, "the random id of the token is in use: try again"};
    TRY(append_token_change(view, changes_, found, "token.create", token, caller));
    view.put(key, value);
    return {};
  };
  TRY(transact_logged(map_, changes_, scope, update));
  return Made{.token = token,
              .secret = fmt::format("{}{:06x}_{}_{}", token_start, keyspace.value, token.id,
                                    secret_text(secret))};
}

Result<std::vector<Token>> Tokens::list(KeyspaceId keyspace) {
  TRY(look_up_keyspace(map_.engine, keyspace));
  return read_tokens(map_.engine, keyspace);
}

Status Tokens::revoke(KeyspaceId keyspace, std::string_view token_id, const Caller& caller) {
  Scope scope = Scope::system();
  TRY(lock_keyspace_meta(scope, keyspace));
  if (token_id.size() != id_digits || !is_hex(token_id)) return no_such_token(keyspace, token_id);
  const Bytes key = encode(KeyspaceTokenKey{keyspace, token_id});
  scope.exclusive(key);
  ChangeLog::lock(scope);
  const auto update = [&](View& view) -> Status {
    TRY_ASSIGN(const Keyspace found, look_up_keyspace(view, keyspace));
    Value value;
    TRY(view.get(key, value));
    if (!value.found()) return no_such_token(keyspace, token_id);
    TRY_ASSIGN(const StoredToken old, decode_token(token_id, value.bytes()));
    TRY(append_token_change(view, changes_, found, "token.revoke", old.token, caller));
    view.remove(key);
    return {};
  };
  return transact_logged(map_, changes_, scope, update);
}

Result<Identity> Tokens::authenticate(std::string_view text) {
  const auto parsed = parse_token(text);
  if (!parsed) return bad_token();
  const Bytes digest = digest_of(parsed->secret);
  Value value;
  TRY(map_.engine.get(encode(KeyspaceTokenKey{parsed->keyspace, parsed->id}), value));
  if (!value.found()) return bad_token();
  TRY_ASSIGN(const StoredToken found, decode_token(parsed->id, value.bytes()));
  if (!same_digest(digest, found.digest)) return bad_token();
  const Token& token = found.token;
  // Only who has the secret learns that it has expired.
  if (token.expires_at_ms != 0 && map_.clock.unix_ms() >= token.expires_at_ms)
    return Error{Code::denied, "the token has expired: ask an admin of the keyspace for a new one",
                 "token_expired"};
  return Identity{
      .keyspace = parsed->keyspace,
      .caller = {.role = token.role,
                 .name = fmt::format("token {} of {}", token.id, parsed->keyspace.value)},
      .label = token.label,
      .expires_at_ms = token.expires_at_ms};
}

std::string make_admin_token() {
  Secret secret{};
  const bool is_random = fill_random(secret).has_value();
  ASSERT(is_random);  // a server whose secret can be guessed must not start
  return std::string(admin_start) + secret_text(secret);
}

bool same_secret(std::string_view a, std::string_view b) {
  // Hashed first: what has one length can be compared without a look at how much of it is the same.
  return same_digest(sha256(a), sha256(b));
}

}  // namespace trellis
