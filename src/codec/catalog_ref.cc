#include "codec/catalog_ref.h"

#include <algorithm>

namespace trellis {
namespace {

ByteView id_of(const CatalogRef& ref) {
  return {reinterpret_cast<const char*>(ref.id.data()), ref.id_bytes()};
}

}  // namespace

void CatalogRefBytes::append(Bytes& out, const CatalogRef& ref) {
  out.append(catalog_word(ref.type).bytes);
  out.append(id_of(ref));
}

bool CatalogRefBytes::read(Reader& reader, CatalogRef& ref) {
  size_t index = 0;
  if (!field_detail::read_word(reader, catalog_types, index)) return false;
  ref = {static_cast<CatalogType>(index), {}};
  ByteView id;
  if (!reader.take(ref.id_bytes(), id)) return false;
  std::copy(id.begin(), id.end(), ref.id.begin());
  return true;
}

std::string CatalogRefBytes::text(const CatalogRef& ref) {
  std::string out(catalog_word(ref.type).name);
  out += ':';
  out += ref.has_uuid() ? to_string(ref.id) : std::to_string(ref.number().value);
  if (ref.type == CatalogType::column) out += ':' + std::to_string(ref.column_number().value);
  return out;
}

void CatalogRefBytes::append_pretty(std::string& out, const CatalogRef& ref) {
  out += catalog_word(ref.type).pretty;
  out += '/';
  out += ref.has_uuid() ? to_string(ref.id) : std::to_string(ref.number().value);
  if (ref.type == CatalogType::column) out += '/' + std::to_string(ref.column_number().value);
}

Status CatalogRefBytes::parse(std::string_view text, TextArena&, CatalogRef& ref) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return Error{Code::invalid, "a ref is a type and an id: table:95"};
  size_t index = 0;
  TRY(field_detail::parse_word(text.substr(0, colon), catalog_types, index));
  const auto type = static_cast<CatalogType>(index);
  std::string_view id = text.substr(colon + 1);
  if (catalog_type_has_uuid(type)) {
    TRY_ASSIGN(const Uuid uuid, parse_uuid(id));
    ref = CatalogRef::of(type, uuid);
    return {};
  }
  const size_t second = type == CatalogType::column ? id.find(':') : id.size();
  if (second == std::string_view::npos)
    return Error{Code::invalid, "a column is named by its table's id and its own: column:95:3"};
  TRY_ASSIGN(const uint64_t number, field_detail::parse_number(id.substr(0, second), UINT64_MAX));
  ref = CatalogRef::of(type, EntityId{number});
  if (type != CatalogType::column) return {};
  TRY_ASSIGN(const uint64_t column, field_detail::parse_number(id.substr(second + 1), UINT64_MAX));
  ref = CatalogRef::column(EntityId{number}, EntityId{column});
  return {};
}

const char* CatalogRefBytes::invalid(const CatalogRef& ref) {
  if (static_cast<size_t>(ref.type) >= std::size(catalog_types)) return "not one of its words";
  const auto rest = ref.id.begin() + static_cast<ptrdiff_t>(ref.id_bytes());
  return std::all_of(rest, ref.id.end(), [](unsigned char byte) { return byte == 0; })
             ? nullptr
             : "more than its id";
}

Bytes encode_ref(const CatalogRef& ref) {
  Bytes out;
  CatalogRefBytes::append(out, ref);
  return out;
}

Result<CatalogRef> decode_ref(ByteView bytes) {
  Reader reader(bytes, nullptr);
  CatalogRef ref;
  if (CatalogRefBytes::read(reader, ref) && reader.at_end()) return ref;
  return Error{Code::corrupt, "a stored ref of the catalog does not make sense"};
}

}  // namespace trellis
