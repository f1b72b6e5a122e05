#include "catalog/catalog_fixture.h"
#include "support/hooked_engine.h"

namespace trellis {
namespace {

using Names = std::vector<std::string>;

class CatalogSearchTest : public CatalogFixture {
 protected:
  Names find(CatalogSearch search) {
    Names found;
    for (int page = 0; page < 1'000; page++) {
      const auto some = catalog_->search(call(reader), "lake", search);
      EXPECT_OK(some);
      if (!some) return found;
      EXPECT_LE(some->found.size(), search.limit);
      for (const CatalogFound& each : some->found)
        found.push_back(std::string(catalog_word(each.path.type).name) + " " +
                        to_string(each.path));
      if (some->next_page_token.empty()) return found;
      search.page_token = some->next_page_token;
    }
    ADD_FAILURE() << "pages without end";
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, CatalogSearchTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(CatalogSearchTest, FindsByName) {
  create_schema();
  for (const char* name : {"Orders", "orders_old", "ORDER", "customers", "a*b"})
    create(table(name));
  create(path(CatalogType::topic, {"lake", "cat", "sch", "orders"}));
  create(path(CatalogType::user, {"lake", "orders"}));  // people are not found
  EXPECT_EQ(find({.name = "orders"}),
            (Names{"table lake.cat.sch.Orders", "topic lake.cat.sch.orders",
                   "table lake.cat.sch.orders_old"}));
  EXPECT_EQ(find({.name = "ORD*OLD"}), Names{"table lake.cat.sch.orders_old"});
  EXPECT_EQ(find({.name = "*der", .type = CatalogType::topic}), Names{"topic lake.cat.sch.orders"});
  EXPECT_EQ(find({.name = "*tom*rs"}), Names{"table lake.cat.sch.customers"});
  EXPECT_EQ(find({.name = "*", .limit = 1}).size(), 8u);
  EXPECT_EQ(find({.name = "orderz"}), Names{});
}

TEST_P(CatalogSearchTest, FollowsEveryChange) {
  create_schema();
  create(table("t"), draft_with_columns({"id", "price"}));
  ASSERT_OK(catalog_->alter(call(), table("t"), [](Entity& entity) -> Status {
    entity.stored.set_name("u");
    entity.stored.mutable_table()->mutable_columns(1)->set_name("cost");
    return {};
  }));
  EXPECT_EQ(find({.name = "t"}), Names{});
  EXPECT_EQ(find({.name = "u"}), Names{"table lake.cat.sch.u"});
  EXPECT_EQ(find({.column = "price"}), Names{});
  EXPECT_EQ(find({.column = "co"}), Names{"column lake.cat.sch.u.cost"});
  EXPECT_EQ(find({.name = "u", .column = "i", .type = CatalogType::column}),
            Names{"column lake.cat.sch.u.id"});
  EXPECT_EQ(find({.name = "x", .column = "i"}), Names{});
  ASSERT_OK(catalog_->alter(call(), schema_, [](Entity& entity) -> Status {
    entity.stored.set_name("s2");
    return {};
  }));
  EXPECT_EQ(find({.name = "u"}), Names{"table lake.cat.s2.u"});
  // What is dropped is not found, nor what stands in it.
  EXPECT_TRUE(
      *catalog_->drop(call(), path(CatalogType::schema, {"lake", "cat", "s2"}), {.force = true}));
  EXPECT_EQ(find({.name = "u"}), Names{});
  EXPECT_EQ(find({.column = "id"}), Names{});
}

// Each once, however many of its columns fit, on whatever page they are.
TEST_P(CatalogSearchTest, FindsTablesByColumn) {
  create_schema();
  for (const char* name : {"a", "b", "c"})
    create(table(name), draft_with_columns({"x", "mail_work", "Mail", "id"}));
  create(table("d"), draft_with_columns({"id"}));
  const Names all{"table lake.cat.sch.a", "table lake.cat.sch.b", "table lake.cat.sch.c"};
  for (const size_t limit : {1, 2, 100})
    EXPECT_EQ(find({.column = "mail", .type = CatalogType::table, .limit = limit}), all);
  EXPECT_EQ(find({.name = "b", .column = "mail", .type = CatalogType::table}),
            Names{"table lake.cat.sch.b"});
  EXPECT_EQ(find({.column = "mail", .type = CatalogType::schema}), Names{});
  EXPECT_EQ(find({.column = "mail"}).size(), 6u);
}

TEST_P(CatalogSearchTest, FindsByTypeAlone) {
  create_schema();
  create(table("b"), draft_with_columns({"id", "mail"}));
  create(table("a"), draft_with_columns({"id"}));
  create(path(CatalogType::topic, {"lake", "cat", "sch", "t"}));
  EXPECT_EQ(find({.type = CatalogType::table}),
            (Names{"table lake.cat.sch.a", "table lake.cat.sch.b"}));
  EXPECT_EQ(find({.type = CatalogType::topic}), Names{"topic lake.cat.sch.t"});
  EXPECT_EQ(find({.type = CatalogType::column}).size(), 3u);
  EXPECT_EQ(find({.name = "m", .type = CatalogType::column}), Names{"column lake.cat.sch.b.mail"});
}

TEST_P(CatalogSearchTest, FindsByTag) {
  create_schema();
  const Entity tag = create(path(CatalogType::tag, {"lake", "pii"}));
  const auto set_tag = [&](const Entity& entity, const CatalogRef& ref) {
    const Bytes key =
        encode(CatalogRelationKey{id_, entity.metalake(), CatalogRelation::tag, ref, tag.ref});
    const Bytes inverse =
        encode(CatalogInverseKey{id_, entity.metalake(), CatalogRelation::tag, tag.ref, ref});
    Scope scope = Scope::in(id_);
    scope.exclusive(key).exclusive(inverse);
    ASSERT_OK(tenant_->write(writer, Model::catalog, scope, [&](CountedView& view) -> Status {
      view.put(key, "\x01", Value());
      view.put(inverse, "\x01", Value());
      return {};
    }));
  };
  for (const char* name : {"a", "b", "c"}) {
    const Entity made = create(table(name), draft_with_columns({"id", "mail"}));
    if (made.name() == "a") set_tag(made, made.ref);
    if (made.name() != "b") set_tag(made, CatalogRef::column(made.ref.number(), EntityId{2}));
  }
  EXPECT_EQ(find({.tag = "pii"}), (Names{"column lake.cat.sch.a.mail", "column lake.cat.sch.c.mail",
                                         "table lake.cat.sch.a"}));
  EXPECT_EQ(find({.tag = "pii", .type = CatalogType::table}), Names{"table lake.cat.sch.a"});
  EXPECT_EQ(find({.column = "id", .tag = "pii"}), Names{"table lake.cat.sch.a"});
  EXPECT_EQ(find({.name = "c", .column = "mail", .tag = "pii"}),
            Names{"column lake.cat.sch.c.mail"});
  EXPECT_REASON(catalog_->search(call(reader), "lake", {.tag = "none"}), Code::not_found,
                "no_such_tag");
}

// A call looks at so many and no more; whoever goes on finds all.
TEST_P(CatalogSearchTest, RareOnesAmongManyAreFound) {
  create_schema();
  for (int i = 0; i < 2'500; i++) create(table(i == 2'400 ? "needle" : "n" + std::to_string(i)));
  const auto first = catalog_->search(call(reader), "lake", {.name = "*eedle"});
  ASSERT_OK(first);
  EXPECT_FALSE(first->next_page_token.empty());
  EXPECT_EQ(find({.name = "*eedle"}), Names{"table lake.cat.sch.needle"});
}

// A table is read once for all of its columns that a call finds.
TEST_P(CatalogSearchTest, WideTablesCostNoMore) {
  create_schema();
  std::vector<std::string> columns;
  for (size_t i = 0; i < catalog_columns_max; i++) columns.push_back("c" + std::to_string(i));
  create(table("wide"), draft_with_columns(columns));
  HookedEngine hooked(memory_);
  Transactor transactor(hooked, clock_, {.way = GetParam(), .check_scope = true});
  Tenant tenant({hooked, transactor, clock_}, id_);
  size_t gets = 0;
  std::function<void()> count = [&] {
    gets++;
    hooked.after_get = count;
  };
  size_t seen = 0;
  CatalogSearch search{.column = "c", .limit = 1'000, .sees = [&](const EntityPath&) {
                         seen++;
                         return Result<bool>(true);
                       }};
  for (const CatalogType type : {CatalogType::table, CatalogType::column}) {
    search.type = type;
    search.page_token.clear();
    size_t found = 0;
    do {
      gets = seen = 0;
      hooked.after_get = count;
      const auto page = catalog_->search({tenant, reader, "ada"}, "lake", search);
      ASSERT_OK(page);
      EXPECT_LE(gets, 50u);
      EXPECT_LE(seen, 1u);
      found += page->found.size();
      search.page_token = page->next_page_token;
    } while (!search.page_token.empty());
    EXPECT_EQ(found, type == CatalogType::table ? 1 : catalog_columns_max);
  }
}

// A call decodes so much of tables and no more.
TEST_P(CatalogSearchTest, LargeTablesTakeMorePages) {
  create_schema();
  constexpr size_t tables = 12;
  for (size_t i = 0; i < tables; i++) {
    stored::CatalogEntity draft = draft_with_columns({"id", "mail"});
    draft.set_comment(std::string(3 << 20, 'x'));
    create(table("t" + std::to_string(i)), std::move(draft));
  }
  for (const CatalogType type : {CatalogType::table, CatalogType::column}) {
    const auto first = catalog_->search(call(reader), "lake", {.column = "mail", .type = type});
    ASSERT_OK(first);
    EXPECT_EQ(first->found.size(), 6u);
    EXPECT_FALSE(first->next_page_token.empty());
    EXPECT_EQ(find({.column = "mail", .type = type}).size(), tables);
  }
}

TEST_P(CatalogSearchTest, BadQuestionsAreRefused) {
  create_schema();
  for (const CatalogSearch& bad :
       {CatalogSearch{}, CatalogSearch{.name = "a", .page_token = "xyz"},
        CatalogSearch{.name = "a", .limit = 0}, CatalogSearch{.name = "a", .limit = 100'000}})
    EXPECT_REASON(catalog_->search(call(reader), "lake", bad), Code::invalid, "illegal_argument");
  EXPECT_OK(catalog_->search(call(reader), "lake", {.name = "a", .page_token = "ffff"}));
  EXPECT_REASON(catalog_->search(call(reader), "sea", {.name = "a"}), Code::not_found,
                "no_such_metalake");
}

}  // namespace
}  // namespace trellis
