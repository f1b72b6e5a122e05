// What is made and how it is changed, without anything stored.
#include "catalog/updates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/function_ref.h"
#include "base/random.h"
#include "catalog/catalog_error.h"
#include "catalog/drafts.h"
#include "catalog/entity.h"
#include "catalog/entity_json.h"
#include "catalog/name_rules.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"
#include "support/vector_file.h"

namespace trellis {
namespace {

json::value parsed(const std::string& text) {
  auto value = parse_json(text, {.depth_max = 64, .values_max = 500'000});
  EXPECT_OK(value);
  return value.value_or(json::value());
}

stored::CatalogEntity made(CatalogType type, const std::string& request) {
  auto draft = draft_of(type, parsed(request));
  EXPECT_OK(draft);
  return draft.value_or(stored::CatalogEntity());
}

std::string answer(CatalogType type, stored::CatalogEntity entity) {
  entity.clear_audit();
  Bytes out;
  append_entity(out, type, entity, ShowInUse::no);
  const std::string audit = R"(,"audit":{"creator":"","createTime":"1970-01-01T00:00:00.000Z"}})";
  EXPECT_TRUE(out.ends_with(audit)) << out;
  EXPECT_OK(parse_json(out));
  return out.substr(0, out.size() - audit.size()) + "}";
}

// The words of what is wrong; empty: nothing is.
std::string problem(CatalogType type, const std::string& request) {
  const auto draft = draft_of(type, parsed(request));
  if (draft) return "";
  EXPECT_EQ(draft.error().code, Code::invalid);
  EXPECT_TRUE(draft.error().reason == "illegal_argument" || draft.error().reason == "illegal_name")
      << draft.error().reason;
  return draft.error().message;
}

Status update(CatalogType type, stored::CatalogEntity& entity, const std::string& updates) {
  TRY_ASSIGN(const CatalogUpdates read,
             CatalogUpdates::read(type, parsed(R"({"updates":)" + updates + "}")));
  return read.apply(entity);
}

std::string update_problem(CatalogType type, const stored::CatalogEntity& entity,
                           const std::string& updates) {
  stored::CatalogEntity changed = entity;
  const Status done = update(type, changed, updates);
  if (done) return "";
  EXPECT_EQ(done.error().code, Code::invalid);
  EXPECT_EQ(changed.SerializeAsString(), entity.SerializeAsString());
  return done.error().message;
}

// "table {...}"
std::pair<CatalogType, std::string> typed(const std::string& line) {
  const size_t blank = line.find(' ');
  const auto* const word = std::ranges::find(catalog_types, line.substr(0, blank), &Word::name);
  EXPECT_NE(word, std::end(catalog_types)) << line;
  return {static_cast<CatalogType>(word - catalog_types), line.substr(blank + 1)};
}

TEST(CatalogDraftsTest, AsTheyAreAnsweredOrRefused) {
  for (const VectorLine& line : read_vectors("catalog/drafts.txt")) {
    SCOPED_TRACE(line.where);
    const auto [type, request] = typed(line.left);
    const std::string wrong = problem(type, request);
    if (line.right == "ok") {
      EXPECT_EQ(wrong, "");
    } else if (line.right.starts_with('!')) {
      EXPECT_EQ(wrong, line.right.substr(1));
    } else {
      EXPECT_EQ(answer(type, made(type, request)), line.right);
    }
  }
}

TEST(CatalogDraftsTest, LongComments) {
  const auto with_comment = [](size_t characters) {
    std::string comment;
    for (size_t i = 0; i < characters; ++i) comment += "\xc3\xa4";
    return problem(CatalogType::schema, R"({"name":"a","comment":")" + comment + "\"}");
  };
  EXPECT_EQ(with_comment(4'096), "");
  EXPECT_EQ(with_comment(4'097), "A comment has 4096 characters at most");
}

TEST(CatalogDraftsTest, LettersOfAnyScript) {
  const auto is_fine = [](const std::string& name, NamePattern pattern) {
    return check_name(CatalogType::table, name, pattern).has_value();
  };
  for (const char* name : {"\xc3\xa4", "a$", "$", "\xe8\xa1\xa8", "\xce\xa9-1/x=y", "\xc3\xb1_"}) {
    EXPECT_TRUE(is_fine(name, NamePattern::any_letters)) << name;
    EXPECT_FALSE(is_fine(name, NamePattern::plain)) << name;
    EXPECT_FALSE(check_name(CatalogType::view, name, NamePattern::any_letters).has_value());
  }
  // A space, no UTF-8, a sign of multiplication, a picture, a line separator, nothing.
  for (const char* name :
       {"a b", "\xc3", "\xff", "\xc3\x97", "\xf0\x9f\x98\x80", "\xe2\x80\xa8", "", "-a", "*"})
    EXPECT_FALSE(is_fine(name, NamePattern::any_letters)) << name;
  std::string longest;
  for (int i = 0; i < 64; i++) longest += "\xc3\xa4";
  EXPECT_TRUE(is_fine(longest, NamePattern::any_letters));
  EXPECT_FALSE(is_fine(longest + "a", NamePattern::any_letters));
}

TEST(CatalogDraftsTest, LocationsOfFilesets) {
  const auto placed = [](const std::string& request, const FilesetPlace& place) -> std::string {
    stored::CatalogEntity draft = made(CatalogType::fileset, request);
    const Status done = place_fileset(place, draft);
    if (!done) return done.error().message;
    std::string text = draft.properties().at("default-location-name");
    for (const auto& [name, path] : std::map<std::string, std::string>(
             draft.fileset().locations().begin(), draft.fileset().locations().end())) {
      text += " " + name + "=" + path;
    }
    return text;
  };
  const FilesetPlace nowhere{"c", "s", {}, {}};
  EXPECT_EQ(placed(R"({"name":"f"})", nowhere),
            "Storage location must be set for fileset f when it's catalog and schema location are "
            "not set");
  EXPECT_EQ(placed(R"({"name":"f","type":"external"})", {"c", "s", {{"location", "/x"}}, {}}),
            "Storage location must be set for external fileset f");
  EXPECT_EQ(placed(R"({"name":"f","storageLocation":"/a/b"})", nowhere),
            "unknown unknown=file:/a/b");
  EXPECT_EQ(placed(R"({"name":"f"})", {"c", "s", {{"location", "s3://x/"}}, {}}),
            "unknown unknown=s3://x/s/f");
  EXPECT_EQ(
      placed(R"({"name":"f"})", {"c", "s", {{"location", "s3://x"}}, {{"location", "hdfs://y"}}}),
      "unknown unknown=hdfs://y/f");
  EXPECT_EQ(placed(R"({"name":"f","properties":{"placeholder-p":"1","default-location-name":"b"},
                       "storageLocations":{"a":"s3://{{catalog}}/{{p}}"}})",
                   {"c", "s", {{"location-b", "s3://{{schema}}-{{fileset}}"}}, {}}),
            "b a=s3://c/1 b=s3://s-f");
  EXPECT_EQ(placed(R"({"name":"f","storageLocation":"s3://{{p}}"})", nowhere),
            "No value found for placeholder: {{p}}");
  // A long value that is asked for often: what comes out is as large as it may be, or refused.
  std::string often = R"({"name":"f","properties":{"placeholder-p":")" + std::string(1 << 20, 'x') +
                      R"("},"storageLocation":")";
  for (int i = 0; i < 100'000; i++) often += "{{p}}";
  EXPECT_EQ(placed(often + "\"}", nowhere),
            "The locations of a fileset have at most 4194304 bytes");
  EXPECT_EQ(placed(R"({"name":"f","storageLocation":"s3://{{x}}{{fileset}}}}{{",
                       "properties":{"placeholder-x":"{{fileset}}"}})",
                   nowhere),
            "unknown unknown=s3://{{fileset}}f}}{{");
  EXPECT_EQ(placed(R"({"name":"f","storageLocations":{"a":"s3://a","b":"s3://b"}})", nowhere),
            "The fileset property default-location-name must be set and must be one of the fileset "
            "locations, location names: [a, b], default location name: null");
  EXPECT_EQ(placed(R"({"name":"f","storageLocation":"s3://a",
                       "properties":{"default-location-name":"b"}})",
                   nowhere),
            "Default location name must be the same as the fileset location name");

  stored::CatalogEntity fileset = made(CatalogType::fileset,
                                       R"({"name":"f","storageLocations":{"a":"s3://a/","b":"t"},
                                           "properties":{"default-location-name":"a"}})");
  ASSERT_OK(place_fileset(nowhere, fileset));
  EXPECT_EQ(*fileset_location(fileset, "", ""), "s3://a/");
  EXPECT_EQ(*fileset_location(fileset, "", " x/y "), "s3://a/x/y");
  EXPECT_EQ(*fileset_location(fileset, "b", "/x"), "t/x");
  EXPECT_REASON(fileset_location(fileset, "c", ""), Code::not_found, "no_such_location_name");
  for (const char* up : {"..", " .. ", "/..", "x/../../y", "../x", "x/.."})
    EXPECT_REASON(fileset_location(fileset, "", up), Code::invalid, "illegal_argument");
  EXPECT_EQ(*fileset_location(fileset, "", "..x/y../..."), "s3://a/..x/y../...");
}

TEST(CatalogUpdatesTest, OfEveryType) {
  stored::CatalogEntity lake = made(CatalogType::metalake, R"({"name":"a","comment":"c"})");
  ASSERT_OK(update(
      CatalogType::metalake, lake,
      R"([{"@type":"rename","newName":"b"},{"@type":"setProperty","property":"k","value":"1"},
                       {"@type":"setProperty","property":"l","value":""},
                       {"@type":"rename","newName":"d"},
                       {"@type":"removeProperty","property":"k"},
                       {"@type":"removeProperty","property":"none"},
                       {"@type":"updateComment","newComment":"x"}])"));
  EXPECT_EQ(answer(CatalogType::metalake, lake),
            R"({"name":"d","comment":"x","properties":{"l":""}})");
  ASSERT_OK(
      update(CatalogType::metalake, lake, R"([{"@type":"updateComment","newComment":null}])"));
  EXPECT_FALSE(lake.has_comment());
  ASSERT_OK(update(CatalogType::metalake, lake, "[]"));

  stored::CatalogEntity fileset =
      made(CatalogType::fileset, R"({"name":"f","comment":"c","storageLocation":"s3://a"})");
  ASSERT_OK(update(CatalogType::fileset, fileset, R"([{"@type":"removeComment"}])"));
  EXPECT_FALSE(fileset.has_comment());

  stored::CatalogEntity view = made(
      CatalogType::view, R"({"name":"v","comment":"c","properties":{"k":"v"},"defaultCatalog":"c",
                             "representations":[{"dialect":"d","sql":"x"}]})");
  ASSERT_OK(update(CatalogType::view, view,
                   R"([{"@type":"replaceView","columns":[{"name":"a","type":"date"}],
                        "representations":[{"dialect":"e","sql":"y"}],"defaultSchema":"s"}])"));
  EXPECT_EQ(
      answer(CatalogType::view, view),
      R"({"name":"v","columns":[{"name":"a","type":"date","nullable":true,"autoIncrement":false}],)"
      R"("representations":[{"type":"sql","dialect":"e","sql":"y"}],"defaultSchema":"s",)"
      R"("properties":{"k":"v"}})");

  stored::CatalogEntity function =
      made(CatalogType::function, R"({"name":"f","functionType":"scalar","returnType":"long",
        "definitions":[{"parameters":[{"name":"a","dataType":"long"}],
                        "impls":[{"language":"SQL","runtime":"SPARK","sql":"a"}]}]})");
  ASSERT_OK(update(CatalogType::function, function,
                   R"([{"@type":"addDefinition","definition":{
            "impls":[{"language":"SQL","runtime":"SPARK","sql":"b"}]}},
          {"@type":"addImpl","parameters":[],
           "implementation":{"language":"SQL","runtime":"TRINO","sql":"c"}},
          {"@type":"updateImpl","parameters":[],"runtime":"spark",
           "implementation":{"language":"SQL","runtime":"SPARK","sql":"d"}},
                       {"@type":"removeDefinition","parameters":[{"name":"a","dataType":"LONG"}]},
                       {"@type":"removeImpl","parameters":[],"runtime":"TRINO"},
                       {"@type":"updateComment","newComment":"x"}])"));
  EXPECT_EQ(function.function().definitions_json(),
            R"([{"parameters":[],"impls":[{"language":"SQL","runtime":"SPARK","sql":"d",)"
            R"("properties":{}}]}])");

  stored::CatalogEntity policy =
      made(CatalogType::policy,
           R"({"name":"p","policyType":"custom","content":{"supportedObjectTypes":["table"]}})");
  ASSERT_OK(update(CatalogType::policy, policy,
                   R"([{"@type":"updateContent","policyType":"custom",
           "newContent":{"supportedObjectTypes":["TOPIC"]}},
                       {"@type":"rename","newName":"q"}])"));
  EXPECT_EQ(policy.policy().content_json(), R"({"supportedObjectTypes":["topic"]})");
  EXPECT_EQ(update_problem(CatalogType::policy, policy,
                           R"([{"@type":"updateContent","policyType":"system_iceberg_compaction",
               "newContent":{}}])"),
            "Policy type mismatch: expected custom but got system_iceberg_compaction");
}

stored::CatalogEntity abc() {
  return made(CatalogType::table, R"({"name":"t","columns":[{"name":"a","type":"long"},
      {"name":"b","type":"long"},{"name":"c","type":"long"}],
      "indexes":[{"indexType":"unique_key","name":"i","fieldNames":[["a"]]}]})");
}

std::string columns_after(const std::string& updates) {
  stored::CatalogEntity table = abc();
  EXPECT_OK(update(CatalogType::table, table, updates));
  std::string names;
  for (const auto& column : table.table().columns()) {
    names += column.name() + std::to_string(column.id()) + " ";
  }
  return names;
}

// What is answered can be sent again, and makes the same.
TEST(CatalogDraftsTest, AnswersAreRequests) {
  for (const VectorLine& line : read_vectors("catalog/drafts.txt")) {
    SCOPED_TRACE(line.where);
    const auto [type, request] = typed(line.left);
    // Those answers say more than a request may.
    if (type == CatalogType::model || type == CatalogType::function) continue;
    if (!line.right.starts_with('{')) continue;
    const stored::CatalogEntity first = made(type, request);
    const stored::CatalogEntity second = made(type, answer(type, first));
    EXPECT_EQ(answer(type, second), answer(type, first));
  }
}

// Whatever is broken in something good: a draft or a named error; and what changes one is applied
// or changes nothing.
TEST(CatalogDraftsTest, AnyRequestIsADraftOrAnError) {
  const std::vector<VectorLine> drafts = read_vectors("catalog/drafts.txt");
  const std::vector<VectorLine> updates = read_vectors("catalog/updates.txt");
  Random random(test_seed(89));
  const auto broken = [&](const std::vector<VectorLine>& lines) {
    auto [type, text] = typed(lines[random.below(lines.size())].left);
    for (uint64_t changes = random.below(4); changes > 0; --changes) {
      const std::string other = typed(lines[random.below(lines.size())].left).second;
      const size_t at = random.below(text.size() + 1);
      if (random.below(2) == 0) {
        text.erase(at, random.below(9));
      } else {
        text.insert(at, other.substr(random.below(other.size() + 1), 14));
      }
    }
    return std::pair(type, text);
  };
  uint64_t good = 0;
  for (uint64_t i = 0; i < test_rounds(30'000); ++i) {
    const auto [type, request] = broken(drafts);
    if (parse_json(request) && problem(type, request).empty()) {
      answer(type, made(type, request));
      ++good;
    }
    const auto [of, list] = broken(updates);
    if (!parse_json(list)) continue;
    stored::CatalogEntity table = abc();
    if (update_problem(of, table, list).empty()) {
      ASSERT_OK(update(of, table, list));
      answer(CatalogType::table, table);
      ++good;
    }
  }
  EXPECT_GT(good, 0U);
}

TEST(CatalogUpdatesTest, PlacesOfColumns) {
  const auto add = [](const char* position) {
    return columns_after(std::string(R"([{"@type":"addColumn","fieldName":["d"],"type":"date")") +
                         position + "}]");
  };
  EXPECT_EQ(add(""), "a1 b2 c3 d4 ");
  EXPECT_EQ(add(R"(,"position":null)"), "a1 b2 c3 d4 ");
  EXPECT_EQ(add(R"(,"position":"Default")"), "a1 b2 c3 d4 ");
  EXPECT_EQ(add(R"(,"position":"first")"), "d4 a1 b2 c3 ");
  EXPECT_EQ(add(R"(,"position":{"after":"a"})"), "a1 d4 b2 c3 ");
  EXPECT_EQ(add(R"(,"position":{"after":"c"})"), "a1 b2 c3 d4 ");
  const auto move = [](const char* column, const char* position) {
    return columns_after(std::string(R"([{"@type":"updateColumnPosition","fieldName":[")") +
                         column + R"("],"newPosition":)" + position + "}]");
  };
  EXPECT_EQ(move("c", "\"first\""), "c3 a1 b2 ");
  EXPECT_EQ(move("a", "\"first\""), "a1 b2 c3 ");
  EXPECT_EQ(move("a", R"({"after":"c"})"), "b2 c3 a1 ");
  EXPECT_EQ(move("a", R"({"after":"b"})"), "b2 a1 c3 ");
  EXPECT_EQ(move("c", R"({"after":"a"})"), "a1 c3 b2 ");
  // Ids are not given again.
  EXPECT_EQ(columns_after(R"([{"@type":"addColumn","fieldName":["d"],"type":"date"},
                              {"@type":"deleteColumn","fieldName":["d"]},
                              {"@type":"addColumn","fieldName":["d"],"type":"date"}])"),
            "a1 b2 c3 d5 ");
  // Columns come last: the rename of the table does not matter to them.
  EXPECT_EQ(columns_after(R"([{"@type":"deleteColumn","fieldName":["b"]},
                              {"@type":"deleteColumn","fieldName":["b"],"ifExists":true},
                              {"@type":"renameColumn","oldFieldName":["c"],"newFieldName":"b"},
                              {"@type":"renameColumn","oldFieldName":["b"],"newFieldName":"b"}])"),
            "a1 b3 ");
}

TEST(CatalogUpdatesTest, EverythingOfATable) {
  stored::CatalogEntity table = abc();
  const auto read = CatalogUpdates::read(CatalogType::table, parsed(R"~({"updates":[
        {"@type":"addColumn","fieldName":["d"],"type":"date","comment":"x","nullable":false},
        {"@type":"updateColumnType","fieldName":["d"],"newType":"decimal(5, 1)"},
        {"@type":"updateColumnComment","fieldName":["d"],"newComment":"y"},
        {"@type":"updateColumnNullability","fieldName":["d"],"nullable":true},
        {"@type":"updateColumnAutoIncrement","fieldName":["d"],"autoIncrement":true},
        {"@type":"updateColumnDefaultValue","fieldName":["d"],
         "newDefaultValue":{"type":"literal","dataType":"long","value":"1"}},
        {"@type":"deleteColumn","fieldName":["a"]},{"@type":"deleteColumn","fieldName":["b"]},
        {"@type":"deleteColumn","fieldName":["c"]},
        {"@type":"deleteTableIndex","name":"i"},
        {"@type":"deleteTableIndex","name":"i","ifExists":true},
        {"@type":"addTableIndex","index":{"indexType":"btree","name":"j","fieldNames":[["d"]]}},
        {"@type":"rename","newName":"u","newSchemaName":"s2"},
        {"@type":"updateComment","newComment":"z"}]})~"));
  ASSERT_OK(read);
  EXPECT_EQ(read->new_schema(), "s2");
  ASSERT_OK(read->apply(table));
  EXPECT_EQ(
      answer(CatalogType::table, table),
      R"~({"name":"u","comment":"z","columns":[{"name":"d","type":"decimal(5,1)","comment":"y",)~"
      R"("nullable":true,"autoIncrement":true,)"
      R"("defaultValue":{"type":"literal","dataType":"long","value":"1"}}],"partitioning":[],)"
      R"("distribution":{"strategy":"none","number":0,"funcArgs":[]},"sortOrders":[],)"
      R"("indexes":[{"indexType":"BTREE","name":"j","fieldNames":[["d"]],"properties":{}}],)"
      R"("properties":{}})");
}

TEST(CatalogUpdatesTest, TheLastRenameDecidesAll) {
  const auto schema_of = [](const std::string& updates) {
    const auto read =
        CatalogUpdates::read(CatalogType::table, parsed(R"({"updates":)" + updates + "}"));
    EXPECT_OK(read);
    stored::CatalogEntity table = abc();
    EXPECT_OK(read->apply(table));
    return table.name() + " " + read->new_schema().value_or("-");
  };
  const std::string here = R"({"@type":"rename","newName":"x"})";
  const std::string there = R"({"@type":"rename","newName":"y","newSchemaName":"s2"})";
  EXPECT_EQ(schema_of("[" + there + "," + here + "]"), "x -");
  EXPECT_EQ(schema_of("[" + here + "," + there + "]"), "y s2");
}

// As many as there may be, on a table that is as wide as it may be: seconds if each looked at all
// columns by name, or read all indexes.
TEST(CatalogUpdatesTest, ManyOfThemTakeNoTime) {
  stored::CatalogEntity table = abc();
  const auto many = [](size_t count, FunctionRef<std::string(size_t)> each) {
    std::string updates = "[";
    for (size_t i = 0; i < count; i++) updates += (i == 0 ? "" : ",") + each(i);
    return updates + "]";
  };
  const auto add = [](size_t i) {
    return fmt::format(R"({{"@type":"addColumn","fieldName":["n{}"],"type":"date"}})", i);
  };
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_OK(update(CatalogType::table, table, many(catalog_columns_max - 3, add)));
  EXPECT_EQ(
      update_problem(CatalogType::table, table,
                     many(1,
                          [](size_t) {
                            return R"({"@type":"addColumn","fieldName":["more"],"type":"date"})";
                          })),
      "It has at most 10000 columns");
  ASSERT_OK(
      update(CatalogType::table, table, many(catalog_updates_max, [](size_t i) {
               return fmt::format(
                   R"({{"@type":"updateColumnComment","fieldName":["n{}"],"newComment":"c"}})",
                   9'996 - i % 100);
             })));
  const auto index = [](size_t i) {
    return fmt::format(R"({{"@type":"addTableIndex","index":)"
                       R"({{"indexType":"btree","name":"i{}","fieldNames":[["a"]]}}}})",
                       i);
  };
  ASSERT_OK(update(CatalogType::table, table, many(catalog_indexes_max - 1, index)));
  EXPECT_EQ(update_problem(CatalogType::table, table, many(1, index)),
            "A table has at most 1000 indexes");
  ASSERT_OK(update(CatalogType::table, table, many(catalog_updates_max, [](size_t) {
                     return R"({"@type":"deleteTableIndex","name":"none","ifExists":true})";
                   })));
  EXPECT_EQ(update_problem(CatalogType::table, table, many(catalog_updates_max + 1, index)),
            "\"updates\" has at most 10000 elements");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(CatalogUpdatesTest, WhatIsWrongChangesNothing) {
  for (const VectorLine& line : read_vectors("catalog/updates.txt")) {
    SCOPED_TRACE(line.where);
    const auto [type, updates] = typed(line.left);
    EXPECT_EQ("!" + update_problem(type, abc(), updates), line.right);
  }
}

// Random changes of columns against a list of names.
TEST(CatalogUpdatesTest, ColumnsAgainstAModel) {
  Random random(test_seed(79));
  for (uint64_t round = 0; round < test_rounds(300); ++round) {
    stored::CatalogEntity table = abc();
    table.mutable_table()->clear_indexes_json();  // which would hold a column
    std::vector<std::string> model = {"a", "b", "c"};
    std::set<uint64_t> ids = {1, 2, 3};
    for (int i = 0; i < 30; ++i) {
      const std::string name(1, static_cast<char>('a' + random.below(6)));
      const std::string other(1, static_cast<char>('a' + random.below(6)));
      const auto at = std::ranges::find(model, name);
      const auto after = std::ranges::find(model, other);
      bool is_good = at != model.end();
      std::string text;
      std::vector<std::string> changed = model;
      switch (random.below(4)) {
        case 0:
          is_good = !is_good && after != model.end();
          text = R"({"@type":"addColumn","fieldName":[")" + name +
                 R"("],"type":"date","position":{"after":")" + other + "\"}}";
          if (is_good) changed.insert(changed.begin() + (after - model.begin()) + 1, name);
          break;
        case 1:
          text = R"({"@type":"deleteColumn","fieldName":[")" + name + "\"]}";
          if (is_good) std::erase(changed, name);
          break;
        case 2:
          is_good = is_good && after != model.end() && name != other;
          text = R"({"@type":"updateColumnPosition","fieldName":[")" + name +
                 R"("],"newPosition":{"after":")" + other + "\"}}";
          if (is_good) {
            std::erase(changed, name);
            changed.insert(std::ranges::find(changed, other) + 1, name);
          }
          break;
        default:
          is_good = is_good && (after == model.end() || name == other);
          text = R"({"@type":"renameColumn","oldFieldName":[")" + name + R"("],"newFieldName":")" +
                 other + "\"}";
          if (is_good) *std::ranges::find(changed, name) = other;
      }
      ASSERT_EQ(update(CatalogType::table, table, "[" + text + "]").has_value(), is_good) << text;
      model = changed;
      std::vector<std::string> names;
      std::set<uint64_t> now;
      for (const auto& column : table.table().columns()) {
        names.push_back(column.name());
        now.insert(column.id());
        ids.insert(column.id());
      }
      ASSERT_EQ(names, model) << text;
      ASSERT_EQ(now.size(), names.size());
      ASSERT_EQ(table.table().next_column_id(), ids.size() + 1);  // each was new once
    }
  }
}

TEST(CatalogUpdatesTest, Times) {
  EXPECT_EQ(instant_text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(instant_text(1'700'000'000'123), "2023-11-14T22:13:20.123Z");
  Bytes out = "{";
  stored::CatalogAudit audit;
  audit.set_creator("a\"");
  audit.set_created_ms(1'700'000'000'000);
  audit.set_modifier("b");
  audit.set_modified_ms(1'700'000'001'007);
  append_audit(out, audit);
  EXPECT_EQ(out, R"({"audit":{"creator":"a\"","createTime":"2023-11-14T22:13:20.000Z",)"
                 R"("lastModifier":"b","lastModifiedTime":"2023-11-14T22:13:21.007Z"})");
}

}  // namespace
}  // namespace trellis
