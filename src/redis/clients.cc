#include "redis/clients.h"

#include <algorithm>
#include <chrono>

#include "redis/usage.h"

namespace trellis {

Clients::~Clients() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (timer_.joinable()) timer_.join();
}

void Clients::add(Session& session) {
  const std::lock_guard lock(mutex_);
  sessions_.emplace(session.id, &session);
}

void Clients::remove(Session& session) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(session.id);
}

void Clients::for_each(KeyspaceId keyspace, FunctionRef<void(Session& session)> visit) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, session] : sessions_)
    if (!session->closing && session->tenant != nullptr && session->tenant->id() == keyspace)
      visit(*session);
}

bool Clients::hold(Session& session, bool is_write) {
  const std::lock_guard lock(mutex_);
  if (!session.usage->is_paused(is_write, clock_.unix_ms())) return false;
  session.is_held = true;
  session.held_write = is_write;
  if (!timer_.joinable()) timer_ = std::thread([this] { keep_time(); });
  changed_.notify_all();
  return true;
}

void Clients::release() {
  const std::lock_guard lock(mutex_);
  release_due(clock_.unix_ms());
}

uint64_t Clients::release_due(uint64_t now_ms) {
  uint64_t next_ms = 0;
  for (const auto& [id, session] : sessions_) {
    if (!session->is_held) continue;
    if (session->usage->is_paused(session->held_write, now_ms)) {
      const uint64_t end_ms = session->usage->pause_until_ms();
      next_ms = next_ms == 0 ? end_ms : std::min(next_ms, end_ms);
    } else {
      session->is_held = false;
      session->go_on();
    }
  }
  return next_ms;
}

void Clients::keep_time() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    const uint64_t now_ms = clock_.unix_ms();
    const uint64_t next_ms = release_due(now_ms);
    if (next_ms == 0)
      changed_.wait(lock);
    else
      changed_.wait_for(lock, std::chrono::milliseconds(next_ms - std::min(now_ms, next_ms) + 1));
  }
}

}  // namespace trellis
