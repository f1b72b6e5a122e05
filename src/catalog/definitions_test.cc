// Types, parts of tables and functions: vectors, random ones, and what nobody should send.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/json/serialize.hpp>
#include <map>

#include "base/random.h"
#include "catalog/catalog_error.h"
#include "catalog/data_type.h"
#include "catalog/function_definition.h"
#include "catalog/request_fields.h"
#include "catalog/table_parts.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"
#include "support/vector_file.h"

namespace trellis {
namespace {

using NormalForm = Result<json::value> (*)(const json::value&);

// "!words" of an illegal_argument, or the normal form, which is its own normal form.
void expect_normal(NormalForm normal, const std::string& given, const std::string& expected) {
  const auto value = parse_json(given);
  ASSERT_OK(value);
  const auto result = normal(*value);
  if (expected.starts_with('!')) {
    EXPECT_REASON(result, Code::invalid, "illegal_argument");
    EXPECT_EQ(result.has_value() ? "" : result.error().message, expected.substr(1));
    return;
  }
  ASSERT_OK(result);
  EXPECT_EQ(json_text(*result), expected);
  const auto again = normal(*result);
  ASSERT_OK(again);
  EXPECT_EQ(*again, *result);
}

TEST(CatalogDefinitionsTest, Types) {
  for (const VectorLine& line : read_vectors("catalog/types.txt")) {
    SCOPED_TRACE(line.where);
    expect_normal(normal_type, line.left, line.right);
  }
}

TEST(CatalogDefinitionsTest, Parts) {
  const std::map<std::string, NormalForm> kinds = {{"expression", normal_expression},
                                                   {"partitioning", normal_partitioning},
                                                   {"partition", normal_partition},
                                                   {"distribution", normal_distribution},
                                                   {"sort_order", normal_sort_order},
                                                   {"index", normal_index},
                                                   {"impl", normal_impl}};
  for (const VectorLine& line : read_vectors("catalog/parts.txt")) {
    SCOPED_TRACE(line.where);
    const size_t blank = line.left.find(' ');
    expect_normal(kinds.at(line.left.substr(0, blank)), line.left.substr(blank + 1), line.right);
  }
}

TEST(CatalogDefinitionsTest, TypesInOneLine) {
  for (const auto& [given, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"\"decimal(3, 1)\"", "decimal(3,1)"},
           {R"({"type":"list","elementType":"long","containsNull":false})", "list<long, NOT NULL>"},
           {R"({"type":"map","keyType":"string","valueType":{"type":"list","elementType":"date"}})",
            "map<string,list<date>>"},
           {R"({"type":"union","types":["date","odd"]})", "union<date,unparsed(odd)>"},
           {R"({"type":"external","catalogString":"x"})", "external(x)"},
           {R"({"type":"struct","fields":[{"name":"a","type":"date","comment":"c"},
                {"name":"b","type":"uuid","nullable":false}]})",
            "struct<a: date NULL COMMENT 'c',b: uuid NOT NULL COMMENT >"}}) {
    const auto normal = normal_type(*parse_json(given));
    ASSERT_OK(normal);
    EXPECT_EQ(simple_type(*normal), expected);
  }
}

// --- random ones ---

std::string random_word(Random& random) {
  static constexpr std::string_view words[] = {"a", "B", "colour", "x y", "\"", "\xc3\xa4", ""};
  return std::string(words[random.below(std::size(words))]);
}

json::value random_type(Random& random, int depth) {
  static constexpr std::string_view simple[] = {
      "boolean", "Integer unsigned", "decimal(9, 3)", "time(0)", "TIMESTAMP_TZ(6)",
      "char(3)", "varchar( 7 )",     "odd",           "null",    "fixed(2147483647)"};
  if (depth == 0 || random.below(3) == 0) {
    return json::value(simple[random.below(std::size(simple))]);
  }
  switch (random.below(6)) {
    case 0:
      return json::object{{"type", "list"},
                          {"elementType", random_type(random, depth - 1)},
                          {"containsNull", random.below(2) == 0}};
    case 1:
      return json::object{{"type", "map"},
                          {"keyType", random_type(random, depth - 1)},
                          {"valueType", random_type(random, depth - 1)}};
    case 2: {
      json::array types;
      for (uint64_t i = random.below(4); i > 0; --i)
        types.push_back(random_type(random, depth - 1));
      return json::object{{"type", "union"}, {"types", std::move(types)}};
    }
    case 3: return json::object{{"type", "external"}, {"catalogString", random_word(random)}};
    case 4:
      return json::object{{"type", random_word(random)}, {"x", random_type(random, depth - 1)}};
    default: {
      json::array fields;
      for (uint64_t i = random.below(4) + 1; i > 0; --i) {
        json::object field{{"name", random_word(random)}, {"type", random_type(random, depth - 1)}};
        if (random.below(2) == 0) field["comment"] = random_word(random);
        if (random.below(2) == 0) field["nullable"] = random.below(2) == 0;
        fields.push_back(std::move(field));
      }
      return json::object{{"type", "struct"}, {"fields", std::move(fields)}};
    }
  }
}

json::value random_expression(Random& random, int depth) {
  switch (random.below(depth == 0 ? 3 : 4)) {
    case 0:
      return json::object{
          {"type", "Literal"},
          {"dataType", random_type(random, 2)},
          {"value", random.below(3) == 0 ? json::value() : json::value(random_word(random))}};
    case 1:
      return json::object{{"type", "field"},
                          {"fieldName", json::array{random_word(random), random_word(random)}}};
    case 2: return json::object{{"type", "unparsed"}, {"unparsedExpression", random_word(random)}};
    default: {
      json::array args;
      for (uint64_t i = random.below(4); i > 0; --i) {
        args.push_back(random_expression(random, depth - 1));
      }
      return json::object{
          {"type", "function"}, {"funcName", random_word(random)}, {"funcArgs", std::move(args)}};
    }
  }
}

// What was written is read as it was: the normal form is its own, also through text.
void expect_fixed(NormalForm normal, const json::value& given) {
  const auto first = normal(given);
  ASSERT_OK(first);
  const auto read = stored_json(json_text(*first));
  ASSERT_OK(read);
  EXPECT_EQ(*read, *first);
  const auto second = normal(*read);
  ASSERT_OK(second);
  EXPECT_EQ(json_text(*second), json_text(*first));
}

TEST(CatalogDefinitionsTest, NormalFormsAreFixed) {
  Random random(test_seed(71));
  for (uint64_t i = 0; i < test_rounds(5'000); ++i) {
    SCOPED_TRACE(i);
    expect_fixed(normal_type, random_type(random, 4));
    const json::value expression = random_expression(random, 4);
    expect_fixed(normal_expression, expression);
    expect_fixed(normal_sort_order, json::object{{"sortTerm", expression}, {"direction", "desc"}});
    expect_fixed(normal_distribution,
                 json::object{{"number", static_cast<int64_t>(random.below(9))},
                              {"funcArgs", json::array{expression}}});
    expect_fixed(normal_partitioning, json::object{{"strategy", "function"},
                                                   {"funcName", random_word(random)},
                                                   {"funcArgs", json::array{expression}}});
  }
}

// Whatever is broken in something good: a normal form or an illegal_argument, nothing else.
TEST(CatalogDefinitionsTest, AnyJsonIsANormalFormOrAnError) {
  const NormalForm normals[] = {normal_type,      normal_expression, normal_partitioning,
                                normal_partition, normal_sort_order, normal_distribution,
                                normal_index,     normal_impl};
  std::vector<std::string> good;
  for (const char* file : {"catalog/types.txt", "catalog/parts.txt"}) {
    for (const VectorLine& line : read_vectors(file)) {
      const bool has_kind = std::string_view(file) == "catalog/parts.txt";
      good.push_back(has_kind ? line.left.substr(line.left.find(' ') + 1) : line.left);
    }
  }
  Random random(test_seed(73));
  for (uint64_t i = 0; i < test_rounds(50'000); ++i) {
    std::string text = good[random.below(good.size())];
    for (uint64_t changes = random.below(4); changes > 0; --changes) {
      const std::string& other = good[random.below(good.size())];
      const size_t at = random.below(text.size() + 1);
      if (random.below(2) == 0) {
        text.erase(at, random.below(9));
      } else {
        text.insert(at, other.substr(random.below(other.size() + 1), 12));
      }
    }
    const auto value = parse_json(text);
    if (!value) continue;
    for (const NormalForm normal : normals) {
      const auto result = normal(*value);
      if (!result) {
        EXPECT_REASON(result, Code::invalid, "illegal_argument");
        continue;
      }
      const auto again = normal(*result);
      ASSERT_OK(again);
      EXPECT_EQ(json_text(*again), json_text(*result)) << text;
    }
  }
}

TEST(CatalogDefinitionsTest, HostileSizes) {
  // As deep as the reader lets through.
  std::string deep = "\"long\"";
  for (int i = 0; i < 31; ++i) deep = R"({"type":"list","elementType":)" + deep + "}";
  const auto parsed = parse_json(deep);
  ASSERT_OK(parsed);
  EXPECT_OK(normal_type(*parsed));
  // 10 MB of one text: messages stay short.
  const json::value huge(std::string(10 << 20, 'x'));
  EXPECT_OK(normal_type(huge));
  const auto error = normal_expression(huge);
  EXPECT_REASON(error, Code::invalid, "illegal_argument");
  EXPECT_LT(error.error().message.size(), 400U);
  EXPECT_LT(
      normal_type(json::value("varchar(" + std::string(1 << 20, '9') + ")")).error().message.size(),
      400U);
}

// --- functions ---

// The most that this process ever had.
size_t resident_bytes_max() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

json::value definition_of(const std::string& parameters) {
  const auto definition = normal_definition(
      *parse_json(R"({"parameters":)" + parameters +
                  R"(,"impls":[{"language":"SQL","runtime":"SPARK","sql":"1"}]})"),
      "definition");
  EXPECT_OK(definition);
  return definition.value_or(json::value());
}
const char* const one_int = R"([{"name":"a","dataType":"integer"}])";
const char* const int_and_text =
    R"([{"name":"a","dataType":"integer"},{"name":"b","dataType":"string",
         "defaultValue":{"type":"literal","dataType":"string","value":"x"}}])";

TEST(CatalogDefinitionsTest, FunctionsThatCouldBeMeantTwice) {
  EXPECT_OK(check_definitions({definition_of(one_int)}));
  FunctionDefinitions definitions({definition_of(one_int)});
  EXPECT_OK(definitions.add(definition_of("[]")));
  const Status overlap = definitions.add(definition_of(int_and_text));
  EXPECT_REASON(overlap, Code::invalid, "illegal_argument");
  EXPECT_EQ(overlap.error().message,
            "Cannot add definition: arity 'integer' overlaps with an existing definition. This "
            "would create ambiguous function invocations.");
  EXPECT_EQ(definitions.all().size(), 2U);
  // What is removed leaves its calls to others.
  EXPECT_OK(definitions.remove(definition_of(one_int).at("parameters")));
  EXPECT_OK(definitions.add(definition_of(int_and_text)));
  EXPECT_FALSE(definitions.add(definition_of(one_int)).has_value());
  const Status twice =
      check_definitions({definition_of("[]"), definition_of(one_int), definition_of(int_and_text)});
  EXPECT_REASON(twice, Code::invalid, "illegal_argument");
  EXPECT_EQ(twice.error().message,
            "Cannot register function: definitions at index 1 and 2 have overlapping arity "
            "'integer'. This would create ambiguous function invocations.");
  const json::value wrong_order = definition_of(
      R"([{"name":"a","dataType":"date","defaultValue":{"type":"field","fieldName":["x"]}},
          {"name":"b","dataType":"date"}])");
  EXPECT_REASON(check_definitions(json::array{wrong_order}), Code::invalid, "illegal_argument");
}

// A long type and many optional parameters: each call would have it once more.
TEST(CatalogDefinitionsTest, CallsOfFunctionsNeedNoMoreRoomThanTheirParameters) {
  const auto parameters = [](size_t count) {
    std::string text = R"([{"name":"a","dataType":{"type":"external","catalogString":")" +
                       std::string(1 << 20, 'x') + "\"}}";
    for (size_t i = 1; i < count; i++)
      text += R"(,{"name":"b","dataType":"date",)"
              R"("defaultValue":{"type":"literal","dataType":"date","value":"1"}})";
    return text + "]";
  };
  const size_t before_bytes = resident_bytes_max();
  const json::value largest = definition_of(parameters(function_parameters_max));
  EXPECT_OK(check_definitions({largest}));
  const Status twice = check_definitions({largest, largest});
  EXPECT_REASON(twice, Code::invalid, "illegal_argument");
  EXPECT_LT(twice.error().message.size(), 500U);
  EXPECT_LT(resident_bytes_max() - before_bytes, size_t{100} << 20);
  const auto more = parse_json(parameters(function_parameters_max + 1));
  ASSERT_OK(more);
  EXPECT_REASON(normal_parameters(&*more, "parameters"), Code::invalid, "illegal_argument");
}

TEST(CatalogDefinitionsTest, ImplementationsOfFunctions) {
  FunctionDefinitions definitions({definition_of(one_int), definition_of("[]")});
  const auto given = parse_json(one_int);
  ASSERT_OK(given);
  const auto parameters = normal_parameters(&*given, "parameters");
  ASSERT_OK(parameters);
  const auto spark = normal_impl(*parse_json(R"({"language":"SQL","runtime":"SPARK","sql":"2"})"));
  const auto trino =
      normal_impl(*parse_json(R"({"language":"JAVA","runtime":"TRINO","className":"C"})"));
  EXPECT_REASON(definitions.add_impl(*parameters, *spark), Code::invalid, "illegal_argument");
  EXPECT_REASON(definitions.update_impl(*parameters, "TRINO", *trino), Code::invalid,
                "illegal_argument");
  EXPECT_REASON(definitions.remove_impl(*parameters, "TRINO"), Code::invalid, "illegal_argument");
  EXPECT_REASON(definitions.remove_impl(*parameters, "SPARK"), Code::invalid, "illegal_argument");
  EXPECT_OK(definitions.add_impl(*parameters, *trino));
  EXPECT_OK(definitions.update_impl(*parameters, "SPARK", *spark));
  EXPECT_EQ(definitions.all()[0].at("impls"), (json::array{*spark, *trino}));
  EXPECT_OK(definitions.remove_impl(*parameters, "SPARK"));
  EXPECT_EQ(definitions.all()[0].at("impls"), (json::array{*trino}));
  EXPECT_OK(definitions.remove(*parameters));
  EXPECT_REASON(definitions.remove(*parameters), Code::invalid, "illegal_argument");
  EXPECT_REASON(definitions.add_impl(*parameters, *spark), Code::invalid, "illegal_argument");
  // Types that nobody knows are no types of parameters.
  EXPECT_REASON(
      normal_definition(*parse_json(R"({"parameters":[{"name":"a","dataType":"odd"}]})"), "d"),
      Code::invalid, "illegal_argument");
}

}  // namespace
}  // namespace trellis
