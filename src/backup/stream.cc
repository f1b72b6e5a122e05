#include "backup/stream.h"

#include <fmt/format.h>

#include "backup/files.h"
#include "base/log.h"
#include "tenant/sha256.h"

namespace trellis {
namespace {

constexpr ByteView stream_magic = "TRLSTRM";
constexpr char stream_format = 1;
constexpr size_t stream_header_bytes = 8;
constexpr size_t frame_header_bytes = 9;
constexpr char chunk_frame = 'c';
constexpr char manifest_frame = 'm';
constexpr uint64_t chunk_frame_bytes_max = chunk_plain_bytes_max + 1024;
constexpr uint64_t manifest_frame_bytes_max = uint64_t{1} << 31;
constexpr size_t stream_page_bytes = 2 * 1024 * 1024;

void append_frame(Bytes& out, char kind, ByteView bytes) {
  out.push_back(kind);
  append_be64(out, bytes.size());
  out += bytes;
}

Error bad_stream(std::string_view why) {
  return {Code::corrupt, fmt::format("the stream is no backup, or damaged: {}", why),
          "backup_damaged"};
}

}  // namespace

BackupStreamWriter::~BackupStreamWriter() {
  walk_.reset();
  blocks_.reset();
  source_.copy.reset();
  discard(remove_tree(source_.folder));  // what cannot be removed now is at the next start
}

Status BackupStreamWriter::read_page(Bytes& out) {
  std::vector<EntryChunk> cut;
  TRY_ASSIGN(const uint64_t bytes, walk_->done() ? blocks_->next(stream_page_bytes, cut)
                                                 : walk_->next(stream_page_bytes, cut));
  control_.charge(bytes);
  for (EntryChunk& chunk : cut) {
    append_frame(out, chunk_frame, encode_chunk_file(chunk.plain));
    manifest_->chunks.push_back(std::move(chunk.facts));
  }
  return {};
}

Result<std::optional<Bytes>> BackupStreamWriter::next() {
  if (is_over_) return std::optional<Bytes>();
  Bytes out;
  if (!manifest_) {
    TRY_ASSIGN(manifest_, describe_backup(*source_.copy, source_.plan));
    walk_.emplace(*source_.copy, scope_of(source_.plan), Units().unit(0));  // all in one, in order
    blocks_.emplace(source_.copy->blocks(), block_scope_of(source_.plan));
    out += stream_magic;
    out.push_back(stream_format);
  }
  while (out.empty() && !(walk_->done() && blocks_->done())) TRY(read_page(out));
  if (out.empty()) {
    if (walk_->left_out() > 0)
      log_warn("a stream of a backup was made, but", {{"warning", left_out_warning}});
    append_frame(out, manifest_frame, encode_manifest(*manifest_));
    is_over_ = true;
  }
  return std::optional(std::move(out));
}

Status BackupStreamReader::write(ByteView piece) {
  read_ += piece;
  ByteView rest = read_;
  if (!has_begun_) {
    if (rest.size() < stream_header_bytes) {
      return stream_magic.starts_with(rest.substr(0, stream_magic.size()))
                 ? Status()
                 : bad_stream("it does not begin as one does");
    }
    if (!rest.starts_with(stream_magic)) return bad_stream("it does not begin as one does");
    if (rest[stream_magic.size()] != stream_format)
      return Error{Code::unsupported,
                   fmt::format("stream format {} is not this build's {}: use a newer trellis",
                               static_cast<unsigned char>(rest[stream_magic.size()]),
                               static_cast<int>(stream_format)),
                   "backup_too_new"};
    rest.remove_prefix(stream_header_bytes);
    has_begun_ = true;
  }
  while (rest.size() >= frame_header_bytes) {
    const char kind = rest[0];
    const uint64_t bytes = load_be(rest.data() + 1, 8);
    if (manifest_) return bad_stream("there is something behind its end");
    const uint64_t bytes_max = kind == chunk_frame      ? chunk_frame_bytes_max
                               : kind == manifest_frame ? manifest_frame_bytes_max
                                                        : 0;
    if (bytes > bytes_max || bytes == 0) return bad_stream("a part of it makes no sense");
    if (rest.size() - frame_header_bytes < bytes) break;
    TRY(take_frame(kind, rest.substr(frame_header_bytes, bytes)));
    rest.remove_prefix(frame_header_bytes + bytes);
  }
  read_.erase(0, read_.size() - rest.size());
  return {};
}

Status BackupStreamReader::take_frame(char kind, ByteView bytes) {
  if (kind == chunk_frame) {
    TRY_ASSIGN(const Bytes plain, unpack_chunk_file(bytes));
    return repository_.put_chunk_file(sha256(plain), bytes);
  }
  TRY_ASSIGN(manifest_, decode_manifest(bytes));
  return {};
}

Result<std::string> BackupStreamReader::finish() {
  if (!manifest_ || !read_.empty()) return bad_stream("it ends too early");
  TRY(repository_.sync_chunks());
  TRY(repository_.put_manifest(*manifest_));
  return manifest_->id;
}

}  // namespace trellis
