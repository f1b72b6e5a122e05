// Patterns of paths, as shells have them.
//
//   *        any part of a name          ?      one character of it
//   [a-z_]   one of these                [!a]   one that is none of these
//   **       as a whole name: any directories on the way, none too
//
// A backslash takes the meaning of one of * ? [ ] \ behind it away; in front of all else it is a
// backslash. A '[' that nothing closes is itself. A dot in front of a name is like any other
// character. Characters are UTF-8, and bytes where that is none.
#pragma once

#include <span>
#include <string_view>

#include "base/bytes.h"

namespace trellis {

bool is_glob(ByteView text);
// What is no glob, without its escapes.
Bytes without_escapes(ByteView text);
// What everything that matches begins with.
Bytes path_glob_prefix(ByteView pattern);

// One name. Takes no more than the product of both lengths.
bool matches_path_glob(ByteView pattern, ByteView name);
// Names one below the other, with "**".
bool matches_path_glob(std::span<const Bytes> patterns, std::span<const ByteView> names);

}  // namespace trellis
