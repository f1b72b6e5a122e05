// Entities as clients get them (Gravitino's DTOs). Nothing that is null is written.
#pragma once

#include "base/bytes.h"
#include "catalog.pb.h"
#include "codec/catalog_ref.h"
#include "json/json_body.h"

namespace trellis {

// Whether metalakes and catalogs have their property "in-use".
enum class ShowInUse : bool { no, yes };

// {"name":...,"audit":{...}}; all types but users, groups and roles.
void append_entity(Bytes& out, CatalogType type, const stored::CatalogEntity& entity,
                   ShowInUse show_in_use = ShowInUse::yes);
// "audit":{"creator","createTime","lastModifier"?,"lastModifiedTime"?}
void append_audit(Bytes& out, const stored::CatalogAudit& audit);
// "properties":{...}, in the order of their names.
void append_text_map(Bytes& out, std::string_view name,
                     const google::protobuf::Map<std::string, std::string>& map);
// 2023-11-14T22:13:20.000Z
std::string instant_text(uint64_t time_ms);

void append_model_version(Bytes& out, const stored::CatalogModelVersion& version);
// {"name","value","reserved":false,"modifiable":true,"audit"}
void append_statistic(Bytes& out, std::string_view name, const stored::CatalogStatistic& statistic);

}  // namespace trellis
