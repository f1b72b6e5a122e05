#include "cli/event_stream.h"

#include <string_view>

namespace trellis {
namespace {

// A server that never ends a line must not fill the memory.
constexpr size_t event_bytes_max = 16 * 1024 * 1024;

}  // namespace

Status EventStream::feed(ByteView piece) {
  for (const char c : piece) {
    // A line ends with LF, CR or both.
    const bool is_second_of_both = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (is_second_of_both) continue;
    if (c == '\n' || c == '\r') {
      TRY(take_line(line_));
      line_.clear();
      continue;
    }
    if (line_.size() + event_.data.size() >= event_bytes_max)
      return Error{Code::too_large, "the server sent an event that is too large"};
    line_.push_back(c);
  }
  return {};
}

Status EventStream::take_line(std::string_view line) {
  if (line.empty()) {
    const ServerEvent event = std::exchange(event_, {});
    return std::exchange(has_data_, false) ? on_event_(event) : Status();
  }
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "id") last_id_ = value;
  if (name == "event") event_.type = value;
  if (name == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
  return {};  // comments have an empty name; what is unknown is ignored, as the standard says
}

}  // namespace trellis
