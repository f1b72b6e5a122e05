#include <thread>

#include "catalog/catalog_fixture.h"
#include "catalog/members.h"

namespace trellis {
namespace {

using Names = std::vector<std::string>;

class CatalogDropTest : public CatalogFixture {
 protected:
  // A record that belongs to an entity, as other modules write them.
  void put_member(const Bytes& key) {
    ASSERT_OK(tenant_->write(writer, Model::catalog, Scope::in(id_).exclusive(key),
                             [&](CountedView& view) -> Status {
                               Value old;
                               TRY(view.get(key, old));
                               view.put(key, "\x01", old);
                               return {};
                             }));
  }
  void relate(CatalogRelation relation, const Entity& from, const CatalogRef& ref,
              const Entity& to) {
    const Uuid& lake = from.metalake();
    const Bytes key = encode(CatalogRelationKey{id_, lake, relation, ref, to.ref});
    const Bytes inverse = encode(CatalogInverseKey{id_, lake, relation, to.ref, ref});
    put_member(key);
    put_member(inverse);
  }
  std::vector<DroppedEntity> dropped_in(const EntityPath& parent, CatalogType type) {
    std::vector<DroppedEntity> all;
    PageStart from;
    do {
      const auto next = catalog_->list_dropped(call(reader), parent, type, {from},
                                               [&](const auto& each) { all.push_back(each); });
      EXPECT_OK(next);
      from = next.value_or(PageStart());
    } while (from);
    return all;
  }
  bool is_stored(const Bytes& key) {
    Value value;
    EXPECT_OK(memory_.get(key, value));
    return value.found();
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, CatalogDropTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(CatalogDropTest, WhatIsMissingIsNotDropped) {
  EXPECT_FALSE(*catalog_->drop(call(), metalake("lake")));
  EXPECT_FALSE(*catalog_->drop(call(), catalog_path_));
  EXPECT_REASON(catalog_->drop(call(), schema_), Code::not_found, "no_such_metalake");
  EXPECT_REASON(catalog_->drop(call(), path(CatalogType::tag, {"lake", "t"})), Code::not_found,
                "no_such_metalake");
  create(metalake("lake"));
  EXPECT_FALSE(*catalog_->drop(call(), catalog_path_));
  EXPECT_FALSE(*catalog_->drop(call(), path(CatalogType::tag, {"lake", "t"})));
  EXPECT_REASON(catalog_->drop(call(), schema_), Code::not_found, "no_such_catalog");
  EXPECT_REASON(catalog_->drop(call(), table("t")), Code::not_found, "no_such_catalog");
  create(catalog_path_);
  EXPECT_FALSE(*catalog_->drop(call(), schema_));
  EXPECT_FALSE(*catalog_->drop(call(), table("t")));
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, false));
  EXPECT_REASON(catalog_->drop(call(), table("t")), Code::refused, "catalog_not_in_use");
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, true));
  create(schema_);
  EXPECT_FALSE(*catalog_->drop(call(), table("t")));
  create(table("t"));
  EXPECT_TRUE(*catalog_->drop(call(), table("t")));
  EXPECT_FALSE(*catalog_->drop(call(), table("t")));
  EXPECT_REASON(catalog_->load(call(reader), table("t")), Code::not_found, "no_such_table");
}

TEST_P(CatalogDropTest, InUseComesBeforeNotEmpty) {
  create_schema();
  create(table("t"));
  EXPECT_REASON(catalog_->drop(call(), metalake("lake")), Code::refused, "metalake_in_use");
  EXPECT_REASON(catalog_->drop(call(), catalog_path_), Code::refused, "catalog_in_use");
  EXPECT_REASON(catalog_->drop(call(), schema_), Code::refused, "non_empty_schema");
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, false));
  EXPECT_REASON(catalog_->drop(call(), catalog_path_), Code::refused, "non_empty_catalog");
  ASSERT_OK(catalog_->set_in_use(call(), metalake("lake"), false));
  EXPECT_REASON(catalog_->drop(call(), metalake("lake")), Code::refused, "non_empty_metalake");
  EXPECT_TRUE(*catalog_->drop(call(), metalake("lake"), {.force = true}));
  EXPECT_EQ(names({}, CatalogType::metalake), Names{});
  EXPECT_REASON(catalog_->load(call(reader), table("t")), Code::not_found, "no_such_metalake");
}

TEST_P(CatalogDropTest, EmptyOnesGoWithoutForce) {
  create_schema();
  create(path(CatalogType::tag, {"lake", "pii"}));  // does not keep a metalake from going
  EXPECT_TRUE(*catalog_->drop(call(), schema_));
  ASSERT_OK(catalog_->set_in_use(call(), catalog_path_, false));
  EXPECT_TRUE(*catalog_->drop(call(), catalog_path_));
  ASSERT_OK(catalog_->set_in_use(call(), metalake("lake"), false));
  EXPECT_TRUE(*catalog_->drop(call(), metalake("lake")));
  collect_all();
  EXPECT_EQ(entries(), 1u) << "only the next id is left";
  EXPECT_EQ(tenant_->figures()->keys, 0);
}

TEST_P(CatalogDropTest, WhatIsDroppedComesBack) {
  create_schema();
  const Entity first = create(table("t"), draft_with_columns({"a"}));
  clock_.advance_ms(1);
  EXPECT_TRUE(*catalog_->drop(call(), table("t")));
  const Entity second = create(table("t"));
  EXPECT_REASON(catalog_->undelete(call(), table("t")), Code::exists, "table_exists");
  clock_.advance_ms(1);
  EXPECT_TRUE(*catalog_->drop(call(), table("t")));
  const std::vector<DroppedEntity> dropped = dropped_in(schema_, CatalogType::table);
  ASSERT_EQ(dropped.size(), 2u);
  EXPECT_EQ(dropped[0].ref, first.ref);
  EXPECT_EQ(dropped[0].name, "t");
  EXPECT_EQ(dropped[0].by, "ada");
  EXPECT_EQ(dropped[1].dropped_ms, start_ms + 2);
  // The last first.
  const auto back = catalog_->undelete(call(), table("t"));
  ASSERT_OK(back);
  EXPECT_EQ(back->ref, second.ref);
  EXPECT_EQ(back->stored.version(), 2u);
  EXPECT_TRUE(*catalog_->drop(call(), table("t")));
  collect_all();
  EXPECT_REASON(catalog_->undelete(call(), table("t")), Code::not_found, "no_such_table");
  EXPECT_REASON(catalog_->undelete(call(), table(std::string(70'000, 'x'))), Code::not_found,
                "no_such_table");
}

TEST_P(CatalogDropTest, ListsOfWhatWasDroppedHaveNoEnd) {
  create_schema();
  constexpr size_t count = 2 * record_page_entries + 10;
  for (size_t i = 0; i < count; i++) {
    create(table("t"));
    clock_.advance_ms(1);
    EXPECT_TRUE(*catalog_->drop(call(), table("t")));
  }
  EXPECT_EQ(dropped_in(schema_, CatalogType::table).size(), count);
}

TEST_P(CatalogDropTest, AWholeTreeComesBack) {
  create_schema();
  const Entity made = create(table("t"));
  create(table("gone"));
  EXPECT_TRUE(*catalog_->drop(call(), table("gone")));
  clock_.advance_ms(10);
  EXPECT_TRUE(*catalog_->drop(call(), metalake("lake"), {.force = true}));
  EXPECT_REASON(catalog_->undelete(call(), table("gone")), Code::not_found, "no_such_metalake");
  EXPECT_EQ(dropped_in({}, CatalogType::metalake).size(), 1u);
  ASSERT_OK(catalog_->undelete(call(), metalake("lake")));
  EXPECT_EQ(catalog_->load(call(reader), table("t"))->ref, made.ref);
  EXPECT_EQ(names(schema_, CatalogType::table), Names{"t"});
  EXPECT_OK(catalog_->undelete(call(), table("gone")));
}

TEST_P(CatalogDropTest, WhatIsBeingCollectedCannotComeBack) {
  create_schema();
  for (int i = 0; i < 1'000; i++) create(table("t" + std::to_string(i)));
  EXPECT_TRUE(*catalog_->drop(call(), schema_, {.force = true}));
  EXPECT_EQ(collect_once(), 0u) << "more than one call takes";
  EXPECT_REASON(catalog_->undelete(call(), schema_), Code::not_found, "no_such_schema");
  EXPECT_TRUE(dropped_in(catalog_path_, CatalogType::schema).empty());
  create(schema_);
  EXPECT_EQ(names(schema_, CatalogType::table), Names{});
  open_catalog_anew();  // forgets how far it was
  collect_all();
  EXPECT_EQ(tenant_->figures()->keys, 3);
}

TEST_P(CatalogDropTest, AllThatBelongsToItGoesToo) {
  create_schema();
  const Entity tag = create(path(CatalogType::tag, {"lake", "pii"}));
  const Entity user = create(path(CatalogType::user, {"lake", "ada"}));
  const Entity role = create(path(CatalogType::role, {"lake", "reader"}));
  const size_t before = entries();
  const Entity made = create(table("t"), draft_with_columns({"a", "b"}));
  const Entity model = create(path(CatalogType::model, {"lake", "cat", "sch", "m"}));
  const EntityId id = made.ref.number();
  const CatalogRef column = CatalogRef::column(id, EntityId{2});
  for (int i = 0; i < 500; i++)
    put_member(encode(CatalogPartitionKey{id_, id, "p" + std::to_string(i)}));
  for (uint32_t i = 0; i < 3; i++)
    put_member(encode(CatalogModelVersionKey{id_, model.ref.number(), i}));
  put_member(encode(CatalogAliasKey{id_, model.ref.number(), "best"}));
  put_member(encode(CatalogStatisticKey{id_, made.metalake(), made.ref, "", "rows"}));
  put_member(encode(CatalogStatisticKey{id_, made.metalake(), column, "", "nulls"}));
  relate(CatalogRelation::tag, made, made.ref, tag);
  relate(CatalogRelation::tag, made, column, tag);
  relate(CatalogRelation::owner, made, made.ref, user);
  relate(CatalogRelation::grant, role, role.ref, made);
  put_member(encode(CatalogGrantKey{id_, role.ref.number(), made.above.back(), made.ref}));
  EXPECT_TRUE(*catalog_->drop(call(), table("t")));
  EXPECT_TRUE(*catalog_->drop(call(), path(CatalogType::model, {"lake", "cat", "sch", "m"})));
  collect_all();
  EXPECT_EQ(entries(), before + 4) << "four more changes are in the log, and nothing else";
}

TEST_P(CatalogDropTest, AMetalakeGoesWithEverything) {
  create_schema();
  const Entity tag = create(path(CatalogType::tag, {"lake", "pii"}));
  const Entity many = create(table("many"), draft_with_columns({"a"}));
  for (int i = 0; i < 400; i++)
    put_member(encode(CatalogPartitionKey{id_, many.ref.number(), std::to_string(i)}));
  for (int i = 0; i < 300; i++) {
    const Entity made = create(table("t" + std::to_string(i)), draft_with_columns({"a", "b"}));
    relate(CatalogRelation::tag, made, made.ref, tag);
    if (i % 10 == 0) {
      EXPECT_TRUE(*catalog_->drop(call(), table("t" + std::to_string(i))));
    }
  }
  create(metalake("other"));
  const EntityPath other = path(CatalogType::catalog, {"other", "cat"});
  create(other);
  EXPECT_TRUE(*catalog_->drop(call(), metalake("lake"), {.force = true}));
  for (size_t i = 0; i < 100 && !notes().empty(); i++) {
    collect_once();
    if (i % 3 == 2) open_catalog_anew();
    for (const std::string& problem : check_catalog(memory_, id_)) ADD_FAILURE() << problem;
  }
  EXPECT_TRUE(notes().empty());
  EXPECT_OK(catalog_->load(call(reader), other));
  EXPECT_EQ(tenant_->figures()->keys, 2);
  // Of each of the two: record, name and id; a log of two changes with its number; the index entry
  // of the catalog; and the next id.
  EXPECT_EQ(entries(), 2u * 3 + 3 + 1 + 1);
}

TEST_P(CatalogDropTest, SeveralThreadsCollectOneMetalake) {
  create_schema();
  for (int s = 0; s < 4; s++) {
    const std::string name = "s" + std::to_string(s);
    create(path(CatalogType::schema, {"lake", "cat", name}));
    for (int i = 0; i < 200; i++)
      create(path(CatalogType::table, {"lake", "cat", name, std::to_string(i)}));
  }
  EXPECT_TRUE(*catalog_->drop(call(), metalake("lake"), {.force = true}));
  const std::vector<Garbage> all = notes();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(catalog_->is_shared(all[0]));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (bool is_gone = false; !is_gone;) {
        const auto gone = catalog_->collect(*tenant_, all);
        EXPECT_OK(gone);
        is_gone = !gone || *gone == 1;
        std::this_thread::yield();  // others have all that is left
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(notes().empty());
  EXPECT_EQ(entries(), 1u);
}

// The collector itself: it waits for the safe point, and then nothing is left.
TEST_P(CatalogDropTest, TheCollectorComesWhenTheSafePointHasPassed) {
  create_schema();
  create(table("t"));
  Gc gc(map_, keyspaces_->changes());
  Collector collector(*keyspaces_, gc, {.gc_life_time_ms = 60'000});
  collector.own(Model::catalog, *catalog_);
  EXPECT_TRUE(*catalog_->drop(call(), catalog_path_, {.force = true}));
  const auto step_all = [&] {
    for (int i = 0; i < 1'000; i++) {
      const auto next = collector.step();
      ASSERT_OK(next);
      if (*next != std::optional<uint64_t>(0)) return;
    }
  };
  step_all();
  EXPECT_EQ(notes().size(), 1u);
  clock_.advance_ms(200'000);
  step_all();
  EXPECT_TRUE(notes().empty());
  EXPECT_EQ(tenant_->figures()->keys, 1);
  EXPECT_EQ(collector.totals().passed_over, 0u);
}

TEST_P(CatalogDropTest, SenselessNotesAreCorrupt) {
  for (const Bytes& target : {Bytes(), Bytes("xx"), encode_ref(CatalogRef::column({1}, {2}))}) {
    const Garbage note{.due_ms = 1, .target = target, .model = Model::catalog};
    EXPECT_CODE(catalog_->collect(*tenant_, {&note, 1}), Code::corrupt);
  }
}

// What is dropped frees nothing yet, and must be possible all the same.
TEST_P(CatalogDropTest, AFullTenantCanDrop) {
  create_schema();
  create(table("t"));
  const auto figures = tenant_->figures();
  ASSERT_OK(figures);
  ASSERT_OK(keyspaces_->set_quota("lakes", {.bytes = static_cast<uint64_t>(figures->bytes)}, root));
  EXPECT_REASON(catalog_->create(call(), table("u"), {}), Code::exhausted, "quota_exceeded");
  const auto nothing = [](Entity&) { return Status(); };
  EXPECT_REASON(catalog_->alter(call(), table("t"), nothing), Code::exhausted, "quota_exceeded");
  EXPECT_TRUE(*catalog_->drop(call(), table("t")));
}

}  // namespace
}  // namespace trellis
