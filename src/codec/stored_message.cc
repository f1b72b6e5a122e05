#include "codec/stored_message.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace trellis {
namespace {

constexpr char format_protobuf = 0x01;

void append_serialized(Bytes& out, const google::protobuf::MessageLite& message) {
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);  // maps in the order of their keys
  message.SerializeToCodedStream(&coded);
}

}  // namespace

Bytes serialize(const google::protobuf::MessageLite& message) {
  Bytes out;
  append_serialized(out, message);
  return out;
}

Bytes encode_message(const google::protobuf::MessageLite& message) {
  Bytes out(1, format_protobuf);
  append_serialized(out, message);
  return out;
}

Status decode_message(ByteView bytes, google::protobuf::MessageLite& message, const char* what) {
  if (bytes.empty() || bytes[0] != format_protobuf ||
      !message.ParseFromArray(bytes.data() + 1, static_cast<int>(bytes.size() - 1)))
    return Error{Code::corrupt, fmt::format("the stored {} does not make sense", what)};
  return {};
}

}  // namespace trellis
