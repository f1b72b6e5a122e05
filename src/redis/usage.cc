#include "redis/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "redis/call.h"

namespace trellis {
namespace {

constexpr size_t slow_args_max = 32;
constexpr size_t slow_arg_bytes_max = 128;
constexpr size_t slow_commands_max = 4'096;  // whatever a client asks for: 4 KiB each
constexpr size_t latency_samples_max = 160;
constexpr size_t error_kind_bytes_max = 64;
constexpr size_t error_kinds_max =
    128;  // handlers make them, but one may repeat what a client said

// Which of the arguments nobody may read later.
bool is_secret(const Command& command, Args args, size_t i) {
  if (command.name == "auth") return i > 0;
  if (command.container == "config" && i > 2)
    for (const std::string_view name : {"requirepass", "masterauth", "masteruser"})
      if (i % 2 == 1 && equals_word(args[i - 1], name)) return true;
  if (command.name != "hello") return false;
  return (i > 1 && equals_word(args[i - 1], "auth")) || (i > 2 && equals_word(args[i - 2], "auth"));
}

std::vector<std::string> noted_args(const Command& command, Args args) {
  const size_t shown_args =
      args.size() > slow_args_max ? slow_args_max - 1 : std::min(args.size(), slow_args_max);
  std::vector<std::string> noted;
  for (size_t i = 0; i < shown_args; i++) {
    if (is_secret(command, args, i))
      noted.emplace_back("(redacted)");
    else if (args[i].size() > slow_arg_bytes_max)
      noted.push_back(fmt::format("{}... ({} more bytes)", args[i].substr(0, slow_arg_bytes_max),
                                  args[i].size() - slow_arg_bytes_max));
    else
      noted.emplace_back(args[i]);
  }
  if (shown_args < args.size())
    noted.push_back(fmt::format("... ({} more arguments)", args.size() - shown_args));
  return noted;
}

}  // namespace

void CommandFigures::add(const CommandFigures& other) {
  calls += other.calls;
  us += other.us;
  rejected += other.rejected;
  failed += other.failed;
  for (size_t i = 0; i < durations.size(); i++) durations[i] += other.durations[i];
}

void CommandFigures::ran(uint64_t took_us, bool has_failed) {
  calls++;
  us += took_us;
  failed += has_failed ? 1 : 0;
  const auto bucket = static_cast<size_t>(std::bit_width(took_us * 1'000 / 1'024));
  durations[std::min(bucket, duration_buckets - 1)]++;
}

void UsageFigures::error(std::string_view text) {
  const std::string_view kind = text.substr(0, std::min(text.find(' '), error_kind_bytes_max));
  const auto found = errors.find(kind);
  if (found != errors.end())
    found->second++;
  else if (errors.size() < error_kinds_max)
    errors.emplace(kind, 1);
}

void UsageFigures::add(const UsageFigures& other) {
  for (const auto& [command, figures] : other.commands) commands[command].add(figures);
  for (const auto& [kind, count] : other.errors) errors[kind] += count;
  hits += other.hits;
  misses += other.misses;
  connections += other.connections;
  expired += other.expired;
  received_bytes += other.received_bytes;
  sent_bytes += other.sent_bytes;
}

Usage::Part& Usage::own_part() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t mine = threads++;
  return parts_[mine % parts_.size()];
}

UsageFigures Usage::figures() const {
  UsageFigures all;
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    all.add(part.figures);
  }
  return all;
}

void Usage::reset_figures() {
  for (Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    part.figures = {};
  }
}

void Usage::set_limits(const Limits& limits) {
  slow_us_ = limits.slow_us;
  latency_ms_ = limits.latency_ms;
  const std::lock_guard lock(mutex_);
  slow_max_ = std::min<uint64_t>(limits.slow_max, slow_commands_max);
}

bool Usage::is_notable(uint64_t us) const {
  const int64_t slow_us = slow_us_.load(std::memory_order_relaxed);
  if (slow_us >= 0 && us >= static_cast<uint64_t>(slow_us)) return true;
  const uint64_t latency_ms = latency_ms_.load(std::memory_order_relaxed);
  return latency_ms != 0 && us / 1'000 >= latency_ms;
}

void Usage::note(const Session& session, const Command& command, Args args, uint64_t us,
                 uint64_t unix_s) {
  const int64_t slow_us = slow_us_;
  const bool is_slow = slow_us >= 0 && us >= static_cast<uint64_t>(slow_us);
  const std::lock_guard lock(mutex_);
  if (is_slow && !command.has(command_flag::skip_slowlog)) {
    slow_.push_front(
        {slow_ids_++, unix_s, us, noted_args(command, args), session.address, session.name});
    while (slow_.size() > slow_max_) slow_.pop_back();
  }
  const uint64_t ms = us / 1'000;
  if (latency_ms_ == 0 || ms < latency_ms_) return;
  LatencyEvent& event = latency_[command.has(command_flag::fast) ? "fast-command" : "command"];
  event.highest_ms = std::max(event.highest_ms, ms);
  if (!event.samples.empty() && event.samples.back().unix_s == unix_s)
    event.samples.back().ms = std::max(event.samples.back().ms, ms);
  else
    event.samples.push_back({unix_s, ms});
  if (event.samples.size() > latency_samples_max) event.samples.pop_front();
}

std::vector<SlowCommand> Usage::slow_commands(size_t count) const {
  const std::lock_guard lock(mutex_);
  return {slow_.begin(), slow_.begin() + static_cast<ptrdiff_t>(std::min(count, slow_.size()))};
}

size_t Usage::slow_count() const {
  const std::lock_guard lock(mutex_);
  return slow_.size();
}

void Usage::forget_slow_commands() {
  const std::lock_guard lock(mutex_);
  slow_.clear();
}

std::map<std::string, LatencyEvent, std::less<>> Usage::latency_events() const {
  const std::lock_guard lock(mutex_);
  return latency_;
}

bool Usage::forget_latency_event(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = latency_.find(name);
  if (found == latency_.end()) return false;
  latency_.erase(found);
  return true;
}

void Usage::pause(uint64_t until_ms, bool writes_only, uint64_t now_ms) {
  const bool goes_on = pause_until_ms_ > now_ms;
  pauses_writes_only_ = writes_only && (!goes_on || pauses_writes_only_);
  pause_until_ms_ = std::max<uint64_t>(until_ms, goes_on ? pause_until_ms_.load() : 0);
}

}  // namespace trellis
