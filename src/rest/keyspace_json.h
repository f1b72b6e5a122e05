// What tenant knows, as JSON.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "tenant/change_log.h"
#include "tenant/collector.h"
#include "tenant/gc.h"
#include "tenant/keyspace.h"
#include "tenant/tenant.h"
#include "tenant/tokens.h"

namespace trellis {

boost::json::object keyspace_json(const Keyspace& keyspace);  // as PD has it
boost::json::object quota_json(const Quota& quota);
boost::json::object load_json(const Tenant::Load& load);
boost::json::object token_json(const Token& token);
boost::json::object change_json(const Change& change);
boost::json::object barrier_json(const Barrier& barrier);
boost::json::array barriers_json(const std::vector<Barrier>& barriers);
// Absent: none was begun yet.
boost::json::object purge_json(const std::optional<PurgeProgress>& purge, bool paused);

// null for a number that stands for "none".
boost::json::value number_or_null(uint64_t number);

}  // namespace trellis
