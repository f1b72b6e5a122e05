// The server's certificate, loaded again when its files change. For net's own files: it names types
// of Asio.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/stream_server.h"

namespace trellis {

class TlsContext {
 public:
  // `alpn`: the protocol that is spoken, by its name in TLS; "": it has none.
  static Result<std::unique_ptr<TlsContext>> load(TlsFiles files, std::string_view alpn,
                                                  Clock& clock);

  // For a new connection, which this outlives. One thread. Looks at the files at most once a
  // second.
  std::shared_ptr<boost::asio::ssl::context> current();

 private:
  TlsContext(TlsFiles files, std::string_view alpn, Clock& clock);
  void reload();

  const TlsFiles files_;
  std::string alpn_;  // as TLS has it, with its length in front; "": none
  Clock& clock_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::string stamp_;  // of the files that were last tried
  uint64_t checked_at_us_ = 0;
};

// A context with what every side of ours wants: TLS 1.2 at least.
Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_context(bool is_server);

// "why", from OpenSSL's own queue or a code of Asio's.
std::string tls_error_text(const boost::system::error_code& error);

}  // namespace trellis
