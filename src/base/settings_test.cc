#include "base/settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/machine_memory.h"
#include "base/random.h"

namespace trellis {
namespace {

using Map = std::map<std::string, std::string>;

// A folder of its own for each test.
class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    folder_ = testing::TempDir() + "settings_test." + std::to_string(::getpid()) + "." +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  ~SettingsTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  SettingInputs inputs(Map flags = {}, Map environment = {}) const {
    return {std::move(flags), std::move(environment), path("trellis.toml")};
  }

  // The message of a refusal, with "trellis.toml" for the path of the file.
  std::string refusal(Map flags, Map environment = {}) const {
    const auto loaded = load_settings(inputs(std::move(flags), std::move(environment)));
    if (loaded.has_value()) return "accepted";
    std::string message = loaded.error().message;
    for (size_t at; (at = message.find(folder_ + "/")) != std::string::npos;)
      message.erase(at, folder_.size() + 1);
    return message;
  }
  std::string file_refusal(std::string_view toml) const {
    write("trellis.toml", toml);
    return refusal({});
  }

 private:
  std::string folder_;
};

TEST_F(SettingsTest, Defaults) {
  const auto settings = load_settings(inputs());
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->data, "./trellis-data");
  EXPECT_EQ(settings->engine, EngineChoice::rocksdb);
  EXPECT_EQ(settings->durability, DurabilityChoice::everysec);
  const uint64_t cache_mib = std::max<uint64_t>(machine_memory_bytes() / 4 >> 20, 64);
  EXPECT_EQ(settings->cache_bytes, cache_mib << 20);
  EXPECT_EQ(settings->resp_tls, Endpoint());
  EXPECT_EQ(settings->resp_unix, "");
  EXPECT_EQ(settings->resp_clients_max, 10'000u);
  EXPECT_EQ(settings->resp_command_bytes, 64u << 20);
  EXPECT_EQ(settings->resp_memory_bytes, 512u << 20);
  EXPECT_EQ(settings->resp_idle_timeout_ms, 0u);
  EXPECT_EQ(settings->resp_send_timeout_ms, 60'000u);
  EXPECT_EQ(settings->disk_reserve_bytes, 1u << 30);
  EXPECT_EQ(settings->http, (Endpoint{"127.0.0.1", 7380}));
  EXPECT_EQ(settings->auth, AuthChoice::loopback);
  EXPECT_EQ(settings->admin_token_file, "");
  EXPECT_EQ(settings->archive_retention_ms, 7u * 24 * 3600 * 1000);
  EXPECT_FALSE(settings->catalog_authorization);
  EXPECT_EQ(settings->catalog_version, "2.0.0");
  EXPECT_EQ(settings->gc_life_time_ms, 60'000u);
  EXPECT_EQ(settings->range_bytes_max, 64u << 20);
  EXPECT_EQ(settings->range_keys_max, 1'000'000u);
  EXPECT_EQ(settings->range_load_max, 25'000u);
  EXPECT_EQ(settings->range_samples_retention_ms, 86'400'000u);
  EXPECT_EQ(settings->range_averages_retention_ms, 30 * 86'400'000u);
  EXPECT_EQ(settings->log_level, LogLevel::info);
  EXPECT_EQ(settings->log_format, LogFormat::text);
  EXPECT_EQ(settings->config, "");
  EXPECT_EQ(describe_settings(*settings),
            "config = \"\"  # default\n"
            "data = \"./trellis-data\"  # default\n"
            "engine = \"rocksdb\"  # default\n"
            "durability = \"everysec\"  # default\n"
            "cache-bytes = \"" +
                std::to_string(cache_mib) +
                "MiB\"  # default\n"
                "disk-reserve-bytes = \"1GiB\"  # default\n"
                "resp = \"127.0.0.1:7379\"  # default\n"
                "resp-tls = \"\"  # default\n"
                "resp-unix = \"\"  # default\n"
                "resp-unix-access = \"owner\"  # default\n"
                "resp-clients-max = \"10000\"  # default\n"
                "resp-command-bytes = \"64MiB\"  # default\n"
                "resp-memory-bytes = \"512MiB\"  # default\n"
                "resp-idle-timeout = \"0s\"  # default\n"
                "resp-send-timeout = \"1m\"  # default\n"
                "http = \"127.0.0.1:7380\"  # default\n"
                "auth = \"loopback\"  # default\n"
                "admin-token-file = \"\"  # default\n"
                "tls-cert = \"\"  # default\n"
                "tls-key = \"\"  # default\n"
                "archive-retention = \"7d\"  # default\n"
                "catalog-authorization = \"off\"  # default\n"
                "catalog-version = \"2.0.0\"  # default\n"
                "gc-life-time = \"1m\"  # default\n"
                "range-bytes-max = \"64MiB\"  # default\n"
                "range-keys-max = \"1000000\"  # default\n"
                "range-load-max = \"25000\"  # default\n"
                "range-sampling = \"16\"  # default\n"
                "range-samples-retention = \"1d\"  # default\n"
                "range-averages-retention = \"30d\"  # default\n"
                "log-level = \"info\"  # default\n"
                "log-format = \"text\"  # default\n");
}

// The numbers behind words are the enums' own: a word in the wrong place would show here.
TEST_F(SettingsTest, WordsMatchEnums) {
  auto with = [&](std::string name, std::string word) {
    return load_settings(inputs({{name, word}, {"admin-token-file", "t"}})).value();
  };
  EXPECT_EQ(with("engine", "rocksdb").engine, EngineChoice::rocksdb);
  EXPECT_EQ(with("engine", "memory").engine, EngineChoice::memory);
  EXPECT_EQ(with("durability", "always").durability, DurabilityChoice::always);
  EXPECT_EQ(with("durability", "everysec").durability, DurabilityChoice::everysec);
  EXPECT_EQ(with("durability", "off").durability, DurabilityChoice::off);
  EXPECT_EQ(with("auth", "loopback").auth, AuthChoice::loopback);
  EXPECT_EQ(with("auth", "required").auth, AuthChoice::required);
  EXPECT_EQ(with("resp-unix-access", "owner").resp_unix_access, UnixAccessChoice::owner);
  EXPECT_EQ(with("resp-unix-access", "group").resp_unix_access, UnixAccessChoice::group);
  EXPECT_EQ(with("resp-unix-access", "all").resp_unix_access, UnixAccessChoice::all);
  EXPECT_EQ(with("log-level", "debug").log_level, LogLevel::debug);
  EXPECT_EQ(with("log-level", "info").log_level, LogLevel::info);
  EXPECT_EQ(with("log-level", "warn").log_level, LogLevel::warn);
  EXPECT_EQ(with("log-level", "error").log_level, LogLevel::error);
  EXPECT_EQ(with("log-format", "text").log_format, LogFormat::text);
  EXPECT_EQ(with("log-format", "json").log_format, LogFormat::json);
}

TEST_F(SettingsTest, WhatGoesTogether) {
  const std::string made = "; it is made if it does not exist";
  EXPECT_EQ(refusal({{"auth", "required"}}),
            "auth required: name an --admin-token-file, or nobody could do anything" + made);
  EXPECT_EQ(refusal({{"auth", "required"}, {"admin-token-file", "t"}}), "accepted");
  for (const char* host : {"0.0.0.0", "[::]", "10.0.0.1", "127.example.org"})
    EXPECT_EQ(
        refusal({{"http", fmt::format("{}:1", host)}}),
        fmt::format("http {}:1: others reach it, so it needs an --admin-token-file{}", host, made));
  for (const char* host : {"127.0.0.2", "localhost", "[::1]"})
    EXPECT_EQ(refusal({{"http", fmt::format("{}:1", host)}}), "accepted");
  EXPECT_EQ(refusal({{"http", "0.0.0.0:1"}, {"admin-token-file", "t"}}), "accepted");
  for (const char* alone : {"tls-cert", "tls-key"})
    EXPECT_EQ(refusal({{alone, "x"}}), "tls-cert and tls-key go together: set both or none");
  EXPECT_EQ(refusal({{"resp-tls", "localhost:1"}}),
            "resp-tls localhost:1: it needs a tls-cert and a tls-key");
  EXPECT_EQ(refusal({{"resp-tls", "localhost:1"}, {"tls-cert", "c"}, {"tls-key", "k"}}),
            "accepted");
}

TEST_F(SettingsTest, FlagThenVariableThenFileThenDefault) {
  write("trellis.toml",
        "# all but one\ndata = \"f\"\ncache-bytes = 16777216\nlog-level = 'warn'\n");
  const Map environment = {{"TRELLIS_DATA", "v"}, {"TRELLIS_CACHE_BYTES", "32MiB"}, {"HOME", "/"}};
  const auto settings = load_settings(inputs({{"data", "g"}}, environment));
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->data, "g");
  EXPECT_EQ(settings->cache_bytes, 32u << 20);
  EXPECT_EQ(settings->log_level, LogLevel::warn);
  EXPECT_EQ(settings->engine, EngineChoice::rocksdb);
  EXPECT_EQ(settings->config, path("trellis.toml"));
  const std::string described = describe_settings(*settings);
  for (const std::string& line :
       {"config = " + quote(path("trellis.toml")) + "  # default\n",
        std::string("data = \"g\"  # --data\n"), std::string("engine = \"rocksdb\"  # default\n"),
        std::string("cache-bytes = \"32MiB\"  # TRELLIS_CACHE_BYTES\n"),
        "log-level = \"warn\"  # " + path("trellis.toml") + ":4\n"})
    EXPECT_NE(described.find(line), std::string::npos) << line << "in\n" << described;
  std::map<std::string_view, SettingSource> sources;
  for (const ResolvedSetting& setting : settings->resolved)
    sources[setting.spec->name] = setting.source;
  using enum SettingSource;
  EXPECT_EQ(sources["config"], by_default);
  EXPECT_EQ(sources["data"], flag);
  EXPECT_EQ(sources["cache-bytes"], variable);
  EXPECT_EQ(sources["log-level"], file);
  EXPECT_EQ(sources["log-format"], by_default);
}

TEST_F(SettingsTest, ConfigNamesTheFile) {
  write("trellis.toml", "data = \"default file\"");
  const std::string a = write("a.toml", "data = \"a\"");
  const std::string b = write("b.toml", "data = \"b\"");
  EXPECT_EQ(load_settings(inputs()).value().data, "default file");
  EXPECT_EQ(load_settings(inputs({{"config", a}})).value().data, "a");
  EXPECT_EQ(load_settings(inputs({}, {{"TRELLIS_CONFIG", b}})).value().data, "b");
  const auto both = load_settings(inputs({{"config", a}}, {{"TRELLIS_CONFIG", b}})).value();
  EXPECT_EQ(both.data, "a");
  EXPECT_EQ(both.config, a);
  EXPECT_EQ(refusal({{"config", path("no.toml")}}), "--config: no.toml: there is no such file");
  EXPECT_EQ(refusal({}, {{"TRELLIS_CONFIG", path("no.toml")}}),
            "TRELLIS_CONFIG: no.toml: there is no such file");
  EXPECT_EQ(refusal({{"config", ""}}), "--config: \"\" is not a path");
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(refusal({{"config", path("folder")}}), "--config: folder: Is a directory");
  EXPECT_EQ(file_refusal("config = \"other.toml\""),
            "trellis.toml:1: config cannot be set in the file; use --config or TRELLIS_CONFIG");
}

TEST_F(SettingsTest, WrongValuesAreRefusedByNameAndSource) {
  EXPECT_EQ(refusal({}, {{"TRELLIS_CACHE_BYTES", "12 potatoes"}}),
            "TRELLIS_CACHE_BYTES: \"12 potatoes\" is not a size; use for example 512MiB");
  EXPECT_EQ(refusal({{"cache-bytes", "1MiB"}}),
            "--cache-bytes: \"1MiB\" is too small; use at least 8MiB");
  EXPECT_EQ(refusal({}, {{"TRELLIS_ENGINE", ""}}),
            "TRELLIS_ENGINE: \"\" is not a choice; use rocksdb or memory");
  EXPECT_EQ(refusal({}, {{"TRELLIS_DURABILITY", "Always\n"}}),
            "TRELLIS_DURABILITY: \"Always\\x0a\" is not a choice; use always, everysec or off");
  EXPECT_EQ(refusal({{"data", ""}}), "--data: \"\" is not a path");
  EXPECT_EQ(file_refusal("\ncache-bytes = \"lots\""),
            "trellis.toml:2: cache-bytes: \"lots\" is not a size; use for example 512MiB");
  EXPECT_EQ(file_refusal("cache-bytes = -1"),
            "trellis.toml:1: cache-bytes: \"-1\" is not a size; use for example 512MiB");
}

// Also where another source wins: it would become wrong on the day that one goes away.
TEST_F(SettingsTest, WrongValuesAreRefusedThoughOverridden) {
  const Map good_flag = {{"cache-bytes", "1GiB"}};
  EXPECT_EQ(refusal(good_flag), "accepted");
  EXPECT_EQ(refusal(good_flag, {{"TRELLIS_CACHE_BYTES", "x"}}),
            "TRELLIS_CACHE_BYTES: \"x\" is not a size; use for example 512MiB");
  write("trellis.toml", "cache-bytes = 'x'");
  EXPECT_EQ(refusal(good_flag),
            "trellis.toml:1: cache-bytes: \"x\" is not a size; use for example 512MiB");
}

TEST_F(SettingsTest, UnknownNamesAreRefusedWithAHint) {
  EXPECT_EQ(refusal({{"cache-byte", "1GiB"}}),
            "unknown setting \"--cache-byte\"; did you mean --cache-bytes?");
  EXPECT_EQ(refusal({}, {{"TRELLIS_CACHEBYTES", "1GiB"}}),
            "unknown setting \"TRELLIS_CACHEBYTES\"; did you mean TRELLIS_CACHE_BYTES?");
  EXPECT_EQ(refusal({}, {{"TRELLIS_data", "x"}}),
            "unknown setting \"TRELLIS_data\"; did you mean TRELLIS_DATA?");
  EXPECT_TRUE(
      refusal({}, {{"TRELLIS_", "x"}})
          .starts_with(
              "unknown setting \"TRELLIS_\"; the settings are TRELLIS_CONFIG, TRELLIS_DATA, "));
  EXPECT_EQ(file_refusal("data = 'x'\ncache_bytes = '1GiB'"),
            "trellis.toml:2: unknown setting \"cache_bytes\"; did you mean cache-bytes?");
  EXPECT_EQ(
      file_refusal("potatoes = 12"),
      "trellis.toml:1: unknown setting \"potatoes\"; the settings are data, engine, "
      "durability, cache-bytes, disk-reserve-bytes, resp, resp-tls, resp-unix, "
      "resp-unix-access, resp-clients-max, resp-command-bytes, resp-memory-bytes, "
      "resp-idle-timeout, resp-send-timeout, http, auth, admin-token-file, tls-cert, tls-key, "
      "archive-retention, catalog-authorization, catalog-version, gc-life-time, range-bytes-max, "
      "range-keys-max, range-load-max, range-sampling, range-samples-retention, "
      "range-averages-retention, "
      "log-level, log-format");
  EXPECT_TRUE(file_refusal("[log]\nlevel = 'info'")
                  .starts_with("trellis.toml:1: unknown setting \"log\"; the settings are "));
  EXPECT_EQ(file_refusal("\"da\\nta\" = 'x'"),
            "trellis.toml:1: unknown setting \"da\\x0ata\"; did you mean data?");
}

TEST_F(SettingsTest, CatalogVersion) {
  for (const char* good : {"1.3.0", "2.0.0", "2.0.0-SNAPSHOT", "1.3.0rc1", "12.34.567"})
    EXPECT_EQ(refusal({{"catalog-version", good}}), "accepted") << good;
  for (const std::string bad : {"", "2", "2.0", "2.0.x", "v2.0.0", "2.0.0.1", "2..0", "2.0.0 "})
    EXPECT_EQ(refusal({{"catalog-version", bad}}),
              "catalog-version " + bad + ": it must be three numbers such as 2.0.0");
}

TEST_F(SettingsTest, OtherVariables) {
  EXPECT_EQ(refusal({}, {{"TRELLIS_TEST_SCALE", "10"}}), "accepted");
  EXPECT_EQ(refusal({}, {{"TRELLISX", "10"}, {"XTRELLIS_DATA", ""}}), "accepted");
  EXPECT_NE(refusal({}, {{"TRELLIS_TEST_SCALES", "10"}}), "accepted");
}

TEST_F(SettingsTest, KubernetesServiceLinksAreNoSettings) {
  Map links = {{"TRELLIS_SERVICE_HOST", "10.0.0.1"},
               {"TRELLIS_SERVICE_PORT", "6379"},
               {"TRELLIS_SERVICE_PORT_RESP", "6379"},
               {"TRELLIS_PORT", "tcp://10.0.0.1:6379"},
               {"TRELLIS_PORT_6379_TCP", "tcp://10.0.0.1:6379"},
               {"TRELLIS_PORT_6379_TCP_PROTO", "tcp"},
               {"TRELLIS_PORT_6379_TCP_PORT", "6379"},
               {"TRELLIS_PORT_6379_TCP_ADDR", "10.0.0.1"},
               {"TRELLIS_HEADLESS_PORT_53_UDP_ADDR", "10.0.0.2"}};
  for (const auto& link : links) EXPECT_NE(refusal({}, {link}), "accepted") << link.first;
  links["KUBERNETES_SERVICE_HOST"] = "10.0.0.9";
  EXPECT_EQ(refusal({}, links), "accepted");
  links["TRELLIS_PORT"] = "6379";  // this one somebody typed
  EXPECT_NE(refusal({}, links), "accepted");
}

TEST_F(SettingsTest, TomlTypesAndSyntax) {
  EXPECT_EQ(file_refusal("cache-bytes = true"),
            "trellis.toml:1: cache-bytes: a boolean is not allowed here; use a size such as "
            "512MiB, at least 8MiB");
  EXPECT_EQ(file_refusal("cache-bytes = 1e9"),
            "trellis.toml:1: cache-bytes: a number with a point is not allowed here; use a size "
            "such as 512MiB, at least 8MiB");
  EXPECT_EQ(file_refusal("data = 5"),
            "trellis.toml:1: data: an integer is not allowed here; use a path");
  EXPECT_EQ(file_refusal("\n\nengine = ['rocksdb']"),
            "trellis.toml:3: engine: an array is not allowed here; use rocksdb or memory");
  EXPECT_EQ(file_refusal("[data]\nx = 1"),
            "trellis.toml:1: data: a table is not allowed here; use a path");
  EXPECT_EQ(file_refusal("data = 1979-05-27"),
            "trellis.toml:1: data: a date is not allowed here; use a path");
  // The rest of the message is the parser's own.
  EXPECT_TRUE(file_refusal("data = 'a'\nengine = rocksdb\n").starts_with("trellis.toml:2: "));
  const std::string twice = file_refusal("data = 'a'\n\ndata = 'b'\n");
  EXPECT_TRUE(twice.starts_with("trellis.toml:3: ")) << twice;
  EXPECT_NE(twice.find("data"), std::string::npos) << twice;
  EXPECT_EQ(file_refusal(""), "accepted");
  EXPECT_EQ(file_refusal("# nothing\r\n"), "accepted");
  EXPECT_EQ(file_refusal(std::string((1 << 20) + 1, '\n')),
            "trellis.toml: larger than 1MiB; is it a settings file?");
  EXPECT_EQ(file_refusal(std::string(1 << 20, '\n')), "accepted");
}

TEST_F(SettingsTest, AnyFileIsReadOrRefused) {
  const uint64_t seed = 20261115;
  SCOPED_TRACE(seed);
  Random random(seed);
  const std::string good = "data = \"x\" # c\ncache-bytes = 16777216\nengine = 'memory'\n";
  int accepted = 0, refused = 0;
  for (int round = 0; round < 500; round++) {
    std::string text = good;
    for (uint64_t edits = random.below(3) + 1; edits > 0; edits--) {
      const size_t at = random.below(text.size());
      if (random.one_in(2)) {
        text[at] = static_cast<char>(random.next());
      } else {
        text.erase(at, random.below(4));
      }
    }
    (file_refusal(text) == "accepted" ? accepted : refused)++;
  }
  EXPECT_GT(accepted, 10);
  EXPECT_GT(refused, 100);
}

TEST(SettingsTable, IsWellFormed) {
  std::map<std::string_view, int> names;
  for (const SettingSpec& spec : setting_specs()) {
    SCOPED_TRACE(spec.name);
    EXPECT_EQ(names[spec.name]++, 0);
    EXPECT_EQ(spec.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos);
    EXPECT_TRUE(parse_setting(spec, spec.default_text).has_value());
    EXPECT_FALSE(spec.help.empty());
    EXPECT_EQ(spec.help.find('\n'), std::string_view::npos);
    EXPECT_EQ(spec.kind == SettingKind::choice, !spec.words.empty());
  }
  const SettingSpec spec{
      .name = "cache-bytes", .kind = SettingKind::size, .default_text = "", .help = ""};
  EXPECT_EQ(flag_name(spec), "--cache-bytes");
  EXPECT_EQ(variable_name(spec), "TRELLIS_CACHE_BYTES");
}

SettingSpec spec_of(SettingKind kind, uint64_t min = 0,
                    uint64_t max = std::numeric_limits<uint64_t>::max()) {
  static constexpr std::string_view words[] = {"red", "green", "blue"};
  SettingSpec spec{
      .name = "x", .kind = kind, .default_text = "", .help = "", .min = min, .max = max};
  if (kind == SettingKind::choice) spec.words = words;
  return spec;
}

std::string parse_refusal(const SettingSpec& spec, std::string_view text) {
  const auto value = parse_setting(spec, text);
  return value.has_value() ? "accepted" : value.error().message;
}

TEST(ParseSetting, Size) {
  const SettingSpec spec = spec_of(SettingKind::size);
  const std::pair<std::string_view, uint64_t> good[] = {
      {"0", 0},
      {"007", 7},
      {"4096", 4096},
      {"5B", 5},
      {"1K", 1024},
      {"64KiB", 65536},
      {"64kib", 65536},
      {"2kB", 2000},
      {"2m", 2 << 20},
      {"3MB", 3'000'000},
      {"2G", 2ull << 30},
      {"1GiB", 1 << 30},
      {"1T", 1ull << 40},
      {"1TB", 1000000000000},
      {"16777215TiB", 16777215ull << 40},
      {"18446744073709551615", 18446744073709551615ull}};
  for (const auto& [text, bytes] : good) {
    ASSERT_TRUE(parse_setting(spec, text).has_value()) << text;
    EXPECT_EQ(std::get<uint64_t>(*parse_setting(spec, text)), bytes) << text;
  }
  for (const std::string_view text : {"", " 1", "1 ", "1 MiB", "-1", "+1", "1.5G", "1e3", "MiB",
                                      "0x10", "1KiBs", "1Ki", "12 potatoes"})
    EXPECT_EQ(parse_refusal(spec, text), quote(text) + " is not a size; use for example 512MiB");
  for (const std::string_view text :
       {"18446744073709551616", "16777216TiB", "99999999999999999999G"})
    EXPECT_EQ(parse_refusal(spec, text),
              quote(text) + " is too large; use at most 18446744073709551615");
  const SettingSpec bounded = spec_of(SettingKind::size, 1024, 1 << 30);
  EXPECT_EQ(parse_refusal(bounded, "1K"), "accepted");
  EXPECT_EQ(parse_refusal(bounded, "1023"), "\"1023\" is too small; use at least 1KiB");
  EXPECT_EQ(parse_refusal(bounded, "1G"), "accepted");
  EXPECT_EQ(parse_refusal(bounded, "1073741825"), "\"1073741825\" is too large; use at most 1GiB");
  EXPECT_EQ(allowed_values(bounded), "a size such as 512MiB, at least 1KiB, at most 1GiB");
}

TEST(ParseSetting, Number) {
  const SettingSpec spec = spec_of(SettingKind::number, 1, 64);
  EXPECT_EQ(std::get<uint64_t>(parse_setting(spec, "1").value()), 1u);
  EXPECT_EQ(std::get<uint64_t>(parse_setting(spec, "64").value()), 64u);
  EXPECT_EQ(parse_refusal(spec, "0"), "\"0\" is too small; use at least 1");
  EXPECT_EQ(parse_refusal(spec, "65"), "\"65\" is too large; use at most 64");
  EXPECT_EQ(parse_refusal(spec, "99999999999999999999"),
            "\"99999999999999999999\" is too large; use at most 64");
  for (const std::string_view text : {"", "-1", "1K", "two", "1.0"})
    EXPECT_EQ(parse_refusal(spec, text), quote(text) + " is not a whole number; use 1 to 64");
  EXPECT_EQ(allowed_values(spec_of(SettingKind::number)), "0 or more");
}

TEST(ParseSetting, ChoiceYesNoTextAndPath) {
  EXPECT_EQ(std::get<uint64_t>(parse_setting(spec_of(SettingKind::choice), "blue").value()), 2u);
  EXPECT_EQ(parse_refusal(spec_of(SettingKind::choice), "Blue"),
            "\"Blue\" is not a choice; use red, green or blue");
  for (const std::string_view yes : {"yes", "true", "on", "1"})
    EXPECT_TRUE(std::get<bool>(parse_setting(spec_of(SettingKind::yes_no), yes).value()));
  for (const std::string_view no : {"no", "false", "off", "0"})
    EXPECT_FALSE(std::get<bool>(parse_setting(spec_of(SettingKind::yes_no), no).value()));
  EXPECT_EQ(parse_refusal(spec_of(SettingKind::yes_no), "maybe"), "\"maybe\" is not yes or no");
  EXPECT_EQ(std::get<std::string>(parse_setting(spec_of(SettingKind::text), "").value()), "");
  EXPECT_EQ(parse_refusal(spec_of(SettingKind::path), std::string_view("a\0b", 3)),
            "\"a\\x00b\" is not a path");
}

TEST(ParseSetting, Duration) {
  const SettingSpec spec = spec_of(SettingKind::duration, 1'000, 3'600'000);
  EXPECT_EQ(std::get<uint64_t>(parse_setting(spec, "10m").value()), 600'000u);
  EXPECT_EQ(parse_refusal(spec, "999ms"),
            "\"999ms\" is not a length of time such as 30d, 12h, 10m, 5s or 100ms, at least 1s, at "
            "most 1h");
  EXPECT_FALSE(parse_setting(spec, "61m").has_value());
  EXPECT_FALSE(parse_setting(spec, "10").has_value());
}

TEST(ParseSetting, FileMayBeNone) {
  const SettingSpec spec = spec_of(SettingKind::file);
  EXPECT_EQ(std::get<std::string>(parse_setting(spec, "").value()), "");
  EXPECT_EQ(std::get<std::string>(parse_setting(spec, "a").value()), "a");
  EXPECT_FALSE(parse_setting(spec, std::string_view("a\0b", 3)).has_value());
}

TEST(ParseSetting, Endpoint) {
  const SettingSpec spec = spec_of(SettingKind::endpoint);
  const std::pair<std::string_view, Endpoint> good[] = {{"127.0.0.1:6379", {"127.0.0.1", 6379}},
                                                        {"localhost:0", {"localhost", 0}},
                                                        {"a-b.c_d:65535", {"a-b.c_d", 65535}},
                                                        {"[::1]:6379", {"::1", 6379}},
                                                        {"[2001:db8::7]:80", {"2001:db8::7", 80}}};
  for (const auto& [text, endpoint] : good) {
    ASSERT_TRUE(parse_setting(spec, text).has_value()) << text;
    EXPECT_EQ(std::get<Endpoint>(*parse_setting(spec, text)), endpoint) << text;
    EXPECT_EQ(to_string(endpoint), text);
  }
  for (const std::string_view text :
       {"",           ":",       "6379",     ":6379",   "host",     "host:",     "host:x",
        "host:65536", "host:-1", "host: 1",  "host:1 ", "::1:6379", "[::1]",     "[::1:6379",
        "::1]:6379",  "[]:1",    "[host]:1", "a b:1",   "a/b:1",    "http://a:1"})
    EXPECT_EQ(parse_refusal(spec, text),
              quote(text) + " is not HOST:PORT; use for example 127.0.0.1:6379 or [::1]:6379");
  EXPECT_NE(parse_refusal(spec, std::string_view("[::1\0]:6379", 11)), "accepted");
}

// A table with every kind, through a file with native TOML types.
TEST_F(SettingsTest, EveryKindFromAFile) {
  const SettingSpec specs[] = {
      {.name = "threads", .kind = SettingKind::number, .default_text = "1", .help = "", .max = 64},
      {.name = "listen", .kind = SettingKind::endpoint, .default_text = "localhost:1", .help = ""},
      {.name = "fast", .kind = SettingKind::yes_no, .default_text = "no", .help = ""},
      {.name = "slow", .kind = SettingKind::yes_no, .default_text = "yes", .help = ""},
      {.name = "title", .kind = SettingKind::text, .default_text = "", .help = ""},
  };
  write("trellis.toml", "threads = 8\nlisten = '[::1]:2'\nfast = true\nslow = 'no'\ntitle = 'ä'\n");
  const auto resolved = resolve_settings(specs, inputs());
  ASSERT_TRUE(resolved.has_value()) << resolved.error().message;
  ASSERT_EQ(resolved->size(), 5u);
  EXPECT_EQ((*resolved)[0].value, SettingValue(uint64_t{8}));
  EXPECT_EQ((*resolved)[1].value, SettingValue(Endpoint{"::1", 2}));
  EXPECT_EQ((*resolved)[2].value, SettingValue(true));
  EXPECT_EQ((*resolved)[3].value, SettingValue(false));
  EXPECT_EQ((*resolved)[4].value, SettingValue(std::string("ä")));
}

TEST(ProcessEnvironment, HasWhatWasSet) {
  ASSERT_EQ(::setenv("SETTINGS_TEST_VARIABLE", "a=b", 1), 0);
  EXPECT_EQ(process_environment()["SETTINGS_TEST_VARIABLE"], "a=b");
  ASSERT_EQ(::unsetenv("SETTINGS_TEST_VARIABLE"), 0);
  EXPECT_FALSE(process_environment().contains("SETTINGS_TEST_VARIABLE"));
}

}  // namespace
}  // namespace trellis
