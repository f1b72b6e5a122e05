// What must hold of a stored catalog whenever nobody writes, read from its records alone.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace trellis {

// What is wrong, one line each. Looks at everything of the keyspace's catalog:
//   an entity has one name or is dropped, and then there is a note for the collector; what it
//   stands in is there; it is found by its names and by nothing else; ids are below the next one;
//   a relation has both ends, which are there; a member has what it is a member of; changes are
//   numbered from 1 without a gap; the figures are those of a recount.
// What is dropped, or stands below it, may be half gone.
std::vector<std::string> check_catalog(Engine& engine, KeyspaceId keyspace);

}  // namespace trellis
