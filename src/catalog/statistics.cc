#include "catalog/statistics.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/catalog_error.h"
#include "codec/stored_message.h"

namespace trellis {
namespace {

constexpr const char* statistic_what = "statistic";
constexpr std::string_view custom_prefix = "custom-";
constexpr size_t terminator_bytes = 2;  // of Terminated

Bytes statistic_key(KeyspaceId keyspace, const EntityWay& table, std::string_view partition,
                    std::string_view name) {
  return encode(CatalogStatisticKey{keyspace, table.refs.front().id, table.ref(), partition, name});
}

Status check_statistic_name(std::string_view name) {
  if (name.empty()) return illegal_argument("statistic name must not be null or empty");
  if (name.starts_with(custom_prefix) && name.size() <= catalog_name_bytes_max) return {};
  return Error{Code::invalid,
               fmt::format("Statistic name must start with {} , but got: {}", custom_prefix,
                           name.substr(0, 200)),
               "illegal_statistic_name"};
}

Status check_partition_name(std::string_view name) {
  if (!is_blank(name) && name.size() <= catalog_name_bytes_max) return {};
  return illegal_argument("\"partitionName\" field is required and cannot be empty");
}

Status check_value(const json::value& value) {
  if (value.is_null()) {
    return illegal_argument("Cannot parse statistic value from invalid JSON: null");
  }
  if (const json::array* array = value.if_array()) {
    for (const json::value& element : *array) TRY(check_value(element));
  }
  if (const json::object* object = value.if_object()) {
    for (const auto& member : *object) TRY(check_value(member.value()));
  }
  return {};
}

Result<std::map<std::string, std::string>> read_values(const json::value* values) {
  const json::object* object = values == nullptr ? nullptr : values->if_object();
  if (object == nullptr || object->empty()) {
    return illegal_argument("\"updates\" field is required and cannot be empty");
  }
  std::map<std::string, std::string> result;
  for (const auto& member : *object) {
    const std::string name(member.key().data(), member.key().size());
    TRY(check_statistic_name(name));
    TRY(check_value(member.value()));
    result.emplace(name, json_text(member.value()));
  }
  return result;
}

Result<std::vector<std::string>> read_names(RequestFields& fields, std::string_view name) {
  TRY_ASSIGN(std::vector<std::string> names, fields.text_list(name));
  if (!names.empty() && std::ranges::none_of(names, is_blank)) return names;
  return illegal_argument(fmt::format("\"{}\" field is required and cannot be empty", name));
}

constexpr auto plan_statistics = [](CatalogPlan& plan) -> Status {
  TRY(as_object(plan.require()));
  plan.read_entity();
  plan.exclusive(statistic_key(plan.keyspace(), plan.way(), {}, "s"));
  return {};
};

Result<PageStart> visit_statistics(const CatalogCall& call, ByteView begin, ByteView end,
                                   const PageRequest& page, StatisticVisitor visit) {
  const auto take = [&](ByteView key, ByteView value) -> Status {
    Bytes scratch;
    TRY_ASSIGN(const auto decoded, decode<CatalogStatisticKey>(key, scratch));
    stored::CatalogStatistic statistic;
    TRY(decode_message(value, statistic, statistic_what));
    visit(decoded.partition, decoded.name, statistic);
    return {};
  };
  return read_record_page(call.tenant, begin, end, page, take);
}

Result<EntityWay> readable_table(const CatalogCall& call, const EntityPath& table) {
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(EntityWay way, find_way(call.tenant, table));
  TRY(as_object(require(way)));
  return way;
}

}  // namespace

Result<StatisticValues> read_statistics(const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  StatisticValues statistics;
  TRY_ASSIGN(statistics.values, read_values(fields.find("updates")));
  TRY(fields.finish());
  return statistics;
}

Result<StatisticNames> read_statistic_names(const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  StatisticNames names;
  TRY_ASSIGN(names.names, read_names(fields, "names"));
  TRY(fields.finish());
  return names;
}

Result<std::vector<StatisticValues>> read_partition_statistics(const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  TRY_ASSIGN(const std::vector<const json::value*> updates, fields.list("updates"));
  if (updates.empty()) return illegal_argument("\"updates\" must not be null or empty");
  std::vector<StatisticValues> all;
  for (const json::value* update : updates) {
    TRY_ASSIGN(RequestFields of_one, RequestFields::of(*update, "update"));
    StatisticValues& statistics = all.emplace_back();
    TRY_ASSIGN(statistics.partition, of_one.required_text("partitionName"));
    TRY(check_partition_name(statistics.partition));
    TRY_ASSIGN(statistics.values, read_values(of_one.find("statistics")));
    TRY(of_one.finish());
  }
  TRY(fields.finish());
  return all;
}

Result<std::vector<StatisticNames>> read_partition_statistic_names(const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  TRY_ASSIGN(const std::vector<const json::value*> drops, fields.list("drops"));
  if (drops.empty()) return illegal_argument("\"drops\" must not be null or empty");
  std::vector<StatisticNames> all;
  for (const json::value* drop : drops) {
    TRY_ASSIGN(RequestFields of_one, RequestFields::of(*drop, "drop"));
    StatisticNames& names = all.emplace_back();
    TRY_ASSIGN(names.partition, of_one.required_text("partitionName"));
    TRY(check_partition_name(names.partition));
    TRY_ASSIGN(names.names, read_names(of_one, "statisticNames"));
    TRY(of_one.finish());
  }
  TRY(fields.finish());
  return all;
}

Status update_statistics(const CatalogCall& call, const EntityPath& table,
                         const std::vector<StatisticValues>& statistics) {
  return change_catalog(
      call, std::span(&table, 1), plan_statistics, [&](CatalogChange& change) -> Status {
        TRY(as_object(change.require()));
        TRY_ASSIGN(const Entity entity, change.entity());
        for (const StatisticValues& of_one : statistics) {
          for (const auto& [name, value] : of_one.values) {
            TRY_ASSIGN(const CatalogChange::Record record,
                       change.record(
                           statistic_key(change.keyspace(), change.way(), of_one.partition, name)));
            stored::CatalogStatistic statistic;
            if (record.found()) {
              TRY(decode_message(record.value(), statistic, statistic_what));
            } else {
              statistic.mutable_audit()->set_creator(call.user);
              statistic.mutable_audit()->set_created_ms(change.now_ms());
            }
            statistic.set_value_json(value);
            statistic.mutable_audit()->set_modifier(call.user);
            statistic.mutable_audit()->set_modified_ms(change.now_ms());
            change.put(record, encode_message(statistic));
          }
        }
        return change.log("update_statistics", entity);
      });
}

Result<bool> drop_statistics(const CatalogCall& call, const EntityPath& table,
                             const std::vector<StatisticNames>& names) {
  bool dropped = false;
  TRY(change_catalog(
      call, std::span(&table, 1), plan_statistics, [&](CatalogChange& change) -> Status {
        TRY(as_object(change.require()));
        TRY_ASSIGN(const Entity entity, change.entity());
        dropped = false;
        for (const StatisticNames& of_one : names) {
          for (const std::string& name : of_one.names) {
            if (name.size() > catalog_name_bytes_max) continue;
            TRY_ASSIGN(const CatalogChange::Record record,
                       change.record(
                           statistic_key(change.keyspace(), change.way(), of_one.partition, name)));
            dropped = dropped || record.found();
            change.remove(record);
          }
        }
        if (!dropped) return {};
        return change.log("drop_statistics", entity);
      }));
  return dropped;
}

Result<PageStart> list_statistics(const CatalogCall& call, const EntityPath& table,
                                  const PageRequest& page, StatisticVisitor visit) {
  TRY_ASSIGN(const EntityWay way, readable_table(call, table));
  if (page.prefix.size() > catalog_name_bytes_max) return PageStart();
  const Bytes prefix = statistic_key(call.tenant.id(), way, {}, page.prefix);
  return visit_statistics(call, prefix, prefix_end(prefix), page, visit);
}

Result<PageStart> list_partition_statistics(const CatalogCall& call, const EntityPath& table,
                                            const PartitionInterval& interval,
                                            const PageStart& from, StatisticVisitor visit) {
  for (const std::string& name : {interval.from, interval.to}) {
    if (name.size() > catalog_name_bytes_max) TRY(check_partition_name(name));
  }
  TRY_ASSIGN(const EntityWay way, readable_table(call, table));
  const auto key = [&](std::string_view partition) {
    return statistic_key(call.tenant.id(), way, partition, {});
  };
  const bool has_from = !interval.from.empty();
  const Bytes begin =
      has_from && interval.with_from ? key(interval.from) : prefix_end(key(interval.from));
  Bytes all = key({});
  all.resize(all.size() - terminator_bytes);
  Bytes end = prefix_end(all);
  if (!interval.to.empty()) {
    end = interval.with_to ? prefix_end(key(interval.to)) : key(interval.to);
  }
  if (begin >= end) return PageStart();
  return visit_statistics(call, begin, end, {from}, visit);
}

}  // namespace trellis
