#include "net/tls_context.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <utility>

#include "base/assert.h"
#include "base/log.h"

namespace trellis {
namespace {

namespace ssl = boost::asio::ssl;
using ErrorCode = boost::system::error_code;

constexpr uint64_t check_every_us = 1'000'000;

// Changes when the file does: also when another one is renamed over it.
std::string stamp_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "-";
  return fmt::format("{}:{}:{}.{:09}", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

std::string stamp_of(const TlsFiles& files) {
  return stamp_of(files.cert) + " " + stamp_of(files.key);
}

// Of the protocols that a client offers, takes the one that is spoken here.
int select_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* in, unsigned in_size, void* argument) {
  const std::string& ours = *static_cast<const std::string*>(argument);
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(
          &selected, out_size, reinterpret_cast<const unsigned char*>(ours.data()),
          static_cast<unsigned>(ours.size()), in, in_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

Result<std::shared_ptr<ssl::context>> load_context(const TlsFiles& files, std::string& alpn) {
  TRY_ASSIGN(std::shared_ptr<ssl::context> context, make_tls_context(true));
  if (!alpn.empty()) {
    SSL_CTX_set_alpn_select_cb(context->native_handle(), select_protocol, &alpn);
  }
  ErrorCode error;
  context->use_certificate_chain_file(files.cert, error);
  if (error) {
    return Error{Code::invalid, fmt::format("cannot use {} as a certificate in PEM form: {}",
                                            quote(files.cert), tls_error_text(error))};
  }
  context->use_private_key_file(files.key, ssl::context::pem, error);
  if (error) {
    return Error{Code::invalid,
                 fmt::format("cannot use {} as the key of the certificate {} in PEM form: {}",
                             quote(files.key), quote(files.cert), tls_error_text(error))};
  }
  return context;
}

}  // namespace

std::string tls_error_text(const ErrorCode& error) { return error.message(); }

Result<std::shared_ptr<ssl::context>> make_tls_context(bool is_server) {
  std::shared_ptr<ssl::context> context;
  try {
    context = std::make_shared<ssl::context>(is_server ? ssl::context::tls_server
                                                       : ssl::context::tls_client);
  } catch (const boost::system::system_error& error) {
    return Error{Code::unavailable, fmt::format("cannot start TLS: {}", error.what())};
  }
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // A renegotiation costs the server much and the client little.
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // idle connections hold no buffers
  return context;
}

TlsContext::TlsContext(TlsFiles files, std::string_view alpn, Clock& clock)
    : files_(std::move(files)), clock_(clock) {
  ASSERT(alpn.size() <= UINT8_MAX);
  if (!alpn.empty()) alpn_.append(1, static_cast<char>(alpn.size())).append(alpn);
}

Result<std::unique_ptr<TlsContext>> TlsContext::load(TlsFiles files, std::string_view alpn,
                                                     Clock& clock) {
  std::unique_ptr<TlsContext> tls(new TlsContext(std::move(files), alpn, clock));
  // Before the files are read: a change in between is then seen as one.
  tls->stamp_ = stamp_of(tls->files_);
  tls->checked_at_us_ = clock.monotonic_us();
  TRY_ASSIGN(tls->context_, load_context(tls->files_, tls->alpn_));
  return tls;
}

std::shared_ptr<ssl::context> TlsContext::current() {
  const uint64_t now_us = clock_.monotonic_us();
  if (now_us - checked_at_us_ >= check_every_us) {
    checked_at_us_ = now_us;
    reload();
  }
  return context_;
}

void TlsContext::reload() {
  std::string stamp = stamp_of(files_);
  if (stamp == stamp_) return;
  stamp_ = std::move(stamp);  // also if it fails, so that each change is told once
  Result<std::shared_ptr<ssl::context>> loaded = load_context(files_, alpn_);
  if (loaded.has_value()) {
    context_ = std::move(*loaded);
    log_info("TLS certificate loaded again", {{"cert", files_.cert}});
  } else {
    log_warn("the changed TLS certificate cannot be used, the old one stays",
             {{"error", loaded.error().message}});
  }
}

}  // namespace trellis
