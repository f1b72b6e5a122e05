// What belongs to tables and models: partitions, versions and their aliases, statistics.
#include <fmt/format.h>

#include "catalog/entity_json.h"
#include "catalog/model_versions.h"
#include "catalog/partitions.h"
#include "catalog/statistics.h"
#include "json/json_text.h"
#include "rest/answers.h"
#include "rest/catalog_lists.h"
#include "rest/catalog_routes.h"
#include "rest/request_reading.h"

namespace trellis {
namespace {

// --- partitions ---

Result<HttpResponse> list_table_partitions(CatalogRequest& request) {
  TRY_ASSIGN(const bool details, catalog_flag(request, "details"));
  const auto page = [details, table = request.path()](const CatalogCall& call,
                                                      const PageRequest& asked,
                                                      ArrayElements& elements) {
    return list_partitions(call, table, asked, [&](std::string_view name, std::string_view json) {
      Bytes& out = elements.add();
      if (details)
        out += json;
      else
        append_json_string(out, name);
    });
  };
  return array_answer(request, details ? "partitions" : "names", Paging::by_name, page);
}

Result<HttpResponse> add_table_partition(CatalogRequest& request) {
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(const json::value partition, read_partition(body));
  TRY(add_partition(request.call(), request.path(), partition));
  return catalog_answer(fmt::format(",\"partitions\":[{}]", json_text(partition)));
}

Result<HttpResponse> get_table_partition(CatalogRequest& request) {
  TRY_ASSIGN(const std::string partition,
             load_partition(request.call(), request.path(), request.names[4]));
  return catalog_answer(",\"partition\":" + partition);
}

Result<HttpResponse> drop_table_partition(CatalogRequest& request) {
  TRY_ASSIGN(const bool dropped, drop_partition(request.call(), request.path(), request.names[4]));
  return catalog_answer(dropped ? ",\"dropped\":true" : ",\"dropped\":false");
}

// --- versions of models ---

Result<HttpResponse> list_versions(CatalogRequest& request) {
  TRY_ASSIGN(const bool details, catalog_flag(request, "details"));
  const auto page = [details, model = request.path()](const CatalogCall& call,
                                                      const PageRequest& asked,
                                                      ArrayElements& elements) {
    return list_model_versions(call, model, asked, [&](const stored::CatalogModelVersion& version) {
      Bytes& out = elements.add();
      if (details)
        append_model_version(out, version);
      else
        out += std::to_string(version.version());
    });
  };
  return array_answer(request, details ? "infos" : "versions", Paging::by_count, page);
}

Result<HttpResponse> link_version(CatalogRequest& request) {
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(stored::CatalogModelVersion draft, read_model_version(body));
  TRY(link_model_version(request.call(), request.path(), std::move(draft)));
  return catalog_answer();
}

// /versions/{version} or /aliases/{alias}.
Result<ModelVersionName> version_name(const CatalogRequest& request) {
  const std::string& text = request.names[4];
  if (request.route.path.starts_with("/aliases")) return ModelVersionName{{}, text};
  const auto number = parse_decimal(text);
  if (!number.has_value() || *number > INT32_MAX)
    return illegal_argument(fmt::format("{} is no version of a model", quote(text)));
  return ModelVersionName{static_cast<uint32_t>(*number), {}};
}

HttpResponse version_answer(const stored::CatalogModelVersion& version) {
  Bytes members = ",\"modelVersion\":";
  append_model_version(members, version);
  return catalog_answer(members);
}

Result<HttpResponse> get_version_of_model(CatalogRequest& request) {
  TRY_ASSIGN(const ModelVersionName name, version_name(request));
  TRY_ASSIGN(const auto version, load_model_version(request.call(), request.path(), name));
  return version_answer(version);
}

Result<HttpResponse> alter_version(CatalogRequest& request) {
  TRY_ASSIGN(const ModelVersionName name, version_name(request));
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(const ModelVersionUpdates updates, ModelVersionUpdates::read(body));
  TRY_ASSIGN(const auto version,
             alter_model_version(request.call(), request.path(), name, updates));
  return version_answer(version);
}

Result<HttpResponse> delete_version(CatalogRequest& request) {
  TRY_ASSIGN(const ModelVersionName name, version_name(request));
  TRY_ASSIGN(const bool dropped, delete_model_version(request.call(), request.path(), name));
  return catalog_answer(dropped ? ",\"dropped\":true" : ",\"dropped\":false");
}

Result<HttpResponse> get_version_uri(CatalogRequest& request) {
  TRY_ASSIGN(const ModelVersionName name, version_name(request));
  TRY_ASSIGN(const auto uri_name, query_text(request.http, "uriName"));
  TRY_ASSIGN(const auto version, load_model_version(request.call(), request.path(), name));
  TRY_ASSIGN(const Entity model, request.catalog().load(request.call(), request.path()));
  TRY_ASSIGN(const std::string uri,
             model_version_uri(version, model.stored, uri_name.value_or("")));
  Bytes members = ",\"uri\":";
  append_json_string(members, uri);
  return catalog_answer(members);
}

// --- statistics ---

Result<EntityPath> table_with_statistics(const CatalogRequest& request) {
  TRY_ASSIGN(EntityPath path, object_path(request));
  if (path.type == CatalogType::table) return path;
  return Error{Code::unsupported, "only tables have statistics", "unsupported"};
}

Result<HttpResponse> get_statistics(CatalogRequest& request) {
  TRY_ASSIGN(const EntityPath table, table_with_statistics(request));
  const auto page = [table](const CatalogCall& call, const PageRequest& asked,
                            ArrayElements& elements) {
    const auto append = [&](std::string_view, std::string_view name,
                            const stored::CatalogStatistic& statistic) {
      append_statistic(elements.add(), name, statistic);
    };
    return list_statistics(call, table, asked, append);
  };
  return array_answer(request, "statistics", Paging::by_name, page);
}

Result<HttpResponse> put_statistics(CatalogRequest& request) {
  TRY_ASSIGN(const EntityPath table, table_with_statistics(request));
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(const StatisticValues values, read_statistics(body));
  TRY(update_statistics(request.call(), table, {values}));
  return catalog_answer();
}

Result<HttpResponse> remove_statistics(CatalogRequest& request) {
  TRY_ASSIGN(const EntityPath table, table_with_statistics(request));
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(const StatisticNames names, read_statistic_names(body));
  TRY_ASSIGN(const bool dropped, drop_statistics(request.call(), table, {names}));
  return catalog_answer(dropped ? ",\"dropped\":true" : ",\"dropped\":false");
}

Result<PartitionInterval> query_interval(const CatalogRequest& request) {
  PartitionInterval interval;
  TRY_ASSIGN(auto from, query_text(request.http, "from"));
  TRY_ASSIGN(auto to, query_text(request.http, "to"));
  if (!from.has_value() && !to.has_value())
    return illegal_argument("Both 'from' and 'to' parameters cannot be null at the same time.");
  TRY_ASSIGN(const auto with_from, query_text(request.http, "fromInclusive"));
  if (with_from.has_value()) {
    TRY_ASSIGN(interval.with_from, catalog_flag(request, "fromInclusive"));
  }
  TRY_ASSIGN(interval.with_to, catalog_flag(request, "toInclusive"));
  interval.from = std::move(from).value_or("");
  interval.to = std::move(to).value_or("");
  return interval;
}

// [{"partitionName","statistics":[...]}]; those of one partition follow each other.
Result<HttpResponse> get_partition_statistics(CatalogRequest& request) {
  TRY_ASSIGN(const EntityPath table, table_with_statistics(request));
  TRY_ASSIGN(const PartitionInterval interval, query_interval(request));
  // `last`: the partition whose statistics are being written.
  const auto page = [table, interval, last = std::optional<std::string>()](
                        const CatalogCall& call, const PageRequest& asked,
                        ArrayElements& elements) mutable -> Result<PageStart> {
    Bytes& out = elements.json;
    const auto append = [&](std::string_view partition, std::string_view name,
                            const stored::CatalogStatistic& statistic) {
      if (last == partition) {
        out += ',';
      } else {
        out += last ? "]},{\"partitionName\":" : ",{\"partitionName\":";
        append_json_string(out, partition);
        out += ",\"statistics\":[";
        last = partition;
      }
      append_statistic(out, name, statistic);
    };
    TRY_ASSIGN(PageStart next,
               list_partition_statistics(call, table, interval, asked.from, append));
    if (!next && last) out += "]}";
    return next;
  };
  return array_answer(request, "partitionStatistics", Paging::none, page);
}

Result<HttpResponse> put_partition_statistics(CatalogRequest& request) {
  TRY_ASSIGN(const EntityPath table, table_with_statistics(request));
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(const auto values, read_partition_statistics(body));
  TRY(update_statistics(request.call(), table, values));
  return catalog_answer();
}

Result<HttpResponse> remove_partition_statistics(CatalogRequest& request) {
  TRY_ASSIGN(const EntityPath table, table_with_statistics(request));
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(const auto names, read_partition_statistic_names(body));
  TRY_ASSIGN(const bool dropped, drop_statistics(request.call(), table, names));
  return catalog_answer(dropped ? ",\"dropped\":true" : ",\"dropped\":false");
}

// None are given out here; clients ask all the same.
Result<HttpResponse> get_credentials(CatalogRequest& request) {
  TRY_ASSIGN(const EntityPath path, object_path(request));
  TRY(request.catalog().load(request.call(), path));
  return catalog_answer(",\"credentials\":[]");
}

std::vector<CatalogRoute> make_member_routes() {
  using enum HttpMethod;
  using enum CatalogRoute::Under;
  constexpr auto t = CatalogType::table;
  constexpr auto m = CatalogType::model;
  constexpr size_t any = catalog_body_bytes_max;
  return {
      {get, table, "/partitions", t, "LIST", list_table_partitions, 0, "partition"},
      {post, table, "/partitions", t, "CREATE", add_table_partition, any, "partition"},
      {get, table, "/partitions/{partition}", t, "GET", get_table_partition, 0, "partition"},
      {del, table, "/partitions/{partition}", t, "DROP", drop_table_partition, 0, "partition"},

      {get, model, "/versions", m, "LIST_VERSIONS", list_versions},
      {post, model, "/versions", m, "LINK", link_version, any},
      {get, model, "/versions/{version}", m, "GET", get_version_of_model},
      {put, model, "/versions/{version}", m, "ALTER", alter_version, any},
      {del, model, "/versions/{version}", m, "DELETE", delete_version},
      {get, model, "/versions/{version}/uri", m, "GET", get_version_uri},
      {get, model, "/aliases/{alias}", m, "GET", get_version_of_model},
      {put, model, "/aliases/{alias}", m, "ALTER", alter_version, any},
      {del, model, "/aliases/{alias}", m, "DELETE", delete_version},
      {get, model, "/aliases/{alias}/uri", m, "GET", get_version_uri},

      {get, object, "/credentials", t, "", get_credentials},
      {get, object, "/statistics", t, "LIST", get_statistics, 0, "statistic"},
      {put, object, "/statistics", t, "UPDATE", put_statistics, any, "statistic"},
      {post, object, "/statistics", t, "DROP", remove_statistics, any, "statistic"},
      {get, object, "/statistics/partitions", t, "LIST", get_partition_statistics, 0, "statistic"},
      {put, object, "/statistics/partitions", t, "UPDATE", put_partition_statistics, any,
       "statistic"},
      {post, object, "/statistics/partitions", t, "DROP", remove_partition_statistics, any,
       "statistic"},
  };
}

}  // namespace

std::span<const CatalogRoute> catalog_member_routes() {
  static const std::vector<CatalogRoute> routes = make_member_routes();
  return routes;
}

}  // namespace trellis
