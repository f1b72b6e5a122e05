// What belongs to an entity beside its own records, and goes with it when it is collected.
//
// Whoever stores more of an entity adds a line to members_of(), and nothing else: the collector
// removes everything under these prefixes, of relations also the other end.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "catalog/entity.h"

namespace trellis {

// Key prefixes. If the whole metalake goes, what all of it has together (relations, search,
// statistics) is the metalake's alone.
std::vector<Bytes> members_of(KeyspaceId keyspace, const Uuid& metalake, const CatalogRef& ref,
                              bool metalake_goes);

}  // namespace trellis
