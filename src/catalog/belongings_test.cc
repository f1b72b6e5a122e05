// What belongs to entities beside their records: versions of models, partitions, statistics.
#include <algorithm>
#include <map>
#include <thread>

#include "base/random.h"
#include "catalog/catalog_fixture.h"
#include "catalog/drafts.h"
#include "catalog/entity_json.h"
#include "catalog/model_versions.h"
#include "catalog/partitions.h"
#include "catalog/statistics.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

json::value json_of(const std::string& text) {
  auto value = parse_json(text);
  EXPECT_OK(value);
  return value.value_or(json::value());
}

class BelongingsTest : public CatalogFixture {
 protected:
  void SetUp() override {
    CatalogFixture::SetUp();
    create_schema();
  }
  const EntityPath model_ = path(CatalogType::model, {"lake", "cat", "sch", "m"});

  Result<uint32_t> link(const std::string& request) {
    TRY_ASSIGN(stored::CatalogModelVersion draft, read_model_version(json_of(request)));
    return link_model_version(call(), model_, draft);
  }
  Result<stored::CatalogModelVersion> alter(const ModelVersionName& name,
                                            const std::string& updates) {
    TRY_ASSIGN(const ModelVersionUpdates read,
               ModelVersionUpdates::read(json_of(R"({"updates":)" + updates + "}")));
    return alter_model_version(call(), model_, name, read);
  }
  static ModelVersionName number(uint32_t version) { return {version, ""}; }
  static ModelVersionName alias(std::string name) { return {{}, std::move(name)}; }

  std::string versions() {
    std::string text;
    EXPECT_OK(list_model_versions(call(reader), model_, {}, [&](const auto& version) {
      text += std::to_string(version.version());
      for (const std::string& alias : version.aliases()) text += " " + alias;
      text += ";";
    }));
    return text;
  }

  void create_partitioned() {
    auto draft = draft_of(CatalogType::table, json_of(R"({"name":"t",
        "columns":[{"name":"day","type":"date"}],
        "partitioning":[{"strategy":"identity","fieldName":["day"]}]})"));
    ASSERT_OK(draft);
    create(table("t"), *draft);
  }
  static std::string day(const std::string& value) {
    return R"({"partitions":[{"type":"identity","fieldNames":[["day"]],)"
           R"("values":[{"type":"literal","dataType":"date","value":")" +
           value + R"("}]}]})";
  }
  Status add(const std::string& request) {
    TRY_ASSIGN(const json::value partition, read_partition(json_of(request)));
    return add_partition(call(), table("t"), partition);
  }
  std::string partitions() {
    std::string text;
    EXPECT_OK(list_partitions(call(reader), table("t"), {}, [&](auto name, auto json) {
      EXPECT_OK(parse_json(json));
      text.append(name) += ";";
    }));
    return text;
  }

  std::string statistics() {
    std::string text;
    const auto append = [&](auto partition, auto name, auto& one) {
      EXPECT_EQ(partition, "");
      text.append(name) += "=" + one.value_json() + ";";
    };
    EXPECT_OK(list_statistics(call(reader), table("t"), {}, append));
    return text;
  }
  std::string statistics_in(const PartitionInterval& interval) {
    std::string text;
    EXPECT_OK(list_partition_statistics(call(reader), table("t"), interval, {},
                                        [&](auto partition, auto name, auto&) {
                                          text.append(partition) += ".";
                                          text.append(name) += ";";
                                        }));
    return text;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, BelongingsTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(BelongingsTest, VersionsOfAModel) {
  EXPECT_REASON(link(R"({"uri":"u"})"), Code::not_found, "no_such_model");
  EXPECT_FALSE(*delete_model_version(call(), model_, number(0)));
  create(model_, *draft_of(CatalogType::model, json_of(R"({"name":"m"})")));
  EXPECT_EQ(*link(R"({"uri":"u0","aliases":["a","b","a"],"comment":"c","properties":{"k":"v"}})"),
            0U);
  EXPECT_EQ(*link(R"({"uris":{"x":"u1","y":"u2"}})"), 1U);
  EXPECT_EQ(catalog_->load(call(reader), model_)->stored.model().next_version(), 2U);
  EXPECT_EQ(versions(), "0 a b;1;");
  EXPECT_REASON(link(R"({"uri":"u","aliases":["c","b"]})"), Code::exists,
                "model_version_aliases_exist");
  EXPECT_EQ(versions(), "0 a b;1;");
  EXPECT_EQ(catalog_->load(call(reader), model_)->stored.model().next_version(), 2U);
  EXPECT_REASON(load_model_version(call(reader), model_, alias("c")), Code::not_found,
                "no_such_model_version");

  const auto loaded = load_model_version(call(reader), model_, alias("b"));
  ASSERT_OK(loaded);
  Bytes out;
  append_model_version(out, *loaded);
  EXPECT_EQ(out,
            R"({"version":0,"comment":"c","aliases":["a","b"],"uri":"u0","uris":{"unknown":"u0"},)"
            R"("properties":{"k":"v"},)"
            R"("audit":{"creator":"ada","createTime":"2023-11-14T22:13:20.000Z"}})");
  EXPECT_OK(load_model_version(call(reader), model_, number(1)));
  EXPECT_REASON(load_model_version(call(reader), model_, number(2)), Code::not_found,
                "no_such_model_version");
  EXPECT_REASON(load_model_version(call(reader), model_, alias("")), Code::not_found,
                "no_such_model_version");
  EXPECT_REASON(load_model_version(call(reader), model_, alias(std::string(5'000, 'a'))),
                Code::not_found, "no_such_model_version");

  // Numbers are not given again, aliases are.
  EXPECT_TRUE(*delete_model_version(call(), model_, alias("a")));
  EXPECT_FALSE(*delete_model_version(call(), model_, alias("a")));
  EXPECT_FALSE(*delete_model_version(call(), model_, number(0)));
  EXPECT_EQ(versions(), "1;");
  EXPECT_EQ(*link(R"({"uri":"u","aliases":["b"]})"), 2U);
  EXPECT_EQ(versions(), "1;2 b;");

  // All of it goes with the model.
  const size_t with_model = entries();
  ASSERT_OK(catalog_->drop(call(), model_));
  EXPECT_REASON(load_model_version(call(reader), model_, number(1)), Code::not_found,
                "no_such_model");
  ASSERT_OK(catalog_->undelete(call(), model_));
  EXPECT_EQ(versions(), "1;2 b;");
  ASSERT_OK(catalog_->drop(call(), model_));
  collect_all();
  EXPECT_LT(entries(), with_model - 3);
}

TEST_P(BelongingsTest, UpdatesOfAVersion) {
  create(model_, *draft_of(CatalogType::model,
                           json_of(R"({"name":"m","properties":{"default-uri-name":"y"}})")));
  ASSERT_OK(link(R"({"uris":{"x":"1","y":"2"},"aliases":["a"],"comment":"c"})"));
  ASSERT_OK(link(R"({"uri":"z","aliases":["taken"]})"));
  clock_.advance_ms(7);
  const auto altered = alter(alias("a"), R"([
      {"@type":"updateComment","newComment":null},
      {"@type":"setProperty","property":"k","value":"v"},
      {"@type":"updateUri","uriName":"x","newUri":"3"},{"@type":"updateUri","newUri":"nothing"},
      {"@type":"addUri","uriName":"w","uri":"4"},{"@type":"addUri","uriName":"w","uri":"5"},
      {"@type":"removeUri","uriName":"y"},
      {"@type":"updateAliases","aliasesToAdd":["b","a"],"aliasesToRemove":["a","none"]},
      {"@type":"updateAliases","aliasesToRemove":["a"]}])");
  ASSERT_OK(altered);
  Bytes out;
  append_model_version(out, *altered);
  EXPECT_EQ(out, R"({"version":0,"aliases":["b"],"uris":{"w":"4","x":"3"},"properties":{"k":"v"},)"
                 R"("audit":{"creator":"ada","createTime":"2023-11-14T22:13:20.000Z",)"
                 R"("lastModifier":"ada","lastModifiedTime":"2023-11-14T22:13:20.007Z"}})");
  EXPECT_EQ(versions(), "0 b;1 taken;");
  EXPECT_FALSE(load_model_version(call(reader), model_, alias("a")).has_value());
  EXPECT_EQ(load_model_version(call(reader), model_, alias("b"))->version(), 0U);

  // Nothing of what is wrong.
  for (const auto& [updates, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"([{"@type":"setProperty","property":"k","value":"w"},
                {"@type":"removeUri","uriName":"w"},
                {"@type":"removeUri","uriName":"x"}])",
            "At least one URI needs to be set for the model version"},
           {R"([{"@type":"odd"}])",
            "Malformed json request: Could not resolve type id 'odd' as an update of a model "
            "version"},
           {R"([{"@type":"updateUri"}])", "\"newUri\" field is required and cannot be empty"},
           {R"([{"@type":"addUri","uri":"x"}])",
            "\"uriName\" field is required and cannot be empty"},
           {R"([{"@type":"updateAliases"}])",
            "At least one of aliasesToAdd or aliasesToRemove must be non-null"},
           {R"([{"@type":"updateAliases","aliasesToAdd":["7"]}])",
            "alias must not be a number or a number string"},
           {R"([{"@type":"setProperty","property":"k"}])",
            "\"value\" field is required and cannot be null"}}) {
    const auto refused = alter(number(0), updates);
    EXPECT_REASON(refused, Code::invalid, "illegal_argument");
    EXPECT_EQ(refused.error().message, message);
  }
  EXPECT_REASON(alter(number(0), R"([{"@type":"updateAliases","aliasesToAdd":["c","taken"]}])"),
                Code::exists, "model_version_aliases_exist");
  EXPECT_REASON(alter(number(9), "[]"), Code::not_found, "no_such_model_version");
  EXPECT_EQ(load_model_version(call(reader), model_, number(0))->properties().at("k"), "v");
  EXPECT_EQ(versions(), "0 b;1 taken;");

  const auto model = catalog_->load(call(reader), model_);
  const auto version = load_model_version(call(reader), model_, number(0));
  EXPECT_EQ(*model_version_uri(*version, model->stored, "w"), "4");
  EXPECT_REASON(model_version_uri(*version, model->stored, ""), Code::not_found,
                "no_such_uri_name");
  ASSERT_OK(
      alter(number(0), R"([{"@type":"setProperty","property":"default-uri-name","value":"x"}])"));
  EXPECT_EQ(
      *model_version_uri(*load_model_version(call(reader), model_, number(0)), model->stored, ""),
      "3");
  EXPECT_EQ(
      *model_version_uri(*load_model_version(call(reader), model_, number(1)), model->stored, ""),
      "z");
}

TEST_P(BelongingsTest, WhatNoVersionIsMadeOf) {
  for (const auto& [request, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"{}", "URI cannot be empty"},
           {R"({"uri":" "})", "URI cannot be empty"},
           {R"({"uris":{"":"x"}})", "URI name must not be blank"},
           {R"({"uris":{"x":""}})", "URI must not be blank"},
           {R"({"uri":"u","aliases":[""]})", "alias must not be null or empty"},
           {R"({"uri":"u","aliases":["1"]})", "alias must not be a number or a number string"},
           {R"({"uri":"u","aliases":["-1.5e3f"]})",
            "alias must not be a number or a number string"},
           {R"({"uri":"u","aliases":["0xff"]})", "alias must not be a number or a number string"},
           {R"({"uri":"u","aliases":"a"})", "\"aliases\" must be an array, but found: \"a\""},
           {R"({"uri":"u","odd":1})",
            "Malformed json request: request has the unknown member \"odd\""}}) {
    const auto draft = read_model_version(json_of(request));
    EXPECT_REASON(draft, Code::invalid, "illegal_argument");
    EXPECT_EQ(draft.error().message, message);
  }
  for (const char* alias : {"v1", "1a", "e5", ".", "latest", "0x", "1.2.3"}) {
    EXPECT_OK(
        read_model_version(json_of(R"({"uri":"u","aliases":[")" + std::string(alias) + "\"]}")));
  }
}

// Random links, updates and deletes against a map of aliases, and from several threads.
TEST_P(BelongingsTest, AliasesNameOneVersion) {
  create(model_, *draft_of(CatalogType::model, json_of(R"({"name":"m"})")));
  const uint64_t seed = test_seed(83);
  const auto work = [&](uint64_t thread) {
    Random random(seed + thread);
    for (uint64_t i = 0; i < test_rounds(60); ++i) {
      const std::string one(1, static_cast<char>('a' + random.below(5)));
      const std::string two(1, static_cast<char>('a' + random.below(5)));
      switch (random.below(4)) {
        case 0: discard(link(R"({"uri":"u","aliases":[")" + one + "\",\"" + two + "\"]}")); break;
        case 1: discard(delete_model_version(call(), model_, alias(one))); break;
        case 2:
          discard(alter(alias(one), R"([{"@type":"updateAliases","aliasesToAdd":[")" + two +
                                        R"("],"aliasesToRemove":[")" + one + "\"]}]"));
          break;
        default: {
          const auto loaded = load_model_version(call(reader), model_, alias(one));
          if (!loaded) {
            EXPECT_EQ(loaded.error().reason, "no_such_model_version");
          }
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();

  std::map<std::string, uint32_t> aliases;
  EXPECT_OK(list_model_versions(call(reader), model_, {}, [&](const auto& version) {
    for (const std::string& alias : version.aliases()) {
      EXPECT_TRUE(aliases.emplace(alias, version.version()).second) << alias;
    }
  }));
  for (const std::string name : {"a", "b", "c", "d", "e"}) {
    const auto loaded = load_model_version(call(reader), model_, alias(name));
    EXPECT_EQ(loaded.has_value(), aliases.contains(name)) << name;
    if (loaded) {
      EXPECT_EQ(loaded->version(), aliases[name]);
    }
  }
}

// Those that a table is made with are partitions like all others.
TEST_P(BelongingsTest, AssignedPartitions) {
  const auto make = [&](const std::string& name, const std::string& assignments) -> Status {
    auto draft = draft_of(CatalogType::table, json_of(R"({"name":")" + name + R"(",
        "columns":[{"name":"n","type":"long"}],
        "partitioning":[{"strategy":"range","fieldName":["n"],"assignments":[)" +
                                                      assignments + "]}]}"));
    if (!draft) return draft.error();
    bool has_run = false;
    CatalogExtra extra{.run = [&](CatalogChange&, const Entity&) -> Status {
      has_run = true;
      return {};
    }};
    TRY_ASSIGN(extra, with_assignments(*draft->mutable_table(), std::move(extra)));
    TRY_ASSIGN(const Entity made, catalog_->create(call(), table(name), std::move(*draft), extra));
    EXPECT_TRUE(has_run);
    EXPECT_EQ(made.stored.table().partitioning_json(),
              R"([{"strategy":"range","fieldName":["n"],"assignments":[]}])");
    return {};
  };
  const auto range = [](const std::string& name, const std::string& type) {
    const std::string literal = R"({"type":"literal","dataType":")" + type + R"(","value":"1"})";
    return R"({"type":"range","name":")" + name + R"(","lower":)" + literal + R"(,"upper":)" +
           literal + "}";
  };
  ASSERT_OK(make("t", range("b", "long") + "," + range("a", "long")));
  EXPECT_EQ(partitions(), "a;b;");
  EXPECT_REASON(add(R"({"partitions":[)" + range("a", "long") + "]}"), Code::exists,
                "partition_exists");
  EXPECT_OK(add(R"({"partitions":[)" + range("c", "long") + "]}"));
  EXPECT_TRUE(*drop_partition(call(), table("t"), "a"));
  EXPECT_EQ(partitions(), "b;c;");
  EXPECT_OK(make("u", ""));
  for (const std::string& bad :
       {range("a", "long") + "," + range("a", "long"), range("a", "date"), range(" ", "long")}) {
    EXPECT_REASON(make("v", bad), Code::invalid, "illegal_argument");
  }
  EXPECT_REASON(catalog_->load(call(), table("v")), Code::not_found, "no_such_table");
}

TEST_P(BelongingsTest, PartitionsAreBounded) {
  const auto partition = [](const std::string& name, size_t bytes) {
    const std::string literal = R"({"type":"literal","dataType":"long","value":"1"})";
    return R"({"type":"range","name":")" + name + R"(","lower":)" + literal + R"(,"upper":)" +
           literal + R"(,"properties":{"k":")" + std::string(bytes, 'x') + R"("}})";
  };
  const auto make = [&](const std::string& name, const std::string& assignments) -> Status {
    TRY_ASSIGN(
        stored::CatalogEntity draft,
        draft_of(
            CatalogType::table,
            json_of(R"({"name":")" + name +
                    R"(","columns":[{"name":"n","type":"long"}],)"
                    R"("partitioning":[{"strategy":"range","fieldName":["n"],"assignments":[)" +
                    assignments + "]}]}")));
    TRY_ASSIGN(const CatalogExtra extra, with_assignments(*draft.mutable_table(), {}));
    TRY(catalog_->create(call(), table(name), std::move(draft), extra));
    return {};
  };
  constexpr size_t most = catalog_entity_bytes_max - 1'000;
  ASSERT_OK(make("t", partition("a", most / 2) + "," + partition("b", most / 2)));
  EXPECT_REASON(make("u", partition("a", most / 2) + "," + partition("b", most / 2 + 1'000)),
                Code::invalid, "illegal_argument");
  EXPECT_REASON(make("u", partition("a", most + 1'000)), Code::invalid, "illegal_argument");
  EXPECT_OK(add(R"({"partitions":[)" + partition("c", most) + "]}"));
  EXPECT_REASON(add(R"({"partitions":[)" + partition("d", most + 1'000) + "]}"), Code::invalid,
                "illegal_argument");
  for (const std::string name : {"a", "b", "c", "d"})
    EXPECT_EQ(load_partition(call(reader), table("t"), name).has_value(), name != "d") << name;
}

TEST_P(BelongingsTest, Partitions) {
  EXPECT_REASON(add(day("1")), Code::not_found, "no_such_table");
  create_partitioned();
  ASSERT_OK(add(day("2")));
  ASSERT_OK(add(day("1")));
  EXPECT_REASON(add(day("1")), Code::exists, "partition_exists");
  EXPECT_EQ(partitions(), "day=1;day=2;");
  EXPECT_EQ(
      *load_partition(call(reader), table("t"), "day=1"),
      R"({"type":"identity","name":"day=1","fieldNames":[["day"]],"values":[{"type":"literal",)"
      R"("dataType":"date","value":"1"}],"properties":{}})");
  EXPECT_REASON(load_partition(call(reader), table("t"), "day=3"), Code::not_found,
                "no_such_partition");
  EXPECT_REASON(load_partition(call(reader), table("t"), ""), Code::not_found, "no_such_partition");
  EXPECT_REASON(load_partition(call(reader), table("u"), "day=1"), Code::not_found,
                "no_such_table");
  EXPECT_TRUE(*drop_partition(call(), table("t"), "day=1"));
  EXPECT_FALSE(*drop_partition(call(), table("t"), "day=1"));
  EXPECT_FALSE(*drop_partition(call(), table("t"), std::string(5'000, 'x')));
  EXPECT_EQ(partitions(), "day=2;");

  EXPECT_REASON(add(R"({"partitions":[]})"), Code::invalid, "illegal_argument");
  EXPECT_REASON(add(R"({})"), Code::invalid, "illegal_argument");
  EXPECT_REASON(add(R"({"partitions":[{"type":"list","name":" ","lists":[]}]})"), Code::invalid,
                "illegal_argument");
  EXPECT_REASON(add(R"({"partitions":[{"type":"list","name":"p","lists":[],)"
                    R"("properties":{"fieldName":"x"}}]})"),
                Code::invalid, "illegal_argument");
  EXPECT_REASON(add(R"({"partitions":[{"type":"identity","name":"p","fieldNames":[["x"]],)"
                    R"("values":[{"type":"literal","dataType":"date","value":"1"}]}]})"),
                Code::invalid, "illegal_argument");
  EXPECT_EQ(partitions(), "day=2;");

  create(table("plain"), draft_with_columns({"day"}));
  const auto partition = read_partition(json_of(day("1")));
  const Status refused = add_partition(call(), table("plain"), *partition);
  EXPECT_REASON(refused, Code::invalid, "illegal_argument");
  EXPECT_EQ(refused.error().message, "Table plain is not partitioned");

  // They stay with the table under another name, and go with it.
  ASSERT_OK(catalog_->alter(call(), table("t"), [](Entity& entity) -> Status {
    entity.stored.set_name("t2");
    return {};
  }));
  EXPECT_OK(load_partition(call(reader), table("t2"), "day=2"));
  const size_t before = entries();
  ASSERT_OK(catalog_->drop(call(), table("t2")));
  collect_all();
  EXPECT_LT(entries(), before);
  create_partitioned();
  EXPECT_EQ(partitions(), "");
}

TEST_P(BelongingsTest, Statistics) {
  const auto update = [&](const std::string& request) -> Status {
    TRY_ASSIGN(StatisticValues values, read_statistics(json_of(request)));
    return update_statistics(call(), table("t"), {std::move(values)});
  };
  EXPECT_REASON(update(R"({"updates":{"custom-a":1}})"), Code::not_found,
                "no_such_metadata_object");
  create_partitioned();
  ASSERT_OK(update(
      R"({"updates":{"custom-b":1.0,"custom-a":1,"custom-c":"x","custom-d":[true,{"k":[2.5]}]}})"));
  EXPECT_EQ(statistics(), R"(custom-a=1;custom-b=1.0;custom-c="x";custom-d=[true,{"k":[2.5]}];)");
  ASSERT_OK(update(R"({"updates":{"custom-a":-2}})"));
  EXPECT_EQ(statistics(), R"(custom-a=-2;custom-b=1.0;custom-c="x";custom-d=[true,{"k":[2.5]}];)");
  for (const auto& [request, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"updates":{"":1}})", "statistic name must not be null or empty"},
           {R"({"updates":{"custom-a":null}})",
            "Cannot parse statistic value from invalid JSON: null"},
           {R"({"updates":{"custom-a":[{"k":null}]}})",
            "Cannot parse statistic value from invalid JSON: null"},
           {R"({"updates":{}})", "\"updates\" field is required and cannot be empty"},
           {R"({"updates":[]})", "\"updates\" field is required and cannot be empty"},
           {R"({"updates":{"custom-a":1},"odd":1})",
            "Malformed json request: request has the unknown member \"odd\""}}) {
    const Status refused = update(request);
    EXPECT_REASON(refused, Code::invalid, "illegal_argument");
    EXPECT_EQ(refused.error().message, message);
  }
  const Status unknown = update(R"({"updates":{"custom-a":5,"rows":1}})");
  EXPECT_REASON(unknown, Code::invalid, "illegal_statistic_name");
  EXPECT_EQ(unknown.error().message, "Statistic name must start with custom- , but got: rows");
  const auto drop = [&](const std::string& request) -> Result<bool> {
    TRY_ASSIGN(StatisticNames names, read_statistic_names(json_of(request)));
    return drop_statistics(call(), table("t"), {std::move(names)});
  };
  EXPECT_TRUE(*drop(R"({"names":["custom-b","custom-c","none"]})"));
  EXPECT_FALSE(*drop(R"({"names":["custom-b"]})"));
  EXPECT_REASON(drop(R"({"names":[]})"), Code::invalid, "illegal_argument");
  EXPECT_EQ(statistics(), R"(custom-a=-2;custom-d=[true,{"k":[2.5]}];)");
  Bytes out;
  EXPECT_OK(list_statistics(call(reader), table("t"), {}, [&](auto, auto name, const auto& one) {
    if (out.empty()) append_statistic(out, name, one);
  }));
  EXPECT_EQ(out, R"({"name":"custom-a","value":-2,"reserved":false,"modifiable":true,"audit":{)"
                 R"("creator":"ada","createTime":"2023-11-14T22:13:20.000Z","lastModifier":"ada",)"
                 R"("lastModifiedTime":"2023-11-14T22:13:20.000Z"}})");
}

TEST_P(BelongingsTest, StatisticsOfPartitions) {
  create_partitioned();
  const auto values = read_partition_statistics(json_of(
      R"({"updates":[{"partitionName":"b","statistics":{"custom-1":1,"custom-2":2}},
                     {"partitionName":"a","statistics":{"custom-1":1}},
                     {"partitionName":"ab","statistics":{"custom-1":1}},
                     {"partitionName":"c","statistics":{"custom-1":1}}]})"));
  ASSERT_OK(values);
  ASSERT_OK(update_statistics(call(), table("t"), *values));
  ASSERT_OK(update_statistics(call(), table("t"), {{"", {{"custom-0", "0"}}}}));
  EXPECT_EQ(statistics(), "custom-0=0;");
  const std::string a = "a.custom-1;", ab = "ab.custom-1;", b = "b.custom-1;b.custom-2;",
                    c = "c.custom-1;";
  EXPECT_EQ(statistics_in({}), a + ab + b + c);
  EXPECT_EQ(statistics_in({.from = "a"}), a + ab + b + c);
  EXPECT_EQ(statistics_in({.from = "a", .with_from = false}), ab + b + c);
  EXPECT_EQ(statistics_in({.to = "b"}), a + ab);
  EXPECT_EQ(statistics_in({.to = "b", .with_to = true}), a + ab + b);
  EXPECT_EQ(statistics_in({.from = "aa", .to = "bb"}), ab + b);
  EXPECT_EQ(statistics_in({.from = "c", .to = "a"}), "");
  EXPECT_EQ(statistics_in({.from = "b", .with_from = false, .to = "b"}), "");
  const auto drops = read_partition_statistic_names(
      json_of(R"({"drops":[{"partitionName":"b","statisticNames":["custom-1"]},
                           {"partitionName":"a","statisticNames":["custom-1","custom-9"]}]})"));
  ASSERT_OK(drops);
  EXPECT_TRUE(*drop_statistics(call(), table("t"), *drops));
  EXPECT_FALSE(*drop_statistics(call(), table("t"), *drops));
  EXPECT_EQ(statistics_in({}), ab + "b.custom-2;" + c);
  EXPECT_REASON(
      read_partition_statistics(json_of(R"({"updates":[{"statistics":{"custom-1":1}}]})")),
      Code::invalid, "illegal_argument");
  EXPECT_REASON(read_partition_statistics(json_of(R"({"updates":[]})")), Code::invalid,
                "illegal_argument");
  EXPECT_REASON(read_partition_statistic_names(
                    json_of(R"({"drops":[{"partitionName":"b","statisticNames":[]}]})")),
                Code::invalid, "illegal_argument");
  EXPECT_REASON(
      list_partition_statistics(call(reader), table("t"), {.from = std::string(5'000, 'x')}, {},
                                [](auto, auto, auto&) {}),
      Code::invalid, "illegal_argument");
  // They go with their table.
  ASSERT_OK(catalog_->drop(call(), table("t")));
  collect_all();
  create_partitioned();
  EXPECT_EQ(statistics(), "");
  EXPECT_EQ(statistics_in({}), "");
}

TEST_P(BelongingsTest, ReadersDoNotWrite) {
  create_partitioned();
  create(model_, *draft_of(CatalogType::model, json_of(R"({"name":"m"})")));
  stored::CatalogModelVersion draft;
  (*draft.mutable_uris())["x"] = "y";
  EXPECT_CODE(link_model_version(call(reader), model_, draft), Code::denied);
  EXPECT_CODE(delete_model_version(call(reader), model_, number(0)), Code::denied);
  EXPECT_CODE(add_partition(call(reader), table("t"), *read_partition(json_of(day("1")))),
              Code::denied);
  EXPECT_CODE(drop_partition(call(reader), table("t"), "x"), Code::denied);
  EXPECT_CODE(update_statistics(call(reader), table("t"), {{"", {{"custom-0", "0"}}}}),
              Code::denied);
  // Nor does anybody in what is disabled.
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, false));
  EXPECT_REASON(link(R"({"uri":"u"})"), Code::refused, "catalog_not_in_use");
  EXPECT_REASON(add(day("1")), Code::refused, "catalog_not_in_use");
  EXPECT_REASON(load_partition(call(reader), table("t"), "x"), Code::refused, "catalog_not_in_use");
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, true));
}

}  // namespace
}  // namespace trellis
