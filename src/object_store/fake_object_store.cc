#include "object_store/fake_object_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/assert.h"

namespace trellis {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

template <class T>
bool holds(Compare compare, const T& left, const T& right) {
  switch (compare) {
    case Compare::equal: return left == right;
    case Compare::not_equal: return left != right;
    case Compare::less: return left < right;
    case Compare::less_equal: return left <= right;
    case Compare::greater: return left > right;
    case Compare::greater_equal: return left >= right;
  }
  return false;
}

using Entries = std::map<Bytes, Bytes, std::less<>>;

ByteView value_or_empty(const Entries& entries, ByteView key) {
  const auto found = entries.find(key);
  return found == entries.end() ? ByteView() : ByteView(found->second);
}

size_t payload_bytes(const WriteOperation& operation) {
  size_t bytes = 0;
  const auto add = [&](const auto&... parts) { bytes += (parts.size() + ... + 0); };
  for (const Guard& guard : operation.guards)
    std::visit(
        Overloaded{[&](const NumberAttributeIs& is) { add(is.name); },
                   [&](const AttributeIs& is) { add(is.name, is.given); },
                   [&](const OmapIs& is) { add(is.key, is.given); }, [&](const VersionIs&) {}},
        guard);
  for (const ObjectChange& change : operation.changes)
    std::visit(
        Overloaded{[&](const SetAttribute& set) { add(set.name, set.value); },
                   [&](const OmapSet& set) { add(set.key, set.value); },
                   [&](const OmapRemove& remove) { add(remove.key); },
                   [&](const OmapRemoveRange& remove) { add(remove.begin, remove.end); },
                   [&](const WriteBytes& write) { add(write.bytes); },
                   [&](const WriteWhole& write) { add(write.bytes); }, [&](const RemoveObject&) {}},
        change);
  return bytes;
}

}  // namespace

int FakeObjectStore::check(const Guard& guard, const Object& object) {
  const auto answer = [](bool holds) { return holds ? 0 : -ECANCELED; };
  return std::visit(
      Overloaded{[&](const NumberAttributeIs& is) {
                   const Bytes stored(value_or_empty(object.attributes, is.name));
                   const uint64_t number = std::strtoull(stored.c_str(), nullptr, 10);
                   return answer(holds(is.compare, is.given, number));
                 },
                 [&](const AttributeIs& is) {
                   return answer(value_or_empty(object.attributes, is.name) == is.given);
                 },
                 [&](const OmapIs& is) {
                   if (is.compare != Compare::equal && is.compare != Compare::less &&
                       is.compare != Compare::greater)
                     return -EINVAL;
                   const ByteView stored = value_or_empty(object.omap, is.key);
                   return answer(holds(is.compare, stored, ByteView(is.given)));
                 },
                 [&](const VersionIs& is) {
                   if (is.version < object.version) return -ERANGE;
                   return is.version > object.version ? -EOVERFLOW : 0;
                 }},
      guard);
}

int FakeObjectStore::check_all(const std::vector<Guard>& guards, const Object* object) {
  if (guards.empty()) return 0;
  if (object == nullptr) return -ENOENT;
  for (const Guard& guard : guards)
    if (const int failed = check(guard, *object); failed < 0) return failed;
  return 0;
}

int FakeObjectStore::apply(const ObjectChange& change, std::optional<Object>& object) {
  // What sets something makes the object, what removes something does not.
  const auto made = [&]() -> Object& {
    if (!object) object.emplace();
    return *object;
  };
  return std::visit(
      Overloaded{[&](const SetAttribute& set) {
                   made().attributes[set.name] = set.value;
                   return 0;
                 },
                 [&](const OmapSet& set) {
                   made().omap[set.key] = set.value;
                   return 0;
                 },
                 [&](const OmapRemove& remove) {
                   if (!object) return -ENOENT;
                   object->omap.erase(remove.key);
                   return 0;
                 },
                 [&](const OmapRemoveRange& remove) {
                   if (!object) return -ENOENT;
                   if (remove.begin < remove.end)
                     object->omap.erase(object->omap.lower_bound(remove.begin),
                                        object->omap.lower_bound(remove.end));
                   return 0;
                 },
                 [&](const WriteBytes& write) {
                   Bytes& bytes = made().bytes;
                   bytes.resize(std::max(bytes.size(), write.offset + write.bytes.size()));
                   bytes.replace(write.offset, write.bytes.size(), write.bytes);
                   return 0;
                 },
                 [&](const WriteWhole& write) {
                   made().bytes = write.bytes;
                   return 0;
                 },
                 [&](const RemoveObject&) {
                   if (!object) return -ENOENT;
                   object.reset();
                   return 0;
                 }},
      change);
}

int FakeObjectStore::write(FaultPoint /*point*/, ByteView object, const WriteOperation& operation) {
  ASSERT(!operation.create_exclusively || operation.guards.empty());
  if (object.size() > object_name_bytes_max) return -ENAMETOOLONG;
  if (payload_bytes(operation) > limits_.operation_bytes) return -EMSGSIZE;
  const std::scoped_lock lock(mutex_);
  const uint64_t version = ++last_version_;  // used up also if it fails
  const auto found = objects_.find(object);
  const Object* before = found == objects_.end() ? nullptr : &found->second;
  if (const int failed = check_all(operation.guards, before); failed < 0) return failed;

  // Moved, not copied: where the object is there no change can fail.
  std::optional<Object> after;
  if (before != nullptr && !operation.create_exclusively) after = std::move(found->second);
  if (before != nullptr && operation.create_exclusively) return -EEXIST;
  for (const ObjectChange& change : operation.changes)
    if (const int failed = apply(change, after); failed < 0) {
      ASSERT(before == nullptr);
      return failed;
    }
  if (operation.create_exclusively && !after) after.emplace();
  if (after) after->version = version;
  if (before == nullptr) {
    if (after) objects_.emplace(object, std::move(*after));
  } else if (after) {
    found->second = std::move(*after);
  } else {
    objects_.erase(found);
  }
  return 0;
}

void FakeObjectStore::write_many(std::span<const ObjectWrite> writes, std::span<int> answers) {
  ASSERT(writes.size() == answers.size());
  for (size_t i = 0; i < writes.size(); ++i)
    answers[i] = write(writes[i].point, writes[i].object, writes[i].operation);
}

OmapPage FakeObjectStore::page(const Object& object, const OmapPageRequest& request) const {
  OmapPage page;
  const size_t entries_max = std::min(request.entries_max, limits_.read_entries);
  size_t bytes = 0;
  auto at = request.prefix > request.start_after ? object.omap.lower_bound(request.prefix)
                                                 : object.omap.upper_bound(request.start_after);
  for (; at != object.omap.end() && at->first.starts_with(request.prefix); ++at) {
    if (page.entries.size() >= entries_max || bytes >= limits_.read_bytes) {
      page.more = true;
      break;
    }
    bytes += at->first.size() + at->second.size();
    page.entries.emplace_back(at->first, at->second);
  }
  return page;
}

int FakeObjectStore::read(FaultPoint /*point*/, ByteView object, const ReadOperation& operation,
                          ReadAnswer& answer) {
  answer = {};
  const std::scoped_lock lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end()) return -ENOENT;
  const Object& stored = found->second;
  if (const int failed = check_all(operation.guards, &stored); failed < 0) return failed;
  answer.version = stored.version;
  if (operation.want_attributes) answer.attributes = stored.attributes;
  for (const Bytes& key : operation.omap_keys)
    if (const auto entry = stored.omap.find(key); entry != stored.omap.end())
      answer.omap.insert(*entry);
  for (const OmapPageRequest& request : operation.omap_pages)
    answer.pages.push_back(page(stored, request));
  if (operation.bytes && operation.bytes->offset < stored.bytes.size())
    answer.bytes = stored.bytes.substr(operation.bytes->offset, operation.bytes->bytes);
  return operation.guards.empty() ? 0 : 1;
}

int FakeObjectStore::list(ByteView prefix, FunctionRef<void(ByteView object)> visit) {
  std::vector<Bytes> names;
  {
    const std::scoped_lock lock(mutex_);
    for (auto at = objects_.lower_bound(prefix);
         at != objects_.end() && at->first.starts_with(prefix); ++at)
      names.push_back(at->first);
  }
  for (const Bytes& name : names) visit(name);
  return 0;
}

std::vector<Bytes> FakeObjectStore::large_objects() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Bytes> large;
  for (const auto& [name, object] : objects_) {
    size_t bytes = 0;
    for (const auto& [key, value] : object.omap) bytes += value.size();
    if (object.omap.size() > limits_.object_keys || bytes > limits_.object_omap_bytes)
      large.push_back(name);
  }
  return large;
}

void FakeObjectStore::copy_from(const FakeObjectStore& other) {
  objects_ = other.objects_;
  last_version_ = other.last_version_;
}

}  // namespace trellis
