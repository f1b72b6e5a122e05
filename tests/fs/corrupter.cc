#include "fs/corrupter.h"

#include <gtest/gtest.h>

#include "codec/tenant_keys.h"
#include "fs/block_map.h"
#include "fs/names.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

using Kind = FsckKind;

Bytes scope_prefix(KeyspaceId keyspace, char scope) {
  Bytes prefix = encode(FsSuperblockKey{keyspace});
  prefix.back() = scope;
  return prefix;
}

template <class Record>
Record record_of(Corrupter& corrupter, ByteView key) {
  const auto stored = corrupter.get(key);
  EXPECT_TRUE(stored.has_value());
  const auto decoded = decode<Record>(*stored);
  EXPECT_OK(decoded);
  return *decoded;
}

Bytes entry_key(Corrupter& corrupter, const Corrupter::Entry& at) {
  return encode(FsEntryKey{corrupter.keyspace(), at.directory, at.name});
}

Bytes any_xattr(Corrupter& corrupter) {
  return corrupter.find(scope_prefix(corrupter.keyspace(), 1),
                        [](ByteView key, ByteView) { return decode<FsXattrKey>(key).has_value(); });
}

Bytes first_extent(Corrupter& corrupter, InodeId inode) {
  Bytes prefix = encode(FsInodeKey{corrupter.keyspace(), inode});
  prefix += 'E';
  return corrupter.find(prefix, [](ByteView, ByteView) { return true; });
}

}  // namespace

// --- where ---

Bytes Corrupter::find(ByteView prefix, const std::function<bool(ByteView, ByteView)>& is_wanted) {
  std::vector<Bytes> found;
  EXPECT_OK(engine().scan({.begin = prefix, .end = prefix_end(prefix)},
                          [&](ByteView key, ByteView value) {
                            if (is_wanted(key, value)) found.emplace_back(key);
                            return Visit::go_on;
                          }));
  EXPECT_FALSE(found.empty()) << "there is nothing to damage";
  return found.empty() ? Bytes() : found[random_.below(found.size())];
}

Corrupter::Entry Corrupter::any_entry(
    const std::function<bool(const Entry&, const FsInode&)>& is_wanted) {
  std::vector<Entry> entries;
  const Bytes prefix = scope_prefix(keyspace(), 3);
  EXPECT_OK(engine().scan({.begin = prefix, .end = prefix_end(prefix)},
                          [&](ByteView key, ByteView value) {
                            const auto place = decode<FsEntryKey>(key);
                            const auto entry = decode<FsEntry>(value);
                            if (place && entry)
                              entries.push_back({place->parent, Bytes(place->name), *entry});
                            return Visit::go_on;
                          }));
  // Not in a tree that was removed.
  std::erase_if(entries, [&](const Entry& entry) {
    InodeId at = entry.directory;
    while (at.value != 0 && at != root_inode) {
      const auto seen = see_inode(engine(), keyspace(), at);
      at = seen && *seen ? (*seen)->inode.home : InodeId{0};
    }
    return at != root_inode;
  });
  std::erase_if(entries, [&](const Entry& entry) {
    const auto seen = see_inode(engine(), keyspace(), entry.entry.inode);
    return !seen || !*seen || !is_wanted(entry, (*seen)->inode);
  });
  EXPECT_FALSE(entries.empty()) << "there is nothing to damage";
  return entries.empty() ? Entry{} : entries[random_.below(entries.size())];
}

Corrupter::Entry Corrupter::any_file() {
  return any_entry([](const Entry&, const FsInode& file) {
    return file.type == FileType::regular && file.links == 1 && (file.flags & fs_inline) != 0 &&
           (file.flags & fs_attributes) == 0 && file.size > 0;
  });
}

Corrupter::Entry Corrupter::any_mapped() {
  return any_entry([&](const Entry& entry, const FsInode& file) {
    if (file.type != FileType::regular || file.links != 1 || file.blocks < 2 ||
        (file.flags & fs_shares) != 0)
      return false;
    const auto extent = decode<FsExtent>(*get(first_extent(*this, entry.entry.inode)));
    return extent && extent->blocks >= 2;
  });
}

Corrupter::Entry Corrupter::any_linked() {
  return any_entry([&](const Entry& entry, const FsInode& file) {
    return file.links > 1 &&
           get(encode(FsLinkKey{keyspace(), entry.entry.inode, entry.directory, entry.name}));
  });
}

Corrupter::Entry Corrupter::any_directory() {
  return any_entry([&](const Entry& entry, const FsInode& directory) {
    if (directory.type != FileType::directory || (directory.flags & fs_quota) != 0) return false;
    bool has_any = false;
    const Bytes prefix = encode(FsEntryKey{keyspace(), entry.entry.inode, {}});
    EXPECT_OK(engine().scan({.begin = prefix, .end = prefix_end(prefix), .entries_max = 1},
                            [&](ByteView, ByteView) {
                              has_any = true;
                              return Visit::stop;
                            }));
    return has_any;
  });
}

// --- how ---

std::optional<Bytes> Corrupter::get(ByteView key) {
  Value value;
  EXPECT_OK(engine().get(key, value));
  return value.found() ? std::optional(Bytes(value.bytes())) : std::nullopt;
}

void Corrupter::edit(ByteView key, std::optional<ByteView> value) {
  EXPECT_OK(
      fs_.tenant().collect(Model::fs, Scope::all_of(keyspace()), [&](CountedView& view) -> Status {
        Value old;
        TRY(view.get(key, old));
        const auto before = counted(key, old.found() ? old.bytes() : ByteView());
        const auto after = counted(key, value.value_or(ByteView()));
        // Bytes of the records themselves are counted by the view.
        const auto outside = [&](const std::optional<Counted>& entry, ByteView bytes) {
          return entry->figures.bytes - static_cast<int64_t>(key.size() + bytes.size());
        };
        view.count_keys((value ? after->figures.keys : 0) -
                        (old.found() ? before->figures.keys : 0));
        view.count_outside((value ? outside(after, *value) : 0) -
                           (old.found() ? outside(before, old.bytes()) : 0));
        if (value)
          view.put(key, *value, old);
        else if (old.found())
          view.remove(key, old);
        return {};
      }));
}

void Corrupter::put(ByteView key, ByteView value) { edit(key, value); }
void Corrupter::remove(ByteView key) { edit(key, std::nullopt); }

FsInode Corrupter::inode(InodeId inode, Bytes& keeps) {
  keeps = get(encode(FsInodeKey{keyspace(), inode})).value_or("");
  const auto decoded = decode<FsInode>(keeps);
  EXPECT_OK(decoded);
  return *decoded;
}

void Corrupter::edit_inode(InodeId inode, const std::function<void(FsInode&)>& edit) {
  Bytes keeps;
  FsInode content = this->inode(inode, keeps);
  edit(content);
  put(encode(FsInodeKey{keyspace(), inode}), encode(content));
}

void Corrupter::lose_note(char kind) {
  Bytes prefix = scope_prefix(keyspace(), 0).substr(0, 4);
  prefix += 'g';
  remove(find(prefix, [&](ByteView key, ByteView) {
    const auto note = decode<GarbageKey>(key);
    return note && note->model == Model::fs && note->target[0] == kind;
  }));
}

// --- what ---

namespace {

const std::vector<Damage> damages_of_the_whole = {
    {"superblock_removed",
     Kind::superblock_lost,
     {},
     [](Corrupter& c) { c.remove(encode(FsSuperblockKey{c.keyspace()})); }},
    {"superblock_cut",
     Kind::superblock_lost,
     {},
     [](Corrupter& c) { c.put(encode(FsSuperblockKey{c.keyspace()}), "\x01\x02"); }},
    {"tree_version_removed",
     Kind::tree_version_lost,
     {},
     [](Corrupter& c) { c.remove(encode(FsTreeKey{c.keyspace()})); }},
    {"ids_set_back",
     Kind::id_over_counter,
     {},
     [](Corrupter& c) {
       const Bytes key = encode(FsSuperblockKey{c.keyspace()});
       FsSuperblock superblock = record_of<FsSuperblock>(c, key);
       superblock.ids = first_free_id + c.random().below(5);
       c.put(key, encode(superblock));
     }},
    {"counters_off",
     Kind::counters_wrong,
     {},
     [](Corrupter& c) {
       Commit commit;
       commit.writes.add(encode(CounterKey{c.keyspace(), Model::fs, CounterName::bytes, 0}),
                         static_cast<int64_t>(c.random().below(1'000)) + 1);
       EXPECT_OK(trellis::commit(c.engine(), commit));
       c.fs().tenant().doubt_figures();
     }},
    {"root_lost",
     Kind::inode_lost,
     {Kind::name_missing, Kind::home_wrong, Kind::links_wrong, Kind::link_lost,
      Kind::figures_wrong},
     [](Corrupter& c) {
       c.remove(encode(FsInodeKey{c.keyspace(), root_inode}));
     }},
    {"session_note_lost", Kind::session_without_end, {}, [](Corrupter& c) { c.lose_note('s'); }},
    {"session_lost",
     Kind::held_by_none,
     {Kind::lock_of_none},
     [](Corrupter& c) {
       const Bytes held = c.find(scope_prefix(c.keyspace(), 6),
                                 [](ByteView key, ByteView) { return key.size() > 14; });
       c.remove(held.substr(0, 14));
     }},
    {"lock_of_nobody",
     Kind::lock_of_none,
     {},
     [](Corrupter& c) {
       const auto at = c.any_file();
       FsLocks locks{};
       const Bytes lock = encode(FsLock{.session = SessionId{999'999},
                                        .owner = 1,
                                        .first = 0,
                                        .last = 10,
                                        .process = 1,
                                        .type = FileLockType::exclusive});
       locks.locks = lock;
       c.put(encode(FsLockKey{c.keyspace(), at.entry.inode, 1}), encode(locks));
     }},
    {"inode_note_lost", Kind::note_missing, {}, [](Corrupter& c) { c.lose_note('i'); }},
    {"tree_note_lost", Kind::note_missing, {}, [](Corrupter& c) { c.lose_note('d'); }},
    {"trash_note_lost", Kind::note_missing, {}, [](Corrupter& c) { c.lose_note('t'); }},
    {"trash_note_cut",
     Kind::note_damaged,
     {},
     [](Corrupter& c) {
       c.put(encode(GarbageKey{c.keyspace(), 1, Model::fs, "t12345678"}), encode_garbage_value(0));
     }},
    {"note_of_no_kind",
     Kind::note_damaged,
     {},
     [](Corrupter& c) {
       c.put(encode(GarbageKey{c.keyspace(), 1, Model::fs, "Qwertyuiop"}), encode_garbage_value(0));
     }},
    {"record_of_no_kind",
     Kind::record_damaged,
     {},
     [](Corrupter& c) {
       c.put(encode(FsInodeKey{c.keyspace(), c.any_file().entry.inode}) + "Qx", "junk");
     }},
    {"scope_of_no_kind",
     Kind::record_damaged,
     {},
     [](Corrupter& c) { c.put(scope_prefix(c.keyspace(), 8) + "12345678", "junk"); }},
};

const std::vector<Damage> damages_of_names = {
    {"name_lost",
     Kind::name_missing,
     {Kind::figures_wrong},
     [](Corrupter& c) { c.remove(entry_key(c, c.any_file())); }},
    {"name_of_a_directory_lost",
     Kind::name_missing,
     {Kind::figures_wrong},
     [](Corrupter& c) { c.remove(entry_key(c, c.any_directory())); }},
    {"further_name_lost",
     Kind::link_wrong,
     {Kind::links_wrong, Kind::figures_wrong},
     [](Corrupter& c) { c.remove(entry_key(c, c.any_linked())); }},
    {"name_at_home_lost",
     Kind::home_wrong,
     {Kind::links_wrong, Kind::figures_wrong},
     [](Corrupter& c) {
       c.remove(entry_key(c, c.any_entry([&](const auto& entry, const FsInode& file) {
         return file.links > 1 && !c.get(encode(FsLinkKey{c.keyspace(), entry.entry.inode,
                                                          entry.directory, entry.name}));
       })));
     }},
    {"name_of_nothing",
     Kind::entry_to_nothing,
     {Kind::figures_wrong},
     [](Corrupter& c) {
       const auto at = c.any_file();
       c.put(encode(FsEntryKey{c.keyspace(), at.directory, "nothing"}),
             encode(FsEntry{InodeId{15}, FileType::regular, 1}));
     }},
    {"name_of_another_type",
     Kind::entry_wrong,
     {},
     [](Corrupter& c) {
       auto at = c.any_file();
       at.entry.type = FileType::directory;
       c.put(entry_key(c, at), encode(at.entry));
     }},
    {"name_cut",
     Kind::record_damaged,
     {Kind::name_missing, Kind::figures_wrong},
     [](Corrupter& c) { c.put(entry_key(c, c.any_file()), "cut"); }},
    {"name_with_a_slash",
     Kind::name_illegal,
     {Kind::link_lost, Kind::links_wrong},
     [](Corrupter& c) {
       const auto at = c.any_file();
       c.put(encode(FsEntryKey{c.keyspace(), at.directory, "a/b"}), encode(at.entry));
     }},
    {"names_in_a_file",
     Kind::entry_of_nothing,
     {},
     [](Corrupter& c) {
       const auto at = c.any_file();
       c.put(encode(FsEntryKey{c.keyspace(), at.entry.inode, "in"}),
             encode(FsEntry{InodeId{15}, FileType::regular, 1}));
     }},
    {"directory_in_two_places",
     Kind::directory_named_twice,
     {Kind::figures_wrong},
     [](Corrupter& c) {
       const auto at = c.any_directory();
       const auto other = c.any_entry([&](const auto& entry, const FsInode& directory) {
         return directory.type == FileType::directory && entry.entry.inode != at.entry.inode &&
                entry.entry.inode != at.directory;
       });
       c.put(encode(FsEntryKey{c.keyspace(), other.entry.inode, "second"}), encode(at.entry));
     }},
    {"directory_with_two_names",
     Kind::directory_named_twice,
     {Kind::figures_wrong},
     [](Corrupter& c) {
       const auto at = c.any_directory();
       c.put(encode(FsEntryKey{c.keyspace(), at.directory, at.name + "2"}), encode(at.entry));
     }},
    {"circle",
     Kind::directory_circle,
     {Kind::figures_wrong},
     [](Corrupter& c) {
       // b in a; then a is in b.
       const auto b = c.any_entry([](const auto& entry, const FsInode& directory) {
         return directory.type == FileType::directory && entry.directory != root_inode;
       });
       const auto a = c.any_entry(
           [&](const auto& entry, const FsInode&) { return entry.entry.inode == b.directory; });
       c.remove(entry_key(c, a));
       c.put(encode(FsEntryKey{c.keyspace(), b.entry.inode, "circle"}), encode(a.entry));
       c.edit_inode(a.entry.inode, [&](FsInode& inode) { inode.home = b.entry.inode; });
     }},
    {"home_of_a_directory",
     Kind::home_wrong,
     {},
     [](Corrupter& c) {
       c.edit_inode(c.any_directory().entry.inode,
                    [](FsInode& inode) { inode.home = trash_inode; });
     }},
    {"home_of_a_file",
     Kind::home_wrong,
     {},
     [](Corrupter& c) {
       c.edit_inode(c.any_file().entry.inode, [](FsInode& inode) { inode.home = trash_inode; });
     }},
    {"links_off",
     Kind::links_wrong,
     {},
     [](Corrupter& c) {
       c.edit_inode(c.any_file().entry.inode, [](FsInode& inode) { inode.links++; });
     }},
    {"no_links",
     Kind::links_wrong,
     {Kind::note_missing},
     [](Corrupter& c) {
       c.edit_inode(c.any_file().entry.inode, [](FsInode& inode) { inode.links = 0; });
     }},
    {"link_record_lost",
     Kind::link_lost,
     {Kind::links_wrong, Kind::figures_wrong},
     [](Corrupter& c) {
       const auto at = c.any_linked();
       c.remove(encode(FsLinkKey{c.keyspace(), at.entry.inode, at.directory, at.name}));
     }},
    {"link_record_of_nothing",
     Kind::link_wrong,
     {},
     [](Corrupter& c) {
       const auto at = c.any_file();
       c.put(encode(FsLinkKey{c.keyspace(), at.entry.inode, root_inode, "nothing"}), fs_link_value);
     }},
    {"figures_off",
     Kind::figures_wrong,
     {},
     [](Corrupter& c) {
       const auto at = c.any_directory();
       const Bytes key = c.find(encode(FsInodeKey{c.keyspace(), at.entry.inode}) + 'S',
                                [](ByteView, ByteView) { return true; });
       FsFigures figures = record_of<FsFigures>(c, key);
       (c.random().one_in(2) ? figures.space : figures.inodes) += 1;
       c.put(key, encode(figures));
     }},
    {"figures_cut",
     Kind::figures_wrong,
     {Kind::record_damaged},
     [](Corrupter& c) {
       const auto at = c.any_directory();
       c.put(c.find(encode(FsInodeKey{c.keyspace(), at.entry.inode}) + 'S',
                    [](ByteView, ByteView) { return true; }),
             "cut");
     }},
    {"directory_lost",
     Kind::inode_lost,
     {Kind::entry_to_nothing, Kind::name_missing, Kind::figures_wrong, Kind::home_wrong,
      Kind::links_wrong},
     [](Corrupter& c) {
       c.remove(encode(FsInodeKey{c.keyspace(), c.any_directory().entry.inode}));
     }},
    {"directory_said_to_be_removed",
     Kind::flags_wrong,
     {Kind::note_missing, Kind::links_wrong},
     [](Corrupter& c) {
       c.edit_inode(c.any_directory().entry.inode,
                    [](FsInode& inode) { inode.flags |= fs_removed; });
     }},
};

const std::vector<Damage> damages_of_content = {
    {"inode_lost",
     Kind::entry_to_nothing,
     {Kind::figures_wrong},
     [](Corrupter& c) {
       c.remove(encode(FsInodeKey{c.keyspace(), c.any_file().entry.inode}));
     }},
    {"inode_of_extents_lost",
     Kind::inode_lost,
     {Kind::entry_to_nothing, Kind::figures_wrong},
     [](Corrupter& c) {
       c.remove(encode(FsInodeKey{c.keyspace(), c.any_mapped().entry.inode}));
     }},
    {"inode_cut",
     Kind::inode_damaged,
     {Kind::figures_wrong},
     [](Corrupter& c) {
       c.put(encode(FsInodeKey{c.keyspace(), c.any_file().entry.inode}), "\x01\x08cut");
     }},
    {"blocks_off",
     Kind::blocks_wrong,
     {Kind::figures_wrong},
     [](Corrupter& c) {
       c.edit_inode(c.any_mapped().entry.inode, [](FsInode& inode) { inode.blocks++; });
     }},
    {"next_set_back",
     Kind::blocks_wrong,
     {},
     [](Corrupter& c) {
       c.edit_inode(c.any_mapped().entry.inode, [](FsInode& inode) { inode.next = 0; });
     },
     true},
    {"size_off",
     Kind::size_wrong,
     {Kind::figures_wrong},
     [](Corrupter& c) {
       c.edit_inode(c.any_file().entry.inode, [](FsInode& inode) { inode.size++; });
     }},
    {"size_too_large",
     Kind::size_wrong,
     {Kind::figures_wrong},
     [](Corrupter& c) {
       c.edit_inode(c.any_mapped().entry.inode,
                    [](FsInode& inode) { inode.size = uint64_t{1} << 63; });
     }},
    {"flag_lost",
     Kind::flags_wrong,
     {},
     [](Corrupter& c) {
       c.edit_inode(c.any_file().entry.inode, [](FsInode& inode) { inode.flags = 0; });
     }},
    {"unknown_flag",
     Kind::flags_wrong,
     {},
     [](Corrupter& c) {
       c.edit_inode(c.any_file().entry.inode, [](FsInode& inode) { inode.flags |= 1u << 30; });
     }},
    {"xattr_cut", Kind::record_damaged, {}, [](Corrupter& c) { c.put(any_xattr(c), ""); }},
    {"xattr_of_another_format",
     Kind::record_damaged,
     {},
     [](Corrupter& c) { c.put(any_xattr(c), "\x02value"); }},
    {"xattr_without_a_name",
     Kind::record_damaged,
     {},
     [](Corrupter& c) {
       c.put(encode(FsXattrKey{c.keyspace(), c.any_file().entry.inode, {}}),
             encode(FsXattr{"value"}));
     }},
    {"xattrs_not_said",
     Kind::flags_wrong,
     {},
     [](Corrupter& c) {
       c.edit_inode(decode<FsXattrKey>(any_xattr(c))->inode,
                    [](FsInode& inode) { inode.flags &= ~uint32_t{fs_attributes}; });
     }},
    {"extent_cut",
     Kind::extent_damaged,
     {Kind::blocks_wrong, Kind::block_unused},
     [](Corrupter& c) { c.put(first_extent(c, c.any_mapped().entry.inode), "cut"); }},
    {"extent_added",
     Kind::extent_overlaps,
     {},
     [](Corrupter& c) {
       const InodeId inode = c.any_mapped().entry.inode;
       const Bytes key = first_extent(c, inode);
       FsExtent extent = record_of<FsExtent>(c, key);
       const uint64_t block = decode<FsExtentKey>(key)->block + 1;
       extent.blocks = 1;
       c.put(encode(FsExtentKey{c.keyspace(), inode, block}), encode(extent));
     }},
    {"blocks_mapped_twice",
     Kind::extent_overlaps,
     {Kind::blocks_wrong},
     [](Corrupter& c) {
       const InodeId inode = c.any_mapped().entry.inode;
       const FsExtent extent = record_of<FsExtent>(c, first_extent(c, inode));
       c.put(encode(FsExtentKey{c.keyspace(), inode, 1'000}), encode(extent));
     }},
    {"block_lost",
     Kind::block_missing,
     {Kind::blocks_wrong},
     [](Corrupter& c) {
       const FsExtent extent = record_of<FsExtent>(c, first_extent(c, c.any_mapped().entry.inode));
       const uint64_t first = extent.first + c.random().below(extent.blocks);
       EXPECT_OK(c.engine().blocks().remove(c.keyspace(), extent.data, first, first + 1));
     }},
    {"block_of_nobody",
     Kind::block_unused,
     {},
     [](Corrupter& c) {
       const BlockWrite write{
           .block = {c.keyspace(), DataId{9}, 3}, .offset = {}, .bytes = "nobody's"};
       EXPECT_OK(c.engine().blocks().write({&write, 1}));
     }},
    {"block_behind_the_next",
     Kind::block_unused,
     {},
     [](Corrupter& c) {
       const FsExtent extent = record_of<FsExtent>(c, first_extent(c, c.any_mapped().entry.inode));
       const BlockWrite write{
           .block = {c.keyspace(), extent.data, 100'000}, .offset = {}, .bytes = "never finished"};
       EXPECT_OK(c.engine().blocks().write({&write, 1}));
     }},
    {"data_use_off",
     Kind::data_use_wrong,
     {},
     [](Corrupter& c) {
       const Bytes key = c.find(scope_prefix(c.keyspace(), 1), [](ByteView key, ByteView) {
         return decode<FsDataUseKey>(key).has_value();
       });
       c.put(key, encode(FsDataUse{record_of<FsDataUse>(c, key).blocks + 1}));
     }},
    {"data_use_lost",
     Kind::data_use_wrong,
     {Kind::shared_data_wrong},
     [](Corrupter& c) {
       c.remove(c.find(scope_prefix(c.keyspace(), 1), [](ByteView key, ByteView) {
         return decode<FsDataUseKey>(key).has_value();
       }));
     }},
    {"shared_data_off",
     Kind::shared_data_wrong,
     {},
     [](Corrupter& c) {
       const Bytes key =
           c.find(scope_prefix(c.keyspace(), 5), [](ByteView, ByteView) { return true; });
       c.put(key, encode(FsSharedData{record_of<FsSharedData>(c, key).inodes + 1}));
     }},
    {"shared_data_lost",
     Kind::shared_data_wrong,
     {},
     [](Corrupter& c) {
       c.remove(c.find(scope_prefix(c.keyspace(), 5), [](ByteView, ByteView) { return true; }));
     }},
};

}  // namespace

const std::vector<Damage>& all_damages() {
  static const std::vector<Damage> all = [] {
    std::vector<Damage> damages = damages_of_the_whole;
    for (const auto* const more : {&damages_of_names, &damages_of_content})
      damages.insert(damages.end(), more->begin(), more->end());
    return damages;
  }();
  return all;
}

}  // namespace trellis
