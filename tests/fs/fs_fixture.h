// For tests: a file system of a keyspace, and what must hold of it whenever nobody changes it.
#pragma once

#include <map>
#include <set>

#include "fs/change.h"
#include "fs/file_systems.h"
#include "support/tenant_fixture.h"

namespace trellis {

class FsFixture : public TenantFixture {
 protected:
  void SetUp() override {
    TenantFixture::SetUp();
    const auto made = make("files");
    ASSERT_OK(made);
    id_ = made->id;
    open_files();
  }

  void open_files() {
    auto tenant = keyspaces_->tenant(id_);
    ASSERT_OK(tenant);
    tenant_ = *tenant;
    systems_ = std::make_unique<FileSystems>(*keyspaces_);
    auto opened = systems_->of(tenant_);
    ASSERT_OK(opened);
    fs_ = *opened;
  }

  // As a process that was killed: nothing but what is stored is known.
  void open_files_anew() {
    fs_.reset();
    systems_.reset();
    tenant_.reset();
    open_anew();
    open_files();
  }

  InodeId make_file(InodeId directory, ByteView name, ByteView content = {}) {
    const auto made = fs_->make(writer, directory, name, {.content = content});
    EXPECT_OK(made);
    return made ? made->inode : InodeId{0};
  }
  InodeId make_directory(InodeId directory, ByteView name) {
    const auto made =
        fs_->make(writer, directory, name, {.type = FileType::directory, .mode = 0755});
    EXPECT_OK(made);
    return made ? made->inode : InodeId{0};
  }
  std::vector<std::string> names(InodeId directory) {
    std::vector<std::string> found;
    std::optional<Bytes> after = Bytes();
    while (after) {
      auto page = fs_->list(reader, directory, *after, 3, [&](const DirectoryEntry& entry) {
        found.emplace_back(entry.name);
        return Visit::go_on;
      });
      EXPECT_OK(page);
      if (!page) break;
      after = std::move(page->resume);
    }
    return found;
  }
  FileAttributes stat(InodeId inode) {
    const auto found = fs_->stat(reader, inode);
    EXPECT_OK(found);
    return found ? *found : FileAttributes();
  }

  // All notes of the file system that are due.
  std::vector<Garbage> due_notes() {
    std::vector<Garbage> notes;
    const auto [begin, end] = keyspace_interval(KeyMode::txn, id_);
    EXPECT_OK(memory_.scan({.begin = begin, .end = end}, [&](ByteView key, ByteView value) {
      if (const auto note = decode<GarbageKey>(key); note && note->model == Model::fs)
        if (note->due_ms <= clock_.unix_ms())
          notes.push_back({note->due_ms, Bytes(note->target), note->model,
                           decode_garbage_value(value).value_or(0)});
      return Visit::go_on;
    }));
    return notes;
  }

  // Until there are none.
  void collect_all() {
    for (int round = 0; round < 1'000; round++) {
      const std::vector<Garbage> notes = due_notes();
      if (notes.empty()) return;
      for (const Garbage& note : notes) EXPECT_OK(systems_->collect(*tenant_, {&note, 1}));
    }
    FAIL() << "notes are left";
  }

  // Entries, links and figures agree with each other, and counters with a recount.
  void check() {
    const auto counted = stored_figures(memory_, id_);
    const auto recounted = recount(memory_, id_);
    ASSERT_OK(counted);
    ASSERT_OK(recounted);
    EXPECT_EQ(*counted, *recounted);
    std::map<InodeId, uint32_t> links;
    std::map<InodeId, InodeId> homes;
    const FsFigures root = check_tree(root_inode, links);
    EXPECT_EQ(root, check_figures(root_inode, root));
    const FsFigures trash = check_tree(trash_inode, links);
    EXPECT_EQ(trash, check_figures(trash_inode, trash));
    for (const auto& [inode, names] : links) {
      const auto seen = see_inode(memory_, id_, inode);
      ASSERT_TRUE(seen && *seen) << inode.value;
      EXPECT_EQ((*seen)->inode.links, names) << inode.value;
    }
  }

  KeyspaceId id_;
  std::shared_ptr<Tenant> tenant_;
  std::unique_ptr<FileSystems> systems_;
  std::shared_ptr<FileSystem> fs_;

 private:
  FsFigures stored_sum(InodeId directory) {
    std::vector<Value> slots(figure_slots);
    for (uint8_t slot = 0; slot < figure_slots; slot++)
      EXPECT_OK(memory_.get(encode(FsFiguresKey{id_, directory, slot}), slots[slot]));
    const auto sum = sum_figures(directory, slots);
    EXPECT_OK(sum);
    return *sum;
  }
  // What is stored, but for the time; equal to what it should be.
  FsFigures check_figures(InodeId directory, const FsFigures& right) {
    FsFigures stored = stored_sum(directory);
    stored.changed_ns = 0;
    EXPECT_EQ(stored.space, right.space) << directory.value;
    EXPECT_EQ(stored.length, right.length) << directory.value;
    EXPECT_EQ(stored.inodes, right.inodes) << directory.value;
    EXPECT_EQ(stored.entries, right.entries) << directory.value;
    EXPECT_EQ(stored.directories, right.directories) << directory.value;
    return stored;
  }
  FsFigures check_tree(InodeId directory, std::map<InodeId, uint32_t>& links) {
    FsFigures sum;
    const Bytes prefix = encode(FsEntryKey{id_, directory, {}});
    std::vector<std::pair<Bytes, FsEntry>> entries;
    EXPECT_OK(memory_.scan({.begin = prefix, .end = prefix_end(prefix)},
                           [&](ByteView key, ByteView value) {
                             const auto entry = decode<FsEntry>(value);
                             EXPECT_OK(entry);
                             entries.emplace_back(Bytes(key.substr(prefix.size())), *entry);
                             return Visit::go_on;
                           }));
    for (const auto& [name, entry] : entries) {
      sum.entries++;
      links[entry.inode]++;
      const auto seen = see_inode(memory_, id_, entry.inode);
      EXPECT_TRUE(seen && *seen) << quote(name);
      if (!seen || !*seen) continue;
      const FsInode& inode = (*seen)->inode;
      EXPECT_EQ(inode.type, entry.type);
      if (entry.type == FileType::directory) {
        EXPECT_EQ(inode.home, directory);
        FsFigures below = check_tree(entry.inode, links);
        check_figures(entry.inode, below);
        below.entries = below.directories = 0;
        add_to(sum, below);
        sum.directories++;
        sum.inodes++;
      } else {
        Value further;
        EXPECT_OK(memory_.get(encode(FsLinkKey{id_, entry.inode, directory, name}), further));
        if (further.found()) continue;  // counted elsewhere
        EXPECT_EQ(inode.home, directory) << quote(name);
        const bool is_regular = inode.type == FileType::regular;
        add_to(sum, {.space = static_cast<int64_t>(inode.blocks * block_bytes_max),
                     .length = static_cast<int64_t>(is_regular ? inode.size : 0),
                     .inodes = 1});
      }
    }
    return sum;
  }
};

}  // namespace trellis
