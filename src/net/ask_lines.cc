#include "net/ask_lines.h"

#include "net/client_connection.h"

namespace trellis {

Result<std::string> ask_lines(const LinesAsked& asked) {
  using Event = ClientConnection::Event;
  const BaseUrl url{.secure = false, .host = asked.host, .port = asked.port, .path = ""};
  TRY_ASSIGN(const auto connection, ClientConnection::open(url, nullptr, false, asked.timeout_ms));
  connection->set_deadline(asked.timeout_ms);
  connection->start_write(asked.request, {});
  std::string answer;
  for (size_t lines = 0; lines < asked.lines;) {
    const Event event = connection->wait();
    if (event == Event::written) continue;
    if (event != Event::input) break;
    for (; lines < asked.lines; lines++) {
      const size_t end = connection->input().find("\r\n");
      if (end == ByteView::npos) break;
      answer += connection->input().substr(0, end + 2);
      connection->consume(end + 2);
    }
  }
  return answer;
}

}  // namespace trellis
