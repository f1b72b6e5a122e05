#include "fs/file_systems.h"

namespace trellis {
namespace {

// With more, those that nobody uses are forgotten.
constexpr size_t kept_max = 1'000;
// Of one that nobody else has: here, and by its Files.
constexpr long own_uses = 2;

}  // namespace

Result<FileSystems::Opened> FileSystems::find(const std::shared_ptr<Tenant>& tenant) {
  const std::lock_guard lock(mutex_);
  if (const auto found = opened_.find(tenant->id()); found != opened_.end()) return found->second;
  TRY_ASSIGN(auto fs, FileSystem::open(tenant, options_));
  if (opened_.size() >= kept_max)
    std::erase_if(opened_, [](const auto& entry) {
      return entry.second.files.use_count() == 1 && entry.second.fs.use_count() == own_uses;
    });
  Opened opened{.fs = fs, .files = std::make_shared<Files>(fs)};
  opened_.emplace(tenant->id(), opened);
  return opened;
}

Result<std::shared_ptr<FileSystem>> FileSystems::of(const std::shared_ptr<Tenant>& tenant) {
  TRY_ASSIGN(const Opened opened, find(tenant));
  return opened.fs;
}

Result<std::shared_ptr<Files>> FileSystems::files_of(const std::shared_ptr<Tenant>& tenant) {
  TRY_ASSIGN(const Opened opened, find(tenant));
  return opened.files;
}

Result<size_t> FileSystems::collect(Tenant& tenant, std::span<const Garbage> notes) {
  TRY_ASSIGN(const auto held, keyspaces_.tenant(tenant.id()));
  TRY_ASSIGN(const auto opened, of(held));
  return opened->collect(notes);
}

}  // namespace trellis
