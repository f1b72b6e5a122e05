#include "cli/column_text.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace trellis {
namespace {

std::string type_of(const std::string& text) {
  const auto column = parse_column(text);
  return column ? boost::json::serialize(column->type) : column.error().message;
}

TEST(ColumnText, NameTypeAndComment) {
  const ColumnText column = parse_column("price:decimal(10, 2):with tax: 19 %").value();
  EXPECT_EQ(column.name, "price");
  EXPECT_EQ(column.type, "decimal(10,2)");
  EXPECT_EQ(column.comment, "with tax: 19 %");
  EXPECT_EQ(parse_column("a:STRING").value().type, "string");
  EXPECT_EQ(parse_column("a:int:x").value().type, "integer");
  for (const char* bad : {"", "a", ":long", "a:", ":"})
    EXPECT_NE(type_of(bad).find("is not NAME:TYPE"), std::string::npos) << bad;
}

TEST(ColumnText, TypesInTypes) {
  EXPECT_EQ(type_of("s:struct<a:int>"),
            R"({"type":"struct","fields":[{"name":"a","type":"integer","nullable":true}]})");
  EXPECT_EQ(type_of("l:list<varchar(4)>"),
            R"x({"type":"list","elementType":"varchar(4)","containsNull":true})x");
  EXPECT_EQ(type_of("u:union<string,long>"), R"({"type":"union","types":["string","long"]})");
  EXPECT_EQ(type_of("x:STRUCT<A:Map<String,LIST<Union<INT,Date>>>>"),
            type_of("x:struct<A:map<string,list<union<int,date>>>>"));
  const ColumnText column =
      parse_column("home:struct<city:string, m:map<string,list<struct<x:long,y:date>>>>:a:b")
          .value();
  EXPECT_EQ(column.comment, "a:b");
  EXPECT_EQ(column.type.at_pointer("/fields/1/type/valueType/elementType/fields/1/type"), "date");
}

TEST(ColumnText, TyposAreRefused) {
  for (const char* bad :
       {"a:strng", "a:struct", "a:list<>", "a:list<strng>", "a:map<string>", "a:set<long>",
        "a:struct<x:strng>", "a:list<long,long>", "a:list<long", "a:long>", "a:decimal", "a: "}) {
    const std::string said = type_of(bad);
    EXPECT_NE(said.find("there is no type "), std::string::npos) << bad << ": " << said;
    EXPECT_NE(said.find("boolean, byte, "), std::string::npos) << said;
    EXPECT_NE(said.find("decimal(n,n)"), std::string::npos) << said;
  }
  EXPECT_NE(type_of("a:struct<x>").find("not NAME:TYPE"), std::string::npos);
  EXPECT_NE(type_of("a:decimal(50,2)").find("precision"), std::string::npos);
  std::string deep = "long";
  for (int i = 0; i < 100; ++i) deep = "list<" + deep + ">";
  EXPECT_NE(type_of("a:" + deep).find("too many"), std::string::npos);
}

}  // namespace
}  // namespace trellis
