// Tenants at work beside each other through the routes: none touches what is another's.
#include <map>

#include "rest/json_text.h"
#include "support/rest_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using enum HttpMethod;
namespace json = boost::json;

struct TenantModel {
  KeyspaceId id;
  std::string name;
  std::string token;
  std::map<Bytes, Bytes> entries;
};

class IsolationTest : public RestFixture {
 protected:
  void SetUp() override {
    RestFixture::SetUp();
    for (const char* name : {"a", "b", "c"}) {
      const KeyspaceId id = make(name);
      tenants_.push_back({id, name, make_token(id, Role::write).secret, {}});
    }
  }

  // Beside its own keys a request reads its own token and the name that it gave.
  std::string strange_access(const TenantModel& tenant) {
    std::vector<EngineAccess> accesses = engine_.take();
    std::erase_if(accesses, [&](const EngineAccess& access) {
      if (access.end.has_value() || access.kind != EngineAccess::Kind::read) return false;
      const auto token = decode<KeyspaceTokenKey>(access.begin);
      return (token && token->keyspace == tenant.id) ||
             access.begin == encode(KeyspaceNameKey{tenant.name});
    });
    return outside_of(accesses, tenant.id);
  }

  Bytes random_key() {
    return random_.one_in(3) ? random_.bytes(2) : Bytes(1, "xyz"[random_.below(3)]);
  }

  // One random request of a tenant, and the same to its model.
  Ask random_request(TenantModel& tenant) {
    const Bytes key = random_key();
    const Bytes value = random_.bytes(random_.below(30));
    Ask question{.token = tenant.token, .is_local = false};
    const std::string base = random_.one_in(2) ? "/k/" + tenant.name : "";
    question.method = get;
    switch (random_.below(8)) {
      case 0: question.target = base + "/v1/raw/keys/" + percent_encode(key); break;
      case 1:
        question.target = base + "/v1/raw/keys?limit=3&prefix=" + percent_encode(key.substr(0, 1));
        break;
      case 2: question.target = base + "/v1/raw/keys?reverse=true"; break;
      case 3: question.target = base + "/v1/raw/export"; break;
      case 4:
        question.method = del;
        question.target = base + "/v1/raw/keys/" + percent_encode(key);
        tenant.entries.erase(key);
        break;
      case 5: {
        question.method = post;
        question.target = base + (random_.one_in(2) ? "/v1/raw/import" : "/v1/raw/batch");
        append_json_entry(question.body, {.key = key, .value = value});
        if (question.target.ends_with("batch")) {
          question.body = "{\"operations\":[{\"put\":" + question.body + "}]}";
        }
        tenant.entries[key] = value;
        break;
      }
      default:
        question.method = put;
        question.target = base + "/v1/raw/keys/" + percent_encode(key);
        question.body = value;
        tenant.entries[key] = value;
    }
    return question;
  }

  std::map<Bytes, Bytes> stored(const TenantModel& tenant) {
    std::map<Bytes, Bytes> found;
    const auto held = keyspaces_->tenant(tenant.id);
    const auto visit = [&](ByteView key, ByteView value, uint64_t) {
      found.emplace(key, value);
      return Visit::go_on;
    };
    EXPECT_OK(raw_.scan(**held, {Role::server_admin, "root"}, {.limit = 10'000}, visit));
    return found;
  }

  std::vector<TenantModel> tenants_;
};

TEST_F(IsolationTest, RandomRequestsStayInside) {
  random_ = Random(test_seed(17));
  for (uint64_t i = 0; i < test_rounds(3'000); ++i) {
    TenantModel& tenant = tenants_[random_.below(tenants_.size())];
    const Ask question = random_request(tenant);
    SCOPED_TRACE(question.target);
    engine_.take();
    const Answer answer = ask(question);
    ASSERT_TRUE(answer.status < 300 || answer.status == 404) << answer.body;
    ASSERT_EQ(strange_access(tenant), "");
    if (question.target.find("/keys/") != std::string::npos && answer.status == 200) {
      const auto slash = question.target.rfind('/');
      EXPECT_EQ(answer.body, tenant.entries[*percent_decode(question.target.substr(slash + 1))]);
    }
  }
  for (const TenantModel& tenant : tenants_) EXPECT_EQ(stored(tenant), tenant.entries);
}

TEST_F(IsolationTest, RefusedRequestsTouchNothing) {
  const std::string token = tenants_[0].token;
  for (const std::string& target :
       {std::string("/k/b/v1/raw/keys/x"), std::string("/k/b/v1/raw/keys"),
        std::string("/k/b/v1/raw/export"), std::string("/v1/keyspaces/b"),
        std::string("/pd/api/v2/keyspaces/b"), std::string("/pd/api/v2/gc/state/2"),
        std::string("/v1/keyspaces/b/gc"), std::string("/v1/keyspaces/b/tokens")}) {
    engine_.take();
    EXPECT_EQ(ask({.target = target, .token = token, .is_local = false}).status, 403U) << target;
    EXPECT_EQ(strange_access(tenants_[0]), "") << target;
  }
}

}  // namespace
}  // namespace trellis
