// `trellis key decode|encode` and `trellis map`: the layouts of codec, for people and scripts.
#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "codec/key_kinds.h"

namespace trellis {

struct KeyOutput {
  std::ostream& out;
  std::ostream& err;
  bool json = false;
};

// Explains each key, given in hex, as one of `as_kind` if that is not null; "-" reads keys from
// `in`, one per line. False if one of them did not decode; the others are explained all the same.
bool decode_keys(const std::vector<std::string>& keys, const KeyKind* as_kind, std::istream& in,
                 const KeyOutput& output);

// Prints the bytes of a key of `kind` with `fields` as "name=value".
bool encode_key_command(const std::string& kind, const std::vector<std::string>& fields,
                        const KeyOutput& output);

enum class MapFormat { text, json, markdown };
// The whole map, in order.
void print_map(MapFormat format, std::ostream& out);

}  // namespace trellis
