#include "catalog/catalog.h"

#include <set>

#include "catalog/catalog_fixture.h"
#include "catalog/counter.h"
#include "catalog/log_trim.h"

namespace trellis {
namespace {

using Names = std::vector<std::string>;

class CatalogTest : public CatalogFixture {};
INSTANTIATE_TEST_SUITE_P(Ways, CatalogTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

Status rename(Entity& entity, std::string name) {
  entity.stored.set_name(std::move(name));
  return {};
}

TEST_P(CatalogTest, WhatIsCreatedIsLoadedAndListed) {
  create_schema();
  stored::CatalogEntity draft;
  draft.set_comment("of every day");
  (*draft.mutable_properties())["k"] = "v";
  const Entity made = create(table("orders"), draft);
  EXPECT_EQ(made.stored.version(), 1u);
  EXPECT_EQ(made.stored.audit().creator(), "ada");
  EXPECT_EQ(made.stored.audit().created_ms(), start_ms);
  const auto loaded = catalog_->load(call(reader), table("orders"));
  ASSERT_OK(loaded);
  EXPECT_EQ(loaded->ref, made.ref);
  EXPECT_EQ(loaded->name(), "orders");
  EXPECT_EQ(loaded->stored.comment(), "of every day");
  EXPECT_EQ(loaded->stored.properties().at("k"), "v");
  EXPECT_EQ(entity_tag(*loaded), entity_tag(made));

  create(table("a/b=c"));
  create(path(CatalogType::fileset, {"lake", "cat", "sch", "orders"}));  // names are by type
  EXPECT_EQ(names(schema_, CatalogType::table), (Names{"a/b=c", "orders"}));
  EXPECT_EQ(names(schema_, CatalogType::fileset), Names{"orders"});
  EXPECT_EQ(names({}, CatalogType::metalake), Names{"lake"});
  EXPECT_EQ(names(metalake("lake"), CatalogType::tag), Names{});
}

TEST_P(CatalogTest, EveryTypeStandsWhereItShould) {
  create_schema();
  std::set<CatalogRef> refs;
  for (size_t i = 0; i < std::size(catalog_types); i++) {
    const auto type = static_cast<CatalogType>(i);
    if (type == CatalogType::column) continue;
    Names names{"lake", "cat", "sch", "x"};
    names.resize(catalog_depth(type));
    names.back() = "x";
    refs.insert(create(path(type, names)).ref);
    EXPECT_OK(catalog_->load(call(reader), path(type, names)));
  }
  EXPECT_EQ(refs.size(), 15u);
  EXPECT_REASON(catalog_->load(call(reader), path(CatalogType::table, {"lake", "x"})),
                Code::invalid, "illegal_argument");
  EXPECT_REASON(catalog_->load(call(reader), path(CatalogType::table, {})), Code::invalid,
                "illegal_argument");
}

TEST_P(CatalogTest, CatalogsOfAKindHaveWhatIsOfIt) {
  create(metalake("lake"));
  const std::map<CatalogType, std::string> kinds = {
      {CatalogType::table, "relational"}, {CatalogType::view, "relational"},
      {CatalogType::topic, "messaging"},  {CatalogType::fileset, "fileset"},
      {CatalogType::model, "model"},      {CatalogType::function, ""}};
  for (const char* kind : {"relational", "messaging", "fileset", "model"}) {
    stored::CatalogEntity draft;
    draft.mutable_catalog()->set_type(kind);
    create(path(CatalogType::catalog, {"lake", kind}), draft);
    create(path(CatalogType::schema, {"lake", kind, "s"}));
    for (const auto& [type, home] : kinds) {
      SCOPED_TRACE(kind);
      const EntityPath there = path(type, {"lake", kind, "s", "x"});
      const auto made = catalog_->create(call(), there, {});
      if (home.empty() || home == kind) {
        EXPECT_OK(made);
        EXPECT_REASON(catalog_->create(call(), there, {}), Code::exists,
                      std::string(catalog_word(type).name) + "_exists");
        continue;
      }
      EXPECT_REASON(made, Code::unsupported, "unsupported");
      EXPECT_EQ(made.error().message,
                "Catalog does not support " + std::string(catalog_word(type).name) + " operations");
      EXPECT_CODE(catalog_->load(call(), there), Code::not_found);
      EXPECT_REASON(catalog_->create(call(), path(type, {"lake", kind, "none", "x"}), {}),
                    Code::not_found, "no_such_schema");
    }
  }
}

// Of a time when nobody looked.
TEST_P(CatalogTest, WhatIsInACatalogOfAnotherKindStays) {
  create_schema();
  create(table("a"));
  ASSERT_OK(catalog_->alter(call(), catalog_path_, [](Entity& entity) -> Status {
    entity.stored.mutable_catalog()->set_type("fileset");
    return {};
  }));
  EXPECT_REASON(catalog_->create(call(), table("b"), {}), Code::unsupported, "unsupported");
  EXPECT_OK(catalog_->load(call(), table("a")));
  EXPECT_EQ(
      catalog_
          ->list(call(), schema_, CatalogType::table, {}, [](auto, auto&) { return Visit::go_on; })
          ->entries,
      1U);
  EXPECT_OK(catalog_->alter(call(), table("a"), [](Entity& entity) -> Status {
    entity.stored.set_comment("c");
    return {};
  }));
  EXPECT_TRUE(*catalog_->drop(call(), table("a")));
  EXPECT_OK(catalog_->undelete(call(), table("a")));
}

TEST_P(CatalogTest, WhatIsNotThereIsNamed) {
  EXPECT_REASON(catalog_->load(call(reader), table("x")), Code::not_found, "no_such_metalake");
  create(metalake("lake"));
  EXPECT_REASON(catalog_->load(call(reader), table("x")), Code::not_found, "no_such_catalog");
  create(catalog_path_);
  EXPECT_REASON(catalog_->create(call(), table("x"), {}), Code::not_found, "no_such_schema");
  create(schema_);
  EXPECT_REASON(catalog_->load(call(reader), table("x")), Code::not_found, "no_such_table");
  EXPECT_REASON(catalog_->load(call(reader), table("")), Code::not_found, "no_such_table");
  EXPECT_REASON(catalog_->load(call(reader), table(std::string(100'000, 'x'))), Code::not_found,
                "no_such_table");
  create(table("x"));
  EXPECT_REASON(catalog_->create(call(), table("x"), {}), Code::exists, "table_exists");
  EXPECT_REASON(catalog_->create(call(), schema_, {}), Code::exists, "schema_exists");
  EXPECT_REASON(catalog_->create(call(), table(""), {}), Code::invalid, "illegal_name");
  EXPECT_REASON(catalog_->create(call(), table(std::string(catalog_name_bytes_max + 1, 'x')), {}),
                Code::invalid, "illegal_name");
  create(table(std::string(catalog_name_bytes_max, 'x')));
}

TEST_P(CatalogTest, RolesAreKept) {
  EXPECT_CODE(catalog_->create(call(reader), metalake("lake"), {}), Code::denied);
  EXPECT_EQ(entries(), 0u) << "not even an id is taken";
  create_schema();
  EXPECT_CODE(catalog_->drop(call(reader), schema_, {}), Code::denied);
  EXPECT_CODE(catalog_->set_in_use(call(reader), metalake("lake"), false), Code::denied);
}

TEST_P(CatalogTest, AnEntityTooLargeIsRefused) {
  create_schema();
  stored::CatalogEntity draft;
  (*draft.mutable_properties())["k"] = std::string(catalog_entity_bytes_max, 'x');
  EXPECT_REASON(catalog_->create(call(), table("big"), draft), Code::invalid, "illegal_argument");
  create(table("small"));
  const auto grow = [&](Entity& entity) -> Status {
    entity.stored = draft;
    entity.stored.set_name("small");
    return {};
  };
  EXPECT_REASON(catalog_->alter(call(), table("small"), grow), Code::invalid, "illegal_argument");
  EXPECT_EQ(catalog_->load(call(reader), table("small"))->stored.version(), 1u);
}

TEST_P(CatalogTest, ListsComeInPages) {
  create_schema();
  for (const char* name : {"a", "ab", "abc", "b", "c"}) create(table(name));
  EXPECT_EQ(names(schema_, CatalogType::table, {.prefix = "ab"}), (Names{"ab", "abc"}));
  EXPECT_EQ(names(schema_, CatalogType::table, {.after = "ab", .limit = 2}), (Names{"abc", "b"}));
  EXPECT_EQ(names(schema_, CatalogType::table, {.prefix = "b", .after = "a"}), Names{"b"});
  EXPECT_EQ(names(schema_, CatalogType::table, {.prefix = "a", .after = "b"}), Names{});
  Names all;
  CatalogList list{.limit = 2};
  for (bool more = true; more;) {
    const auto page = catalog_->list(call(reader), schema_, CatalogType::table, list,
                                     [&](std::string_view name, const auto&) {
                                       all.emplace_back(name);
                                       return Visit::go_on;
                                     });
    ASSERT_OK(page);
    more = page->more;
    list.after = all.back();
  }
  EXPECT_EQ(all, (Names{"a", "ab", "abc", "b", "c"}));
  const auto nothing = [](std::string_view, const auto&) { return Visit::go_on; };
  EXPECT_REASON(catalog_->list(call(reader), schema_, CatalogType::table, {.limit = 0}, nothing),
                Code::invalid, "illegal_argument");
  EXPECT_REASON(catalog_->list(call(reader), path(CatalogType::schema, {"lake", "cat", "no"}),
                               CatalogType::table, {}, nothing),
                Code::not_found, "no_such_schema");
}

TEST_P(CatalogTest, ManyAreLoadedAtOnce) {
  create_schema();
  for (int i = 0; i < 100; i++) create(table("t" + std::to_string(i)));
  Names asked{"none", "", std::string(5'000, 't')};
  for (int i = 99; i >= 0; i--) asked.push_back("t" + std::to_string(i));
  const auto loaded = catalog_->load_many(call(reader), schema_, CatalogType::table, asked);
  ASSERT_OK(loaded);
  ASSERT_EQ(loaded->size(), asked.size());
  for (size_t i = 0; i < asked.size(); i++) {
    ASSERT_EQ((*loaded)[i].has_value(), i >= 3) << asked[i];
    if (i >= 3) {
      EXPECT_EQ((*loaded)[i]->name(), asked[i]);
      EXPECT_EQ((*loaded)[i]->above.size(), 3u);
    }
  }
}

TEST_P(CatalogTest, ARenameKeepsEverythingButTheName) {
  create_schema();
  const Entity made = create(table("old"), draft_with_columns({"id"}));
  create(table("other"));
  EXPECT_REASON(catalog_->alter(call(), table("old"), [](Entity& e) { return rename(e, "other"); }),
                Code::exists, "table_exists");
  clock_.advance_ms(5);
  const auto renamed =
      catalog_->alter(call(), table("old"), [](Entity& e) { return rename(e, "new"); });
  ASSERT_OK(renamed);
  EXPECT_EQ(renamed->ref, made.ref);
  EXPECT_EQ(renamed->stored.version(), 2u);
  EXPECT_EQ(renamed->stored.audit().modified_ms(), start_ms + 5);
  EXPECT_REASON(catalog_->load(call(reader), table("old")), Code::not_found, "no_such_table");
  EXPECT_OK(catalog_->load(call(reader), table("new")));
  // Onto itself is no rename; and the old name is free.
  EXPECT_OK(catalog_->alter(call(), table("new"), [](Entity& e) { return rename(e, "new"); }));
  EXPECT_NE(create(table("old")).ref, made.ref);
  EXPECT_REASON(catalog_->alter(call(), table("new"), [](Entity& e) { return rename(e, ""); }),
                Code::invalid, "illegal_name");
}

TEST_P(CatalogTest, ARenameAboveTakesAllBelowAlong) {
  create_schema();
  const Entity made = create(table("t"));
  ASSERT_OK(catalog_->alter(call(), metalake("lake"), [](Entity& e) { return rename(e, "sea"); }));
  ASSERT_OK(catalog_->alter(call(), path(CatalogType::schema, {"sea", "cat", "sch"}),
                            [](Entity& e) { return rename(e, "s2"); }));
  const auto loaded =
      catalog_->load(call(reader), path(CatalogType::table, {"sea", "cat", "s2", "t"}));
  ASSERT_OK(loaded);
  EXPECT_EQ(loaded->ref, made.ref);
  const auto found = catalog_->path_of(*tenant_, made.ref);
  ASSERT_OK(found);
  EXPECT_EQ(**found, path(CatalogType::table, {"sea", "cat", "s2", "t"}));
}

TEST_P(CatalogTest, ATableMovesToAnotherSchema) {
  create_schema();
  create(path(CatalogType::schema, {"lake", "cat", "s2"}));
  const Entity made = create(table("t"), draft_with_columns({"a", "b"}));
  create(path(CatalogType::table, {"lake", "cat", "s2", "t"}));
  const auto stay = [](Entity&) { return Status(); };
  EXPECT_REASON(catalog_->alter(call(), table("t"), stay, {.new_schema = "s2"}), Code::exists,
                "table_exists");
  EXPECT_REASON(catalog_->alter(call(), table("t"), stay, {.new_schema = "s3"}), Code::not_found,
                "no_such_schema");
  EXPECT_REASON(catalog_->alter(call(), schema_, stay, {.new_schema = "s2"}), Code::invalid,
                "illegal_argument");
  const auto moved = catalog_->alter(call(), table("t"), [](Entity& e) { return rename(e, "u"); },
                                     {.new_schema = "s2"});
  ASSERT_OK(moved);
  EXPECT_EQ(moved->ref, made.ref);
  EXPECT_EQ(names(schema_, CatalogType::table), Names{});
  const auto loaded =
      catalog_->load(call(reader), path(CatalogType::table, {"lake", "cat", "s2", "u"}));
  ASSERT_OK(loaded);
  EXPECT_EQ(loaded->stored.table().columns_size(), 2);
  EXPECT_EQ(loaded->stored.version(), 2u);
  // To where it is.
  EXPECT_OK(catalog_->alter(call(), path(CatalogType::table, {"lake", "cat", "s2", "u"}), stay,
                            {.new_schema = "s2"}));
}

TEST_P(CatalogTest, AnAlterThatIsRefusedChangesNothing) {
  create_schema();
  const Entity made = create(table("t"));
  const auto fail = [](Entity& entity) -> Status {
    entity.stored.set_comment("half");
    return illegal_argument("no");
  };
  EXPECT_REASON(catalog_->alter(call(), table("t"), fail), Code::invalid, "illegal_argument");
  EXPECT_EQ(entity_tag(*catalog_->load(call(reader), table("t"))), entity_tag(made));
  // Somebody else was faster.
  const auto nothing = [](Entity&) { return Status(); };
  ASSERT_OK(catalog_->alter(call(), table("t"), nothing, {.if_match = entity_tag(made)}));
  EXPECT_REASON(catalog_->alter(call(), table("t"), nothing, {.if_match = entity_tag(made)}),
                Code::conflict, "version_changed");
  EXPECT_REASON(catalog_->drop(call(), table("t"), {.if_match = entity_tag(made)}), Code::conflict,
                "version_changed");
}

TEST_P(CatalogTest, WhatIsDisabledOnlyLoadsAndLists) {
  create_schema();
  create(table("t"));
  const auto nothing = [](Entity&) { return Status(); };
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, false));
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, false));  // it is so
  const auto loaded = catalog_->load(call(reader), catalog_path_);
  ASSERT_OK(loaded);
  EXPECT_TRUE(loaded->stored.disabled());
  EXPECT_EQ(loaded->stored.version(), 2u);
  EXPECT_EQ(names(metalake("lake"), CatalogType::catalog), Names{"cat"});
  EXPECT_REASON(catalog_->alter(call(), catalog_path_, nothing), Code::refused,
                "catalog_not_in_use");
  EXPECT_REASON(catalog_->load(call(reader), table("t")), Code::refused, "catalog_not_in_use");
  EXPECT_REASON(catalog_->create(call(), table("u"), {}), Code::refused, "catalog_not_in_use");
  EXPECT_REASON(catalog_->drop(call(), table("t")), Code::refused, "catalog_not_in_use");
  ASSERT_OK(catalog_->set_in_use(call(), metalake("lake"), false));
  EXPECT_REASON(catalog_->load(call(reader), catalog_path_), Code::refused, "metalake_not_in_use");
  EXPECT_REASON(catalog_->set_in_use(call(), catalog_path_, true), Code::refused,
                "metalake_not_in_use");
  ASSERT_OK(catalog_->set_in_use(call(), metalake("lake"), true));
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, true));
  EXPECT_OK(catalog_->load(call(reader), table("t")));
  EXPECT_REASON(catalog_->set_in_use(call(), schema_, false), Code::invalid, "illegal_argument");
}

TEST_P(CatalogTest, AnExtraIsOneWithTheChange) {
  create_schema();
  const EntityPath user = path(CatalogType::user, {"lake", "ada"});
  create(user);
  const auto keys = [](KeyspaceId keyspace, const CatalogRef& of, const EntityWay& owner) {
    const Uuid& lake = owner.refs[0].id;
    return std::pair(
        encode(CatalogRelationKey{keyspace, lake, CatalogRelation::owner, of, owner.ref()}),
        encode(CatalogInverseKey{keyspace, lake, CatalogRelation::owner, owner.ref(), of}));
  };
  CatalogExtra own{.paths = {user}};
  own.plan = [&](CatalogPlan& plan, const CatalogRef& ref) -> Status {
    TRY(plan.require(1));
    const auto [key, inverse] = keys(plan.keyspace(), ref, plan.way(1));
    plan.exclusive(key).exclusive(inverse);
    return {};
  };
  own.run = [&](CatalogChange& change, const Entity& entity) -> Status {
    const auto [key, inverse] = keys(change.keyspace(), entity.ref, change.way(1));
    TRY_ASSIGN(const CatalogChange::Record one, change.record(key));
    TRY_ASSIGN(const CatalogChange::Record other, change.record(inverse));
    change.put(one, "\x01");
    change.put(other, "\x01");
    return {};
  };
  EXPECT_OK(catalog_->create(call(), table("t"), {}, own));
  own.run = [](CatalogChange&, const Entity&) -> Status { return illegal_argument("no"); };
  EXPECT_REASON(catalog_->create(call(), table("u"), {}, own), Code::invalid, "illegal_argument");
  EXPECT_EQ(names(schema_, CatalogType::table), Names{"t"});
  own.paths = {path(CatalogType::user, {"lake", "bob"})};
  EXPECT_REASON(catalog_->create(call(), table("u"), {}, own), Code::not_found, "no_such_user");
}

TEST_P(CatalogTest, ColumnsHaveWaysToo) {
  create_schema();
  const Entity made = create(table("t"), draft_with_columns({"a", "b"}));
  const EntityPath column = path(CatalogType::column, {"lake", "cat", "sch", "t", "b"});
  const auto way = find_way(*tenant_, column);
  ASSERT_OK(way);
  ASSERT_TRUE(way->complete());
  EXPECT_EQ(way->ref(), CatalogRef::column(made.ref.number(), EntityId{2}));
  const auto found = catalog_->path_of(*tenant_, way->ref());
  ASSERT_OK(found);
  EXPECT_EQ(**found, column);
  const auto none = find_way(*tenant_, path(CatalogType::column, {"lake", "cat", "sch", "t", "c"}));
  ASSERT_OK(none);
  EXPECT_FALSE(none->complete());
  EXPECT_REASON(require(*none), Code::not_found, "no_such_metadata_object");
  EXPECT_FALSE((*catalog_->path_of(*tenant_, CatalogRef::column(made.ref.number(), EntityId{9})))
                   .has_value());
}

TEST_P(CatalogTest, IdsAreNeverGivenAgain) {
  create_schema();
  std::set<CatalogRef> seen;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 5; i++) {
      EXPECT_TRUE(seen.insert(create(table("t")).ref).second);
      ASSERT_OK(catalog_->drop(call(), table("t")));
    }
    collect_all();
    open_catalog_anew();
  }
}

TEST_P(CatalogTest, TheLogSaysWhatHappened) {
  create_schema();
  create(table("t"));
  ASSERT_OK(catalog_->alter(call(), table("t"), [](Entity& e) { return rename(e, "u"); }));
  ASSERT_OK(catalog_->drop(call(), table("u")));
  ASSERT_OK(catalog_->undelete(call(), table("u")));
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, false));
  const auto all = catalog_->changes(call(reader), "lake", 0, 100);
  ASSERT_OK(all);
  Names actions;
  for (size_t i = 0; i < all->size(); i++) {
    EXPECT_EQ((*all)[i].number, i + 1);
    actions.push_back((*all)[i].change.action() + " " + (*all)[i].change.type());
  }
  EXPECT_EQ(actions, (Names{"create metalake", "create catalog", "create schema", "create table",
                            "alter table", "drop table", "undelete table", "disable catalog"}));
  const stored::CatalogChange& renamed = (*all)[4].change;
  EXPECT_EQ(Names(renamed.names().begin(), renamed.names().end()),
            (Names{"lake", "cat", "sch", "u"}));
  EXPECT_EQ(Names(renamed.names_before().begin(), renamed.names_before().end()),
            (Names{"lake", "cat", "sch", "t"}));
  EXPECT_EQ(renamed.version(), 2u);
  EXPECT_EQ(renamed.user(), "ada");
  EXPECT_EQ(catalog_->last_change(call(reader), "lake")->number, all->size());
  const auto some = catalog_->changes(call(reader), "lake", 5, 2);
  ASSERT_OK(some);
  ASSERT_EQ(some->size(), 2u);
  EXPECT_EQ((*some)[0].number, 6u);
  // There never were so many: it is not the metalake that somebody knows.
  const auto last = catalog_->last_change(call(reader), "lake");
  ASSERT_OK(last);
  EXPECT_TRUE(catalog_->changes(call(reader), "lake", last->number, 2)->empty());
  for (const uint64_t since : {last->number + 1, UINT64_MAX})
    EXPECT_REASON(catalog_->changes(call(reader), "lake", since, 2), Code::not_found, "compacted");
  EXPECT_REASON(catalog_->changes(call(reader), "sea", 0, 2), Code::not_found, "no_such_metalake");
}

// By age: whoever asks for what is gone is told so, and not that there was nothing.
TEST_P(CatalogTest, TheLogForgetsWhatIsOld) {
  create(metalake("lake"));
  const auto change = [&] {
    ASSERT_OK(catalog_->alter(call(), metalake("lake"), [](Entity&) { return Status(); }));
  };
  for (uint64_t i = 1; i < log_step + 300; i++) change();
  ASSERT_EQ(notes().size(), 1u);
  EXPECT_EQ(notes()[0].due_ms, clock_.unix_ms() + log_age_ms);
  const size_t before = entries();
  const auto oldest = [&]() -> uint64_t {
    const auto all = catalog_->changes(call(reader), "lake", {}, 10);
    EXPECT_OK(all);
    return all && !all->empty() ? all->front().number : 0;
  };
  EXPECT_EQ(oldest(), 1u);
  collect_all();
  EXPECT_EQ(entries(), before - log_step);
  EXPECT_EQ(oldest(), log_step + 1);
  EXPECT_OK(catalog_->changes(call(reader), "lake", log_step, 10));
  EXPECT_REASON(catalog_->changes(call(reader), "lake", log_step - 1, 10), Code::not_found,
                "compacted");
  EXPECT_REASON(catalog_->changes(call(reader), "lake", 0, 10), Code::not_found, "compacted");

  // All of it, if nothing came since.
  while (catalog_->last_change(call(reader), "lake")->number < 2 * log_step) change();
  collect_all();
  EXPECT_EQ(oldest(), 0u);
  EXPECT_TRUE(catalog_->changes(call(reader), "lake", 2 * log_step, 10)->empty());
  EXPECT_REASON(catalog_->changes(call(reader), "lake", 2 * log_step - 1, 10), Code::not_found,
                "compacted");
  change();
  EXPECT_EQ(oldest(), 2 * log_step + 1);

  // Notes of a metalake that is gone go, too.
  while (catalog_->last_change(call(reader), "lake")->number < 3 * log_step) change();
  ASSERT_OK(catalog_->drop(call(), metalake("lake"), {.force = true}));
  collect_all();
}

// Many at once are removed a part of each at a time: nobody is told of what is left between them.
TEST_P(CatalogTest, TheLogHasNoHolesWhileItForgets) {
  create(metalake("lake"));
  const uint64_t last = 2 * log_step + 10;
  while (catalog_->last_change(call(reader), "lake")->number < last)
    ASSERT_OK(catalog_->alter(call(), metalake("lake"), [](Entity&) { return Status(); }));
  ASSERT_EQ(notes().size(), 2u);
  clock_.advance_ms(log_age_ms);
  for (size_t parts = 1; !notes().empty(); parts++) {
    ASSERT_LT(parts, 10u);
    ASSERT_OK(catalog_->collect(*tenant_, notes()));
    // A cluster gives short pages.
    auto page = catalog_->changes(call(reader), "lake", {}, last);
    ASSERT_OK(page);
    EXPECT_GT(page->front().number, log_step);
    for (uint64_t number = page->front().number; number <= last;) {
      ASSERT_FALSE(page->empty());
      EXPECT_EQ(page->front().number, number);
      EXPECT_EQ(page->back().number, number + page->size() - 1);
      number += page->size();
      page = catalog_->changes(call(reader), "lake", number - 1, last);
      ASSERT_OK(page);
    }
    for (uint64_t since = 0; since < last; since += 100) {
      const auto some = catalog_->changes(call(reader), "lake", since, last);
      if (some)
        EXPECT_EQ(some->size(), last - since);
      else
        EXPECT_EQ(some.error().reason, "compacted");
    }
  }
}

// By number: the last ones stay, however young the others are.
TEST_P(CatalogTest, TheLogForgetsWhatIsTooMuch) {
  const Entity lake = create(metalake("lake"));
  const auto change = [&] {
    ASSERT_OK(catalog_->alter(call(), metalake("lake"), [](Entity&) { return Status(); }));
  };
  for (int i = 0; i < 9; i++) change();
  EXPECT_EQ(catalog_->last_change(call(reader), "lake")->number, 10u);
  // As if there had been more.
  const uint64_t last = log_changes_max + log_step;
  Commit jump;
  jump.writes.put(encode(CatalogLogKey{id_, lake.ref.id}), encode_counter(last - 1));
  ASSERT_OK(commit(memory_, jump));
  change();
  const auto left = notes();
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].due_ms, clock_.unix_ms());
  const auto trim = decode_log_trim(left[0].target);
  ASSERT_TRUE(trim.has_value());
  EXPECT_EQ(trim->number, log_step);
  EXPECT_EQ(*catalog_->collect(*tenant_, {&left[0], 1}), 1u);
  const auto kept = catalog_->changes(call(reader), "lake", {}, 10);
  ASSERT_OK(kept);
  ASSERT_EQ(kept->size(), 1u);
  EXPECT_EQ(kept->front().number, last);
}

}  // namespace
}  // namespace trellis
