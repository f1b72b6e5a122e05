// What an object store like RADOS offers, and no more: objects with attributes (xattrs), an ordered
// map (omap) and bytes, changed by operations that are atomic on one object.
//
// Answers are those of librados: 0 or more is success, a negative errno a failure. What decides:
//
//   -ECANCELED             a guard did not hold; nothing was applied
//   -ENOENT                the object is not there; a guarded operation creates nothing
//   -EEXIST                an exclusive creation found it there
//   -ERANGE, -EOVERFLOW    the version that was asserted is older, newer than the object's
//   -EMSGSIZE              the operation is over operation_bytes_max
//   -ETIMEDOUT             nobody knows whether it was applied
//   -ESHUTDOWN             this client is dead, or fenced off
//
// Any thread, any time; every call blocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/function_ref.h"

namespace trellis {

constexpr size_t operation_bytes_max = 90 * 1024 * 1024;
constexpr size_t omap_read_entries_max = 1'024;  // whatever is asked for

enum class Compare : uint8_t { equal, less, greater };

// --- guards, of reads and writes ---

// `given` OP stored; stored is decimal text, missing = 0. (The order of operands is RADOS's.)
struct NumberAttributeIs {
  Bytes name;
  Compare compare;
  uint64_t given;
};
// Equal only; missing = empty.
struct AttributeIs {
  Bytes name;
  Bytes given;
};
// stored OP `given`; a missing key equals the empty value. Sees nothing of its own operation.
struct OmapIs {
  Bytes key;
  Compare compare;
  Bytes given;
};
struct VersionIs {
  uint64_t version;
};
using Guard = std::variant<NumberAttributeIs, AttributeIs, OmapIs, VersionIs>;

// --- writes ---

struct SetAttribute {
  Bytes name;
  Bytes value;
};
struct OmapSet {
  Bytes key;
  Bytes value;
};
struct OmapRemove {
  Bytes key;
};
struct OmapRemoveRange {
  Bytes begin;
  Bytes end;  // exclusive
};
struct WriteBytes {
  uint64_t offset;
  Bytes bytes;
};
struct WriteWhole {
  Bytes bytes;
};
struct RemoveObject {};
using Change = std::variant<SetAttribute, OmapSet, OmapRemove, OmapRemoveRange, WriteBytes,
                            WriteWhole, RemoveObject>;

struct WriteOperation {
  bool create_exclusively = false;
  std::vector<Guard> guards;
  std::vector<Change> changes;  // in order
};

// --- reads ---

struct OmapPage {
  std::vector<std::pair<Bytes, Bytes>> entries;
  bool more = false;
};
struct OmapPageRequest {
  Bytes start_after;  // exclusive: an empty key is never listed
  Bytes prefix;       // only keys that begin with it
  size_t entries_max = omap_read_entries_max;
};
struct BytesRequest {
  uint64_t offset;
  size_t bytes;
};

struct ReadOperation {
  std::vector<Guard> guards;
  bool want_attributes = false;
  std::vector<Bytes> omap_keys;  // found ones are answered
  std::vector<OmapPageRequest> omap_pages;
  std::optional<BytesRequest> bytes;
};

struct ReadAnswer {
  uint64_t version = 0;
  std::map<Bytes, Bytes, std::less<>> attributes;
  std::map<Bytes, Bytes, std::less<>> omap;
  std::vector<OmapPage> pages;  // one for each that was asked for
  Bytes bytes;                  // fewer than asked for at the end of the object
};

// What an operation is for: the name of the place at which tests inject faults ("split.copy").
using FaultPoint = std::string_view;

struct ObjectWrite {
  FaultPoint point;
  Bytes object;
  WriteOperation operation;
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  virtual int read(FaultPoint point, ByteView object, const ReadOperation& operation,
                   ReadAnswer& answer) = 0;
  virtual int write(FaultPoint point, ByteView object, const WriteOperation& operation) = 0;
  // All at once, in no order; one answer each. REQUIRES: writes.size() == answers.size()
  virtual void write_many(std::span<const ObjectWrite> writes, std::span<int> answers) = 0;
  // The names of all objects that begin with `prefix`, in no order; what is made or removed
  // meanwhile may be among them.
  virtual int list(ByteView prefix, FunctionRef<void(ByteView object)> visit) = 0;
};

}  // namespace trellis
