// What is made and how it is changed, without anything stored.
#include "catalog/updates.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "base/random.h"
#include "catalog/catalog_error.h"
#include "catalog/drafts.h"
#include "catalog/entity_json.h"
#include "catalog/name_rules.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

json::value parsed(const std::string& text) {
  auto value = parse_json(text);
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

TEST(CatalogDraftsTest, AsTheyAreAnswered) {
  const std::tuple<CatalogType, const char*, const char*> rows[] = {
      {CatalogType::metalake, R"({"name":"lake"})", R"({"name":"lake","properties":{}})"},
      {CatalogType::metalake,
       R"({"name":"lake","comment":"","properties":{"b":"2","a":1,"c":true}})",
       R"({"name":"lake","comment":"","properties":{"a":"1","b":"2","c":"true"}})"},
      {CatalogType::catalog,
       R"({"name":"c-1","type":"RELATIONAL","provider":"hive","comment":null})",
       R"({"name":"c-1","type":"relational","provider":"hive","properties":{}})"},
      {CatalogType::catalog, R"({"name":"c","type":"fileset"})",
       R"({"name":"c","type":"fileset","provider":"fileset","properties":{}})"},
      {CatalogType::catalog, R"({"name":"c","type":"model","provider":""})",
       R"({"name":"c","type":"model","provider":"model","properties":{}})"},
      {CatalogType::schema, R"({"name":"a/b=c-d"})", R"({"name":"a/b=c-d","properties":{}})"},
      {CatalogType::topic, R"({"name":"t","comment":"c"})",
       R"({"name":"t","comment":"c","properties":{}})"},
      {CatalogType::model, R"({"name":"m"})", R"({"name":"m","latestVersion":0,"properties":{}})"},
      {CatalogType::table,
       R"({"name":"t","columns":[{"name":"a","type":"INTEGER"},{"name":"b","type":"string",
           "comment":"c","nullable":false,"autoIncrement":true,
           "defaultValue":{"type":"literal","dataType":"string","value":"x"}}],
           "partitioning":[{"strategy":"day","fieldName":["A"]}],
           "distribution":{"strategy":"hash","number":4,
                           "funcArgs":[{"type":"field","fieldName":["b"]}]},
           "sortOrders":[{"sortTerm":{"type":"field","fieldName":["a"]}}],
           "indexes":[{"indexType":"primary_key","name":"p","fieldNames":[["a"]]}]})",
       R"({"name":"t","columns":[{"name":"a","type":"integer","nullable":true,"autoIncrement":false},)"
       R"({"name":"b","type":"string","comment":"c","nullable":false,"autoIncrement":true,)"
       R"("defaultValue":{"type":"literal","dataType":"string","value":"x"}}],)"
       R"("partitioning":[{"strategy":"day","fieldName":["A"]}],)"
       R"("distribution":{"strategy":"hash","number":4,"funcArgs":[{"type":"field","fieldName":["b"]}]},)"
       R"("sortOrders":[{"sortTerm":{"type":"field","fieldName":["a"]},"direction":"asc","nullOrdering":"nulls_first"}],)"
       R"("indexes":[{"indexType":"PRIMARY_KEY","name":"p","fieldNames":[["a"]],"properties":{}}],)"
       R"("properties":{}})"},
      {CatalogType::table, R"({"name":"t","columns":[],"partitioning":null})",
       R"({"name":"t","columns":[],"partitioning":[],)"
       R"("distribution":{"strategy":"none","number":0,"funcArgs":[]},"sortOrders":[],"indexes":[],)"
       R"("properties":{}})"},
      {CatalogType::view,
       R"({"name":"v","columns":[{"name":"a","type":"date"}],"odd":1,"defaultSchema":"s",
           "representations":[{"type":"sql","dialect":"spark","sql":"select 1"},
                              {"dialect":"trino","sql":"select 2"}]})",
       R"({"name":"v","columns":[{"name":"a","type":"date","nullable":true,"autoIncrement":false}],)"
       R"("representations":[{"type":"sql","dialect":"spark","sql":"select 1"},)"
       R"({"type":"sql","dialect":"trino","sql":"select 2"}],"defaultSchema":"s","properties":{}})"},
      {CatalogType::function,
       R"({"name":"f","functionType":"SCALAR","deterministic":true,"returnType":"long",
           "definitions":[{"parameters":[{"name":"a","dataType":"INTEGER","comment":"c"}],
             "impls":[{"language":"SQL","runtime":"SPARK","sql":"a"}]}]})",
       R"({"name":"f","functionType":"scalar","deterministic":true,"returnType":"long",)"
       R"("definitions":[{"parameters":[{"name":"a","dataType":"integer","comment":"c"}],)"
       R"("impls":[{"language":"SQL","runtime":"SPARK","sql":"a","properties":{}}]}],"version":0})"},
      {CatalogType::tag, R"({"name":"any \u00e4","allowedValues":["a","b"]})",
       "{\"name\":\"any \xc3\xa4\",\"allowedValues\":[\"a\",\"b\"],\"properties\":{}}"},
      {CatalogType::policy,
       R"({"name":"p","policyType":"custom","enabled":false,
           "content":{"customRules":{"days":30},"properties":{"k":"v"},
                      "supportedObjectTypes":["TABLE","catalog","table"]}})",
       R"({"name":"p","policyType":"custom","enabled":false,"content":{"customRules":{"days":30},)"
       R"("properties":{"k":"v"},"supportedObjectTypes":["catalog","table"]}})"},
      {CatalogType::policy, R"({"name":"p","policyType":"system_iceberg_compaction","content":{}})",
       R"({"name":"p","policyType":"system_iceberg_compaction","enabled":true,"content":{}})"},
  };
  for (const auto& [type, request, expected] : rows) {
    SCOPED_TRACE(request);
    EXPECT_EQ(answer(type, made(type, request)), expected);
  }
}

TEST(CatalogDraftsTest, WhatIsWrong) {
  const std::string required = "\"name\" field is required and cannot be empty";
  const std::tuple<CatalogType, std::string, std::string> rows[] = {
      {CatalogType::metalake, "[]", "request must be a JSON object, but found: []"},
      {CatalogType::metalake, "{}", required},
      {CatalogType::metalake, R"({"name":" \t"})", required},
      {CatalogType::metalake, R"({"name":{}})", "\"name\" must be a string, but found: {}"},
      {CatalogType::metalake, R"({"name":"a-b"})", "The METALAKE name 'a-b' is illegal."},
      {CatalogType::metalake, R"({"name":"system"})", "The METALAKE name 'system' is reserved."},
      {CatalogType::metalake, R"({"name":"System"})", ""},
      {CatalogType::catalog, R"({"name":"SYSTEM","type":"model"})",
       "The CATALOG name 'SYSTEM' is reserved."},
      {CatalogType::catalog, R"({"name":"a/b","type":"model"})",
       "The CATALOG name 'a/b' is illegal."},
      {CatalogType::schema, R"({"name":"*"})", "The SCHEMA name '*' is reserved."},
      {CatalogType::schema, R"({"name":"-a"})", "The SCHEMA name '-a' is illegal."},
      {CatalogType::schema, R"({"name":"a.b"})", "The SCHEMA name 'a.b' is illegal."},
      {CatalogType::schema, "{\"name\":\"\xc3\xa4\"}", "The SCHEMA name '\xc3\xa4' is illegal."},
      {CatalogType::schema, R"({"name":")" + std::string(64, 'a') + "\"}", ""},
      {CatalogType::schema, R"({"name":")" + std::string(65, 'a') + "\"}",
       "The SCHEMA name '" + std::string(65, 'a') + "' is illegal."},
      {CatalogType::tag, R"({"name":")" + std::string(129, 'a') + "\"}",
       "The TAG name '" + std::string(129, 'a') + "' is illegal."},
      {CatalogType::schema, R"({"name":"a","odd":1})",
       "Malformed json request: request has the unknown member \"odd\""},
      {CatalogType::schema, R"({"name":"a","properties":[]})",
       "\"properties\" must be a JSON object, but found: []"},
      {CatalogType::schema, R"({"name":"a","properties":{"a":null}})",
       "\"properties\" must be an object of strings, but found: null"},
      {CatalogType::schema, R"({"name":"a","properties":{"gravitino.identifier":"x"}})",
       "Properties or property prefixes are reserved and cannot be set: [gravitino.identifier]"},
      {CatalogType::metalake, R"({"name":"a","properties":{"in-use":"x"}})",
       "Properties or property prefixes are reserved and cannot be set: [in-use]"},
      {CatalogType::schema, R"({"name":"a","properties":{"in-use":"x"}})", ""},
      {CatalogType::schema, R"({"name":"a","comment":")" + std::string(4'096, 'c') + "\"}", ""},
      {CatalogType::schema, R"({"name":"a","comment":")" + std::string(4'097, 'c') + "\"}",
       "A comment has 4096 characters at most"},
      {CatalogType::catalog, R"({"name":"a"})", "\"type\" field is required and cannot be empty"},
      {CatalogType::catalog, R"({"name":"a","type":"odd"})",
       "Unknown catalog type: odd. Valid values are: [relational, fileset, messaging, model]"},
      {CatalogType::catalog, R"({"name":"a","type":"relational"})",
       "\"provider\" field is required and cannot be empty"},
      {CatalogType::table, R"({"name":"t","columns":[{"type":"date"}]})",
       "Column name cannot be null or empty."},
      {CatalogType::table, R"({"name":"t","columns":[{"name":"a"}]})",
       "Column data type cannot be null."},
      {CatalogType::table, R"({"name":"t","columns":[null]})", "column must not be null"},
      {CatalogType::table, R"({"name":"t","columns":[{"name":"a","type":"date","odd":1}]})",
       "Malformed json request: column has the unknown member \"odd\""},
      {CatalogType::table, R"({"name":"t","columns":[{"name":"a","type":"date","nullable":7}]})",
       "\"nullable\" must be true or false, but found: 7"},
      {CatalogType::table, R"({"name":"t","columns":[{"name":"a b","type":"date"}]})",
       "The COLUMN name 'a b' is illegal."},
      {CatalogType::table,
       R"({"name":"t","columns":[{"name":"a","type":"date"},{"name":"a","type":"date"}]})",
       "Column a is given twice"},
      {CatalogType::table,
       R"({"name":"t","columns":[{"name":"a","type":"date","nullable":false,
           "defaultValue":{"type":"literal","dataType":"null","value":"NULL"}}]})",
       "Column cannot be non-nullable with a null default value: a"},
      {CatalogType::table,
       R"({"name":"t","columns":[{"name":"a","type":"long","autoIncrement":true},
           {"name":"b","type":"long","autoIncrement":"True"}]})",
       "Only one column can be auto-incremented. There are multiple auto-increment columns in "
       "your table: [a,b]"},
      {CatalogType::table,
       R"({"name":"t","columns":[],"partitioning":[{"strategy":"day","fieldName":["a"]}]})",
       "columns cannot be null or empty"},
      {CatalogType::table,
       R"({"name":"t","columns":[{"name":"b","type":"date"}],
           "sortOrders":[{"sortTerm":{"type":"field","fieldName":["a"]}}]})",
       "partition field a not found in table"},
      {CatalogType::fileset, R"({"name":"f","type":"odd"})",
       "Unknown fileset type: odd. Valid values are: [managed, external]"},
      {CatalogType::fileset, R"({"name":"f","storageLocations":{"":"x"}})",
       "Location name must not be blank"},
      {CatalogType::fileset, R"({"name":"f","storageLocations":{"a":" "}})",
       "Storage location must not be blank for location name: a"},
      {CatalogType::view, R"({"name":"v"})",
       "\"representations\" field is required and cannot be empty"},
      {CatalogType::view, R"({"name":"v","representations":[{"type":"odd"}]})",
       "Unsupported representation type: odd"},
      {CatalogType::view,
       R"({"name":"v","representations":[{"dialect":"d","sql":"x"},{"dialect":"d","sql":"y"}]})",
       "Duplicate SQL representation dialect: d"},
      {CatalogType::function, R"({"name":"f","definitions":[{}]})",
       "\"functionType\" field is required"},
      {CatalogType::function, R"({"name":"f","functionType":"scalar","definitions":[]})",
       "\"definitions\" field is required and cannot be empty"},
      {CatalogType::function, R"({"name":"f","functionType":"scalar","definitions":[{}]})",
       "\"returnType\" is required for SCALAR or AGGREGATE function type"},
      {CatalogType::function, R"({"name":"f","functionType":"table","definitions":[{}]})",
       "\"returnColumns\" is required for TABLE function type"},
      {CatalogType::function,
       R"({"name":"f","functionType":"scalar","definitions":[{"returnType":"long"}]})", ""},
      {CatalogType::tag, R"({"name":"t","allowedValues":[""]})",
       "allowedValues cannot contain null or empty values"},
      {CatalogType::tag, R"({"name":"t","allowedValues":[")" + std::string(257, 'v') + "\"]}",
       "allowedValues cannot contain values longer than 256 characters"},
      {CatalogType::policy, R"({"name":"p"})",
       "\"policyType\" field is required and cannot be empty"},
      {CatalogType::policy, R"({"name":"p","policyType":"odd","content":{}})",
       "Unknown policy type: odd. Valid values are: [custom, system_iceberg_compaction, "
       "system_iceberg_rewrite_manifests]"},
      {CatalogType::policy, R"({"name":"p","policyType":"custom"})",
       "\"content\" is required and cannot be null"},
      {CatalogType::policy, R"({"name":"p","policyType":"custom","content":{}})",
       "supportedObjectTypes cannot be empty"},
      {CatalogType::user, R"({"name":"u"})", "nothing of this type can be made so"},
  };
  for (const auto& [type, request, expected] : rows) {
    SCOPED_TRACE(request.substr(0, 200));
    EXPECT_EQ(problem(type, request), expected);
  }
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
}

TEST(CatalogUpdatesTest, OfEveryType) {
  stored::CatalogEntity lake = made(CatalogType::metalake, R"({"name":"a","comment":"c"})");
  ASSERT_OK(update(
      CatalogType::metalake, lake,
      R"([{"@type":"rename","newName":"b"},{"@type":"setProperty","property":"k","value":"1"},
                       {"@type":"setProperty","property":"l","value":""},{"@type":"rename","newName":"d"},
                       {"@type":"removeProperty","property":"k"},{"@type":"removeProperty","property":"none"},
                       {"@type":"updateComment","newComment":"x","odd":[]}])"));
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
  ASSERT_OK(update(
      CatalogType::function, function,
      R"([{"@type":"addDefinition","definition":{"impls":[{"language":"SQL","runtime":"SPARK","sql":"b"}]}},
                       {"@type":"addImpl","parameters":[],"implementation":{"language":"SQL","runtime":"TRINO","sql":"c"}},
                       {"@type":"updateImpl","parameters":[],"runtime":"spark","implementation":{"language":"SQL","runtime":"SPARK","sql":"d"}},
                       {"@type":"removeDefinition","parameters":[{"name":"a","dataType":"LONG"}]},
                       {"@type":"removeImpl","parameters":[],"runtime":"TRINO"},
                       {"@type":"updateComment","newComment":"x"}])"));
  EXPECT_EQ(
      function.function().definitions_json(),
      R"([{"parameters":[],"impls":[{"language":"SQL","runtime":"SPARK","sql":"d","properties":{}}]}])");

  stored::CatalogEntity policy =
      made(CatalogType::policy,
           R"({"name":"p","policyType":"custom","content":{"supportedObjectTypes":["table"]}})");
  ASSERT_OK(update(
      CatalogType::policy, policy,
      R"([{"@type":"updateContent","policyType":"custom","newContent":{"supportedObjectTypes":["TOPIC"]}},
                       {"@type":"rename","newName":"q"}])"));
  EXPECT_EQ(policy.policy().content_json(), R"({"supportedObjectTypes":["topic"]})");
  EXPECT_EQ(
      update_problem(
          CatalogType::policy, policy,
          R"([{"@type":"updateContent","policyType":"system_iceberg_compaction","newContent":{}}])"),
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
  // Nested names are one.
  EXPECT_EQ(columns_after(R"([{"@type":"addColumn","fieldName":["d","e"],"type":"date"},
                              {"@type":"renameColumn","oldFieldName":["d","e"],"newFieldName":"f"}])"),
            "a1 b2 c3 f4 ");
  // Columns come last: the rename of the table does not matter to them.
  EXPECT_EQ(columns_after(R"([{"@type":"deleteColumn","fieldName":["a"]},
                              {"@type":"deleteColumn","fieldName":["a"],"ifExists":true},
                              {"@type":"renameColumn","oldFieldName":["b"],"newFieldName":"a"},
                              {"@type":"renameColumn","oldFieldName":["a"],"newFieldName":"a"}])"),
            "a2 c3 ");
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
        {"@type":"deleteTableIndex","name":"i"},{"@type":"deleteTableIndex","name":"i","ifExists":true},
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

TEST(CatalogUpdatesTest, WhatIsWrongChangesNothing) {
  const std::string field = "\"fieldName\" field is required and cannot be empty";
  const std::tuple<CatalogType, const char*, std::string> rows[] = {
      {CatalogType::table, R"([{"@type":"odd"}])",
       "Malformed json request: Could not resolve type id 'odd' as an update of a table"},
      {CatalogType::table, R"([{"newName":"x"}])",
       "Malformed json request: an update needs \"@type\""},
      {CatalogType::table, "[7]", "update must be a JSON object, but found: 7"},
      {CatalogType::table, "{}", "\"updates\" must be an array, but found: {}"},
      {CatalogType::table, "null", "\"updates\" field is required and cannot be null"},
      {CatalogType::schema, R"([{"@type":"updateComment","newComment":"x"}])",
       "Malformed json request: Could not resolve type id 'updateComment' as an update of a "
       "schema"},
      {CatalogType::topic, R"([{"@type":"rename","newName":"x"}])",
       "Malformed json request: Could not resolve type id 'rename' as an update of a topic"},
      {CatalogType::metalake, R"([{"@type":"addColumn"}])",
       "Malformed json request: Could not resolve type id 'addColumn' as an update of a "
       "metalake"},
      {CatalogType::table, R"([{"@type":"rename"}])",
       "\"newName\" field is required and cannot be empty"},
      {CatalogType::table, R"([{"@type":"rename","newName":"a b"}])",
       "The TABLE name 'a b' is illegal."},
      {CatalogType::table, R"([{"@type":"setProperty","value":"x"}])",
       "\"property\" field is required and cannot be empty"},
      {CatalogType::table, R"([{"@type":"setProperty","property":"x"}])",
       "\"value\" field is required and cannot be null"},
      {CatalogType::catalog, R"([{"@type":"setProperty","property":"in-use","value":"x"}])",
       "Properties or property prefixes are reserved and cannot be set: [in-use]"},
      {CatalogType::catalog, R"([{"@type":"removeProperty","property":"in-use"}])",
       "Properties or property prefixes are reserved and cannot be set: [in-use]"},
      {CatalogType::fileset, R"([{"@type":"removeProperty","property":"default-location-name"}])",
       "Property default-location-name is immutable"},
      {CatalogType::table, R"([{"@type":"addColumn","type":"date"}])", field},
      {CatalogType::table, R"([{"@type":"addColumn","fieldName":["x",""],"type":"date"}])", field},
      {CatalogType::table, R"([{"@type":"addColumn","fieldName":["x"]}])",
       "\"type\" field is required and cannot be empty"},
      {CatalogType::table, R"([{"@type":"addColumn","fieldName":["a"],"type":"date"}])",
       "Column a already exists"},
      {CatalogType::table,
       R"([{"@type":"addColumn","fieldName":["x"],"type":"date","position":{"after":"y"}}])",
       "Column y not found for adding column after it"},
      {CatalogType::table,
       R"([{"@type":"addColumn","fieldName":["x"],"type":"date","position":5}])",
       "Unknown json column position: 5"},
      {CatalogType::table,
       R"([{"@type":"addColumn","fieldName":["x"],"type":"date","position":"last"}])",
       "Unknown json column position: \"last\""},
      {CatalogType::table,
       R"([{"@type":"addColumn","fieldName":["x"],"type":"date","position":{}}])",
       "Cannot parse to a string value after: nothing"},
      {CatalogType::table, R"([{"@type":"renameColumn","oldFieldName":["x"],"newFieldName":"y"}])",
       "Column x not found for RenameColumn"},
      {CatalogType::table, R"([{"@type":"renameColumn","oldFieldName":["a"],"newFieldName":"b"}])",
       "Column b already exists when renaming column a"},
      {CatalogType::table, R"([{"@type":"renameColumn","oldFieldName":["a"]}])",
       "\"newFieldName\" field is required and cannot be empty"},
      {CatalogType::table, R"([{"@type":"updateColumnType","fieldName":["a"]}])",
       "\"newType\" field is required and cannot be empty"},
      {CatalogType::table, R"([{"@type":"updateColumnType","fieldName":["x"],"newType":"date"}])",
       "Column x not found for UpdateColumnType"},
      {CatalogType::table, R"([{"@type":"updateColumnComment","fieldName":["a"],"newComment":""}])",
       "\"newComment\" field is required and cannot be empty"},
      {CatalogType::table,
       R"([{"@type":"updateColumnPosition","fieldName":["a"],"newPosition":"default"}])",
       "Unsupported column position: DEFAULT"},
      {CatalogType::table,
       R"([{"@type":"updateColumnPosition","fieldName":["a"],"newPosition":{"after":"a"}}])",
       "Column a not found for adding column after it"},
      {CatalogType::table, R"([{"@type":"updateColumnDefaultValue","fieldName":["a"]}])",
       "\"newDefaultValue\" field is required and cannot be empty"},
      {CatalogType::table, R"([{"@type":"deleteColumn","fieldName":["x"]}])",
       "Column x not found for deletion while ifExists is false"},
      {CatalogType::table, R"([{"@type":"deleteTableIndex","name":"x"}])",
       "Index x does not exist while ifExists is false"},
      {CatalogType::table, R"([{"@type":"deleteTableIndex"}])", "Index name cannot be null"},
      {CatalogType::table, R"([{"@type":"addTableIndex"}])", "Index cannot be null"},
      // The last of many is wrong.
      {CatalogType::table,
       R"([{"@type":"rename","newName":"x"},{"@type":"deleteColumn","fieldName":["a"]},
           {"@type":"setProperty","property":"k","value":"v"},{"@type":"deleteColumn","fieldName":["a"]}])",
       "Column a not found for deletion while ifExists is false"},
      {CatalogType::policy, R"([{"@type":"updateContent","policyType":"custom"}])",
       "\"newContent\" must not be null"},
      {CatalogType::function, R"([{"@type":"addImpl","parameters":[]}])",
       "\"implementation\" field is required and cannot be null"},
      {CatalogType::function, R"([{"@type":"removeImpl","parameters":[]}])",
       "\"runtime\" field is required and cannot be null"},
      {CatalogType::function, R"([{"@type":"removeDefinition"}])",
       "\"parameters\" field is required and cannot be null"},
      {CatalogType::function, R"([{"@type":"addDefinition"}])",
       "\"definition\" field is required and cannot be null"},
  };
  for (const auto& [type, updates, expected] : rows) {
    SCOPED_TRACE(updates);
    EXPECT_EQ(update_problem(type, abc(), updates), expected);
  }
}

// Random changes of columns against a list of names.
TEST(CatalogUpdatesTest, ColumnsAgainstAModel) {
  Random random(test_seed(79));
  for (uint64_t round = 0; round < test_rounds(300); ++round) {
    stored::CatalogEntity table = abc();
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
