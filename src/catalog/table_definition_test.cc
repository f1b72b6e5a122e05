#include "catalog/table_definition.h"

#include <gtest/gtest.h>

#include "catalog/drafts.h"
#include "catalog/updates.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

json::value json_from(const std::string& text) {
  auto value = parse_json(text);
  EXPECT_OK(value);
  return value.value_or(json::value());
}

stored::CatalogTable table_of(std::initializer_list<std::string_view> columns) {
  stored::CatalogTable table;
  for (const std::string_view name : columns) {
    stored::CatalogColumn& column = *table.add_columns();
    column.set_name(std::string(name));
    column.set_type_json("\"long\"");
    column.set_id(static_cast<uint64_t>(table.columns_size()));
  }
  return table;
}

std::string problem_of(const Status& status) {
  if (status) return "";
  EXPECT_EQ(status.error().reason, "illegal_argument");
  return status.error().message;
}

TEST(TableDefinitionTest, FieldsAreColumns) {
  const auto check = [](std::initializer_list<std::string_view> columns) {
    stored::CatalogTable table = table_of(columns);
    table.set_sort_orders_json(
        R"([{"sortTerm":{"type":"function","funcName":"f","funcArgs":[)"
        R"({"type":"field","fieldName":["A","x"]},{"type":"function","funcName":"g",)"
        R"("funcArgs":[{"type":"field","fieldName":["b"]}]}]}}])");
    return problem_of(check_table(table));
  };
  EXPECT_EQ(check({"a", "B"}), "");
  EXPECT_EQ(check({"a"}), "sort order field b not found in table");
  EXPECT_EQ(check({}), "columns cannot be null or empty");
  // Two columns that only differ in case: which one is meant?
  EXPECT_EQ(check({"a", "A", "b"}), "sort order field A.x not found in table");
}

// A table that names its columns wherever it can.
class NamedColumnsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto draft = draft_of(CatalogType::table, json_from(R"~({"name":"t","columns":[
        {"name":"day","type":"date"},{"name":"city","type":"varchar(9)"},
        {"name":"age","type":"integer"},{"name":"id","type":"long"},{"name":"x","type":"long"}],
        "partitioning":[{"strategy":"identity","fieldName":["day"]},
                        {"strategy":"list","fieldNames":[["CITY"]]},
                        {"strategy":"range","fieldName":["age"]},
                        {"strategy":"bucket","numBuckets":4,"fieldNames":[["id"]]}],
        "distribution":{"strategy":"hash","number":4,
                        "funcArgs":[{"type":"field","fieldName":["id"]}]},
        "sortOrders":[{"sortTerm":{"type":"field","fieldName":["id","part"]}}],
        "indexes":[{"indexType":"primary_key","name":"pk","fieldNames":[["id"]],
                    "properties":{"fieldName":"id"}}]})~"));
    ASSERT_OK(draft);
    entity_ = *draft;
  }
  std::string alter(const std::string& updates) {
    const auto read =
        CatalogUpdates::read(CatalogType::table, json_from(R"({"updates":[)" + updates + "]}"));
    if (!read) return problem_of(read.error());
    const std::string before = entity_.SerializeAsString();
    const std::string problem = problem_of(read->apply(entity_));
    if (!problem.empty()) {
      EXPECT_EQ(entity_.SerializeAsString(), before);
    }
    return problem;
  }
  static std::string rename(const std::string& from, const std::string& to) {
    return R"({"@type":"renameColumn","oldFieldName":[")" + from + R"("],"newFieldName":")" + to +
           "\"}";
  }
  static std::string remove(const std::string& column) {
    return R"({"@type":"deleteColumn","fieldName":[")" + column + "\"]}";
  }
  static std::string retype(const std::string& column, const std::string& type) {
    return R"({"@type":"updateColumnType","fieldName":[")" + column + R"("],"newType":")" + type +
           "\"}";
  }
  std::string add(const std::string& partition) {
    const json::value value = json_from(partition);
    return problem_of(check_partitions(entity_.table(), std::span(&value, 1)));
  }

  stored::CatalogEntity entity_;
};

TEST_F(NamedColumnsTest, AreNotDeleted) {
  EXPECT_EQ(alter(remove("day")), "partition field day not found in table");
  EXPECT_EQ(alter(remove("city")), "partition field CITY not found in table");
  EXPECT_EQ(alter(remove("id")), "sort order field id.part not found in table");
  EXPECT_EQ(alter(remove("x")), "");
  // As a whole it fits.
  EXPECT_EQ(alter(remove("day") + R"(,{"@type":"addColumn","fieldName":["Day"],"type":"date"})"),
            "");
  EXPECT_EQ(alter(R"({"@type":"addColumn","fieldName":["DAY"],"type":"date"})"),
            "partition field day not found in table");
}

TEST_F(NamedColumnsTest, TakeWhatNamesThemAlong) {
  const std::string index = R"({"@type":"addTableIndex","index":{"indexType":"btree",)"
                            R"("name":"j","fieldNames":[["x"]]}})";
  // One after the other, and the index that is new.
  EXPECT_EQ(alter(rename("id", "tmp") + "," + rename("x", "id") + "," + rename("tmp", "key") + "," +
                  rename("city", "town") + "," + rename("age", "years") + "," + index),
            "");
  const stored::CatalogTable& table = entity_.table();
  EXPECT_EQ(table.partitioning_json(),
            R"([{"strategy":"identity","fieldName":["day"]},)"
            R"({"strategy":"list","fieldNames":[["town"]],"assignments":[]},)"
            R"({"strategy":"range","fieldName":["years"],"assignments":[]},)"
            R"({"strategy":"bucket","numBuckets":4,"fieldNames":[["key"]]}])");
  EXPECT_EQ(table.distribution_json(),
            R"({"strategy":"hash","number":4,"funcArgs":[{"type":"field","fieldName":["key"]}]})");
  EXPECT_EQ(table.sort_orders_json(),
            R"([{"sortTerm":{"type":"field","fieldName":["key","part"]},"direction":"asc",)"
            R"("nullOrdering":"nulls_first"}])");
  EXPECT_EQ(table.indexes_json(),
            R"([{"indexType":"PRIMARY_KEY","name":"pk","fieldNames":[["key"]],)"
            R"("properties":{"fieldName":"id"}},)"
            R"({"indexType":"BTREE","name":"j","fieldNames":[["id"]],"properties":{}}])");
  // Identity partitions have the names of their fields.
  EXPECT_EQ(alter(rename("day", "date")), "partition field day not found in table");
  EXPECT_EQ(alter(rename("day", "DAY")), "");
}

TEST_F(NamedColumnsTest, KeepTheTypesOfPartitions) {
  EXPECT_EQ(alter(retype("day", "string")),
            "Column day must stay of type date: the table is partitioned by it");
  EXPECT_EQ(alter(rename("age", "years") + "," + retype("years", "long")),
            "Column years must stay of type integer: the table is partitioned by it");
  EXPECT_EQ(alter(rename("day", "d") + "," + rename("x", "day")),
            "Column day must stay of type date: the table is partitioned by it");
  EXPECT_EQ(alter(retype("city", "string")), "");
  EXPECT_EQ(alter(retype("id", "string")), "");
}

// What was stored before all this was checked can still be described, and repaired.
TEST_F(NamedColumnsTest, MayBeMissingForOthers) {
  entity_.mutable_table()->mutable_columns()->DeleteSubrange(0, 1);
  EXPECT_EQ(alter(R"({"@type":"updateComment","newComment":"c"})"), "");
  EXPECT_EQ(alter(remove("x")), "partition field day not found in table");
  EXPECT_EQ(alter(R"({"@type":"addColumn","fieldName":["day"],"type":"date"})"), "");
}

TEST_F(NamedColumnsTest, PartitionsFit) {
  const auto literal = [](const std::string& type, const std::string& value) {
    return R"({"type":"literal","dataType":)" + type + R"(,"value":)" + value + "}";
  };
  const auto identity = [&](const std::string& fields, const std::string& values) {
    return add(R"({"type":"identity","name":"p","fieldNames":)" + fields + R"(,"values":[)" +
               values + "]}");
  };
  const std::string date = literal(R"("date")", R"("2024-01-01")");
  EXPECT_EQ(identity(R"([["DAY"]])", date), "");
  EXPECT_EQ(identity(R"([["day"]])", literal(R"("null")", R"("NULL")")), "");
  EXPECT_EQ(identity(R"([["day"]])", literal(R"("date")", "null")), "");
  EXPECT_EQ(identity(R"([["city"]])", date),
            "A partition of this table has the fields [day], but found: [city]");
  EXPECT_EQ(identity(R"([["day"],["day"]])", date + "," + date),
            "A partition of this table has the fields [day], but found: [day, day]");
  EXPECT_EQ(identity("[]", ""), "A partition of this table has the fields [day], but found: []");
  EXPECT_EQ(
      identity(R"([["day"]])", date + "," + date),
      "A partition of this table has values of 1 field(s), but found: [" + date + "," + date + "]");
  EXPECT_EQ(identity(R"([["day"]])", literal(R"("long")", R"("1")")),
            "A partition's value of field day is of type date, but found: "
            R"({"type":"literal","dataType":"long","value":"1"})");
  const std::string text = literal(R"("string")", R"("2024-01-01")");
  EXPECT_EQ(identity(R"([["day"]])", text), "");
  EXPECT_EQ(
      identity(R"([["day"]])", text + "," + text),
      "A partition of this table has values of 1 field(s), but found: [" + text + "," + text + "]");

  const auto list = [&](const std::string& lists) {
    return add(R"({"type":"list","name":"p","lists":[)" + lists + "]}");
  };
  const std::string city = literal(R"("string")", R"("B")");
  EXPECT_EQ(list("[" + city + "],[" + literal(R"~("char(3)")~", R"("P")") + "]"), "");
  EXPECT_EQ(list("[" + city + "],[" + date + "]"),
            "A partition's value of field CITY is of type string, but found: " + date);
  EXPECT_EQ(
      list("[" + city + "," + city + "]"),
      "A partition of this table has values of 1 field(s), but found: [" + city + "," + city + "]");

  const auto range = [&](const std::string& lower, const std::string& upper) {
    return add(R"({"type":"range","name":"p","upper":)" + upper + R"(,"lower":)" + lower + "}");
  };
  const std::string one = literal(R"("integer")", R"("1")");
  EXPECT_EQ(range(one, literal(R"("null")", "null")), "");
  EXPECT_EQ(range(date, one),
            "A partition's value of field age is of type integer, but found: " + date);
  EXPECT_EQ(range(one, date),
            "A partition's value of field age is of type integer, but found: " + date);

  entity_.mutable_table()->set_partitioning_json(
      R"([{"strategy":"day","fieldName":["day"]},{"strategy":"function","funcName":"f",)"
      R"("funcArgs":[{"type":"field","fieldName":["city"]}]}])");
  EXPECT_TRUE(range(one, one).starts_with("The table is not partitioned by range, but found: {"));
  EXPECT_TRUE(list("[" + city + "]").starts_with("The table is not partitioned by list"));
  EXPECT_TRUE(identity(R"([["day"]])", date).starts_with("The table is not partitioned by id"));
}

TEST(TableDefinitionTest, PartitionsOfNestedFields) {
  stored::CatalogTable table = table_of({"a"});
  table.mutable_columns(0)->set_type_json(
      R"~({"type":"struct","fields":[{"name":"B","type":"decimal(5,1)","nullable":true}]})~");
  table.set_partitioning_json(R"([{"strategy":"range","fieldName":["a","b"],"assignments":[]}])");
  const auto add = [&](const std::string& type) {
    const std::string literal = R"({"type":"literal","dataType":")" + type + R"(","value":"1"})";
    const json::value partition = json_from(R"({"type":"range","name":"p","upper":)" + literal +
                                            R"(,"lower":)" + literal + "}");
    return problem_of(check_partitions(table, std::span(&partition, 1)));
  };
  EXPECT_EQ(add("decimal(3,2)"), "");
  EXPECT_EQ(add("long"),
            "A partition's value of field a.b is of type decimal, but found: "
            R"({"type":"literal","dataType":"long","value":"1"})");
}

}  // namespace
}  // namespace trellis
