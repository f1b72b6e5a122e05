// A load of catalog changes whose traces show, after a crash, how far it came: each lane has a
// catalog of its own in one metalake and does step 1, 2, 3 ..., each one call. What is there must
// be what some number of steps leaves, and everything else of the catalog must be whole.
//
// Table k of a lane is made with a tag, an owner and a role that may read it, altered, renamed,
// moved to the lane's other schema, and dropped when eight more have been made; each twentieth
// comes back. The lane's model gets a version with two aliases for each table, and loses it eight
// tables later; that leaves no trace in the tables, so it may be done twice.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "catalog/catalog.h"
#include "map/map_handle.h"

namespace trellis {

class CatalogLoad {
 public:
  static constexpr size_t lanes = 4;
  static constexpr KeyspaceId id{7};
  using Positions = std::array<uint64_t, lanes>;

  // Makes keyspace, metalake, tag, user, role, catalogs, schemas and models if they are not there.
  static Result<std::unique_ptr<CatalogLoad>> open(Engine& engine, Clock& clock,
                                                   Durability durability);

  // Does steps behind `from` until one fails; each that is done is told. One thread per lane.
  Status run_lane(size_t lane, uint64_t from, const std::function<void(uint64_t)>& done);
  // What is dropped is collected, until that fails or is enough.
  Status run_collector(const std::atomic<bool>& enough);

  // How many steps of a lane are there: as many as there can be in [least, most], or Code::corrupt.
  Result<uint64_t> position(size_t lane, uint64_t least, uint64_t most);
  // check_catalog finds nothing. Code::corrupt with what it does.
  Status check();

 private:
  CatalogLoad(Engine& engine, Clock& clock, Durability durability)
      : engine_(engine),
        transactor_(engine, clock),
        map_{engine, transactor_, clock, durability},
        tenant_(map_, id) {}
  CatalogCall call() { return {tenant_, {Role::write, "load"}, "load"}; }
  EntityPath path(size_t lane, size_t schema, std::string name) const;
  Status make(const EntityPath& path);
  Status make_related(const EntityPath& path);
  Status link(size_t lane, uint64_t table);
  Status step(size_t lane, uint64_t number);
  // Versions of the tables of a lane, by schema and name.
  using Tables = std::map<std::string, uint64_t>;
  static Tables expected(uint64_t steps);
  Result<Tables> stored(size_t lane);

  Engine& engine_;
  Transactor transactor_;
  const MapHandle map_;
  Tenant tenant_;
  Catalog catalog_;
};

}  // namespace trellis
