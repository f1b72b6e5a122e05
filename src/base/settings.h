// The settings of the server: one table, four places to set them. A flag wins over TRELLIS_*, which
// wins over trellis.toml, which wins over the default.
//
//   --cache-bytes 1GiB        TRELLIS_CACHE_BYTES=1GiB        cache-bytes = "1GiB"
//
//   TRY_ASSIGN(Settings settings, load_settings({.flags = flags,
//                                                .environment = process_environment()}));
//
// Nothing is guessed: an unknown name or a wrong value in any place is refused, also where another
// place wins over it. The message names the place and says what is allowed.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/log.h"
#include "base/result.h"

namespace trellis {

enum class SettingKind : uint8_t {
  text,
  path,              // not empty
  file,              // a path, or empty for none
  size,              // bytes: 4096, 64KiB, 1GiB, 2G (= 2GiB), 2GB (= 2,000,000,000)
  duration,          // 30d, 12h, 10m, 5s, 100ms: in milliseconds, from min to max
  number,            // whole, from min to max
  choice,            // one of words
  yes_no,            // yes, true, on, 1, no, false, off, 0
  endpoint,          // HOST:PORT, [IPv6]:PORT; port 0 means any free one
  endpoint_or_none,  // the same, or empty for none
};

struct SettingSpec {
  std::string_view name;  // cache-bytes: as the flag, the TOML key and, in capitals, the variable
  SettingKind kind;
  std::string_view default_text;
  std::string_view help;                         // one line
  std::span<const std::string_view> words = {};  // of a choice
  uint64_t min = 0;                              // of a size or number
  uint64_t max = std::numeric_limits<uint64_t>::max();
  bool in_file = true;  // false: a flag or variable only, because it must be known before the file
};

// Every setting there is, in the order of the documentation; command line flags are made from it.
std::span<const SettingSpec> setting_specs();

std::string flag_name(const SettingSpec& spec);       // --cache-bytes
std::string variable_name(const SettingSpec& spec);   // TRELLIS_CACHE_BYTES
std::string allowed_values(const SettingSpec& spec);  // "a size such as 512MiB, at least 8MiB"

// Variables that begin with TRELLIS_ and are no settings. All others are refused, because a
// misspelt setting that is ignored is worse than a server that does not start.
struct OtherVariable {
  std::string_view name;
  std::string_view help;
};
std::span<const OtherVariable> other_variables();

struct Endpoint {
  std::string host;  // without brackets
  uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};
std::string to_string(const Endpoint& endpoint);

// text, path and file: string. size, duration and number: uint64_t. choice: uint64_t, the place in
// words.
using SettingValue = std::variant<std::string, uint64_t, bool, Endpoint>;

// Pure. The message says what is wrong and what is allowed, but not where: the caller knows.
Result<SettingValue> parse_setting(const SettingSpec& spec, std::string_view text);

enum class SettingSource : uint8_t { by_default, file, variable, flag };  // the later wins

struct ResolvedSetting {
  const SettingSpec* spec;
  SettingValue value;
  std::string text;  // as it was given
  SettingSource source = SettingSource::by_default;
  std::string where;  // "default", "trellis.toml:3", "TRELLIS_CACHE_BYTES", "--cache-bytes"
};

struct SettingInputs {
  std::map<std::string, std::string> flags;        // by the setting's name, without --
  std::map<std::string, std::string> environment;  // all of it; only TRELLIS_* is looked at
  std::string default_config = "trellis.toml";     // read if it exists and no other is named
};

// One for each spec, in order. If there is a spec named config, it names the file; its text is
// empty if no file was read.
Result<std::vector<ResolvedSetting>> resolve_settings(std::span<const SettingSpec> specs,
                                                      const SettingInputs& inputs);

// The words in settings.cc have the order of these.
enum class EngineChoice : uint8_t { rocksdb, memory };
enum class DurabilityChoice : uint8_t { always, everysec, off };
enum class AuthChoice : uint8_t { loopback, required };
enum class UnixAccessChoice : uint8_t { owner, group, all };

struct Settings {
  std::string data;
  EngineChoice engine;
  DurabilityChoice durability;
  uint64_t cache_bytes;
  uint64_t disk_reserve_bytes;
  Endpoint resp;
  Endpoint resp_tls;      // an empty host: none
  std::string resp_unix;  // empty: none
  UnixAccessChoice resp_unix_access;
  uint64_t resp_clients_max;
  uint64_t resp_command_bytes;
  uint64_t resp_memory_bytes;
  uint64_t resp_idle_timeout_ms;  // 0: never
  uint64_t resp_send_timeout_ms;
  Endpoint http;
  AuthChoice auth;
  std::string admin_token_file;  // empty: none
  std::string tls_cert;          // empty: no TLS
  std::string tls_key;
  uint64_t archive_retention_ms;
  bool catalog_authorization;
  std::string catalog_version;
  uint64_t gc_life_time_ms;
  uint64_t range_bytes_max;
  uint64_t range_keys_max;
  uint64_t range_load_max;  // operations per second
  unsigned range_sampling;  // 0: none
  uint64_t range_samples_retention_ms;
  uint64_t range_averages_retention_ms;
  LogLevel log_level;
  LogFormat log_format;
  std::string config;  // the file that was read; empty if none was

  std::vector<ResolvedSetting> resolved;  // where each value came from
};

// From the sources above, each setting right by itself and all of them together.
Result<Settings> load_settings(const SettingInputs& inputs);

std::map<std::string, std::string> process_environment();

// For printing at start-up, a line for each setting: cache-bytes = "1GiB"  # TRELLIS_CACHE_BYTES
std::string describe_settings(const Settings& settings);

}  // namespace trellis
