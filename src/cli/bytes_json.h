// Bytes in JSON: "key" if they are UTF-8 text, "key_base64" otherwise.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

std::string to_base64(ByteView bytes);
Result<Bytes> from_base64(std::string_view text);  // with its padding, as to_base64 makes it

// Adds the member `name` or `name`_base64.
void add_bytes(boost::json::object& object, std::string_view name, ByteView bytes);

// Of either form; an error if neither is there.
Result<Bytes> bytes_of(const boost::json::object& object, std::string_view name);

}  // namespace trellis
