// Reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) from
// pieces of any size.
#pragma once

#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

struct ServerEvent {
  std::string type;  // "": message
  std::string data;
};

class EventStream {
 public:
  // Called for each event that has data. An error of it ends the stream.
  explicit EventStream(std::function<Status(const ServerEvent&)> on_event)
      : on_event_(std::move(on_event)) {}

  Status feed(ByteView piece);
  // Where to go on later: the last id of all, also of those without data.
  const std::string& last_id() const { return last_id_; }

 private:
  Status take_line(std::string_view line);

  std::function<Status(const ServerEvent&)> on_event_;
  std::string line_;  // begun
  bool after_cr_ = false;
  ServerEvent event_;
  std::string last_id_;
  bool has_data_ = false;
};

}  // namespace trellis
