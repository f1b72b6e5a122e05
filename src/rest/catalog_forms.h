// Entities of each type as JSON: how they come in, what changes them, and how they are answered.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "catalog/catalog.h"

namespace trellis {

struct CatalogForm {
  std::string_view member;   // of one in an answer: "table"
  std::string_view members;  // of many: "tables"
  // Of a body that creates one. Its name is in the entity.
  Result<stored::CatalogEntity> (*read)(const boost::json::value& body);
  // One of {"updates":[...]}.
  Status (*update)(Altered& altered, const boost::json::value& update);
  void (*append)(Bytes& out, const Entity& entity);
};
// REQUIRES: the type has one, as those have that routes are made for.
const CatalogForm& catalog_form(CatalogType type);

std::string catalog_time(uint64_t unix_ms);  // 2026-11-16T06:00:00.123Z

}  // namespace trellis
