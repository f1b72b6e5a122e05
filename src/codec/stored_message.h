// Protobuf messages as values of ours: | 01 | protobuf |, the same bytes each time.
#pragma once

#include <google/protobuf/message_lite.h>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// Without the format byte: for PD's own message.
Bytes serialize(const google::protobuf::MessageLite& message);

Bytes encode_message(const google::protobuf::MessageLite& message);
// Code::corrupt names `what`.
Status decode_message(ByteView bytes, google::protobuf::MessageLite& message, const char* what);

}  // namespace trellis
