// For tests: a catalog of a keyspace, both ways.
#pragma once

#include "catalog/catalog.h"
#include "catalog/catalog_check.h"
#include "support/tenant_fixture.h"

namespace trellis {

class CatalogFixture : public TenantFixture {
 protected:
  void SetUp() override {
    TenantFixture::SetUp();
    const auto made = make("lakes");
    ASSERT_OK(made);
    id_ = made->id;
    open_catalog();
  }
  void TearDown() override {
    for (const std::string& problem : check_catalog(memory_, id_)) ADD_FAILURE() << problem;
  }

  void open_catalog() {
    auto tenant = keyspaces_->tenant(id_);
    ASSERT_OK(tenant);
    tenant_ = *tenant;
    catalog_ = std::make_unique<Catalog>();
  }
  // As a process that was killed: nothing but what is stored is known.
  void open_catalog_anew() {
    catalog_.reset();
    tenant_.reset();
    open_anew();
    open_catalog();
  }

  CatalogCall call(const Caller& caller = writer) { return {*tenant_, caller, "ada"}; }

  static EntityPath metalake(std::string name) { return {CatalogType::metalake, {name}}; }
  static EntityPath path(CatalogType type, std::vector<std::string> names) {
    return {type, std::move(names)};
  }
  static EntityPath table(std::string name) {
    return {CatalogType::table, {"lake", "cat", "sch", std::move(name)}};
  }
  const EntityPath schema_ = path(CatalogType::schema, {"lake", "cat", "sch"});
  const EntityPath catalog_path_ = path(CatalogType::catalog, {"lake", "cat"});

  Entity create(const EntityPath& path, stored::CatalogEntity draft = {}) {
    auto made = catalog_->create(call(), path, std::move(draft));
    EXPECT_OK(made);
    return made ? *made : Entity();
  }
  // A metalake, a catalog and a schema: lake.cat.sch.
  void create_schema() {
    create(metalake("lake"));
    create(catalog_path_);
    create(schema_);
  }
  static stored::CatalogEntity draft_with_columns(std::vector<std::string> names) {
    stored::CatalogEntity draft;
    uint64_t id = 1;
    for (const std::string& name : names) {
      stored::CatalogColumn* const column = draft.mutable_table()->add_columns();
      column->set_id(id++);
      column->set_name(name);
    }
    draft.mutable_table()->set_next_column_id(id);
    return draft;
  }

  std::vector<std::string> names(const EntityPath& parent, CatalogType type,
                                 const CatalogList& list = {}) {
    std::vector<std::string> found;
    const auto listed =
        catalog_->list(call(reader), parent, type, list, [&](std::string_view name, const auto&) {
          found.emplace_back(name);
          return Visit::go_on;
        });
    EXPECT_OK(listed);
    return found;
  }

  std::vector<Garbage> notes() {
    std::vector<Garbage> found;
    Bytes prefix;
    append_keyspace_prefix(prefix, KeyMode::txn, id_);
    prefix += 'g';
    EXPECT_OK(
        memory_.scan({.begin = prefix, .end = prefix_end(prefix)}, [&](ByteView key, ByteView) {
          const auto note = decode<GarbageKey>(key);
          EXPECT_OK(note);
          if (note)
            found.push_back(
                {.due_ms = note->due_ms, .target = Bytes(note->target), .model = note->model});
          return Visit::go_on;
        }));
    return found;
  }
  // One call for each note; how many are gone.
  size_t collect_once() {
    size_t gone = 0;
    for (const Garbage& note : notes()) {
      const auto done = catalog_->collect(*tenant_, {&note, 1});
      EXPECT_OK(done);
      gone += done.value_or(0);
    }
    return gone;
  }
  void collect_all() {
    for (size_t i = 0; i < 10'000 && !notes().empty(); i++) collect_once();
    EXPECT_TRUE(notes().empty());
  }
  size_t entries() {
    Bytes prefix;
    append_keyspace_prefix(prefix, KeyMode::txn, id_);
    prefix += 'c';
    return entries_in(prefix, prefix_end(prefix));
  }

  KeyspaceId id_;
  std::shared_ptr<Tenant> tenant_;
  std::unique_ptr<Catalog> catalog_;
};

}  // namespace trellis
