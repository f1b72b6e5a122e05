#include "catalog/partitions.h"

#include <fmt/format.h>

#include "catalog/catalog_error.h"
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
  const json::string& text = partition.at("name").as_string();
  const std::string name(text.data(), text.size());
  if (!is_partition_name(name)) {
    return illegal_argument(fmt::format("A partition's name is not blank and has {} bytes at most",
                                        catalog_name_bytes_max));
  }
  return change_catalog(
      call, std::span(&table, 1), plan_partition, [&](CatalogChange& change) -> Status {
        TRY(change.require());
        TRY_ASSIGN(const Entity entity, change.entity());
        if (entity.stored.table().partitioning_json().empty()) {
          return illegal_argument(fmt::format("Table {} is not partitioned", entity.name()));
        }
        FieldNames columns;
        for (const auto& column : entity.stored.table().columns()) columns.add(column.name());
        TRY(check_fields(partition, columns));
        TRY_ASSIGN(const CatalogChange::Record record,
                   change.record(partition_key(change.keyspace(), entity.ref, name)));
        if (record.found()) {
          return Error{
              Code::exists,
              fmt::format("Partition {} of {} already exists", quote(name), to_string(table)),
              "partition_exists"};
        }
        stored::CatalogPartition stored;
        stored.set_partition_json(json_text(partition));
        change.put(record, encode_message(stored));
        return change.log("add_partition", entity);
      });
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
                                  const PageStart& from, PartitionVisitor visit) {
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, table));
  TRY(require(way));
  const Bytes prefix = partition_key(call.tenant.id(), way.ref(), {});
  const auto take = [&](ByteView key, ByteView value) -> Status {
    stored::CatalogPartition stored;
    TRY(decode_message(value, stored, partition_what));
    visit(key.substr(prefix.size()), stored.partition_json());
    return {};
  };
  return read_record_page(call.tenant, prefix, prefix_end(prefix), from, take);
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
