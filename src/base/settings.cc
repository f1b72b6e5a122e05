#include "base/settings.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/duration.h"
#include "base/machine_memory.h"
#include "base/nearest_name.h"

namespace trellis {
namespace {

constexpr std::string_view engine_words[] = {"rocksdb", "memory"};
constexpr std::string_view durability_words[] = {"always", "everysec", "off"};
constexpr std::string_view log_level_words[] = {"debug", "info", "warn", "error"};
constexpr std::string_view log_format_words[] = {"text", "json"};

constexpr std::string_view off_on_words[] = {"off", "on"};
constexpr std::string_view auth_words[] = {"loopback", "required"};
constexpr std::string_view unix_access_words[] = {"owner", "group", "all"};

// A quarter of what there is: the store is what the machine is for, and the system's own cache of
// files needs a part too.
std::string_view default_cache_text() {
  static const std::string text =
      fmt::format("{}MiB", std::max<uint64_t>(machine_memory_bytes() / 4 >> 20, 64));
  return text;
}

const SettingSpec specs_of_server[] = {
    {.name = "config",
     .kind = SettingKind::path,
     .default_text = "trellis.toml",
     .help = "File with settings; the default is read if it exists, a named one must exist",
     .in_file = false},
    {.name = "data",
     .kind = SettingKind::path,
     .default_text = "./trellis-data",
     .help = "Folder of the store; made if it does not exist"},
    {.name = "engine",
     .kind = SettingKind::choice,
     .default_text = "rocksdb",
     .help = "Where data lives: rocksdb on disk, or memory, which forgets all at exit",
     .words = engine_words},
    {.name = "durability",
     .kind = SettingKind::choice,
     .default_text = "everysec",
     .help = "When a write survives a power cut: always before its answer, everysec within a "
             "second, off whenever the system likes",
     .words = durability_words},
    {.name = "cache-bytes",
     .kind = SettingKind::size,
     .default_text = default_cache_text(),
     .help = "Memory of the store: what was read from disk, indexes, filters, and what is not yet "
             "in tables; unless set, a quarter of the machine's",
     .min = 8 << 20},
    {.name = "disk-reserve-bytes",
     .kind = SettingKind::size,
     .default_text = "1GiB",
     .help = "Disk space that is kept free: with less, only reads and deletes are served; unless "
             "set, at most a tenth of the disk"},
    {.name = "resp",
     .kind = SettingKind::endpoint,
     .default_text = "127.0.0.1:7379",
     .help = "Where Redis's protocol is served"},
    {.name = "resp-tls",
     .kind = SettingKind::endpoint_or_none,
     .default_text = "",
     .help = "Where Redis's protocol is served over TLS too, with tls-cert and tls-key"},
    {.name = "resp-unix",
     .kind = SettingKind::file,
     .default_text = "",
     .help = "Unix socket where Redis's protocol is served too; its users count as local callers"},
    {.name = "resp-unix-access",
     .kind = SettingKind::choice,
     .default_text = "owner",
     .help = "Who may use that socket: the server's user, its group too, or all users",
     .words = unix_access_words},
    {.name = "resp-clients-max",
     .kind = SettingKind::number,
     .default_text = "10000",
     .help = "Connections of Redis clients; more are refused",
     .min = 1,
     .max = 1'000'000},
    {.name = "resp-command-bytes",
     .kind = SettingKind::size,
     .default_text = "64MiB",
     .help =
         "The longest command of a Redis client, and the most that MULTI queues; what is longer "
         "is answered with an error",
     .min = 1 << 20,
     .max = 1 << 30},
    {.name = "resp-memory-bytes",
     .kind = SettingKind::size,
     .default_text = "512MiB",
     .help = "Input and output of all Redis clients together; over it the largest are closed",
     .min = 8 << 20},
    {.name = "resp-idle-timeout",
     .kind = SettingKind::duration,
     .default_text = "0s",
     .help = "When a Redis client that says nothing is closed; 0s: never",
     .max = 36'500ull * 24 * 3600 * 1000},
    {.name = "resp-send-timeout",
     .kind = SettingKind::duration,
     .default_text = "1m",
     .help = "When a Redis client that takes nothing of its replies is closed",
     .min = 1'000,
     .max = 36'500ull * 24 * 3600 * 1000},
    {.name = "http",
     .kind = SettingKind::endpoint,
     .default_text = "127.0.0.1:7380",
     .help = "Where HTTP is served: REST, PD's API, metrics"},
    {.name = "auth",
     .kind = SettingKind::choice,
     .default_text = "loopback",
     .help = "Who needs a token: all but callers on this machine, or everybody; with an admin "
             "token everybody does",
     .words = auth_words},
    {.name = "admin-token-file",
     .kind = SettingKind::file,
     .default_text = "",
     .help = "File with the token of the server's admin; made if it does not exist"},
    {.name = "tls-cert",
     .kind = SettingKind::file,
     .default_text = "",
     .help = "Certificate with its chain, PEM: HTTP becomes HTTPS; loaded again when it changes"},
    {.name = "tls-key",
     .kind = SettingKind::file,
     .default_text = "",
     .help = "Private key of the certificate, PEM"},
    {.name = "archive-retention",
     .kind = SettingKind::duration,
     .default_text = "7d",
     .help = "How long an archived keyspace can be brought back before its data goes",
     .max = 36'500ull * 24 * 3600 * 1000},
    {.name = "catalog-authorization",
     .kind = SettingKind::choice,
     .default_text = "off",
     .help = "Whether users of the catalog need privileges",
     .words = off_on_words},
    {.name = "catalog-version",
     .kind = SettingKind::text,
     .default_text = "2.0.0",
     .help = "The version of Gravitino that the catalog says it is: clients refuse an older one"},
    {.name = "gc-life-time",
     .kind = SettingKind::duration,
     .default_text = "1m",
     .help = "How long garbage is kept at least",
     .max = 36'500ull * 24 * 3600 * 1000},
    {.name = "range-bytes-max",
     .kind = SettingKind::size,
     .default_text = "64MiB",
     .help = "A range that is larger is split; two that are together under a quarter are merged",
     .min = 64 << 10},
    {.name = "range-keys-max",
     .kind = SettingKind::number,
     .default_text = "1000000",
     .help = "A range with more stored keys is split; merges keep to a quarter of it too",
     .min = 1'000},
    {.name = "range-load-max",
     .kind = SettingKind::number,
     .default_text = "25000",
     .help = "A range with more reads and writes per second, for 10 s, is split",
     .min = 1},
    {.name = "range-sampling",
     .kind = SettingKind::number,
     .default_text = "16",
     .help =
         "Of so many transactions one is counted for its ranges; 0: none, and no range is split "
         "by load",
     .max = 1'000'000},
    {.name = "range-samples-retention",
     .kind = SettingKind::duration,
     .default_text = "1d",
     .help = "How long the figures of ranges are kept each 10 s; then as averages of 30 min",
     .max = 36'500ull * 24 * 3600 * 1000},
    {.name = "range-averages-retention",
     .kind = SettingKind::duration,
     .default_text = "30d",
     .help = "How long these averages are kept",
     .max = 36'500ull * 24 * 3600 * 1000},
    {.name = "log-level",
     .kind = SettingKind::choice,
     .default_text = "info",
     .help = "The least level that is logged",
     .words = log_level_words},
    {.name = "log-format",
     .kind = SettingKind::choice,
     .default_text = "text",
     .help = "How log lines look: text for people, json for machines",
     .words = log_format_words},
};

constexpr OtherVariable other_variables_all[] = {
    {"TRELLIS_SERVER", "For tools: the server that they talk to, http://127.0.0.1:7380"},
    {"TRELLIS_KEYSPACE", "For tools: the keyspace that they work in"},
    {"TRELLIS_CA", "For tools: the certificate in PEM form that an https server is checked with"},
    {"TRELLIS_TOKEN", "For tools: the token that says who they are"},
    {"TRELLIS_USER", "For tools: as which user of the catalog they ask"},
    {"TRELLIS_TEST_SCALE", "For tests: quick or long, how much the random ones try"},
    {"TRELLIS_TEST_SEED", "For tests: the seed of the random ones"},
};

constexpr std::string_view variable_prefix = "TRELLIS_";
constexpr size_t config_file_bytes_max = 1 << 20;

struct SizeUnit {
  std::string_view suffix;  // in capitals
  uint64_t bytes;
};
// The bare letter is binary, as in most database settings; MB is decimal, as its standard has it.
constexpr SizeUnit size_units[] = {
    {"", 1},
    {"B", 1},
    {"K", 1ull << 10},
    {"KIB", 1ull << 10},
    {"KB", 1'000},
    {"M", 1ull << 20},
    {"MIB", 1ull << 20},
    {"MB", 1'000'000},
    {"G", 1ull << 30},
    {"GIB", 1ull << 30},
    {"GB", 1'000'000'000},
    {"T", 1ull << 40},
    {"TIB", 1ull << 40},
    {"TB", 1'000'000'000'000},
};

Error invalid(std::string message) { return Error{Code::invalid, std::move(message)}; }

std::string in_capitals(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-') c = '_';
  }
  return out;
}

std::string size_text(uint64_t bytes) {
  for (const auto& [suffix, shift] : {std::pair("TiB", 40), {"GiB", 30}, {"MiB", 20}, {"KiB", 10}})
    if (bytes != 0 && bytes % (1ull << shift) == 0)
      return fmt::format("{}{}", bytes >> shift, suffix);
  return std::to_string(bytes);
}

// "a, b or c"
std::string join_or(std::span<const std::string_view> words) {
  std::string out;
  for (size_t i = 0; i < words.size(); i++)
    out += fmt::format("{}{}", i == 0 ? "" : i + 1 < words.size() ? ", " : " or ", words[i]);
  return out;
}

Error out_of_range(const SettingSpec& spec, std::string_view text, bool small) {
  const uint64_t bound = small ? spec.min : spec.max;
  return invalid(
      fmt::format("{} is too {}; use at {} {}", quote(text), small ? "small" : "large",
                  small ? "least" : "most",
                  spec.kind == SettingKind::size ? size_text(bound) : std::to_string(bound)));
}

// Sizes are numbers with a unit.
Result<SettingValue> parse_quantity(const SettingSpec& spec, std::string_view text) {
  uint64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, count);
  const std::string suffix = in_capitals(std::string_view(rest, static_cast<size_t>(end - rest)));
  const auto unit = std::find_if(std::begin(size_units), std::end(size_units),
                                 [&](const SizeUnit& u) { return u.suffix == suffix; });
  const bool unit_fits =
      spec.kind == SettingKind::size ? unit != std::end(size_units) : suffix.empty();
  if (problem == std::errc::invalid_argument || !unit_fits)
    return invalid(fmt::format("{} is not {}", quote(text),
                               spec.kind == SettingKind::size
                                   ? "a size; use for example 512MiB"
                                   : "a whole number; use " + allowed_values(spec)));
  const bool overflow = problem == std::errc::result_out_of_range ||
                        count > std::numeric_limits<uint64_t>::max() / unit->bytes;
  if (overflow || count * unit->bytes > spec.max) return out_of_range(spec, text, false);
  if (count * unit->bytes < spec.min) return out_of_range(spec, text, true);
  return SettingValue(count * unit->bytes);
}

Result<SettingValue> parse_choice(const SettingSpec& spec, std::string_view text) {
  const auto word = std::find(spec.words.begin(), spec.words.end(), text);
  if (word == spec.words.end())
    return invalid(fmt::format("{} is not a choice; use {}", quote(text), join_or(spec.words)));
  return SettingValue(static_cast<uint64_t>(word - spec.words.begin()));
}

Result<SettingValue> parse_yes_no(std::string_view text) {
  for (const std::string_view yes : {"yes", "true", "on", "1"})
    if (text == yes) return SettingValue(true);
  for (const std::string_view no : {"no", "false", "off", "0"})
    if (text == no) return SettingValue(false);
  return invalid(fmt::format("{} is not yes or no", quote(text)));
}

bool is_host(const std::string& host, bool in_brackets) {
  in6_addr address;
  if (in_brackets) return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
  for (const char c : host) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!alphanumeric && c != '.' && c != '-' && c != '_') return false;
  }
  return !host.empty();
}

Result<SettingValue> parse_endpoint(std::string_view text) {
  const Error error = invalid(fmt::format(
      "{} is not HOST:PORT; use for example 127.0.0.1:6379 or [::1]:6379", quote(text)));
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return error;
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  Endpoint endpoint;
  const char* end = port_text.data() + port_text.size();
  const auto [rest, problem] = std::from_chars(port_text.data(), end, endpoint.port);
  if (problem != std::errc() || rest != end) return error;
  const bool in_brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  endpoint.host = host;
  if (host.find('\0') != std::string_view::npos || !is_host(endpoint.host, in_brackets))
    return error;
  return SettingValue(std::move(endpoint));
}

// A name as its source spells it.
std::string spell(const SettingSpec& spec, SettingSource source) {
  if (source == SettingSource::flag) return flag_name(spec);
  if (source == SettingSource::variable) return variable_name(spec);
  return std::string(spec.name);
}

// Where a hint is known: the setting that was probably meant. Otherwise all of them.
Error unknown_setting(std::span<const SettingSpec> specs, SettingSource source,
                      const std::string& name) {
  const std::string_view prefix = source == SettingSource::flag       ? "--"
                                  : source == SettingSource::variable ? variable_prefix
                                                                      : "";
  std::vector<std::string> names;
  std::string all;
  for (const SettingSpec& spec : specs) {
    if (source == SettingSource::file && !spec.in_file) continue;
    const std::string spelled = spell(spec, source);
    names.push_back(spelled.substr(prefix.size()));
    all += (all.empty() ? "" : ", ") + spelled;
  }
  const std::string_view nearest = nearest_name(name, names);
  return invalid(fmt::format("unknown setting {}; {}", quote(fmt::format("{}{}", prefix, name)),
                             nearest.empty() ? "the settings are " + all
                                             : fmt::format("did you mean {}{}?", prefix, nearest)));
}

bool is_other_variable(std::string_view name) {
  for (const OtherVariable& other : other_variables())
    if (other.name == name) return true;
  return false;
}

// Kubernetes gives each container the addresses of services: if one is called trellis, that is
// TRELLIS_SERVICE_HOST, TRELLIS_PORT=tcp://..., TRELLIS_PORT_6379_TCP_ADDR and so on.
bool is_service_link(const std::map<std::string, std::string>& environment, std::string_view name,
                     std::string_view value) {
  if (!environment.contains("KUBERNETES_SERVICE_HOST")) return false;
  const bool part_of_port = name.find("_PORT_") != name.npos &&
                            (name.find("_TCP") != name.npos || name.find("_UDP") != name.npos ||
                             name.find("_SCTP") != name.npos);
  return name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != name.npos ||
         part_of_port || (name.ends_with("_PORT") && value.find("://") != value.npos);
}

// Nothing if there is no such file.
Result<std::optional<std::string>> read_config_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr && errno == ENOENT) return std::nullopt;
  std::string text(config_file_bytes_max + 1, '\0');
  if (file != nullptr) text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (file == nullptr || std::ferror(file.get()) != 0)
    return Error{Code::unavailable, fmt::format("{}: {}", path, std::strerror(errno))};
  if (text.size() > config_file_bytes_max)
    return Error{Code::too_large, fmt::format("{}: larger than {}; is it a settings file?", path,
                                              size_text(config_file_bytes_max))};
  return text;
}

std::string_view type_name(toml::node_type type) {
  switch (type) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array";
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a number with a point";
    case toml::node_type::boolean: return "a boolean";
    case toml::node_type::date: return "a date";
    case toml::node_type::time: return "a time";
    case toml::node_type::date_time: return "a date and time";
    case toml::node_type::none: break;
  }
  return "nothing";
}

// Numbers and booleans may stand without quotes where they make sense.
Result<std::string> toml_text(const SettingSpec& spec, const toml::node& node) {
  const bool is_quantity = spec.kind == SettingKind::size || spec.kind == SettingKind::number;
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer(); number != nullptr && is_quantity)
    return std::to_string(number->get());
  if (const auto* truth = node.as_boolean(); truth != nullptr && spec.kind == SettingKind::yes_no)
    return std::string(truth->get() ? "yes" : "no");
  return invalid(
      fmt::format("{} is not allowed here; use {}", type_name(node.type()), allowed_values(spec)));
}

// Collects values from the sources. Each is checked; the source that ranks highest stays.
class Resolver {
 public:
  explicit Resolver(std::span<const SettingSpec> specs) : specs_(specs) {
    for (const SettingSpec& spec : specs) {
      auto value = parse_setting(spec, spec.default_text);
      ASSERT(value.has_value());
      resolved_.push_back({&spec, *std::move(value), std::string(spec.default_text),
                           SettingSource::by_default, "default"});
    }
  }

  Status add_flags(const std::map<std::string, std::string>& flags) {
    for (const auto& [name, text] : flags) {
      ResolvedSetting* setting = find(name);
      if (setting == nullptr) return unknown_setting(specs_, SettingSource::flag, name);
      const std::string flag = flag_name(*setting->spec);
      TRY(set(*setting, SettingSource::flag, flag, flag, text));
    }
    return {};
  }

  Status add_environment(const std::map<std::string, std::string>& environment) {
    for (const auto& [variable, text] : environment) {
      if (!variable.starts_with(variable_prefix)) continue;
      if (ResolvedSetting* setting = find_variable(variable)) {
        TRY(set(*setting, SettingSource::variable, variable, variable, text));
      } else if (!is_other_variable(variable) && !is_service_link(environment, variable, text)) {
        return unknown_setting(specs_, SettingSource::variable,
                               variable.substr(variable_prefix.size()));
      }
    }
    return {};
  }

  Status add_file(const std::string& default_path) {
    ResolvedSetting* config = find("config");
    const bool is_named = config != nullptr && config->source != SettingSource::by_default;
    const std::string path = is_named ? config->text : default_path;
    auto text = read_config_file(path);
    if (text.has_value() && !text->has_value() && is_named)
      text = Error{Code::not_found, path + ": there is no such file"};
    if (!text.has_value())
      return is_named ? with_context(config->where, text.error()) : text.error();
    if (config != nullptr) config->text = text->has_value() ? path : "";
    return text->has_value() ? add_toml(**text, path) : Status();
  }

  std::vector<ResolvedSetting> take() { return std::move(resolved_); }

 private:
  ResolvedSetting* find(std::string_view name) {
    for (ResolvedSetting& setting : resolved_)
      if (setting.spec->name == name) return &setting;
    return nullptr;
  }

  ResolvedSetting* find_variable(std::string_view variable) {
    for (ResolvedSetting& setting : resolved_)
      if (variable_name(*setting.spec) == variable) return &setting;
    return nullptr;
  }

  // `where` for the report of what won, `context` for the message if the text is wrong.
  Status set(ResolvedSetting& setting, SettingSource source, const std::string& where,
             const std::string& context, std::string_view text) {
    auto value = parse_setting(*setting.spec, text);
    if (!value.has_value()) return with_context(context, value.error());
    if (source > setting.source)
      setting = {setting.spec, *std::move(value), std::string(text), source, where};
    return {};
  }

  Status add_toml(std::string_view text, const std::string& path) {
    toml::table table;
    try {
      table = toml::parse(text, path);
    } catch (const toml::parse_error& error) {
      return invalid(
          fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
    }
    for (const auto& [key, node] : table) {
      const std::string where = fmt::format("{}:{}", path, key.source().begin.line);
      ResolvedSetting* setting = find(key.str());
      if (setting == nullptr)
        return with_context(where,
                            unknown_setting(specs_, SettingSource::file, std::string(key.str())));
      if (!setting->spec->in_file)
        return with_context(
            where, invalid(fmt::format("{} cannot be set in the file; use {} or {}", key.str(),
                                       flag_name(*setting->spec), variable_name(*setting->spec))));
      const std::string context = fmt::format("{}: {}", where, key.str());
      auto value = toml_text(*setting->spec, node);
      if (!value.has_value()) return with_context(context, value.error());
      TRY(set(*setting, SettingSource::file, where, context, *value));
    }
    return {};
  }

  std::span<const SettingSpec> specs_;
  std::vector<ResolvedSetting> resolved_;
};

// Whether only programs of this machine reach it. A name such as 127.example.org may mean any
// machine's address.
bool is_loopback(const std::string& host) {
  in_addr address{};
  if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == 127;
  return host == "localhost" || host == "::1";
}

// 2.0.0, 1.3.0-SNAPSHOT, 1.3.0rc1: as Gravitino's clients read it.
bool is_version(std::string_view text) {
  for (int part = 0; part < 3; ++part) {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0 || digits > 6) return false;
    text.remove_prefix(digits);
    if (part == 2) break;
    if (!text.starts_with('.')) return false;
    text.remove_prefix(1);
  }
  return text.empty() || text.starts_with('-') || text.starts_with("rc");
}

// What each setting alone does not tell.
Status check_together(const Settings& settings) {
  const bool has_admin = !settings.admin_token_file.empty();
  if (!has_admin && settings.auth == AuthChoice::required)
    return invalid(
        "auth required: name an --admin-token-file, or nobody could do anything; it is made if it "
        "does not exist");
  if (!has_admin && !is_loopback(settings.http.host))
    return invalid(
        fmt::format("http {}: others reach it, so it needs an --admin-token-file; it is "
                    "made if it does not exist",
                    to_string(settings.http)));
  if (!is_version(settings.catalog_version))
    return invalid(fmt::format("catalog-version {}: it must be three numbers such as 2.0.0",
                               settings.catalog_version));
  if (settings.tls_cert.empty() != settings.tls_key.empty())
    return invalid("tls-cert and tls-key go together: set both or none");
  if (!settings.resp_tls.host.empty() && settings.tls_cert.empty())
    return invalid(fmt::format("resp-tls {}: it needs a tls-cert and a tls-key",
                               to_string(settings.resp_tls)));
  return {};
}

}  // namespace

std::span<const SettingSpec> setting_specs() { return specs_of_server; }
std::span<const OtherVariable> other_variables() { return other_variables_all; }

std::string flag_name(const SettingSpec& spec) { return "--" + std::string(spec.name); }
std::string variable_name(const SettingSpec& spec) {
  return std::string(variable_prefix) + in_capitals(spec.name);
}

std::string allowed_values(const SettingSpec& spec) {
  const bool has_max = spec.max != std::numeric_limits<uint64_t>::max();
  switch (spec.kind) {
    case SettingKind::text: return "any text";
    case SettingKind::path: return "a path";
    case SettingKind::file: return "a path, or nothing";
    case SettingKind::duration: {
      std::string out = "a length of time such as 30d, 12h, 10m, 5s or 100ms";
      if (spec.min > 0) out += ", at least " + duration_text(spec.min);
      if (has_max) out += ", at most " + duration_text(spec.max);
      return out;
    }
    case SettingKind::size: {
      std::string out = "a size such as 512MiB";
      if (spec.min > 0) out += ", at least " + size_text(spec.min);
      if (has_max) out += ", at most " + size_text(spec.max);
      return out;
    }
    case SettingKind::number:
      if (has_max) return fmt::format("{} to {}", spec.min, spec.max);
      return fmt::format("{} or more", spec.min);
    case SettingKind::choice: return join_or(spec.words);
    case SettingKind::yes_no: return "yes or no";
    case SettingKind::endpoint: return "HOST:PORT such as 127.0.0.1:6379";
    case SettingKind::endpoint_or_none: return "HOST:PORT such as 127.0.0.1:6379, or nothing";
  }
  return "";
}

std::string to_string(const Endpoint& endpoint) {
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
                 : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

Result<SettingValue> parse_setting(const SettingSpec& spec, std::string_view text) {
  switch (spec.kind) {
    case SettingKind::text: return SettingValue(std::string(text));
    case SettingKind::file:
      if (text.empty()) return SettingValue(std::string());
      [[fallthrough]];
    case SettingKind::path:
      // A NUL would cut the path short when the system gets it.
      if (text.empty() || text.find('\0') != std::string_view::npos)
        return invalid(fmt::format("{} is not a path", quote(text)));
      return SettingValue(std::string(text));
    case SettingKind::duration: {
      TRY_ASSIGN(const uint64_t ms, parse_duration_ms(text));
      if (ms < spec.min || ms > spec.max)
        return invalid(fmt::format("{} is not {}", quote(text), allowed_values(spec)));
      return SettingValue(ms);
    }
    case SettingKind::size:
    case SettingKind::number: return parse_quantity(spec, text);
    case SettingKind::choice: return parse_choice(spec, text);
    case SettingKind::yes_no: return parse_yes_no(text);
    case SettingKind::endpoint_or_none:
      if (text.empty()) return SettingValue(Endpoint());
      [[fallthrough]];
    case SettingKind::endpoint: return parse_endpoint(text);
  }
  return invalid("unknown kind of setting");
}

Result<std::vector<ResolvedSetting>> resolve_settings(std::span<const SettingSpec> specs,
                                                      const SettingInputs& inputs) {
  Resolver resolver(specs);
  TRY(resolver.add_flags(inputs.flags));
  TRY(resolver.add_environment(inputs.environment));
  TRY(resolver.add_file(inputs.default_config));
  return resolver.take();
}

Result<Settings> load_settings(const SettingInputs& inputs) {
  TRY_ASSIGN(std::vector<ResolvedSetting> resolved, resolve_settings(setting_specs(), inputs));
  auto find = [&](std::string_view name) -> const ResolvedSetting& {
    for (const ResolvedSetting& setting : resolved)
      if (setting.spec->name == name) return setting;
    assertion_failed(name.data(), __FILE__, __LINE__);
  };
  auto text = [&](std::string_view name) { return std::get<std::string>(find(name).value); };
  auto number = [&](std::string_view name) { return std::get<uint64_t>(find(name).value); };
  Settings settings{
      .data = text("data"),
      .engine = static_cast<EngineChoice>(number("engine")),
      .durability = static_cast<DurabilityChoice>(number("durability")),
      .cache_bytes = number("cache-bytes"),
      .disk_reserve_bytes = number("disk-reserve-bytes"),
      .resp = std::get<Endpoint>(find("resp").value),
      .resp_tls = std::get<Endpoint>(find("resp-tls").value),
      .resp_unix = text("resp-unix"),
      .resp_unix_access = static_cast<UnixAccessChoice>(number("resp-unix-access")),
      .resp_clients_max = number("resp-clients-max"),
      .resp_command_bytes = number("resp-command-bytes"),
      .resp_memory_bytes = number("resp-memory-bytes"),
      .resp_idle_timeout_ms = number("resp-idle-timeout"),
      .resp_send_timeout_ms = number("resp-send-timeout"),
      .http = std::get<Endpoint>(find("http").value),
      .auth = static_cast<AuthChoice>(number("auth")),
      .admin_token_file = text("admin-token-file"),
      .tls_cert = text("tls-cert"),
      .tls_key = text("tls-key"),
      .archive_retention_ms = number("archive-retention"),
      .catalog_authorization = number("catalog-authorization") != 0,
      .catalog_version = text("catalog-version"),
      .gc_life_time_ms = number("gc-life-time"),
      .range_bytes_max = number("range-bytes-max"),
      .range_keys_max = number("range-keys-max"),
      .range_load_max = number("range-load-max"),
      .range_sampling = static_cast<unsigned>(number("range-sampling")),
      .range_samples_retention_ms = number("range-samples-retention"),
      .range_averages_retention_ms = number("range-averages-retention"),
      .log_level = static_cast<LogLevel>(number("log-level")),
      .log_format = static_cast<LogFormat>(number("log-format")),
      .config = find("config").text,
      .resolved = std::move(resolved),
  };
  TRY(check_together(settings));
  return settings;
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; entry++) {
    const std::string_view line(*entry);
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

std::string describe_settings(const Settings& settings) {
  std::string out;
  for (const ResolvedSetting& setting : settings.resolved)
    out += fmt::format("{} = {}  # {}\n", setting.spec->name, quote(setting.text), setting.where);
  return out;
}

}  // namespace trellis
