// Writing JSON: always UTF-8, whatever it is made of; also bytes that may be no text:
//
//   "key":"a"            if the bytes are UTF-8
//   "key_base64":"/w=="  otherwise
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// In quotes. What is no UTF-8 becomes U+FFFD, so that the result is always JSON.
void append_json_string(Bytes& out, ByteView text);

// Numbers as people write them, which the library's own serializer does not: 1.5 and not 1.5E0.
// Or as Java does: 100.0, 1.0E10, so that who reads it still sees that it is no whole number.
enum class JsonReals : bool { short_form, as_java };
void append_json(Bytes& out, const boost::json::value& value,
                 JsonReals reals = JsonReals::short_form);

// "name":"..." or "name_base64":"..."; static text without what JSON would escape.
void append_json_bytes(Bytes& out, std::string_view name, ByteView bytes);

std::string base64_encode(ByteView bytes);
// The standard alphabet with its padding; each byte string has one form, others are refused.
Result<Bytes> base64_decode(std::string_view text);

// {"key":"a","value":"1","expires_at_ms":n}: an entry of a scan or an export, of which there may be
// many: without a tree of values in between.
struct JsonEntry {
  ByteView key;
  ByteView value;
  uint64_t expires_at_ms = 0;  // 0: never, and left out
  bool has_value = true;
};
void append_json_entry(Bytes& out, const JsonEntry& entry);

}  // namespace trellis
