#include <algorithm>
#include <utility>

#include "fs/content.h"
#include "fs/files.h"
#include "fs/fs_error.h"

namespace trellis {

FileWriter::FileWriter(FileWriter&& other) noexcept
    : client_(std::move(other.client_)),
      caller_(std::move(other.caller_)),
      path_(std::move(other.path_)),
      options_(std::move(other.options_)),
      made_in_(other.made_in_),
      mode_(other.mode_),
      uid_(other.uid_),
      gid_(other.gid_),
      space_replaced_(other.space_replaced_),
      buffer_(std::move(other.buffer_)),
      inode_(std::exchange(other.inode_, std::nullopt)),
      session_(other.session_),
      size_(other.size_),
      has_headers_(other.has_headers_),
      is_over_(std::exchange(other.is_over_, true)) {}

FileWriter::~FileWriter() {
  discard(abort());  // what fails here goes with the session
}

Status FileWriter::abort() {
  is_over_ = true;
  buffer_.clear();
  if (!inode_) return {};
  return fs().discard_unnamed(caller_, session_, *std::exchange(inode_, std::nullopt));
}

NewFile FileWriter::new_file(ByteView content) const {
  return {.mode = options_.mode.value_or(mode_), .uid = uid_, .gid = gid_, .content = content};
}

Status FileWriter::open() {
  if (path_.is_directory) return fs_error::is_a_directory(quote(path_.text()));
  if (!options_.headers.empty()) TRY(encode_headers(options_.headers));
  for (unsigned attempt = 1;; attempt++) {
    TRY_ASSIGN(const PathEnd target, walk_path(fs(), caller_, path_, {}));
    made_in_ = target.directory;
    const auto checked = check_target(target);
    if (checked) return {};
    if (!is_overtaken(checked.error()) || attempt == path_attempts_max) return checked.error();
  }
}

Result<FileSystem::Adoption> FileWriter::check_target(const PathEnd& target) {
  const WriteConditions& wanted = options_.conditions;
  FileSystem::Adoption how;
  how.replace = !wanted.if_not_exists && wanted.if_none_match != "*";
  if (!target.entry) {
    if (!wanted.if_match.empty())
      return fs_error::condition_failed("the file must be there, and is not");
    return how;
  }
  if (target.entry->type == FileType::directory)
    return fs_error::is_a_directory(quote(path_.text()));
  if (target.entry->type != FileType::regular) return fs_error::not_a_file(quote(path_.text()));
  if (!how.replace) return fs_error::condition_failed("the file is there already");
  FileMetadata found;
  TRY_ASSIGN(found.attributes, fs().stat(caller_, target.entry->inode));
  mode_ = found.attributes.mode;
  uid_ = found.attributes.uid;
  gid_ = found.attributes.gid;
  space_replaced_ = found.attributes.space;
  if (!wanted.if_none_match.empty() && wanted.if_none_match == found.etag())
    return fs_error::condition_failed("the file has that ETag");
  if (wanted.if_match.empty()) return how;
  if (wanted.if_match != "*" && wanted.if_match != found.etag())
    return fs_error::condition_failed("the file has another ETag");
  how.expected = {.inode = found.attributes.inode, .version = found.attributes.version};
  return how;
}

Result<InodeId> FileWriter::inode(ByteView content) {
  TRY_ASSIGN(const SessionId session, client_->id(caller_));
  if (inode_) return *inode_;
  auto made = fs().make_unnamed(caller_, session, made_in_, new_file(content));
  // The directory was removed meanwhile; what counts is where it appears.
  if (!made && is_overtaken(made.error()))
    made = fs().make_unnamed(caller_, session, root_inode, new_file(content));
  TRY(made);
  session_ = session;
  inode_ = made->inode;
  size_ = content.size();
  return *inode_;
}

Status FileWriter::put(ByteView bytes) {
  TRY_ASSIGN(const InodeId to, inode());
  // It counts in no directory before it appears: what would not have room then ends here.
  const uint64_t space = blocks_up_to(size_ + bytes.size()) * block_bytes_max;
  if (space > space_replaced_) TRY(fs().check_quotas(made_in_, space - space_replaced_));
  TRY(fs().write(caller_, to, size_, bytes));
  size_ += bytes.size();
  return {};
}

Status FileWriter::flush() {
  if (buffer_.empty()) return {};
  TRY(put(buffer_));
  buffer_.clear();
  return {};
}

Status FileWriter::write(ByteView bytes) {
  if (is_over_) return fs_error::invalid("this writer was closed");
  if (!buffer_.empty() || bytes.size() < file_writer_buffer_bytes) {
    const size_t taken = std::min(bytes.size(), file_writer_buffer_bytes - buffer_.size());
    buffer_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (buffer_.size() == file_writer_buffer_bytes) TRY(flush());
  }
  if (const size_t whole = bytes.size() - bytes.size() % file_writer_buffer_bytes; whole > 0) {
    TRY(put(bytes.substr(0, whole)));
    bytes.remove_prefix(whole);
  }
  buffer_ += bytes;
  return {};
}

// All that the file is to have, it has.
Status FileWriter::complete() {
  if (!inode_ && buffer_.size() <= inline_bytes_max) {
    TRY(inode(buffer_));
    buffer_.clear();
  }
  TRY(flush());
  if (has_headers_ || options_.headers.empty()) return {};
  TRY_ASSIGN(const Bytes headers, encode_headers(options_.headers));
  TRY(fs().set_hidden_xattr(caller_, *inode_, headers_attribute, ByteView(headers)));
  has_headers_ = true;
  return {};
}

Result<FileMetadata> FileWriter::close() {
  if (is_over_) return fs_error::invalid("this writer was closed");
  for (unsigned attempt = 1;; attempt++) {
    auto appeared = appear();
    if (appeared) {
      discard(abort());  // it has its name; that it is open still is all that goes
      return appeared;
    }
    // Somebody was faster: whether the conditions hold is looked at anew.
    const std::string_view reason = appeared.error().reason;
    const bool again =
        is_overtaken(appeared.error()) || reason == "exists" || reason == "changed_meanwhile";
    if (!again || attempt == path_attempts_max) return appeared;
  }
}

Result<FileMetadata> FileWriter::appear() {
  TRY_ASSIGN(const PathEnd target, walk_path(fs(), caller_, path_, {.make_parents = true}));
  TRY_ASSIGN(const FileSystem::Adoption how, check_target(target));
  FileMetadata there{.attributes = {}, .headers = options_.headers};
  const bool is_small = !inode_ && options_.headers.empty() && buffer_.size() <= inline_bytes_max;
  if (is_small && !target.entry) {  // in one step
    TRY_ASSIGN(there.attributes,
               fs().make(caller_, target.directory, target.name, new_file(buffer_)));
    return there;
  }
  TRY(complete());
  auto adopted = fs().adopt(caller_, session_, *inode_, target.directory, target.name, how);
  if (!adopted && adopted.error().reason == "condition_failed")
    return fs_error::changed_meanwhile("the file");
  TRY(adopted);
  there.attributes = *adopted;
  return there;
}

Result<FileWriter> Files::writer(const Caller& caller, ByteView path, WriteOptions options) {
  TRY_ASSIGN(FilePath parsed, parse_path(path));
  FileWriter writer(client_, caller, std::move(parsed), std::move(options));
  TRY(writer.open());
  return writer;
}

Result<FileMetadata> Files::write(const Caller& caller, ByteView path, ByteView bytes,
                                  WriteOptions options) {
  TRY_ASSIGN(FileWriter opened, writer(caller, path, std::move(options)));
  TRY(opened.write(bytes));
  return opened.close();
}

Result<FileMetadata> Files::append(const Caller& caller, ByteView path, ByteView bytes,
                                   const WriteOptions& options) {
  TRY_ASSIGN(const FilePath parsed, parse_path(path));
  if (parsed.is_directory) return fs_error::is_a_directory(quote(path));
  WriteOptions of_new = options;
  of_new.conditions.if_not_exists = true;
  for (unsigned attempt = 1;; attempt++) {
    const auto once = [&]() -> Result<FileMetadata> {
      TRY_ASSIGN(const PathEnd end, walk_path(fs(), caller, parsed, {}));
      if (!end.entry) {
        if (!options.conditions.if_match.empty())
          return fs_error::condition_failed("the file must be there, and is not");
        auto made = write(caller, path, bytes, of_new);
        if (!made && made.error().reason == "condition_failed")
          return fs_error::changed_meanwhile("the file");
        return made;
      }
      if (end.entry->type == FileType::directory) return fs_error::is_a_directory(quote(path));
      TRY_ASSIGN(const auto version,
                 match_version(caller, end.entry->inode, options.conditions.if_match));
      TRY(fs().append(caller, end.entry->inode, bytes, version));
      auto now = load_metadata(fs(), caller, end.entry->inode);
      if (now) return now;
      return Error{Code::maybe,
                   "it was appended, but not what the file is now: " + now.error().message,
                   "appended"};
    };
    auto appended = once();
    if (appended) return appended;
    const bool again =
        is_overtaken(appended.error()) || appended.error().reason == "changed_meanwhile";
    if (!again || attempt == path_attempts_max) return appended;
  }
}

// --- copy ---

Result<FileCopier> Files::copier(const Caller& caller, ByteView from, ByteView to,
                                 const CopyOptions& options) {
  TRY_ASSIGN(const FilePath target, parse_path(to));
  if (target.is_directory) return fs_error::is_a_directory(quote(to));
  TRY_ASSIGN(FileReader source, reader(caller, from));
  TRY_ASSIGN(const PathEnd end, walk_path(fs(), caller, target, {}));
  if (end.entry && end.entry->inode == source.metadata().attributes.inode)
    return fs_error::is_same_file(quote(from));
  WriteOptions as{.conditions = options.conditions,
                  .headers = source.metadata().headers,
                  .mode = source.metadata().attributes.mode};
  TRY_ASSIGN(FileWriter opened, writer(caller, to, std::move(as)));
  return FileCopier(std::move(source), std::move(opened),
                    std::max<uint64_t>(options.chunk_bytes, 1));
}

Result<std::optional<uint64_t>> FileCopier::next() {
  if (is_done_) return std::optional<uint64_t>();
  const uint64_t left = size() - copied_;
  if (left > 0) {
    const uint64_t part = std::min(left, chunk_bytes_);
    if (size() <= inline_bytes_max) {
      Bytes content(part, '\0');
      TRY_ASSIGN(const size_t got, source_.read({content.data(), content.size()}));
      TRY(writer_.write(ByteView(content).substr(0, got)));
      copied_ += got;
      return std::optional<uint64_t>(got);
    }
    TRY_ASSIGN(const InodeId to, writer_.inode());
    TRY_ASSIGN(const uint64_t got,
               writer_.fs().copy_range(writer_.caller_, source_.metadata().attributes.inode,
                                       copied_, to, copied_, part));
    if (got == 0) return fs_error::changed_meanwhile("the source");
    copied_ += got;
    return std::optional<uint64_t>(got);
  }
  TRY_ASSIGN(const FileAttributes now,
             writer_.fs().stat(writer_.caller_, source_.metadata().attributes.inode));
  const FileAttributes& before = source_.metadata().attributes;
  if (now.modified_ns != before.modified_ns || now.size != before.size)
    return fs_error::changed_meanwhile("the source");
  TRY_ASSIGN(metadata_, writer_.close());
  is_done_ = true;
  return std::optional<uint64_t>();
}

Result<FileMetadata> Files::copy(const Caller& caller, ByteView from, ByteView to,
                                 const CopyOptions& options) {
  TRY_ASSIGN(FileCopier copying, copier(caller, from, to, options));
  for (;;) {
    TRY_ASSIGN(const auto copied, copying.next());
    if (!copied) return copying.metadata();
  }
}

}  // namespace trellis
