#include "fs/xattrs.h"

#include <gtest/gtest.h>

#include "fs/fs_fixture.h"
#include "fs/posix_acl.h"

namespace trellis {
namespace {

using XattrMode = FileSystem::XattrMode;

Bytes acl_of(uint16_t owner, uint16_t user, uint16_t group, uint16_t mask, uint16_t others) {
  return encode_acl({{{AclTag::owner, owner, acl_no_id},
                      {AclTag::user, user, 1000},
                      {AclTag::owning_group, group, acl_no_id},
                      {AclTag::mask, mask, acl_no_id},
                      {AclTag::others, others, acl_no_id}}});
}
Bytes plain_acl(uint16_t owner, uint16_t group, uint16_t others) {
  return encode_acl({{{AclTag::owner, owner, acl_no_id},
                      {AclTag::owning_group, group, acl_no_id},
                      {AclTag::others, others, acl_no_id}}});
}

class XattrsTest : public FsFixture {
 protected:
  void SetUp() override {
    FsFixture::SetUp();
    file_ = make_file(root_inode, "f", "content");
  }
  Status set(ByteView name, ByteView value, XattrMode mode = XattrMode::set) {
    return fs_->set_xattr(writer, file_, name, value, mode);
  }
  // What it holds, or why not.
  Bytes get(InodeId inode, ByteView name) {
    auto value = fs_->get_xattr(reader, inode, name);
    return value ? *value : Bytes(value.error().reason);
  }
  std::vector<Bytes> list(InodeId inode) {
    auto names = fs_->list_xattrs(reader, inode);
    EXPECT_OK(names);
    return names ? *names : std::vector<Bytes>();
  }
  FileAttributes make_as(InodeId directory, ByteView name, const NewFile& file) {
    const auto made = fs_->make(writer, directory, name, file);
    EXPECT_OK(made);
    return made ? *made : FileAttributes();
  }

  InodeId file_;
};

TEST_P(XattrsTest, AreKeptUntilTheyAreRemoved) {
  EXPECT_EQ(get(file_, "user.a"), "no_attribute");
  EXPECT_TRUE(list(file_).empty());
  const FileAttributes before = stat(file_);
  clock_.advance_ms(5);
  ASSERT_OK(set("user.a", "1"));
  EXPECT_GT(stat(file_).changed_ns, before.changed_ns);
  EXPECT_EQ(stat(file_).modified_ns, before.modified_ns);
  EXPECT_NE(stat(file_).version, before.version);
  ASSERT_OK(set("user.b", Bytes("\0\xff", 2)));
  ASSERT_OK(set("user.empty", ""));
  EXPECT_EQ(get(file_, "user.a"), "1");
  EXPECT_EQ(get(file_, "user.b"), Bytes("\0\xff", 2));
  EXPECT_EQ(get(file_, "user.empty"), "");
  EXPECT_EQ(list(file_), (std::vector<Bytes>{"user.a", "user.b", "user.empty"}));
  EXPECT_EQ(set("user.a", "2", XattrMode::create).error().reason, "exists");
  EXPECT_EQ(set("user.c", "2", XattrMode::replace).error().reason, "no_attribute");
  ASSERT_OK(set("user.a", "2", XattrMode::replace));
  ASSERT_OK(set("user.c", "3", XattrMode::create));
  ASSERT_OK(fs_->remove_xattr(writer, file_, "user.b"));
  EXPECT_EQ(fs_->remove_xattr(writer, file_, "user.b").error().reason, "no_attribute");
  open_files_anew();
  EXPECT_EQ(get(file_, "user.a"), "2");
  EXPECT_EQ(list(file_), (std::vector<Bytes>{"user.a", "user.c", "user.empty"}));
  check();
  ASSERT_OK(fs_->unlink(writer, root_inode, "f"));
  collect_all();
  EXPECT_EQ(get(file_, "user.a"), "stale");
  EXPECT_EQ(fs_->list_xattrs(reader, file_).error().reason, "stale");
  EXPECT_EQ(set("user.a", "").error().reason, "stale");
  const Bytes prefix = encode(FsXattrKey{id_, file_, {}});
  EXPECT_EQ(entries_in(prefix, prefix_end(prefix)), 0u) << "nothing leaks";
  check();
}

TEST_P(XattrsTest, HaveLimits) {
  const Bytes longest(255, 'n');
  ASSERT_OK(set(longest, Bytes(64 * 1024, 'v')));
  EXPECT_EQ(get(file_, longest).size(), 64u * 1024);
  EXPECT_EQ(set(longest + 'n', "").error().reason, "name_too_long");
  EXPECT_EQ(set("user.v", Bytes(64 * 1024 + 1, 'v')).error().reason, "attribute_too_large");
  EXPECT_EQ(set("", "").error().reason, "invalid_argument");
  EXPECT_EQ(set(Bytes("a\0b", 3), "").error().reason, "invalid_argument");
  EXPECT_FALSE(fs_->set_xattr(reader, file_, "user.a", "1").has_value());
  // Names alone fill a listing.
  size_t made = 0;
  for (;; made++) {
    Bytes name = std::to_string(made);
    name.resize(255, 'x');
    const Status status = set(name, "");
    EXPECT_TRUE(status || status.error().reason == "attributes_full");
    if (!status || made > 300) break;
  }
  EXPECT_EQ(made + 1, 64u * 1024 / 256);
  EXPECT_OK(set(longest, "shorter"));
  check();
  const InodeId other = make_file(root_inode, "g");
  Status status;
  for (made = 0; status && made < 20; made++)
    status = fs_->set_xattr(writer, other, std::to_string(made), Bytes(64 * 1024, 'v'));
  EXPECT_EQ(made, 16u) << "1 MiB, but for the names";
  EXPECT_EQ(status.error().reason, "attributes_full");
  check();
}

TEST_P(XattrsTest, OursAreHidden) {
  EXPECT_EQ(set("trellis.etag", "x").error().reason, "not_permitted");
  ASSERT_OK(fs_->set_hidden_xattr(writer, file_, "trellis.etag", "x"));
  EXPECT_EQ(*fs_->hidden_xattr(reader, file_, "trellis.etag"), Bytes("x"));
  EXPECT_EQ(get(file_, "trellis.etag"), "not_permitted");
  EXPECT_EQ(fs_->remove_xattr(writer, file_, "trellis.etag").error().reason, "not_permitted");
  EXPECT_TRUE(list(file_).empty());
  ASSERT_OK(fs_->set_hidden_xattr(writer, file_, "trellis.etag", std::nullopt));
  EXPECT_EQ(*fs_->hidden_xattr(reader, file_, "trellis.etag"), std::nullopt);
  check();
}

TEST_P(XattrsTest, AnAclAndTheModeSayTheSame) {
  ASSERT_OK(set(acl_access_name, acl_of(7, 6, 4, 5, 1)));
  EXPECT_EQ(stat(file_).mode, 0751) << "the mask shows as the group's";
  ASSERT_OK(fs_->set_attributes(writer, file_, {.mode = 04640}));
  EXPECT_EQ(get(file_, acl_access_name), acl_of(6, 6, 4, 4, 0));
  ASSERT_OK(set(acl_access_name, acl_of(7, 6, 4, 7, 0)));
  EXPECT_EQ(stat(file_).mode, 04770) << "set-id bits stay";
  // One that says no more than the mode is the mode.
  ASSERT_OK(set(acl_access_name, plain_acl(6, 4, 4)));
  EXPECT_EQ(stat(file_).mode, 04644);
  EXPECT_TRUE(list(file_).empty());
  ASSERT_OK(set(acl_access_name, acl_of(7, 6, 4, 5, 1)));
  EXPECT_EQ(list(file_), (std::vector<Bytes>{Bytes(acl_access_name)}));
  ASSERT_OK(fs_->remove_xattr(writer, file_, acl_access_name));
  EXPECT_EQ(stat(file_).mode, 04751);
  ASSERT_OK(fs_->set_attributes(writer, file_, {.mode = 0600}));
  EXPECT_EQ(get(file_, acl_access_name), "no_attribute");
  ASSERT_OK(set(acl_access_name, acl_of(7, 6, 4, 5, 1)));
  ASSERT_OK(set(acl_access_name, *from_hex("02000000")));
  EXPECT_EQ(get(file_, acl_access_name), "no_attribute") << "an empty one removes it";
  check();
}

TEST_P(XattrsTest, WrongAclsAreRefused) {
  EXPECT_EQ(set(acl_access_name, "no acl").error().reason, "invalid_argument");
  EXPECT_EQ(set(acl_default_name, acl_of(7, 7, 7, 7, 7)).error().reason, "not_permitted");
  const auto symlink =
      make_as(root_inode, "s", {.type = FileType::symlink, .mode = 0777, .target = "f"});
  EXPECT_EQ(
      fs_->set_xattr(writer, symlink.inode, acl_access_name, acl_of(7, 7, 7, 7, 7)).error().reason,
      "not_permitted");
  EXPECT_EQ(stat(file_).mode, 0644);
  EXPECT_TRUE(list(file_).empty());
}

TEST_P(XattrsTest, DirectoriesPassTheirDefaultOn) {
  const InodeId directory = make_directory(root_inode, "d");
  const Bytes passed = acl_of(7, 6, 5, 7, 5);
  ASSERT_OK(fs_->set_xattr(writer, directory, acl_default_name, passed));
  EXPECT_EQ(stat(directory).mode, 0755) << "it is not its own";
  const FileAttributes file = make_as(directory, "f", {.mode = 0660, .umask = 077});
  EXPECT_EQ(file.mode, 0660) << "the umask does not count, others are not let in";
  EXPECT_EQ(get(file.inode, acl_access_name), acl_of(6, 6, 5, 6, 0));
  EXPECT_EQ(get(file.inode, acl_default_name), "no_attribute");
  const FileAttributes below =
      make_as(directory, "below", {.type = FileType::directory, .mode = 0777, .umask = 077});
  EXPECT_EQ(below.mode, 0775);
  EXPECT_EQ(get(below.inode, acl_default_name), passed);
  EXPECT_EQ(get(below.inode, acl_access_name), acl_of(7, 6, 5, 7, 5));
  EXPECT_EQ(get(make_as(below.inode, "deep", {.mode = 0640}).inode, acl_access_name),
            acl_of(6, 6, 5, 4, 0));
  const auto symlink =
      make_as(directory, "s", {.type = FileType::symlink, .mode = 0777, .target = "f"});
  EXPECT_EQ(symlink.mode, 0777);
  EXPECT_TRUE(list(symlink.inode).empty());
  const auto session = fs_->begin_session(writer, "test");
  ASSERT_OK(session);
  const auto unnamed = fs_->make_unnamed(writer, *session, directory, {.mode = 0640});
  ASSERT_OK(unnamed);
  EXPECT_EQ(get(unnamed->inode, acl_access_name), acl_of(6, 6, 5, 4, 0));
  // A default that names nobody leaves only a mode.
  ASSERT_OK(fs_->set_xattr(writer, directory, acl_default_name, plain_acl(7, 5, 0)));
  const FileAttributes plain = make_as(directory, "plain", {.mode = 0666});
  EXPECT_EQ(plain.mode, 0640);
  EXPECT_TRUE(list(plain.inode).empty());
  ASSERT_OK(fs_->remove_xattr(writer, directory, acl_default_name));
  EXPECT_EQ(make_as(directory, "without", {.mode = 0666, .umask = 027}).mode, 0640);
  check();
}

TEST_P(XattrsTest, SetGroupIdGivesTheGroup) {
  const FileAttributes directory =
      make_as(root_inode, "d", {.type = FileType::directory, .mode = 02775, .gid = 50});
  const FileAttributes file = make_as(directory.inode, "f", {.mode = 0644, .uid = 7, .gid = 9});
  EXPECT_EQ(file.gid, 50u);
  EXPECT_EQ(file.uid, 7u);
  EXPECT_EQ(file.mode, 0644);
  const FileAttributes below = make_as(
      directory.inode, "d", {.type = FileType::directory, .mode = 0700, .gid = 9, .umask = 077});
  EXPECT_EQ(below.gid, 50u);
  EXPECT_EQ(below.mode, 02700);
  EXPECT_EQ(make_as(below.inode, "deep", {.gid = 9}).gid, 50u);
}

INSTANTIATE_TEST_SUITE_P(Ways, XattrsTest, testing::Values(Way::latched, Way::expecting), way_name);

}  // namespace
}  // namespace trellis
