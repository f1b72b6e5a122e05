#include "rocksdb_engine/wal_check.h"

#include <fmt/format.h>
#include <rocksdb/env.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {

namespace {

constexpr ByteView note_magic = "trellis.synced\x01";
constexpr size_t wal_page_bytes = 32 * 1024;
constexpr size_t fragment_header_bytes = 7;
constexpr size_t batch_header_bytes = 12;

uint64_t load_le(const char* in, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<uint8_t>(in[i]);
  return value;
}

// RocksDB stores checksums of what may itself hold checksums in this form.
uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

// The records of one log file. Behind a broken place it goes on with the next page.
//   | masked crc32c of type and data u32le | size u16le | type u8 | data |   pages of 32 KiB
class WalReader {
 public:
  explicit WalReader(std::unique_ptr<rocksdb::SequentialFile> file) : file_(std::move(file)) {}

  // False at the end of the file or if reading fails.
  bool next(Bytes& record);
  // Where the first broken place is, if one was passed.
  std::optional<uint64_t> broken_at() const { return broken_at_; }
  const rocksdb::Status& status() const { return status_; }

 private:
  enum Type : uint8_t { full = 1, first = 2, middle = 3, last = 4 };
  struct Fragment {
    uint8_t type;
    ByteView data;
  };

  bool load_page();
  std::optional<Fragment> take_fragment();
  void set_broken(uint64_t offset) {
    if (!broken_at_.has_value()) broken_at_ = offset;
  }
  uint64_t offset() const { return page_offset_ + at_; }

  std::unique_ptr<rocksdb::SequentialFile> file_;
  Bytes page_;
  size_t at_ = 0;
  uint64_t page_offset_ = 0;
  std::optional<uint64_t> broken_at_;
  rocksdb::Status status_;
};

bool WalReader::load_page() {
  page_offset_ += page_.size();
  page_.resize(wal_page_bytes);
  at_ = 0;
  size_t filled = 0;
  while (filled < wal_page_bytes) {
    rocksdb::Slice part;
    status_ = file_->Read(wal_page_bytes - filled, &part, page_.data() + filled);
    if (!status_.ok() || part.empty()) break;
    std::copy(part.data(), part.data() + part.size(), page_.data() + filled);
    filled += part.size();
  }
  page_.resize(filled);
  return status_.ok() && filled > 0;
}

std::optional<WalReader::Fragment> WalReader::take_fragment() {
  const ByteView rest = ByteView(page_).substr(at_);
  const size_t size = load_le(rest.data() + 4, 2);
  const uint8_t type = static_cast<uint8_t>(rest[6]);
  if (type < full || type > last || fragment_header_bytes + size > rest.size()) return std::nullopt;
  const ByteView covered = rest.substr(6, 1 + size);
  if (masked(crc32c(covered)) != load_le(rest.data(), 4)) return std::nullopt;
  at_ += fragment_header_bytes + size;
  return Fragment{type, covered.substr(1)};
}

bool WalReader::next(Bytes& record) {
  record.clear();
  bool inside = false;
  uint64_t start = offset();
  while (true) {
    if (page_.size() - at_ < fragment_header_bytes) {
      // A page is left only when it is full; the rest of the last page is a torn header.
      if (page_.size() != at_ && page_.size() < wal_page_bytes) set_broken(offset());
      if (!load_page()) break;
      if (page_.size() < fragment_header_bytes) continue;
    }
    const uint64_t here = offset();
    const std::optional<Fragment> fragment = take_fragment();
    if (!fragment.has_value()) {
      set_broken(inside ? start : here);
      inside = false;
      at_ = page_.size();
      continue;
    }
    const bool starts = fragment->type == full || fragment->type == first;
    if (starts == inside) set_broken(inside ? start : here);  // the other part is missing
    if (starts) {
      record.clear();
      start = here;
    } else if (!inside) {
      continue;
    }
    record.append(fragment->data);
    if (fragment->type == full || fragment->type == last) return true;
    inside = true;
  }
  if (inside) set_broken(start);
  return false;
}

// Takes parts off the front of what a WriteBatch has behind its header. RocksDB's own Iterate takes
// a batch that it could not have written for a mistake of its caller and ends the process; here it
// is bytes from a disk.
class BatchReader {
 public:
  explicit BatchReader(ByteView rest) : rest_(rest) {}
  std::optional<uint8_t> byte();
  std::optional<uint32_t> number();  // in groups of 7 bits, the lowest first
  std::optional<ByteView> string();  // behind its size

 private:
  ByteView rest_;
};

std::optional<uint8_t> BatchReader::byte() {
  if (rest_.empty()) return std::nullopt;
  const auto byte = static_cast<uint8_t>(rest_[0]);
  rest_.remove_prefix(1);
  return byte;
}

std::optional<uint32_t> BatchReader::number() {
  uint32_t value = 0;
  for (unsigned shift = 0; shift < 32; shift += 7) {
    const std::optional<uint8_t> group = byte();
    if (!group.has_value()) return std::nullopt;
    value |= static_cast<uint32_t>(*group & 0x7f) << shift;
    if (*group < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<ByteView> BatchReader::string() {
  const std::optional<uint32_t> size = number();
  if (!size.has_value() || *size > rest_.size()) return std::nullopt;
  const ByteView string = rest_.substr(0, *size);
  rest_.remove_prefix(*size);
  return string;
}

// What follows each tag that a batch of ours can have.
struct BatchItem {
  uint8_t tag;
  bool family;  // the number of a column family, if it is not the default
  int strings;
};
constexpr uint8_t log_data_tag = 0x03;
constexpr BatchItem batch_items[] = {
    {0x00, false, 1}, {0x04, true, 1},           // delete
    {0x01, false, 2}, {0x05, true, 2},           // put
    {0x02, false, 2}, {0x06, true, 2},           // merge
    {0x0f, false, 2}, {0x0e, true, 2},           // delete a range
    {0x0d, false, 0}, {log_data_tag, false, 1},  // nothing; what only the log has
};

// Of a sync note 0 if it is none.
uint64_t noted_sequence(ByteView note) {
  if (note.size() != note_magic.size() + 8 || !note.starts_with(note_magic)) return 0;
  return load_be(note.data() + note_magic.size(), 8);
}

// The highest sync note in a batch, 0 if it has none. It ends where the batch makes no sense.
uint64_t find_note(ByteView record) {
  uint64_t durable = 0;
  BatchReader reader(record.substr(batch_header_bytes));
  while (const std::optional<uint8_t> tag = reader.byte()) {
    const auto* item = std::find_if(std::begin(batch_items), std::end(batch_items),
                                    [&](const BatchItem& one) { return one.tag == *tag; });
    if (item == std::end(batch_items)) break;
    if (item->family && !reader.number().has_value()) break;
    std::optional<ByteView> string = ByteView();
    for (int i = 0; i < item->strings && string.has_value(); i++) string = reader.string();
    if (!string.has_value()) break;
    if (*tag == log_data_tag) durable = std::max(durable, noted_sequence(*string));
  }
  return durable;
}

// Follows the order of all commits through the log files.
class PrefixFinder {
 public:
  Status read(const std::string& name, uint64_t number, WalReader& reader);
  WalLimits take_limits() { return std::move(limits_); }

 private:
  Status dropped(const std::string& name, const Bytes& record, uint64_t sequence);
  void note_gap(const std::string& name, std::optional<uint64_t> offset);

  std::optional<uint64_t> next_;       // the sequence number that an unbroken log goes on with
  std::optional<uint64_t> lost_from_;  // set while there is a gap: the least known to be behind it
  std::string gap_;                    // where, for people
  WalLimits limits_;
};

void PrefixFinder::note_gap(const std::string& name, std::optional<uint64_t> offset) {
  if (!gap_.empty()) return;
  gap_ = offset.has_value() ? fmt::format("{} is damaged at byte {}", name, *offset)
                            : fmt::format("a log before {} is damaged or missing", name);
  lost_from_ = next_;
}

Status PrefixFinder::dropped(const std::string& name, const Bytes& record, uint64_t sequence) {
  lost_from_ = std::min(lost_from_.value_or(sequence), sequence);
  if (find_note(record) < *lost_from_) return {};
  return Error{Code::corrupt,
               fmt::format("{}, in a part that was synced ({} says so): acknowledged commits are "
                           "lost. Nothing was changed; restore from a backup or a checkpoint, or "
                           "put the file back",
                           gap_, name)};
}

Status PrefixFinder::read(const std::string& name, uint64_t number, WalReader& reader) {
  Bytes record;
  bool at_start = true;
  bool kept = true;
  uint64_t kept_end = 0;
  while (reader.next(record)) {
    if (record.size() < batch_header_bytes) continue;
    const uint64_t sequence = load_le(record.data(), 8);
    const uint64_t count = load_le(record.data() + 8, 4);
    if (reader.broken_at().has_value()) {
      note_gap(name, reader.broken_at());
      kept = false;
    } else if (at_start && !gap_.empty()) {
      // After a crash the numbers go on from what was recovered, so a file that was begun then
      // starts where the gap is; one that was begun before the crash starts behind it.
      kept = lost_from_.has_value() && sequence <= *lost_from_;
      if (kept) gap_.clear();
    } else if (next_.has_value() && sequence != *next_) {
      note_gap(name, std::nullopt);
      kept = false;
    }
    at_start = false;
    if (kept) {
      kept_end = sequence + count;
      next_ = kept_end;
    } else {
      TRY(dropped(name, record, sequence));
    }
  }
  if (!reader.status().ok()) return read_error(reader.status());
  if (reader.broken_at().has_value()) {
    note_gap(name, reader.broken_at());
    kept = false;
  }
  // A file without a record was begun and lost; RocksDB begins no second one while it is empty.
  if (at_start && gap_.empty()) note_gap(name, 0);
  if (!kept) limits_[number] = kept_end;
  return {};
}

}  // namespace

Bytes encode_sync_note(uint64_t durable) {
  Bytes note(note_magic);
  append_be64(note, durable);
  return note;
}

Result<WalLimits> check_wals(rocksdb::Env& env, const std::string& path, uint64_t first) {
  std::vector<std::string> names;
  if (const rocksdb::Status status = env.GetChildren(path, &names); !status.ok()) {
    return read_error(status);
  }
  std::map<uint64_t, std::string> logs;
  for (const std::string& name : names) {
    uint64_t number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec != std::errc() || ByteView(parsed.ptr) != ".log") continue;
    if (number >= first) logs[number] = name;
  }
  PrefixFinder finder;
  for (const auto& [number, name] : logs) {
    std::unique_ptr<rocksdb::SequentialFile> file;
    const rocksdb::Status status =
        env.NewSequentialFile(fmt::format("{}/{}", path, name), &file, rocksdb::EnvOptions());
    if (!status.ok()) return read_error(status);
    WalReader reader(std::move(file));
    TRY(finder.read(name, number, reader));
  }
  return finder.take_limits();
}

void WalPrefixFilter::ColumnFamilyLogNumberMap(const std::map<uint32_t, uint64_t>& first_logs,
                                               const std::map<std::string, uint32_t>& /*ids*/) {
  uint64_t first = UINT64_MAX;
  for (const auto& [family, log] : first_logs) first = std::min(first, log);
  Result<WalLimits> checked = check_wals(env_, path_, first);
  if (checked.has_value()) {
    limits_ = std::move(*checked);
  } else {
    verdict_ = std::move(checked).error();
    fence_.shut();
  }
}

rocksdb::WalFilter::WalProcessingOption WalPrefixFilter::LogRecordFound(
    unsigned long long log_number, const std::string& /*file_name*/,
    const rocksdb::WriteBatch& batch, rocksdb::WriteBatch* /*new_batch*/, bool* /*changed*/) {
  if (!verdict_.has_value()) return WalProcessingOption::kStopReplay;
  const auto limit = limits_.find(log_number);
  if (limit == limits_.end()) return WalProcessingOption::kContinueProcessing;
  const uint64_t sequence = load_le(batch.Data().data(), 8);
  return sequence < limit->second ? WalProcessingOption::kContinueProcessing
                                  : WalProcessingOption::kIgnoreCurrentRecord;
}

}  // namespace trellis
