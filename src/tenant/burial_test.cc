// A burial takes the blocks of files with it.
#include "support/tenant_fixture.h"
#include "tenant/collector.h"

namespace trellis {
namespace burial_test {

class BurialTest : public TenantFixture {
 protected:
  void SetUp() override {
    TenantFixture::SetUp();
    restart();
  }

  // As a process that was killed.
  void restart(CollectorOptions collecting = {}) {
    collector_.reset();
    gc_.reset();
    open_anew();
    gc_.emplace(map_, keyspaces_->changes());
    collector_.emplace(*keyspaces_, *gc_, collecting);
  }

  void write_blocks(KeyspaceId of, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
      const BlockWrite one{{of, DataId{i / 4}, i % 4}, std::nullopt, "content"};
      ASSERT_OK(memory_.blocks().write({&one, 1}));
    }
  }
  size_t blocks_of(KeyspaceId of) {
    const auto page = memory_.blocks().list(blocks_begin(of), blocks_end(of), 1'000);
    EXPECT_OK(page);
    return page ? page->blocks.size() : 0;
  }
  void bury(const std::string& name) {
    for (const auto state :
         {KeyspaceState::disabled, KeyspaceState::archived, KeyspaceState::tombstone})
      ASSERT_OK(keyspaces_->set_state(name, state, root));
  }
  bool is_buried(KeyspaceId id) {
    const auto progress = load_purge(memory_, id);
    EXPECT_OK(progress);
    return progress && *progress && (*progress)->finished_ms != 0;
  }

  std::optional<Gc> gc_;
  std::optional<Collector> collector_;
};
INSTANTIATE_TEST_SUITE_P(BothWays, BurialTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(BurialTest, TakesTheBlocksALittleAtATimeAcrossRestarts) {
  const KeyspaceId before = make("before").value().id;
  const KeyspaceId shop = make("shop").value().id;
  const KeyspaceId behind = make("behind").value().id;
  for (const KeyspaceId id : {before, shop, behind}) write_blocks(id, 40);
  ASSERT_OK(put(*keyspaces_->tenant("shop").value(), writer, "k", "v"));
  bury("shop");
  const size_t slice = 5;
  size_t left = 40;
  for (int life = 0; left > 0; life++) {
    ASSERT_LT(life, 40);
    restart({.slice_bytes = (slice - 1) * block_bytes_max});
    ASSERT_OK(collector_->step());
    const size_t now = blocks_of(shop);
    EXPECT_EQ(now, left - std::min(left, slice));
    left = now;
    ASSERT_FALSE(is_buried(shop));
  }
  for (int steps = 0; !is_buried(shop); steps++) {
    ASSERT_LT(steps, 100);
    ASSERT_OK(collector_->step());
  }
  EXPECT_EQ(entries_of(shop), 0u);
  EXPECT_EQ(blocks_of(before), 40u);
  EXPECT_EQ(blocks_of(behind), 40u);
}

// Blocks are written before the commit that names them: that one is refused, they are there.
TEST_P(BurialTest, TakesWhatALateWriterLeft) {
  restart({.slice_entries = 10});
  const KeyspaceId shop = make("shop").value().id;
  const auto tenant = keyspaces_->tenant("shop").value();
  for (int i = 0; i < 50; i++) ASSERT_OK(put(*tenant, writer, std::to_string(i), "v"));
  bury("shop");
  for (int i = 0; i < 3; i++) ASSERT_OK(collector_->step());
  ASSERT_GT(entries_of(shop), 0u);
  write_blocks(shop, 3);
  for (int steps = 0; !is_buried(shop); steps++) {
    ASSERT_LT(steps, 100);
    ASSERT_OK(collector_->step());
  }
  EXPECT_EQ(blocks_of(shop), 0u);
}

TEST_P(BurialTest, ABarrierHoldsTheBlocksToo) {
  const KeyspaceId shop = make("shop").value().id;
  write_blocks(shop, 3);
  ASSERT_OK(gc_->set_barrier(shop, "backup-7", timestamp_at_ms(start_ms), 7'200, root));
  bury("shop");
  for (int i = 0; i < 3; i++) ASSERT_OK(collector_->step());
  EXPECT_EQ(blocks_of(shop), 3u);
}

}  // namespace burial_test
}  // namespace trellis
