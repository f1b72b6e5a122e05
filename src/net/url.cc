#include "net/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "net/ascii.h"

namespace trellis {
namespace {

int hex_digit(char c) {
  if (is_ascii_digit(c)) return c - '0';
  const char lower = ascii_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Whether `text` has two hex digits behind the '%' at `at`.
bool is_escape(std::string_view text, size_t at) {
  return text.size() - at > 2 && hex_digit(text[at + 1]) >= 0 && hex_digit(text[at + 2]) >= 0;
}

std::string encode(ByteView bytes, bool keeps_slash) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_ascii_letter(c) || is_ascii_digit(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (keeps_slash && c == '/')) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

Result<Bytes> decode(std::string_view text, bool plus_is_space) {
  Bytes out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else if (is_escape(text, i)) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      return Error{Code::invalid,
                   fmt::format("bad percent-encoding at byte {}: write %25 for a '%'", i)};
    }
  }
  return out;
}

Error bad_url(std::string_view url, std::string_view why) {
  return {Code::invalid, fmt::format("{} is no URL of a server: {}; it is like http://host:port",
                                     quote(url), why)};
}

// "host", "host:8080", "[::1]:8080". An empty port means the scheme's, as RFC 3986 has it.
Status parse_authority(std::string_view url, std::string_view authority, BaseUrl& out) {
  size_t host_end = std::min(authority.find(':'), authority.size());
  if (authority.starts_with('[')) {
    host_end = authority.find(']');
    if (host_end == std::string_view::npos) return bad_url(url, "the '[' has no ']'");
    out.host = authority.substr(1, host_end - 1);
    ++host_end;
  } else {
    out.host = authority.substr(0, host_end);
  }
  if (out.host.empty()) return bad_url(url, "it names no host");
  if (out.host.find_first_of("[]@\\%") != std::string::npos) return bad_url(url, "bad host");
  std::string_view port = authority.substr(host_end);
  if (port.empty() || port == ":") return {};
  if (!port.starts_with(':')) return bad_url(url, "bad port");
  port.remove_prefix(1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc() || end != port.data() + port.size() || out.port == 0) {
    return bad_url(url, "a port is a number from 1 to 65535");
  }
  return {};
}

}  // namespace

std::string percent_encode(ByteView bytes) { return encode(bytes, false); }

std::string percent_encode_path(ByteView bytes) { return encode(bytes, true); }

Result<Bytes> percent_decode(std::string_view text) { return decode(text, false); }

Result<Bytes> query_decode(std::string_view text) { return decode(text, true); }

bool is_percent_encoded(std::string_view text) {
  for (size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 3)) {
    if (!is_escape(text, i)) return false;
  }
  return true;
}

std::string BaseUrl::authority() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
}

Result<BaseUrl> parse_base_url(std::string_view url) {
  BaseUrl out;
  if (std::any_of(url.begin(), url.end(), [](char c) { return c == ' ' || is_control(c); })) {
    return bad_url(url, "it has white space or control bytes");
  }
  const size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return bad_url(url, "it has no scheme");
  const std::string_view scheme = url.substr(0, scheme_end);
  out.secure = equals_ignoring_case(scheme, "https");
  if (!out.secure && !equals_ignoring_case(scheme, "http")) {
    return bad_url(url, "the scheme is neither http nor https");
  }
  out.port = out.secure ? 443 : 80;
  std::string_view rest = url.substr(scheme_end + 3);
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return bad_url(url, "it has a query or fragment");
  }
  const size_t path_start = std::min(rest.find('/'), rest.size());
  out.path = rest.substr(path_start);
  if (!is_percent_encoded(out.path)) return bad_url(url, "its path is badly percent-encoded");
  TRY(parse_authority(url, rest.substr(0, path_start), out));
  return out;
}

}  // namespace trellis
