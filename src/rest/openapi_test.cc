// The descriptions for machines say what the routes say.
#include <algorithm>
#include <set>

#include "rest/catalog_answers.h"
#include "rest/openapi.h"
#include "support/rest_fixture.h"

namespace trellis {
namespace openapi_test {

namespace json = boost::json;

struct Description {
  std::string_view target;  // where it is served
  std::string_view text;
  bool (*describes)(std::string_view pattern);
};

bool is_of_catalog(std::string_view pattern) {
  return is_catalog_path(pattern) || pattern.ends_with("/configs");
}

const Description descriptions[] = {
    {"/openapi.json", openapi_text,
     [](std::string_view pattern) { return !is_of_catalog(pattern); }},
    // Of what is there twice, it names one.
    {"/api/openapi.json", catalog_openapi_text,
     [](std::string_view pattern) {
       return is_of_catalog(pattern) && !pattern.starts_with("/k/");
     }},
};

class OpenapiTest : public RestFixture, public testing::WithParamInterface<Description> {
 protected:
  const json::value document_ = json::parse(GetParam().text);
};

INSTANTIATE_TEST_SUITE_P(, OpenapiTest, testing::ValuesIn(descriptions),
                         [](const auto& info) { return info.index == 0 ? "Server" : "Catalog"; });

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), ascii_lower);
  return out;
}

TEST_P(OpenapiTest, HasExactlyTheRoutes) {
  std::set<std::string> routes;
  for (const Route& route : router_->routes()) {
    if (!GetParam().describes(route.pattern)) continue;
    std::string pattern(route.pattern);
    if (const size_t star = pattern.find('*'); star != std::string::npos) pattern.erase(star, 1);
    routes.insert(lower(to_string(route.method)) + " " + pattern);
  }
  std::set<std::string> described;
  for (const auto& path : document_.at("paths").as_object()) {
    for (const auto& operation : path.value().as_object()) {
      described.insert(std::string(operation.key()) + " " + std::string(path.key()));
    }
  }
  EXPECT_EQ(routes, described);
}

TEST_P(OpenapiTest, NamesTheParametersOfItsPaths) {
  std::set<std::string> ids;
  for (const auto& path : document_.at("paths").as_object()) {
    std::set<std::string> in_path;
    const std::string text(path.key());
    for (size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
      in_path.insert(text.substr(at + 1, text.find('}', at) - at - 1));
    }
    for (const auto& operation : path.value().as_object()) {
      SCOPED_TRACE(text + " " + std::string(operation.key()));
      std::set<std::string> named;
      const json::object& object = operation.value().as_object();
      if (const json::value* parameters = object.if_contains("parameters")) {
        for (const json::value& parameter : parameters->as_array()) {
          const json::value* found = &parameter;
          if (const json::value* ref = parameter.as_object().if_contains("$ref")) {
            boost::system::error_code failure;
            found = document_.find_pointer(std::string(ref->as_string()).substr(1), failure);
            ASSERT_NE(found, nullptr) << ref->as_string();
          }
          if (found->at("in").as_string() == "path") {
            named.insert(std::string(found->at("name").as_string()));
          }
        }
      }
      EXPECT_EQ(named, in_path);
      EXPECT_TRUE(ids.insert(std::string(object.at("operationId").as_string())).second);
      EXPECT_TRUE(object.contains("responses"));
    }
  }
}

// Every $ref points to something.
void check_refs(const json::value& document, const json::value& value) {
  if (const json::object* object = value.if_object()) {
    if (const json::value* ref = object->if_contains("$ref")) {
      boost::system::error_code failure;
      EXPECT_NE(document.find_pointer(std::string(ref->as_string()).substr(1), failure), nullptr)
          << ref->as_string();
    }
    for (const auto& member : *object) check_refs(document, member.value());
  } else if (const json::array* array = value.if_array()) {
    for (const json::value& element : *array) check_refs(document, element);
  }
}

TEST_P(OpenapiTest, RefersToNothingThatIsNotThere) { check_refs(document_, document_); }

TEST_P(OpenapiTest, IsServed) {
  const Answer answer = ask({.target = std::string(GetParam().target), .is_local = false});
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(answer.body, GetParam().text);
  EXPECT_EQ(document_.at("openapi").as_string(), "3.0.3");
}

}  // namespace openapi_test
}  // namespace trellis
