// Random operations on the content of files against a simple model, on every engine, with faults
// and crashes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "fs/content.h"
#include "fs/content_check.h"
#include "fs/content_world.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Kind = FallocateMode::Kind;

constexpr size_t files = 4;
constexpr uint64_t size_max = 20 * block;

struct ModelFile {
  InodeId inode;
  std::string content;
  bool is_inline = true;
  std::set<uint64_t> mapped;  // blocks

  void leave_inline() {
    if (is_inline && !content.empty()) mapped.insert(0);
    is_inline = false;
  }
  void map(uint64_t offset, uint64_t end) {
    for (uint64_t i = block_of(offset); i < blocks_up_to(end); i++) mapped.insert(i);
  }
  void unmap(uint64_t begin, uint64_t end) {
    mapped.erase(mapped.lower_bound(begin), mapped.lower_bound(end));
  }
  void write(uint64_t offset, ByteView bytes) {
    const uint64_t end = offset + bytes.size();
    if (end > inline_bytes_max) leave_inline();
    if (!is_inline) map(offset, end);
    if (content.size() < end) content.resize(end);
    content.replace(offset, bytes.size(), bytes);
  }
  void set_size(uint64_t size) {
    if (size > inline_bytes_max) leave_inline();
    if (size <= content.size()) unmap(blocks_up_to(size), file_blocks_max);
    content.resize(size);
  }
  void zero(uint64_t offset, uint64_t end) {
    end = std::min<uint64_t>(end, content.size());
    if (offset < end)
      std::fill(content.begin() + static_cast<ptrdiff_t>(offset),
                content.begin() + static_cast<ptrdiff_t>(end), '\0');
  }
  void allocate(uint64_t offset, uint64_t end, bool keep_size) {
    if (end > inline_bytes_max) leave_inline();
    if (!is_inline) map(offset, end);
    if (!keep_size && end > content.size()) content.resize(end);
  }
  void punch(uint64_t offset, uint64_t end) {
    const uint64_t begin = blocks_up_to(offset);
    const uint64_t whole = end >= content.size() ? blocks_up_to(end) : block_of(end);
    if (!is_inline && begin < whole) unmap(begin, whole);
    zero(offset, end);
  }
  void shift(uint64_t from, uint64_t to) {
    std::set<uint64_t> moved;
    for (const uint64_t at : mapped) moved.insert(at < from ? at : at - from + to);
    mapped = std::move(moved);
  }
  void collapse(uint64_t offset, uint64_t end) {
    unmap(block_of(offset), block_of(end));
    shift(block_of(end), block_of(offset));
    content.erase(offset, end - offset);
  }
  void insert(uint64_t offset, uint64_t end) {
    leave_inline();
    shift(block_of(offset), block_of(end));
    content.insert(offset, end - offset, '\0');
  }
  bool operator==(const ModelFile&) const = default;
};
using Model = std::array<ModelFile, files>;

class Actor {
 public:
  Actor(ContentWorld& world, uint64_t seed) : world_(world), random_(seed) {
    for (size_t i = 0; i < files; i++) make(i);
    history_ = {model_};
    world_.make_durable();
  }

  void step() {
    before_ = model_;
    const size_t file = random_.below(files);
    switch (random_.below(14)) {
      case 0:
      case 1:
      case 2: return write(file);
      case 3: return append(file);
      case 4:
      case 5: return truncate(file);
      case 6: return allocate(file);
      case 7: return shift(file);
      case 8:
      case 9: return copy(file);
      case 10: return read(file);
      case 11: return seek(file);
      case 12: return random_.one_in(4) ? replace(file) : write(file);
      case 13: return world_.is_faulty() ? read(file) : world_.collect_all();
    }
  }

  void check() {
    world_.set_faults(false);
    for (size_t i = 0; i < files; i++) EXPECT_EQ(stored(i), model_[i]) << "file " << i;
    world_.check();
    world_.set_faults(true);
  }

  void crash() {
    const auto report = world_.crash(random_);
    kept_ += report.kept;
    dropped_ += report.dropped;
    find_files();
    Model now;
    for (size_t i = 0; i < files; i++) now[i] = stored(i);
    bool found = false;
    for (size_t i = 0; i < history_.size() && !found; i++)
      found = is_between(now, history_[i], history_[std::min(i + 1, history_.size() - 1)]);
    EXPECT_TRUE(found) << "what is left is no state that there was";
    model_ = std::move(now);
    settled();
    world_.check();
  }
  uint64_t kept() const { return kept_; }
  uint64_t dropped() const { return dropped_; }

 private:
  FileSystem& fs() { return world_.fs(); }
  static std::string name(size_t file) { return "f" + std::to_string(file); }

  void settled() {
    world_.make_durable();
    history_ = {model_};
  }
  void make(size_t file) {
    const auto made = fs().make(world_.caller(), root_inode, name(file), {});
    ASSERT_OK(made);
    model_[file] = {.inode = made->inode, .content = {}, .is_inline = true, .mapped = {}};
  }
  void find_files() {
    for (size_t i = 0; i < files; i++) {
      const auto found = fs().lookup(world_.caller(), root_inode, name(i));
      if (!found) make(i);  // replaced, and the crash came between
      if (found) model_[i].inode = found->inode;
    }
  }

  // As it is stored. REQUIRES: no faults.
  ModelFile stored(size_t file) {
    ModelFile now{.inode = model_[file].inode, .content = {}, .is_inline = false, .mapped = {}};
    const auto seen = see_inode(world_.truth(), world_.keyspace(), now.inode);
    EXPECT_TRUE(seen && *seen);
    if (!seen || !*seen) return now;
    now.is_inline = ((*seen)->inode.flags & fs_inline) != 0;
    now.content.assign((*seen)->inode.size + 10, '?');
    const auto size = fs().read(world_.caller(), now.inode, 0, now.content);
    EXPECT_OK(size);
    EXPECT_EQ(size ? *size : 0, (*seen)->inode.size);
    now.content.resize((*seen)->inode.size);
    EXPECT_OK(
        world_.truth().scan({.begin = encode(FsExtentKey{world_.keyspace(), now.inode, 0}),
                             .end = encode(FsExtentKey{world_.keyspace(), now.inode, UINT64_MAX})},
                            [&](ByteView key, ByteView value) {
                              const auto extent = decode_extent(now.inode, key, value);
                              EXPECT_OK(extent);
                              for (uint64_t i = extent->block; i < extent->end(); i++)
                                now.mapped.insert(i);
                              return Visit::go_on;
                            }));
    return now;
  }

  // Whether each byte is of one of the two; what a file does not have is zero.
  static bool is_between(const ModelFile& now, const ModelFile& a, const ModelFile& b) {
    const auto at = [](const std::string& content, size_t i) {
      return i < content.size() ? content[i] : '\0';
    };
    if (now.content.size() > std::max(a.content.size(), b.content.size())) return false;
    if (now.content.size() < std::min(a.content.size(), b.content.size())) return false;
    for (size_t i = 0; i < now.content.size(); i++)
      if (now.content[i] != at(a.content, i) && now.content[i] != at(b.content, i)) return false;
    return true;
  }
  static bool is_between(const Model& now, const Model& a, const Model& b) {
    for (size_t i = 0; i < files; i++)
      if (!is_between(now[i], a[i], b[i])) return false;
    return true;
  }

  // Takes over what a call did, of which model_ has what it should. True if it went well.
  template <class T>
  bool settle(const Result<T>& result, size_t file) {
    if (result) {
      if (world_.crashes()) history_.push_back(model_);
      return true;
    }
    const Code code = result.error().code;
    EXPECT_TRUE(world_.is_faulty() &&
                (code == Code::unavailable || code == Code::maybe || code == Code::conflict))
        << to_string(result.error());
    world_.set_faults(false);
    const ModelFile now = stored(file);
    EXPECT_TRUE(is_between(now, before_[file], model_[file])) << "neither before nor after";
    model_ = before_;
    model_[file] = now;
    world_.set_faults(true);
    return false;
  }

  uint64_t any_offset(const ModelFile& file) {
    if (random_.one_in(8)) return random_.below(size_max);
    const uint64_t offset = random_.below(
        std::min<uint64_t>(file.content.size() + 1 + random_.below(10'000), size_max));
    return random_.one_in(3) ? offset - offset % block : offset;
  }
  uint64_t any_size() {
    switch (random_.below(4)) {
      case 0: return 1 + random_.below(100);
      case 1: return 1 + random_.below(6'000);
      case 2: return block;
      default: return 1 + random_.below(3 * block);
    }
  }

  void write(size_t file) {
    const uint64_t offset = any_offset(model_[file]);
    const Bytes bytes = random_.bytes(any_size());
    model_[file].write(offset, bytes);
    settle(fs().write(world_.caller(), model_[file].inode, offset, bytes), file);
  }

  void append(size_t file) {
    if (model_[file].content.size() > size_max) return;
    const Bytes bytes = random_.bytes(any_size());
    const uint64_t offset = model_[file].content.size();
    model_[file].write(offset, bytes);
    const auto appended = fs().append(world_.caller(), model_[file].inode, bytes);
    if (settle(appended, file)) {
      EXPECT_EQ(*appended, offset);
    }
  }

  void truncate(size_t file) {
    uint64_t size = random_.one_in(10) ? 0 : any_offset(model_[file]);
    // Longer again as often: that is where bytes of before could show.
    if (random_.one_in(2)) size = model_[file].content.size() + random_.below(2 * block);
    size = std::min<uint64_t>(size, size_max);
    model_[file].set_size(size);
    settle(fs().set_attributes(world_.caller(), model_[file].inode, {.size = size}), file);
  }

  void allocate(size_t file) {
    const uint64_t offset = any_offset(model_[file]);
    const uint64_t end = offset + any_size();
    FallocateMode mode{.kind = Kind::allocate, .keep_size = random_.one_in(2)};
    ModelFile& changed = model_[file];
    switch (random_.below(3)) {
      case 0: changed.allocate(offset, end, mode.keep_size); break;
      case 1:
        mode.kind = Kind::zero;
        changed.zero(offset, end);
        changed.allocate(offset, end, mode.keep_size);
        break;
      case 2:
        mode = {Kind::punch_hole, true};
        changed.punch(offset, end);
        break;
    }
    settle(fs().fallocate(world_.caller(), changed.inode, mode, offset, end - offset), file);
  }

  void shift(size_t file) {
    ModelFile& changed = model_[file];
    const uint64_t size = changed.content.size();
    const uint64_t offset = random_.below(block_of(size) + 1) * block;
    const uint64_t end = offset + (1 + random_.below(3)) * block;
    const bool collapses = random_.one_in(2);
    if (collapses ? end >= size : offset >= size || size > size_max) return;
    if (collapses)
      changed.collapse(offset, end);
    else
      changed.insert(offset, end);
    const FallocateMode mode{collapses ? Kind::collapse : Kind::insert, false};
    const Status done = fs().fallocate(world_.caller(), changed.inode, mode, offset, end - offset);
    if (done) return void(settle(done, file));
    // Bytes are moved: they are where they were, or where they should be, all of them.
    world_.set_faults(false);
    const ModelFile now = stored(file);
    EXPECT_TRUE(now == changed || now == before_[file]) << to_string(done.error());
    model_[file] = now;
    world_.set_faults(true);
  }

  void copy(size_t file) {
    const size_t source = random_.below(files);
    const ModelFile from = model_[source];
    ModelFile& to = model_[file];
    uint64_t from_offset = any_offset(from);
    uint64_t to_offset = any_offset(to);
    if (random_.one_in(2)) to_offset += from_offset % block - to_offset % block;
    if (to_offset > size_max) to_offset = from_offset % block;
    if (random_.one_in(3)) from_offset = to_offset = 0;
    if (from_offset >= from.content.size()) return;
    const uint64_t left = from.content.size() - from_offset;
    const uint64_t size = random_.one_in(2) ? left : std::min(left, any_size());
    if (source == file && from_offset < to_offset + size && to_offset < from_offset + size) return;
    if (to.content.size() < to_offset + size) to.content.resize(to_offset + size);
    to.content.replace(to_offset, size, from.content, from_offset, size);
    const auto copied =
        fs().copy_range(world_.caller(), from.inode, from_offset, to.inode, to_offset, size);
    // Which of it is shared is not the model's.
    world_.set_faults(false);
    const ModelFile now = stored(file);
    model_[source].mapped = stored(source).mapped;
    to.mapped = now.mapped;
    to.is_inline = now.is_inline;
    world_.set_faults(true);
    if (settle(copied, file)) {
      EXPECT_EQ(*copied, size);
    }
  }

  void read(size_t file) {
    const uint64_t offset = any_offset(model_[file]);
    std::string into(any_size(), '?');
    const auto found = fs().read(world_.caller(), model_[file].inode, offset, into);
    if (!settle(found, file)) return;
    into.resize(*found);
    const std::string& content = model_[file].content;
    const uint64_t from = std::min<uint64_t>(offset, content.size());
    EXPECT_EQ(into, content.substr(from, std::max<size_t>(into.size(), 1)));
  }

  void seek(size_t file) {
    const ModelFile& sought = model_[file];
    const uint64_t offset = any_offset(sought);
    const bool for_data = random_.one_in(2);
    const auto found = for_data ? fs().seek_data(world_.caller(), sought.inode, offset)
                                : fs().seek_hole(world_.caller(), sought.inode, offset);
    uint64_t wanted = offset;
    const auto is_data = [&](uint64_t at) {
      return sought.is_inline || sought.mapped.contains(block_of(at));
    };
    while (wanted < sought.content.size() && is_data(wanted) != for_data)
      wanted = (block_of(wanted) + 1) * block;
    if (!for_data) wanted = std::min<uint64_t>(wanted, sought.content.size());
    if (offset >= sought.content.size() || (for_data && wanted >= sought.content.size())) {
      EXPECT_FALSE(found.has_value());
      if (!found && found.error().reason != "no_such_offset") settle(found, file);
    } else if (settle(found, file)) {
      EXPECT_EQ(*found, wanted);
    }
  }

  void replace(size_t file) {
    world_.set_faults(false);
    EXPECT_OK(fs().unlink(world_.caller(), root_inode, name(file)));
    make(file);
    if (world_.crashes()) settled();
    world_.set_faults(true);
  }

  ContentWorld& world_;
  Random random_;
  Model model_;
  Model before_;
  std::vector<Model> history_;  // since the last that is durable
  uint64_t kept_ = 0;
  uint64_t dropped_ = 0;
};

class ContentModel : public testing::TestWithParam<ContentSetup> {};
INSTANTIATE_TEST_SUITE_P(All, ContentModel, testing::ValuesIn(content_setups()),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(ContentModel, EqualsAModel) {
  const uint64_t first_seed = test_seed(20'260'001);
  const uint64_t rounds = std::max<uint64_t>(test_rounds(6), 1);
  uint64_t kept = 0;
  uint64_t dropped = 0;
  uint64_t blocks_failed = 0;
  uint64_t maybes = 0;
  for (uint64_t round = 0; round < rounds && !HasFailure(); round++) {
    SCOPED_TRACE(testing::Message() << "seed " << first_seed + round);
    ContentWorld world(GetParam(), first_seed + round);
    Actor actor(world, first_seed + round);
    world.set_faults(true);
    Random random(first_seed + round);
    for (int i = 0; i < 200 && !HasFailure(); i++) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      actor.step();
      if (i % 10 == 9) actor.check();
      if (world.crashes() && random.one_in(12)) actor.crash();
    }
    kept += actor.kept();
    dropped += actor.dropped();
    world.set_faults(false);
    world.collect_all();
    actor.check();
    blocks_failed += world.faults().blocks;
    maybes += std::min(world.faults().maybes_applied, world.faults().maybes_dropped);
  }
  if (GetParam().engine == ContentEngine::faulty) {
    EXPECT_GT(blocks_failed, 0u);
    EXPECT_GT(maybes, 0u);
  }
  if (GetParam().engine == ContentEngine::crashing) {
    EXPECT_GT(kept, 0u);
    EXPECT_GT(dropped, 0u);
  }
}

// Each thread writes to a strip of one file that is its own, but for the blocks at its ends, while
// others make it longer and copy it.
TEST_P(ContentModel, ThreadsOnOneFile) {
  if (GetParam().engine == ContentEngine::crashing || GetParam().engine == ContentEngine::faulty)
    return;  // there is no telling what a thread wrote
  const uint64_t seed = test_seed(20'260'101);
  ContentWorld world(GetParam(), seed);
  constexpr uint64_t strip = 70'001;
  constexpr size_t writers = 4;
  const auto made = world.fs().make(world.caller(), root_inode, "f", {});
  const auto clone = world.fs().make(world.caller(), root_inode, "clone", {});
  ASSERT_OK(made);
  ASSERT_OK(clone);
  std::string content(writers * strip, '\0');
  std::vector<std::thread> threads;
  const uint64_t rounds = std::max<uint64_t>(test_rounds(60), 10);
  for (size_t writer = 0; writer < writers; writer++) {
    threads.emplace_back([&, writer] {
      Random random(seed + writer);
      for (uint64_t i = 0; i < rounds; i++) {
        const uint64_t from = random.below(strip);
        const Bytes bytes = random.bytes(1 + random.below(std::min<uint64_t>(strip - from, 9'000)));
        const uint64_t offset = writer * strip + from;
        EXPECT_OK(world.fs().write(world.caller(), made->inode, offset, bytes));
        std::copy(bytes.begin(), bytes.end(), content.begin() + static_cast<ptrdiff_t>(offset));
      }
    });
  }
  threads.emplace_back([&] {
    std::string into(strip, '?');
    for (uint64_t i = 0; i < rounds / 4; i++) {
      EXPECT_OK(world.fs().copy_range(world.caller(), made->inode, 0, clone->inode, 0, 0));
      EXPECT_OK(world.fs().read(world.caller(), clone->inode, i * 1'000, into));
      EXPECT_OK(world.fs().set_attributes(world.caller(), clone->inode, {.size = i * 10'000}));
    }
  });
  for (std::thread& thread : threads) thread.join();
  std::string found(content.size() + 1, '?');
  const auto size = world.fs().read(world.caller(), made->inode, 0, found);
  ASSERT_OK(size);
  found.resize(*size);
  content.resize(*size);
  EXPECT_EQ(found, content);
  world.check();
  world.collect_all();
  world.check();
}

}  // namespace
}  // namespace trellis
