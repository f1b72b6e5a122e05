#include "catalog/partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "catalog/catalog_error.h"
#include "catalog/table_definition.h"
#include "catalog/table_parts.h"
#include "codec/stored_message.h"

namespace trellis {
namespace {

constexpr const char* partition_what = "partition";

Bytes partition_key(KeyspaceId keyspace, const CatalogRef& table, std::string_view name) {
  return encode(CatalogPartitionKey{keyspace, table.number(), name});
}

Error no_such_partition(const EntityPath& table, std::string_view name) {
  return {Code::not_found,
          fmt::format("Partition {} of {} does not exist", quote(name), to_string(table)),
          "no_such_partition"};
}

bool is_partition_name(std::string_view name) {
  return !is_blank(name) && name.size() <= catalog_name_bytes_max;
}

Result<std::string> name_of(const json::value& partition) {
  const json::string& text = partition.at("name").as_string();
  std::string name(text.data(), text.size());
  if (is_partition_name(name)) return name;
  return illegal_argument(fmt::format("A partition's name is not blank and has {} bytes at most",
                                      catalog_name_bytes_max));
}

Result<Bytes> encode_partition(const std::string& name, const json::value& partition) {
  stored::CatalogPartition stored;
  stored.set_partition_json(json_text(partition));
  Bytes value = encode_message(stored);
  if (value.size() <= catalog_entity_bytes_max) return value;
  return illegal_argument(fmt::format("Partition {} would take {} bytes, over the limit of {}",
                                      quote(name), value.size(), catalog_entity_bytes_max));
}

// By name, as they are stored; the table has none of them any more.
using PartitionMap = std::map<std::string, Bytes>;
Result<PartitionMap> take_assignments(stored::CatalogTable& table) {
  PartitionMap partitions;
  if (table.partitioning_json().empty()) return partitions;
  TRY_ASSIGN(json::value partitioning, stored_json(table.partitioning_json()));
  std::vector<json::value> taken;
  for (json::value& part : partitioning.get_array()) {
    json::value* const assignments = part.get_object().if_contains("assignments");
    if (assignments == nullptr) continue;
    std::ranges::move(assignments->get_array(), std::back_inserter(taken));
    assignments->emplace_array();
  }
  if (taken.size() > catalog_indexes_max) {
    return illegal_argument(fmt::format(
        "A table is made with at most {} partitions: add the others", catalog_indexes_max));
  }
  table.set_partitioning_json(json_text(partitioning));
  TRY(check_partitions(table, taken));
  size_t bytes = 0;
  for (const json::value& partition : taken) {
    TRY_ASSIGN(const std::string name, name_of(partition));
    TRY_ASSIGN(Bytes value, encode_partition(name, partition));
    bytes += value.size();
    if (!partitions.try_emplace(name, std::move(value)).second)
      return illegal_argument(fmt::format("Partition {} is given twice", name));
  }
  // They are written in the transaction that makes the table.
  if (bytes > catalog_entity_bytes_max) {
    return illegal_argument(
        fmt::format("A table is made with partitions of at most {} bytes: add the others",
                    catalog_entity_bytes_max));
  }
  return partitions;
}

constexpr auto plan_partition = [](CatalogPlan& plan) -> Status {
  TRY(plan.require());
  plan.read_entity();
  plan.exclusive(partition_key(plan.keyspace(), plan.way().ref(), "p"));
  return {};
};

}  // namespace

Result<json::value> read_partition(const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  if (fields.find("partitions") == nullptr) {
    return illegal_argument("partitions must not be null");
  }
  TRY_ASSIGN(const std::vector<const json::value*> partitions, fields.list("partitions"));
  if (partitions.size() != 1) {
    return illegal_argument("Haven't yet implemented multiple partitions");
  }
  TRY(fields.finish());
  return normal_partition(*partitions.front());
}

Status add_partition(const CatalogCall& call, const EntityPath& table,
                     const json::value& partition) {
  TRY_ASSIGN(const std::string name, name_of(partition));
  TRY_ASSIGN(const Bytes value, encode_partition(name, partition));
  return change_catalog(
      call, std::span(&table, 1), plan_partition, [&](CatalogChange& change) -> Status {
        TRY(change.require());
        TRY_ASSIGN(const Entity entity, change.entity());
        if (entity.stored.table().partitioning_json().empty()) {
          return illegal_argument(fmt::format("Table {} is not partitioned", entity.name()));
        }
        TRY(check_partitions(entity.stored.table(), std::span(&partition, 1)));
        TRY_ASSIGN(const CatalogChange::Record record,
                   change.record(partition_key(change.keyspace(), entity.ref, name)));
        if (record.found()) {
          return Error{
              Code::exists,
              fmt::format("Partition {} of {} already exists", quote(name), to_string(table)),
              "partition_exists"};
        }
        change.put(record, value);
        return change.log("add_partition", entity);
      });
}

Result<CatalogExtra> with_assignments(stored::CatalogTable& table, CatalogExtra extra) {
  TRY_ASSIGN(PartitionMap partitions, take_assignments(table));
  if (partitions.empty()) return extra;
  CatalogExtra whole = extra;
  whole.plan = [extra](CatalogPlan& plan, const CatalogRef& ref) -> Status {
    plan.exclusive(partition_key(plan.keyspace(), ref, "p"));
    return extra.plan ? extra.plan(plan, ref) : Status();
  };
  whole.run = [extra, partitions = std::move(partitions)](CatalogChange& change,
                                                          const Entity& entity) -> Status {
    for (const auto& [name, value] : partitions) {
      TRY_ASSIGN(const CatalogChange::Record record,
                 change.record(partition_key(change.keyspace(), entity.ref, name)));
      change.put(record, value);
    }
    return extra.run ? extra.run(change, entity) : Status();
  };
  return whole;
}

Result<std::string> load_partition(const CatalogCall& call, const EntityPath& table,
                                   const std::string& name) {
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, table));
  TRY(require(way));
  if (!is_partition_name(name)) return no_such_partition(table, name);
  Value value;
  TRY(call.tenant.map().engine.get(partition_key(call.tenant.id(), way.ref(), name), value));
  if (!value.found()) return no_such_partition(table, name);
  stored::CatalogPartition stored;
  TRY(decode_message(value.bytes(), stored, partition_what));
  return std::move(*stored.mutable_partition_json());
}

Result<PageStart> list_partitions(const CatalogCall& call, const EntityPath& table,
                                  const PageRequest& page, PartitionVisitor visit) {
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, table));
  TRY(require(way));
  if (page.prefix.size() > catalog_name_bytes_max) return PageStart();
  const size_t head = partition_key(call.tenant.id(), way.ref(), {}).size();
  const Bytes prefix = partition_key(call.tenant.id(), way.ref(), page.prefix);
  const auto take = [&](ByteView key, ByteView value) -> Status {
    stored::CatalogPartition stored;
    TRY(decode_message(value, stored, partition_what));
    visit(key.substr(head), stored.partition_json());
    return {};
  };
  return read_record_page(call.tenant, prefix, prefix_end(prefix), page, take);
}

Result<bool> drop_partition(const CatalogCall& call, const EntityPath& table,
                            const std::string& name) {
  bool dropped = false;
  TRY(change_catalog(
      call, std::span(&table, 1), plan_partition, [&](CatalogChange& change) -> Status {
        TRY(change.require());
        TRY_ASSIGN(const Entity entity, change.entity());
        dropped = false;
        if (!is_partition_name(name)) return {};
        TRY_ASSIGN(const CatalogChange::Record record,
                   change.record(partition_key(change.keyspace(), entity.ref, name)));
        dropped = record.found();
        if (!dropped) return {};
        change.remove(record);
        return change.log("drop_partition", entity);
      }));
  return dropped;
}

}  // namespace trellis
