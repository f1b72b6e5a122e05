#include "rest/keyspace_json.h"

#include <cmath>

namespace trellis {
namespace {

namespace json = boost::json;

// Figures for people: what is behind the third place is noise.
double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string_view purge_state(const std::optional<PurgeProgress>& purge, bool paused) {
  if (purge.has_value() && purge->finished_ms != 0) return "done";
  if (paused) return "paused";
  if (!purge.has_value()) return "waiting";
  return purge->blocker.empty() ? "running" : "held";
}

}  // namespace

json::value number_or_null(uint64_t number) {
  return number == 0 ? json::value() : json::value(number);
}

json::object keyspace_json(const Keyspace& keyspace) {
  json::object out{{"id", keyspace.id.value},
                   {"name", keyspace.name},
                   {"state", to_string(keyspace.state)},
                   {"created_at", keyspace.created_at_s},
                   {"state_changed_at", keyspace.state_changed_at_s}};
  if (!keyspace.config.empty()) {
    json::object config;
    for (const auto& [key, value] : keyspace.config) config[key] = value;
    out["config"] = std::move(config);
  }
  return out;
}

json::object quota_json(const Quota& quota) {
  return {{"bytes", quota.bytes},
          {"keys", quota.keys},
          {"operations_per_second", quota.operations_per_second}};
}

json::object load_json(const Tenant::Load& load) {
  return {{"reads_per_second", rounded(load.reads_per_second)},
          {"writes_per_second", rounded(load.writes_per_second)},
          {"reads", load.reads},
          {"writes", load.writes}};
}

json::object token_json(const Token& token) {
  return {{"id", token.id},
          {"role", to_string(token.role)},
          {"label", token.label},
          {"created_at_ms", token.created_at_ms},
          {"expires_at_ms", number_or_null(token.expires_at_ms)}};
}

json::object change_json(const Change& change) {
  const bool of_one = !change.name.empty();
  return {{"revision", change.revision},
          {"time_ms", change.time_ms},
          {"actor", change.actor},
          {"action", change.action},
          {"keyspace_id", of_one ? json::value(change.keyspace.value) : json::value(nullptr)},
          {"name", change.name},
          {"detail", change.detail}};
}

json::object barrier_json(const Barrier& barrier) {
  return {{"service_id", barrier.service},
          {"safe_point", barrier.safe_point},
          {"expired_at", barrier.expires_at_s},
          {"set_at", barrier.set_at_s}};
}

json::array barriers_json(const std::vector<Barrier>& barriers) {
  json::array out;
  for (const Barrier& barrier : barriers) out.push_back(barrier_json(barrier));
  return out;
}

json::object purge_json(const std::optional<PurgeProgress>& purge, bool paused) {
  const PurgeProgress progress = purge.value_or(PurgeProgress());
  json::object out{{"state", purge_state(purge, paused)},
                   {"started_ms", number_or_null(progress.started_ms)},
                   {"updated_ms", number_or_null(progress.updated_ms)},
                   {"finished_ms", number_or_null(progress.finished_ms)},
                   {"bytes_total", progress.bytes_total},
                   {"bytes_done", progress.bytes_done},
                   {"entries_done", progress.entries_done},
                   {"held_by", nullptr}};
  if (!progress.blocker.empty()) out["held_by"] = progress.blocker;
  return out;
}

}  // namespace trellis
