// Files by path, with the operations of OpenDAL and what they promise.
//
//   Files files(fs);
//   TRY_ASSIGN(const FileMetadata written, files.write(caller, "a/b", "hello"));
//   TRY_ASSIGN(const Bytes content, files.read(caller, "a/b"));
//
// Paths (paths.h): "a/b" is a file and "a/b/" a directory, and what is not there is made on the way
// by all that writes. A path that is spelled as a directory names no file, and so is NotFound, or
// IsADirectory where a file is made; one that is spelled as a file names a directory for stat and
// remove, and is IsADirectory for all else. Symlinks on the way are followed, up to 40; at the end
// of a path they are, too, by all that is about content (stat, read, write, append, copy), so that
// stat says what read gives; remove, rename and list see the link itself.
//
// A file that is written or copied appears when that is complete, in place of the one that was
// there: a new inode, with the old one's mode and owner. Who reads the old one reads on.
//
// What fails has one of OpenDAL's kinds (file_error_kind.h). Conditions that do not hold are
// ConditionNotMatch whatever they are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "fs/file_headers.h"
#include "fs/file_lister.h"
#include "fs/file_system.h"
#include "fs/files_session.h"
#include "fs/path_walk.h"

namespace trellis {

struct FileMetadata {
  FileAttributes attributes;
  FileHeaders headers = {};
  bool is_directory() const { return attributes.type == FileType::directory; }
  // Changes with content, attributes and names; of no other file, or time, is it the same. Not an
  // MD5, and with its '-' not taken for one.
  std::string etag() const;
  bool operator==(const FileMetadata&) const = default;
};

// All that are given must hold. An ETag is compared as it is; "*" is any that there is.
struct ReadConditions {
  std::string if_match = {};
  std::string if_none_match = {};
  // Modified after it, or not. HTTP's times are in seconds: add what is less than one.
  std::optional<int64_t> if_modified_since_ns = {};
  std::optional<int64_t> if_unmodified_since_ns = {};
};

struct StatOptions {
  ReadConditions conditions = {};
  bool follow = true;  // a symlink at the end of the path
};

struct ReadOptions {
  ReadConditions conditions = {};
  // From `offset` on, `size` bytes, all of which must be there, or up to the end: nothing if that
  // is before offset. Or else the last `suffix` bytes, or all if there are less.
  uint64_t offset = 0;
  std::optional<uint64_t> size = {};
  std::optional<uint64_t> suffix = {};
};

// Of the file that is to be replaced.
struct WriteConditions {
  std::string if_match = {};
  std::string if_none_match = {};
  bool if_not_exists = false;
};

struct WriteOptions {
  WriteConditions conditions = {};
  FileHeaders headers = {};
  std::optional<uint16_t> mode = {};  // absent: as the file that is replaced, or 0644
};

struct CopyOptions {
  WriteConditions conditions = {};
  uint64_t chunk_bytes = uint64_t{256} << 20;  // that one step of a copier takes
};

struct RemoveOptions {
  std::string if_match = {};  // of a file: directories have no ETag
};

struct RenameOptions {
  bool if_not_exists = false;
};

// Of one call; longer ones are for a reader.
constexpr uint64_t file_read_bytes_max = uint64_t{256} << 20;
constexpr size_t file_writer_buffer_bytes = size_t{1} << 20;

// Content of one file, which stays while it is read. One thread. It may outlive its Files.
class FileReader {
 public:
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;
  ~FileReader();

  const FileMetadata& metadata() const { return metadata_; }
  // Of the range that was asked for.
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  // The next bytes of it; 0: that was all. Reason: changed_meanwhile, the file was cut short.
  Result<size_t> read(std::span<char> into);
  // Anything of the file, up to the end.
  Result<size_t> read_at(uint64_t offset, std::span<char> into);

 private:
  friend class Files;
  FileReader(std::shared_ptr<FilesSession> client, const Caller& caller, FileMetadata metadata)
      : client_(std::move(client)), caller_(caller), metadata_(std::move(metadata)) {}
  Status open(const ReadOptions& options);

  std::shared_ptr<FilesSession> client_;
  Caller caller_;
  FileMetadata metadata_;
  std::optional<SessionId> session_;  // that has it open
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t at_ = 0;
  Bytes content_;  // of a range that is small: of the instant at which it was opened
  bool has_content_ = false;
};

// A file that is being written: it appears with close(), all of it. Without that, abort() or not,
// nothing of it is left. It keeps 1 MiB in memory. After an error abort() is what is left, or
// close() again if close() was unavailable. One thread. It may outlive its Files. Whoever lets it
// wait for longer than a session lives (a minute) calls Files::keep_alive.
class FileWriter {
 public:
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  Status write(ByteView bytes);
  Result<FileMetadata> close();
  Status abort();

 private:
  friend class Files;
  friend class FileCopier;
  FileWriter(std::shared_ptr<FilesSession> client, const Caller& caller, FilePath path,
             WriteOptions options)
      : client_(std::move(client)),
        caller_(caller),
        path_(std::move(path)),
        options_(std::move(options)) {}
  FileSystem& fs() { return client_->fs(); }
  Status open();
  // What adopt is to expect of the file that is there, whose conditions hold.
  Result<FileSystem::Adoption> check_target(const PathEnd& target);
  // The file without a name.
  Result<InodeId> inode(ByteView content = {});
  Status put(ByteView bytes);
  Status flush();
  Status complete();
  Result<FileMetadata> appear();
  NewFile new_file(ByteView content) const;

  std::shared_ptr<FilesSession> client_;
  Caller caller_;
  FilePath path_;
  WriteOptions options_;
  InodeId made_in_ = root_inode;
  uint16_t mode_ = 0644;
  uint32_t uid_ = 0;
  uint32_t gid_ = 0;
  uint64_t space_replaced_ = 0;  // that is free when it appears
  Bytes buffer_;
  std::optional<InodeId> inode_;
  SessionId session_;
  uint64_t size_ = 0;
  bool has_headers_ = false;
  bool is_over_ = false;
};

// A file that is being copied, step by step: it appears with the last one. The blocks are shared.
class FileCopier {
 public:
  // How many bytes; absent: it is done, and metadata() is what there is now. Reason:
  // changed_meanwhile, of the source.
  Result<std::optional<uint64_t>> next();
  Status abort() { return writer_.abort(); }
  const FileMetadata& metadata() const { return metadata_; }
  uint64_t size() const { return source_.metadata().attributes.size; }

 private:
  friend class Files;
  FileCopier(FileReader source, FileWriter writer, uint64_t chunk_bytes)
      : source_(std::move(source)), writer_(std::move(writer)), chunk_bytes_(chunk_bytes) {}

  FileReader source_;
  FileWriter writer_;
  const uint64_t chunk_bytes_;
  uint64_t copied_ = 0;
  bool is_done_ = false;
  FileMetadata metadata_;
};

// Any thread.
class Files {
 public:
  explicit Files(const std::shared_ptr<FileSystem>& fs)
      : client_(std::make_shared<FilesSession>(fs)) {}

  Result<FileMetadata> stat(const Caller& caller, ByteView path, const StatOptions& options = {});
  Result<bool> exists(const Caller& caller, ByteView path);

  Result<FileReader> reader(const Caller& caller, ByteView path, const ReadOptions& options = {});
  // Up to file_read_bytes_max.
  Result<Bytes> read(const Caller& caller, ByteView path, const ReadOptions& options = {});

  Result<FileWriter> writer(const Caller& caller, ByteView path, WriteOptions options = {});
  // What a stat says from then on.
  Result<FileMetadata> write(const Caller& caller, ByteView path, ByteView bytes,
                             WriteOptions options = {});
  // To the file that is there, for which of the options if_match holds; else a new one, which the
  // others are for. Reason: appended
  // (Code::maybe), it is done, and what the file is now could not be read. After another error a
  // part of what is more than a few MiB may be there.
  Result<FileMetadata> append(const Caller& caller, ByteView path, ByteView bytes,
                              const WriteOptions& options = {});

  // With those above it; one that is there is fine. Reason: not_a_directory, also if the path is
  // not spelled as one.
  Status create_dir(const Caller& caller, ByteView path);
  // A file, or an empty directory; nothing is fine, if no condition is given. Files go to the trash
  // if there is one.
  Status remove(const Caller& caller, ByteView path, const RemoveOptions& options = {});
  // "x/": the directory with all that is in it, at once, to the trash if there is one. "x": all
  // that starts so, each for itself. "/": all that there is.
  Status remove_all(const Caller& caller, ByteView path);

  // What starts with the path (file_lister.h).
  Result<FileLister> lister(const Caller& caller, ByteView path, ListOptions options = {});

  // A file to a file. Reasons: is_same_file, is_a_directory.
  Result<FileMetadata> copy(const Caller& caller, ByteView from, ByteView to,
                            const CopyOptions& options = {});
  Result<FileCopier> copier(const Caller& caller, ByteView from, ByteView to,
                            const CopyOptions& options = {});
  // A file to a file, or, both spelled so, a directory to one that is not there or is empty.
  Status rename(const Caller& caller, ByteView from, ByteView to,
                const RenameOptions& options = {});

  // Call it every 20 s while writers or readers wait.
  Status keep_alive(const Caller& caller) { return client_->keep_alive(caller); }
  FileSystem& fs() { return client_->fs(); }

 private:
  Result<FileMetadata> find(const Caller& caller, const FilePath& path, bool follow);
  Status remove_entry(const Caller& caller, InodeId directory, ByteView name, const FsEntry& entry,
                      bool with_all, const ExpectedFile& expected);
  Status remove_once(const Caller& caller, const FilePath& path, const RemoveOptions& options);
  // The version that has the ETag, if it is not "*". Reason: condition_failed.
  Result<std::optional<uint64_t>> match_version(const Caller& caller, InodeId inode,
                                                const std::string& if_match);
  Status rename_once(const Caller& caller, const FilePath& source, const FilePath& target,
                     const RenameOptions& options);

  const std::shared_ptr<FilesSession> client_;
};

// What changes while it is looked at is looked at again, so often.
constexpr unsigned path_attempts_max = 32;

// Whether somebody removed or replaced what was just found.
inline bool is_overtaken(const Error& error) { return error.reason == "stale"; }

Result<FileMetadata> load_metadata(FileSystem& fs, const Caller& caller, InodeId inode);

}  // namespace trellis
