// What an object store like RADOS offers, and no more: objects with attributes (xattrs), an ordered
// map (omap) and bytes, changed by operations that are atomic on one object.
//
// Answers are those of librados: 0 or more is success (a guarded read may answer 1), a negative
// errno a failure. What decides:
//
//   -ECANCELED             a guard did not hold; nothing was applied
//   -ENOENT                the object is not there; a guarded operation creates nothing, and there
//                          is nothing to read or to remove
//   -EEXIST                an exclusive creation found it there
//   -ERANGE, -EOVERFLOW    the version that was asserted is older, newer than the object's
//   -EMSGSIZE              the operation is over operation_bytes_max
//   -ENAMETOOLONG          the name of the object is over object_name_bytes_max
//   -EINVAL                an OmapIs that compares other than equal, less, greater
//   -ETIMEDOUT             nobody knows whether it was applied
//   -ESHUTDOWN             this client is dead, or fenced off
//
// Any thread, any time; every call blocks.
#pragma once

#include <cstdint>
#include <functional>
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
constexpr size_t object_name_bytes_max = 2'048;
constexpr size_t omap_read_entries_max = 1'024;  // whatever is asked for
constexpr size_t omap_read_bytes_max = 1024 * 1024 * 1024;

enum class Compare : uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };

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
// Only equal, less and greater.
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
struct RemoveObject {};  // REQUIRES: the last change of its operation
using ObjectChange = std::variant<SetAttribute, OmapSet, OmapRemove, OmapRemoveRange, WriteBytes,
                                  WriteWhole, RemoveObject>;

struct WriteOperation {
  bool create_exclusively = false;
  std::vector<Guard> guards = {};          // REQUIRES: none in an exclusive creation
  std::vector<ObjectChange> changes = {};  // in order
};

// --- reads ---

struct OmapPage {
  std::vector<std::pair<Bytes, Bytes>> entries;
  bool more = false;
};
// Forward only. A key that is to be included is asked for in omap_keys, and the page starts after.
struct OmapPageRequest {
  Bytes start_after = {};  // exclusive: an empty key is never listed
  Bytes prefix = {};       // only keys that begin with it
  size_t entries_max = omap_read_entries_max;
};
struct BytesRequest {
  uint64_t offset;
  size_t bytes;
};

struct ReadOperation {
  std::vector<Guard> guards = {};
  bool want_attributes = false;
  std::vector<Bytes> omap_keys = {};  // found ones are answered
  std::vector<OmapPageRequest> omap_pages = {};
  std::optional<BytesRequest> bytes = {};
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
