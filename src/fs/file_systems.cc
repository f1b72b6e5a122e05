#include "fs/file_systems.h"

namespace trellis {
namespace {

// More than these that nobody uses are forgotten.
constexpr size_t kept_max = 1'000;

}  // namespace

Result<std::shared_ptr<FileSystem>> FileSystems::of(const std::shared_ptr<Tenant>& tenant) {
  const std::lock_guard lock(mutex_);
  if (const auto found = opened_.find(tenant->id()); found != opened_.end()) return found->second;
  TRY_ASSIGN(auto opened, FileSystem::open(tenant, options_));
  // One with sessions is held by those who have them.
  if (opened_.size() >= kept_max)
    std::erase_if(opened_, [](const auto& entry) { return entry.second.use_count() == 1; });
  opened_.emplace(tenant->id(), opened);
  return opened;
}

Result<size_t> FileSystems::collect(Tenant& tenant, std::span<const Garbage> notes) {
  TRY_ASSIGN(const auto held, keyspaces_.tenant(tenant.id()));
  TRY_ASSIGN(const auto opened, of(held));
  return opened->collect(notes);
}

}  // namespace trellis
