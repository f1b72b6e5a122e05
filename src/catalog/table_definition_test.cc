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
  EXPECT_EQ(check({"a", "A", "b"}),
            "sort order field A.x is ambiguous: columns differ only in case");
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
  EXPECT_EQ(alter(remove("day")), "Column day cannot be deleted: partition field day names it");
  EXPECT_EQ(alter(remove("city")), "Column city cannot be deleted: partition field CITY names it");
  EXPECT_EQ(alter(remove("id")), "Column id cannot be deleted: sort order field id.part names it");
  EXPECT_EQ(alter(R"({"@type":"addColumn","fieldName":["DAY"],"type":"date"})"),
            "partition field day is ambiguous: columns differ only in case");
  // Another column of the name is not what was meant.
  for (const std::string column : {"day", "city", "age", "id"}) {
    const std::string again =
        R"({"@type":"addColumn","fieldName":[")" + column + R"("],"type":"date"})";
    for (const std::string& other : {again, rename("x", column)})
      EXPECT_TRUE(alter(remove(column) + "," + other)
                      .starts_with("Column " + column + " cannot be deleted: "));
  }
  EXPECT_EQ(alter(remove("x")), "");
}

TEST_F(NamedColumnsTest, AreDeletedWithTheirIndex) {
  entity_.mutable_table()->clear_sort_orders_json();
  entity_.mutable_table()->clear_distribution_json();
  entity_.mutable_table()->clear_partitioning_json();
  const std::string index = R"({"@type":"deleteTableIndex","name":"pk"})";
  EXPECT_EQ(alter(remove("id")), "Column id cannot be deleted: index pk field id names it");
  EXPECT_EQ(alter(remove("id") + "," + index), "");
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
}

// Identity partitions have the names of their fields.
TEST_F(NamedColumnsTest, KeepTheNamesOfPartitions) {
  const std::string refused =
      "Cannot alter partition column day: it cannot be renamed, since its partitions have its name";
  const std::string away = rename("day", "d");
  EXPECT_EQ(alter(away), refused);
  EXPECT_EQ(alter(away + "," + rename("x", "day")), refused);
  EXPECT_EQ(alter(away + R"(,{"@type":"addColumn","fieldName":["day"],"type":"date"})"), refused);
  EXPECT_EQ(alter(away + "," + rename("d", "day")), "");
  EXPECT_EQ(alter(rename("day", "DAY")), "");
}

TEST_F(NamedColumnsTest, KeepTheTypesOfPartitions) {
  EXPECT_EQ(alter(retype("day", "string")),
            "Cannot alter partition column day: day must stay of type date");
  EXPECT_EQ(alter(rename("age", "years") + "," + retype("years", "long")),
            "Cannot alter partition column years: years must stay of type integer");
  EXPECT_EQ(alter(retype("city", "string")), "");
  EXPECT_EQ(alter(retype("id", "string")), "");
  EXPECT_EQ(alter(R"({"@type":"updateColumnType","fieldName":["city"],"newType":)"
                  R"({"type":"list","containsNull":true,"elementType":"string"}})"),
            "Cannot alter partition column CITY: CITY must stay of type string");
}

TEST_F(NamedColumnsTest, KeepTheFieldsOfPartitions) {
  const auto type_of_x = [&](const std::string& parts) {
    return alter(R"({"@type":"updateColumnType","fieldName":["x"],"newType":)"
                 R"({"type":"struct","fields":[)" +
                 parts + "]}}");
  };
  const std::string y = R"({"name":"y","type":"integer"})";
  const std::string z = R"({"name":"z","type":{"type":"struct","fields":[)" + y + "]}}";
  EXPECT_EQ(type_of_x(y + "," + z), "");
  entity_.mutable_table()->set_partitioning_json(
      R"([{"strategy":"list","fieldNames":[["x","y"],["x","z"]],"assignments":[]}])");
  const std::string refused = "Cannot alter partition column x: ";
  EXPECT_EQ(alter(retype("x", "string")), refused + "x.y must stay of type integer");
  EXPECT_EQ(type_of_x(z), refused + "x.y must stay of type integer");
  EXPECT_TRUE(type_of_x(y).starts_with(refused + "x.z must stay of type struct"));
  EXPECT_EQ(type_of_x(z + "," + y + R"(,{"name":"more","type":"date"})"), "");
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

// Gravitino reads the values of a Hive partition off its name: null is what is no text there.
TEST(TableDefinitionTest, TextsOfIdentityPartitions) {
  stored::CatalogTable table = table_of({"a", "b"});
  table.set_partitioning_json(
      R"([{"strategy":"identity","fieldName":["a"]},{"strategy":"identity","fieldName":["b"]}])");
  const auto add = [&](const std::string& a, const std::string& b) {
    const auto literal = [](const std::string& type) {
      return R"({"type":"literal","dataType":")" + type + R"(","value":"1"})";
    };
    const json::value partition =
        json_from(R"({"type":"identity","name":"p","fieldNames":[["a"],["b"]],"values":[)" +
                  literal(a) + "," + literal(b) + "]}");
    return problem_of(check_partitions(table, std::span(&partition, 1)));
  };
  EXPECT_EQ(add("string", "string"), "");
  EXPECT_EQ(add("string", "null"), "");
  EXPECT_EQ(add("null", "long"), "");
  EXPECT_EQ(add("null", "null"), "");
  EXPECT_EQ(add("string", "long"),
            "A partition's value of field a is of type long, but found: "
            R"({"type":"literal","dataType":"string","value":"1"})");
}

TEST_F(NamedColumnsTest, IndexesHaveNamesOfTheirOwn) {
  const auto add_index = [&](const std::string& name) {
    return R"({"@type":"addTableIndex","index":{"indexType":"btree",)" + name +
           R"("fieldNames":[["x"]]}})";
  };
  EXPECT_EQ(alter(add_index(R"("name":"pk",)")), "Index pk is given twice");
  EXPECT_EQ(alter(add_index(R"("name":"PK",)")), "");
  EXPECT_EQ(alter(add_index("") + "," + add_index("")), "");
  EXPECT_EQ(alter(R"({"@type":"deleteTableIndex","name":"pk"},)" + add_index(R"("name":"pk",)")),
            "");
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
