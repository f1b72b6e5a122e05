// For tests: a map (test_engine.h) with keyspaces on it, both ways, and time that stands still.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "engine/faulty_engine.h"
#include "engine/memory_engine.h"
#include "support/expect_ok.h"
#include "support/test_engine.h"
#include "tenant/collector.h"
#include "tenant/gc.h"
#include "tenant/keyspaces.h"

namespace trellis {

inline const Caller root{Role::server_admin, "root"};
inline const Caller keyspace_admin{Role::admin, "owner"};
inline const Caller writer{Role::write, "writer"};
inline const Caller reader{Role::read, "reader"};

class TenantFixture : public testing::TestWithParam<Way> {
 protected:
  static constexpr uint64_t start_ms = 1'700'000'000'000;

  void SetUp() override { open(); }

  void open(KeyspacesOptions options = {}) {
    auto opened = Keyspaces::open(map_, options);
    ASSERT_OK(opened);
    keyspaces_ = std::move(*opened);
  }

  // As a process that is killed: nothing but what is stored is known.
  void open_anew() {
    keyspaces_.reset();
    transactor_.emplace(memory_, clock_, transact_options_);
    open();
  }

  Result<Keyspace> make(std::string name, std::string request_id = "") {
    return keyspaces_->create(
        {.name = std::move(name), .id = {}, .config = {}, .request_id = std::move(request_id)},
        root);
  }

  // A write that stores `value` under a raw key of the tenant, as a model does.
  static Status put(Tenant& tenant, const Caller& caller, ByteView user_key, ByteView value) {
    const Bytes key = encode(RawKey{tenant.id(), user_key});
    return tenant.write(caller, Model::raw, Scope::in(tenant.id()).exclusive(key),
                        [&](CountedView& view) -> Status {
                          Value old;
                          TRY(view.get(key, old));
                          if (!old.found()) view.count_keys(1);
                          view.put(key, value, old);
                          return {};
                        });
  }

  size_t entries_in(ByteView begin, ByteView end) {
    size_t entries = 0;
    std::optional<Bytes> from(begin);
    while (from) {
      auto page = memory_.scan({.begin = *from, .end = end},
                               [](ByteView, ByteView) { return Visit::go_on; });
      EXPECT_OK(page);
      if (!page) break;
      entries += page->entries;
      from = std::move(page->resume);
    }
    return entries;
  }
  size_t entries_of(KeyspaceId id) {
    size_t entries = 0;
    for (const KeyMode mode : {KeyMode::raw, KeyMode::txn}) {
      const auto [begin, end] = keyspace_interval(mode, id);
      entries += entries_in(begin, end);
    }
    return entries;
  }

  const TestEngine test_engine_ = open_test_engine();
  Engine& memory_ = *test_engine_.engine;
  FakeClock clock_{start_ms};
  // With a cache that is always full.
  const TransactOptions transact_options_{
      .way = GetParam(), .check_scope = true, .record_cache_bytes = 1 << 17};
  std::optional<Transactor> transactor_{std::in_place, memory_, clock_, transact_options_};
  MapHandle map_{memory_, *transactor_, clock_};
  std::unique_ptr<Keyspaces> keyspaces_;
};

inline std::string way_name(const testing::TestParamInfo<Way>& info) {
  return info.param == Way::latched ? "latched" : "expecting";
}

}  // namespace trellis
