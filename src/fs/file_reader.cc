#include <algorithm>
#include <utility>

#include "fs/files.h"
#include "fs/fs_error.h"

namespace trellis {
namespace {

// A range of so much is read at once; for more the file is held open.
constexpr uint64_t read_at_once_bytes = 256 * 1024;

}  // namespace

FileReader::FileReader(FileReader&& other) noexcept
    : client_(std::move(other.client_)),
      caller_(std::move(other.caller_)),
      metadata_(std::move(other.metadata_)),
      session_(std::exchange(other.session_, std::nullopt)),
      begin_(other.begin_),
      end_(other.end_),
      at_(other.at_),
      content_(std::move(other.content_)),
      has_content_(other.has_content_) {}

FileReader::~FileReader() {
  // If that fails it is closed with the session.
  if (session_) discard(client_->fs().close_file(caller_, *session_, metadata_.attributes.inode));
}

Status FileReader::open(const ReadOptions& options) {
  const uint64_t size = metadata_.attributes.size;
  if (options.suffix) {
    begin_ = size - std::min(*options.suffix, size);
    end_ = size;
  } else if (options.size) {
    if (*options.size > 0 && (options.offset > size || *options.size > size - options.offset))
      return fs_error::range_not_satisfied(options.offset + *options.size, size);
    begin_ = options.offset;
    end_ = begin_ + *options.size;
  } else {
    begin_ = std::min(options.offset, size);
    end_ = size;
  }
  at_ = begin_;
  FileSystem& fs = client_->fs();
  if (end_ - begin_ > read_at_once_bytes) {
    TRY_ASSIGN(const SessionId session, client_->id(caller_));
    TRY(fs.open_file(caller_, session, metadata_.attributes.inode));
    session_ = session;
    return {};
  }
  Bytes content(end_ - begin_, '\0');
  if (!content.empty()) {
    TRY_ASSIGN(const size_t got, fs.read(caller_, metadata_.attributes.inode, begin_,
                                         {content.data(), content.size()}));
    if (got != content.size()) return fs_error::changed_meanwhile("the file");
  }
  content_ = std::move(content);
  has_content_ = true;
  return {};
}

Result<size_t> FileReader::read(std::span<char> into) {
  into = into.first(std::min<uint64_t>(into.size(), end_ - at_));
  if (into.empty()) return size_t{0};
  TRY_ASSIGN(const size_t got, read_at(at_, into));
  if (got == 0) return fs_error::changed_meanwhile("the file");
  at_ += got;
  return got;
}

Result<size_t> FileReader::read_at(uint64_t offset, std::span<char> into) {
  if (has_content_ && offset >= begin_ && offset < end_) {
    const size_t got = std::min<uint64_t>(into.size(), end_ - offset);
    std::copy_n(content_.data() + (offset - begin_), got, into.begin());
    return got;
  }
  if (session_) TRY(client_->keep_alive(caller_));
  return client_->fs().read(caller_, metadata_.attributes.inode, offset, into);
}

}  // namespace trellis
