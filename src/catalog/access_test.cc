// Relations, labels, owners, roles, and what follows of them.
#include "catalog/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/catalog_check.h"
#include "catalog/catalog_fixture.h"
#include "catalog/labels.h"
#include "catalog/owners.h"
#include "catalog/relations.h"
#include "catalog/roles.h"
#include "support/hooked_engine.h"

namespace trellis {
namespace {

using Names = std::vector<std::string>;

class AccessTest : public CatalogFixture {
 protected:
  void SetUp() override {
    CatalogFixture::SetUp();
    create_schema();
    create(table("orders"), draft_with_columns({"id", "city"}));
  }

  EntityPath member(CatalogType type, std::string name) {
    return path(type, {"lake", std::move(name)});
  }
  EntityPath tag(std::string name) { return member(CatalogType::tag, std::move(name)); }
  EntityPath user(std::string name) { return member(CatalogType::user, std::move(name)); }
  EntityPath role(std::string name) { return member(CatalogType::role, std::move(name)); }
  const EntityPath column_ = path(CatalogType::column, {"lake", "cat", "sch", "orders", "city"});

  Status tag_with(const EntityPath& object, Names add, Names remove = {}) {
    LabelChanges changes;
    for (std::string& name : add) changes.add.push_back({std::move(name), {}});
    for (std::string& name : remove) changes.remove.push_back({std::move(name), {}});
    return change_labels(call(), object, CatalogType::tag, changes);
  }
  Status tag_values(const EntityPath& object, std::vector<LabelValue> add,
                    std::vector<LabelValue> remove = {}) {
    LabelChanges changes{std::move(add), std::move(remove), true};
    return change_labels(call(), object, CatalogType::tag, changes);
  }
  // name, name (inherited), name=value,value
  Names labels(const EntityPath& object, CatalogType type = CatalogType::tag) {
    const auto found = labels_of(*catalog_, call(reader), object, type, Inherited::too);
    EXPECT_OK(found);
    Names names;
    if (!found) return names;
    for (const Label& label : *found) {
      std::string name = label.entity.name();
      for (const std::string& value : label.values) name += "=" + value;
      names.push_back(name + (label.inherited ? " inherited" : ""));
    }
    return names;
  }
  Names labelled(const EntityPath& label, std::optional<std::string> value = {}) {
    Names names;
    EXPECT_OK(visit_labelled(*catalog_, call(reader), label, value, {},
                             [&](const EntityPath& path) { names.push_back(to_string(path)); }));
    std::sort(names.begin(), names.end());
    return names;
  }

  static stored::CatalogPrivilege allow(std::string name, bool deny = false) {
    stored::CatalogPrivilege privilege;
    privilege.set_name(std::move(name));
    privilege.set_deny(deny);
    return privilege;
  }
  static stored::CatalogPrivilege deny(std::string name) { return allow(std::move(name), true); }
  Status grant(const std::string& role_name, const EntityPath& object,
               std::vector<stored::CatalogPrivilege> privileges,
               GrantKind kind = GrantKind::grant) {
    const SecurableObject one{object, std::move(privileges)};
    const auto done = change_grants(*catalog_, call(), role(role_name), kind, {&one, 1});
    return done ? Status() : Status(done.error());
  }
  // A user with a role of the same name.
  void make_user(const std::string& name) {
    create(user(name));
    create(role(name));
    EXPECT_OK(change_roles(call(), user(name), Names{name}, true));
  }
  bool may(const std::string& who, const EntityPath& path, PrivilegeSet any_of) {
    CatalogCall as{*tenant_, reader, who};
    const auto access = CatalogAccess::of(*catalog_, as, "lake");
    EXPECT_OK(access);
    const auto allowed = (*access)->may(path, any_of);
    EXPECT_OK(allowed);
    return allowed.value_or(false);
  }
  bool may_load(const std::string& who, const EntityPath& path) {
    return may(who, path, privileges_to_load(path.type));
  }
  // However many grants are kept in memory.
  Names seen(const std::string& who, const EntityPath& parent, CatalogType type) {
    const Names kept = seen(who, parent, type, 10'000);
    EXPECT_EQ(seen(who, parent, type, 0), kept);
    return kept;
  }
  Names seen(const std::string& who, const EntityPath& parent, CatalogType type,
             size_t others_max) {
    CatalogCall as{*tenant_, reader, who};
    const auto access = CatalogAccess::of(*catalog_, as, "lake");
    EXPECT_OK(access);
    const auto filter = ChildFilter::of(**access, parent, type, others_max);
    EXPECT_OK(filter);
    Names names;
    std::vector<CatalogRef> refs;
    EXPECT_OK(catalog_->list(as, parent, type, {}, [&](std::string_view name, const NamedRef& ref) {
      names.emplace_back(name);
      refs.push_back(ref.ref);
      return Visit::go_on;
    }));
    const auto kept = filter->keep(refs);
    EXPECT_OK(kept);
    Names left;
    for (size_t i = 0; i < names.size(); i++)
      if ((*kept)[i]) left.push_back(names[i]);
    return left;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, AccessTest, testing::Values(Way::latched, Way::expecting), way_name);

TEST_P(AccessTest, TagsHoldForAllBelow) {
  for (const char* name : {"a", "b", "c"}) create(tag(name));
  EXPECT_OK(tag_with(catalog_path_, {"a", "b"}));
  EXPECT_OK(tag_with(table("orders"), {"b", "c", "nothing"}));
  EXPECT_OK(tag_with(column_, {"a"}));
  EXPECT_EQ(labels(catalog_path_), (Names{"a", "b"}));
  EXPECT_EQ(labels(schema_), (Names{"a inherited", "b inherited"}));
  EXPECT_EQ(labels(table("orders")), (Names{"b", "c", "a inherited"}));
  EXPECT_EQ(labels(column_), (Names{"a", "b inherited", "c inherited"}));
  EXPECT_EQ(labelled(tag("a")), (Names{"lake.cat", "lake.cat.sch.orders.city"}));
  EXPECT_REASON(tag_with(table("orders"), {"a", "c"}), Code::exists, "tag_associated");
  EXPECT_EQ(labels(table("orders")), (Names{"b", "c", "a inherited"})) << "all or nothing";
  EXPECT_OK(tag_with(table("orders"), {"a"}, {"b", "never"}));
  EXPECT_EQ(labels(table("orders")), (Names{"a", "c", "b inherited"}));
  EXPECT_REASON(tag_with(table("none"), {"a"}), Code::not_found, "no_such_metadata_object");
  EXPECT_REASON(tag_with(metalake("lake"), {"a"}), Code::invalid, "illegal_argument");

  EXPECT_OK(catalog_->drop(call(), tag("a")));
  EXPECT_EQ(labels(column_), (Names{"c inherited", "b inherited"}));
  EXPECT_OK(catalog_->undelete(call(), tag("a")));
  EXPECT_EQ(labels(column_), (Names{"a", "c inherited", "b inherited"}));
  EXPECT_OK(catalog_->drop(call(), table("orders")));
  EXPECT_EQ(labelled(tag("a")), Names{"lake.cat"});
  collect_all();
  EXPECT_EQ(labelled(tag("c")), Names{});
}

TEST_P(AccessTest, ATagMayHaveValues) {
  stored::CatalogEntity draft;
  draft.mutable_tag()->add_allowed_values("eu");
  draft.mutable_tag()->add_allowed_values("us");
  create(tag("region"), draft);
  create(tag("free"));
  EXPECT_OK(tag_values(schema_, {{"region", "eu"}, {"region", "us"}, {"free", {}}}));
  EXPECT_OK(tag_values(schema_, {{"region", "eu"}, {"free", {}}}));  // again
  EXPECT_EQ(labels(schema_), (Names{"region=eu=us", "free"}));
  EXPECT_REASON(tag_values(schema_, {{"region", "asia"}}), Code::invalid, "illegal_argument");
  EXPECT_REASON(tag_values(schema_, {{"region", {}}}), Code::invalid, "illegal_argument");
  EXPECT_REASON(tag_with(table("orders"), {"region"}), Code::invalid, "illegal_argument");
  EXPECT_EQ(labelled(tag("region"), "us"), Names{"lake.cat.sch"});
  EXPECT_EQ(labelled(tag("region"), "asia"), Names{});
  EXPECT_OK(tag_values(schema_, {{"free", "x"}}, {{"region", "us"}}));
  EXPECT_EQ(labels(schema_), (Names{"region=eu", "free=x"}));
  EXPECT_REASON(tag_values(schema_, {{"free", {}}}), Code::invalid, "illegal_argument");
  EXPECT_OK(tag_values(schema_, {}, {{"region", "eu"}, {"free", {}}}));
  EXPECT_EQ(labels(schema_), Names{"free=x"});
  EXPECT_OK(tag_with(schema_, {}, {"free"}));
  EXPECT_EQ(labels(schema_), Names{});
}

TEST_P(AccessTest, TaggedColumnsOfOneTableAreReadOnce) {
  create(tag("wide"));
  Names columns;
  for (int i = 0; i < 200; i++) columns.push_back("column" + std::to_string(i));
  create(table("other"), draft_with_columns(columns));
  for (const std::string& column : columns)
    ASSERT_OK(
        tag_with(path(CatalogType::column, {"lake", "cat", "sch", "other", column}), {"wide"}));
  ASSERT_OK(tag_with(column_, {"wide"}));
  HookedEngine hooked(memory_);
  Transactor transactor(hooked, clock_, {.way = GetParam(), .check_scope = true});
  Tenant tenant({hooked, transactor, clock_}, id_);
  size_t gets = 0;
  std::function<void()> count = [&] {
    gets++;
    hooked.after_get = count;
  };
  hooked.after_get = count;
  size_t found = 0;
  ASSERT_OK(visit_labelled(*catalog_, {tenant, reader, "ada"}, tag("wide"), {}, {},
                           [&](const EntityPath& path) {
                             EXPECT_EQ(path.type, CatalogType::column);
                             found++;
                           }));
  EXPECT_EQ(found, columns.size() + 1);
  EXPECT_LE(gets, 50u);
}

TEST_P(AccessTest, PoliciesAreForSomeTypes) {
  stored::CatalogEntity draft;
  draft.mutable_policy()->set_policy_type("custom");
  draft.mutable_policy()->set_content_json(R"({"supportedObjectTypes":["table","catalog"]})");
  const EntityPath policy = member(CatalogType::policy, "keep");
  create(policy, draft);
  LabelChanges changes;
  changes.add.push_back({"keep", {}});
  EXPECT_OK(change_labels(call(), catalog_path_, CatalogType::policy, changes));
  EXPECT_REASON(change_labels(call(), schema_, CatalogType::policy, changes), Code::invalid,
                "illegal_argument");
  EXPECT_REASON(change_labels(call(), catalog_path_, CatalogType::policy, changes), Code::exists,
                "policy_associated");
  EXPECT_REASON(change_labels(call(), column_, CatalogType::policy, changes), Code::invalid,
                "illegal_argument");
  EXPECT_EQ(labels(table("orders"), CatalogType::policy), Names{"keep inherited"});
  EXPECT_EQ(labelled(policy), Names{"lake.cat"});
}

TEST_P(AccessTest, AThingHasOneOwner) {
  const auto owner = [&](const EntityPath& object) -> std::string {
    const auto found = owner_of(*catalog_, call(reader), object);
    EXPECT_OK(found);
    return found && *found ? to_string(**found) : "nobody";
  };
  create(user("ann"));
  create(member(CatalogType::group, "all"));
  EXPECT_EQ(owner(table("orders")), "nobody");
  EXPECT_OK(set_owner(call(), table("orders"), user("ann")));
  EXPECT_OK(set_owner(call(), metalake("lake"), user("ann")));
  EXPECT_EQ(owner(table("orders")), "lake.ann");
  EXPECT_OK(set_owner(call(), table("orders"), member(CatalogType::group, "all")));
  EXPECT_EQ(owner(table("orders")), "lake.all");
  EXPECT_REASON(set_owner(call(), table("orders"), user("bob")), Code::not_found, "no_such_user");
  EXPECT_REASON(set_owner(call(), table("none"), user("ann")), Code::not_found,
                "no_such_metadata_object");
  EXPECT_REASON(set_owner(call(), user("ann"), user("ann")), Code::invalid, "illegal_argument");
  EXPECT_OK(catalog_->drop(call(), member(CatalogType::group, "all")));
  EXPECT_EQ(owner(table("orders")), "nobody");
  collect_all();
  EXPECT_EQ(owner(metalake("lake")), "lake.ann");
}

TEST_P(AccessTest, OwnersAreThoseOfWhatWasLoaded) {
  create(user("ann"));
  const auto owns = [&](const Entity& entity) {
    const auto access = CatalogAccess::of(*catalog_, {*tenant_, reader, "ann"}, "lake");
    EXPECT_OK(access);
    const auto owned = (*access)->owns(entity);
    EXPECT_OK(owned);
    return owned.value_or(false);
  };
  const auto loaded = catalog_->load(call(), catalog_path_);
  ASSERT_OK(loaded);
  EXPECT_FALSE(owns(*loaded));
  // Another has its path by now.
  const auto rename = [](Entity& entity) -> Status {
    entity.stored.set_name("moved");
    return {};
  };
  EXPECT_OK(catalog_->alter(call(), catalog_path_, rename));
  create(catalog_path_);
  EXPECT_OK(set_owner(call(), catalog_path_, user("ann")));
  EXPECT_FALSE(owns(*loaded));
  EXPECT_TRUE(owns(*catalog_->load(call(), catalog_path_)));
  EXPECT_OK(set_owner(call(), metalake("lake"), user("ann")));
  EXPECT_TRUE(owns(*loaded));
}

TEST_P(AccessTest, WhoeverMakesAThingOwnsIt) {
  const auto make = [&](const EntityPath& path) -> Status {
    const auto extra = owned_by_creator(*catalog_, call(), path);
    EXPECT_OK(extra);
    const auto made = catalog_->create(call(), path, {}, *extra);
    return made ? Status() : Status(made.error());
  };
  EXPECT_REASON(make(table("mine")), Code::denied, "forbidden");  // no user of it
  EXPECT_OK(make(metalake("own")));
  const auto owner = owner_of(*catalog_, call(), metalake("own"));
  ASSERT_OK(owner);
  EXPECT_EQ(to_string(**owner), "own.ada");
  EXPECT_OK(make(path(CatalogType::catalog, {"own", "cat"})));
  EXPECT_EQ(to_string(**owner_of(*catalog_, call(), path(CatalogType::catalog, {"own", "cat"}))),
            "own.ada");
}

TEST_P(AccessTest, RolesOfUsersAndObjects) {
  create(user("ann"));
  create(role("r1"));
  create(role("r2"));
  const auto roles = [&]() -> Names {
    const auto entity = catalog_->load(call(reader), user("ann"));
    EXPECT_OK(entity);
    return *role_names(*catalog_, *tenant_, entity->above[0], entity->ref);
  };
  EXPECT_OK(change_roles(call(), user("ann"), Names{"r1", "r2", "r1"}, true));
  EXPECT_OK(change_roles(call(), user("ann"), Names{"r1"}, true));
  EXPECT_EQ(roles(), (Names{"r1", "r2"}));
  EXPECT_REASON(change_roles(call(), user("ann"), Names{"r1", "r3"}, false), Code::invalid,
                "illegal_role");
  EXPECT_OK(change_roles(call(), user("ann"), Names{"r1"}, false));
  EXPECT_EQ(roles(), Names{"r2"});
  EXPECT_OK(catalog_->drop(call(), role("r2")));
  EXPECT_EQ(roles(), Names{});

  const auto objects = [&]() -> Names {
    const auto entity = catalog_->load(call(reader), role("r1"));
    EXPECT_OK(entity);
    Names names;
    const auto found = objects_of_role(*catalog_, *tenant_, *entity);
    EXPECT_OK(found);
    for (const SecurableObject& object : *found) {
      std::string text = to_string(object.path);
      for (const auto& each : object.privileges) text += (each.deny() ? " -" : " +") + each.name();
      names.push_back(text);
    }
    std::sort(names.begin(), names.end());
    return names;
  };
  EXPECT_OK(grant("r1", schema_, {allow("use_schema")}));
  EXPECT_OK(grant("r1", table("orders"), {allow("select_table"), deny("modify_table")}));
  EXPECT_OK(grant("r1", metalake("lake"), {allow("use_catalog")}));
  EXPECT_REASON(grant("r1", table("orders"), {deny("select_table")}), Code::invalid,
                "illegal_privilege");
  EXPECT_REASON(grant("r1", table("orders"), {allow("use_catalog")}), Code::invalid,
                "illegal_privilege");
  EXPECT_REASON(grant("r1", table("none"), {allow("select_table")}), Code::not_found,
                "no_such_metadata_object");
  EXPECT_REASON(grant("r9", table("orders"), {allow("select_table")}), Code::not_found,
                "no_such_role");
  EXPECT_EQ(objects(), (Names{"lake +use_catalog", "lake.cat.sch +use_schema",
                              "lake.cat.sch.orders +select_table -modify_table"}));
  EXPECT_OK(grant("r1", table("orders"), {deny("modify_table")}, GrantKind::revoke));
  EXPECT_EQ(roles_of_object(*catalog_, call(), table("orders"))->size(), 1u);
  EXPECT_OK(grant("r1", table("orders"), {allow("select_table")}, GrantKind::revoke));
  EXPECT_EQ(roles_of_object(*catalog_, call(), table("orders"))->size(), 0u);
  EXPECT_OK(grant("r1", schema_, {allow("create_table")}, GrantKind::replace));
  EXPECT_EQ(objects(), Names{"lake.cat.sch +create_table"});
  EXPECT_OK(catalog_->drop(call(), schema_, {.force = true}));
  EXPECT_EQ(objects(), Names{});
  collect_all();
}

TEST_P(AccessTest, PrivilegesHoldBelowAndADenyWins) {
  make_user("ann");
  EXPECT_FALSE(may_load("ann", catalog_path_));
  EXPECT_TRUE(may_load("ann", metalake("lake")));
  EXPECT_FALSE(may_load("stranger", metalake("lake")));
  EXPECT_OK(grant("ann", metalake("lake"), {allow("select_table")}));
  EXPECT_FALSE(may_load("ann", table("orders"))) << "it cannot be reached";
  EXPECT_OK(grant("ann", catalog_path_, {allow("use_catalog")}));
  EXPECT_TRUE(may_load("ann", catalog_path_));
  EXPECT_FALSE(may_load("ann", schema_));
  EXPECT_OK(grant("ann", catalog_path_, {allow("use_schema")}));
  EXPECT_TRUE(may_load("ann", schema_));
  EXPECT_TRUE(may_load("ann", table("orders")));
  EXPECT_TRUE(may_load("ann", table("none"))) << "and is told that it is not there";
  EXPECT_FALSE(may("ann", table("orders"), privileges(Privilege::modify_table)));
  EXPECT_OK(grant("ann", schema_, {deny("select_table")}));
  EXPECT_FALSE(may_load("ann", table("orders")));
  EXPECT_OK(set_owner(call(), table("orders"), user("ann")));
  EXPECT_TRUE(may("ann", table("orders"), 0)) << "owners do not need it";
  EXPECT_OK(grant("ann", metalake("lake"), {deny("use_schema")}));
  EXPECT_FALSE(may("ann", table("orders"), 0));
  EXPECT_OK(set_owner(call(), catalog_path_, user("ann")));
  EXPECT_TRUE(may("ann", table("orders"), 0));

  make_user("bob");
  EXPECT_FALSE(may("bob", metalake("lake"), privileges(Privilege::manage_users)));
  EXPECT_OK(set_owner(call(), metalake("lake"), user("bob")));
  EXPECT_TRUE(may("bob", table("orders"), 0));
  EXPECT_OK(catalog_->drop(call(), role("ann")));
  EXPECT_OK(set_owner(call(), catalog_path_, user("bob")));
  EXPECT_FALSE(may_load("ann", catalog_path_));
}

TEST_P(AccessTest, TagsOfColumnsGoWithThem) {
  for (const char* name : {"a", "b"}) create(tag(name));
  const EntityPath id = path(CatalogType::column, {"lake", "cat", "sch", "orders", "id"});
  EXPECT_OK(tag_with(column_, {"a", "b"}));
  EXPECT_OK(tag_with(id, {"a"}));
  const auto alter = [&](FunctionRef<void(stored::CatalogTable&)> change) {
    EXPECT_OK(catalog_->alter(call(), table("orders"), [&](Entity& entity) -> Status {
      change(*entity.stored.mutable_table());
      return {};
    }));
  };
  alter([](stored::CatalogTable& orders) { orders.mutable_columns(1)->set_name("town"); });
  EXPECT_EQ(labelled(tag("a")), (Names{"lake.cat.sch.orders.id", "lake.cat.sch.orders.town"}));
  const size_t before = entries();
  alter([](stored::CatalogTable& orders) { orders.mutable_columns()->RemoveLast(); });
  EXPECT_EQ(labelled(tag("a")), Names{"lake.cat.sch.orders.id"});
  EXPECT_EQ(labelled(tag("b")), Names{});
  // Two relations, each from both ends, and the column's name; but one more change.
  EXPECT_EQ(entries(), before - 5 + 1);
  // Another column of that name is another one.
  alter([](stored::CatalogTable& orders) {
    stored::CatalogColumn* const added = orders.add_columns();
    added->set_id(3);
    added->set_name("city");
  });
  EXPECT_EQ(labels(column_), Names{});
  for (const std::string& problem : check_catalog(memory_, id_)) ADD_FAILURE() << problem;
}

TEST_P(AccessTest, WhatIsReadInNumbersIsSmall) {
  for (const CatalogType type : {CatalogType::tag, CatalogType::policy, CatalogType::role,
                                 CatalogType::user, CatalogType::group}) {
    stored::CatalogEntity draft;
    (*draft.mutable_properties())["p"] = std::string(catalog_member_bytes_max - 200, 'x');
    create(member(type, "small"), draft);
    (*draft.mutable_properties())["p"] += std::string(200, 'x');
    EXPECT_REASON(catalog_->create(call(), member(type, "large"), draft), Code::invalid,
                  "illegal_argument");
  }
  // More than are read at once.
  create(user("ann"));
  Names roles;
  for (int i = 0; i < 150; i++) roles.push_back(fmt::format("r{:03}", i));
  for (const std::string& name : roles) create(role(name));
  EXPECT_OK(change_roles(call(), user("ann"), roles, true));
  const auto way = find_way(*tenant_, user("ann"));
  ASSERT_OK(way);
  EXPECT_EQ(role_names(*catalog_, *tenant_, way->refs[0], way->ref()).value_or(Names{}), roles);
}

TEST_P(AccessTest, ARoleHasSoManyObjects) {
  create(role("r"));
  std::vector<SecurableObject> objects;
  const auto flush = [&] {
    const auto done =
        change_grants(*catalog_, call(), role("r"), GrantKind::grant, std::exchange(objects, {}));
    return done ? Status() : Status(done.error());
  };
  for (size_t i = 0; i < role_objects_max; i++) {
    const EntityPath path = table("t" + std::to_string(i));
    create(path);
    objects.push_back({path, {allow("select_table")}});
    if (objects.size() == 1'000) {
      ASSERT_OK(flush());
    }
  }
  ASSERT_TRUE(objects.empty());
  EXPECT_REASON(grant("r", table("orders"), {allow("select_table")}), Code::invalid,
                "illegal_argument");
  EXPECT_OK(grant("r", table("t1"), {allow("modify_table")}));  // it has some on that already
  EXPECT_OK(
      grant("r", table("t1"), {allow("select_table"), allow("modify_table")}, GrantKind::revoke));
  EXPECT_OK(grant("r", table("orders"), {allow("select_table")}));
}

TEST_P(AccessTest, ListsLeaveOutWhatIsNotSeen) {
  for (const char* name : {"t1", "t2", "t3"}) create(table(name));
  make_user("ann");
  EXPECT_OK(grant("ann", metalake("lake"), {allow("use_catalog"), allow("use_schema")}));
  EXPECT_EQ(seen("ann", schema_, CatalogType::table), Names{});
  EXPECT_OK(grant("ann", table("t2"), {allow("select_table")}));
  EXPECT_OK(set_owner(call(), table("t3"), user("ann")));
  EXPECT_EQ(seen("ann", schema_, CatalogType::table), (Names{"t2", "t3"}));
  EXPECT_OK(grant("ann", schema_, {allow("modify_table")}));
  EXPECT_EQ(seen("ann", schema_, CatalogType::table), (Names{"orders", "t1", "t2", "t3"}));
  EXPECT_OK(grant("ann", table("t1"), {deny("modify_table")}));
  EXPECT_EQ(seen("ann", schema_, CatalogType::table), (Names{"orders", "t2", "t3"}));
  EXPECT_EQ(seen("ann", metalake("lake"), CatalogType::role), Names{"ann"});
  EXPECT_EQ(seen("ann", metalake("lake"), CatalogType::catalog), Names{"cat"});
  EXPECT_EQ(seen("stranger", schema_, CatalogType::table), Names{});
}

TEST_P(AccessTest, GrantsGoAlongWhenATableMoves) {
  create(path(CatalogType::schema, {"lake", "cat", "other"}));
  make_user("ann");
  EXPECT_OK(grant("ann", metalake("lake"), {allow("use_catalog"), allow("use_schema")}));
  EXPECT_OK(grant("ann", table("orders"), {allow("select_table")}));
  EXPECT_OK(catalog_->alter(call(), table("orders"), [](Entity&) { return Status(); },
                            {.new_schema = "other"}));
  const EntityPath moved = path(CatalogType::table, {"lake", "cat", "other", "orders"});
  EXPECT_TRUE(may_load("ann", moved));
  EXPECT_EQ(seen("ann", path(CatalogType::schema, {"lake", "cat", "other"}), CatalogType::table),
            Names{"orders"});
  EXPECT_OK(catalog_->drop(call(), moved));
  collect_all();
  EXPECT_OK(catalog_->drop(call(), role("ann")));
  EXPECT_OK(catalog_->drop(call(), metalake("lake"), {.force = true}));
  collect_all();
  EXPECT_EQ(entries(), 1u) << "the next id";
}

TEST_P(AccessTest, RequestsAreRead) {
  const auto tags = [](const char* text, bool values) -> std::string {
    const auto body = parse_json(text);
    EXPECT_OK(body);
    const auto read = read_tag_changes(*body, values);
    return read ? "" : std::string(read.error().reason);
  };
  EXPECT_EQ(tags(R"({"tagsToAdd":["a"],"tagsToRemove":null})", false), "");
  EXPECT_EQ(tags(R"({})", false), "illegal_argument");
  EXPECT_EQ(tags(R"({"tagsToAdd":[""]})", false), "illegal_argument");
  EXPECT_EQ(tags(R"({"tagsToAdd":["a"],"other":1})", false), "illegal_argument");
  EXPECT_EQ(tags(R"({"tagsToAdd":[{"name":"a","value":"1"}]})", true), "");
  EXPECT_EQ(tags(R"({"tagsToAdd":[{"name":"a"}],"tagsToRemove":[{"name":"a"}]})", true),
            "illegal_argument");
  EXPECT_EQ(tags(R"({"tagsToAdd":[]})", true), "illegal_argument");
  const auto role_of = [](const char* text) -> std::string {
    const auto body = parse_json(text);
    EXPECT_OK(body);
    const auto read = read_role("lake", *body);
    return read ? "" : std::string(read.error().reason);
  };
  EXPECT_EQ(role_of(R"({"name":"r"})"), "");
  EXPECT_EQ(role_of(R"({"name":"r","securableObjects":[{"fullName":"c.s","type":"SCHEMA",
                        "privileges":[{"name":"USE_SCHEMA","condition":"ALLOW"}]}]})"),
            "");
  EXPECT_EQ(role_of(R"({"name":"r","securableObjects":[{"fullName":"c","type":"schema",
                        "privileges":[{"name":"use_schema","condition":"allow"}]}]})"),
            "illegal_argument");
  EXPECT_EQ(role_of(R"({"name":"r","securableObjects":[{"fullName":"c","type":"catalog",
                        "privileges":[{"name":"fly","condition":"allow"}]}]})"),
            "illegal_argument");
  EXPECT_EQ(role_of(R"({"name":"r","securableObjects":[{"fullName":"c","type":"catalog",
       "privileges":[{"name":"use_catalog","condition":"allow"},
                     {"name":"use_catalog","condition":"deny"}]}]})"),
            "illegal_privilege");
}

}  // namespace
}  // namespace trellis
