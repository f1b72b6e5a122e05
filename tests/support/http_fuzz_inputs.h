// What a server must refuse: seeds for the fuzzer, and a table for the tests of the protocol and of
// the whole server. The paths are those of either's routes: PUT /echo/{key*} takes bodies of up to
// 100 000 bytes, GET /hello takes none.
#pragma once

#include <ostream>
#include <string_view>

namespace trellis {

struct HostileInput {
  std::string_view name;
  std::string_view bytes;
  std::string_view status;  // it is answered with, before the connection is closed
};

inline std::ostream& operator<<(std::ostream& out, const HostileInput& input) {
  return out << input.name;
}

using namespace std::string_view_literals;

inline constexpr HostileInput hostile_inputs[] = {
    {"length and encoding",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
     "400"},
    {"encoding and length",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
     "400"},
    {"two lengths",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "400"},
    {"the same length twice",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "400"},
    {"a list of lengths", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", "400"},
    {"a length with plus", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", "400"},
    {"a negative length", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", "400"},
    {"a length in hex", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n", "400"},
    {"a length with space inside", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1 5\r\n\r\n",
     "400"},
    {"an empty length", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", "400"},
    {"a length over 64 bits",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "400"},
    {"the largest length",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n", "413"},
    {"too large a length", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n",
     "413"},
    {"a body where none is taken", "GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
     "413"},
    {"chunks where none are taken",
     "GET /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "413"},
    {"another coding", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "501"},
    {"a coding before chunked",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501"},
    {"a coding after chunked",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n", "501"},
    {"chunked twice",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", "501"},
    {"two encodings",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
     "Transfer-Encoding: chunked\r\n\r\n",
     "400"},
    {"an encoding with a tail",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", "501"},
    {"an encoding in quotes",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", "501"},
    {"an encoding behind a control byte",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0b"
     "chunked\r\n\r\n",
     "400"},
    {"an empty encoding", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", "501"},
    {"an encoding in HTTP/1.0",
     "PUT /echo/ HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
    {"space before the colon", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello",
     "400"},
    {"a folded line", "GET /hello HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", "400"},
    {"a folded line with nothing before",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 5\r\n\r\nhello", "400"},
    {"a folded line with nothing at all", "GET /hello HTTP/1.1\r\nHost: a\r\nX:\r\n \r\n\r\n",
     "400"},
    {"a folded line with nothing after", "GET /hello HTTP/1.1\r\nHost: a\r\nX: 1\r\n\t\r\n\r\n",
     "400"},
    {"a fold before the first header", "GET /hello HTTP/1.1\r\n Host: a\r\n\r\n", "400"},
    {"NUL in a value", "GET /hello HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"sv, "400"},
    {"NUL in a name", "GET /hello HTTP/1.1\r\nHost: a\r\nX\0Y: a\r\n\r\n"sv, "400"},
    {"NUL in the target", "GET /he\0llo HTTP/1.1\r\nHost: a\r\n\r\n"sv, "400"},
    {"a control byte in the target", "GET /he\x01llo HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
    {"DEL in the target", "GET /he\x7fllo HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
    {"a bare CR in a value", "GET /hello HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", "400"},
    {"a bare LF in a value", "GET /hello HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n", "400"},
    {"bare LF lines", "GET /hello HTTP/1.1\nHost: a\n\n", "400"},
    {"a bare LF and another version", "GET /hello HTTP/1.1\nX: HTTP/9.9\r\n\r\n", "400"},
    {"no Host", "GET /hello HTTP/1.1\r\n\r\n", "400"},
    {"two Hosts", "GET /hello HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400"},
    {"two Hosts in HTTP/1.0", "GET /hello HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "400"},
    {"a Host with a path", "GET /hello HTTP/1.1\r\nHost: a/b\r\n\r\n", "400"},
    {"two Authorizations",
     "GET /hello HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nauthorization: y\r\n\r\n", "400"},
    {"bad percent-encoding", "GET /he%zzllo HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
    {"cut percent-encoding", "GET /hello%2 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
    {"a fragment", "GET /hello#x HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
    {"a target that is no path", "GET hello HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
    {"a star for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
    {"CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
    {"TRACE", "TRACE /hello HTTP/1.1\r\nHost: a\r\n\r\n", "501"},
    {"a method of its own", "FROB /hello HTTP/1.1\r\nHost: a\r\n\r\n", "501"},
    {"a method in lower case", "get /hello HTTP/1.1\r\nHost: a\r\n\r\n", "501"},
    {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
    {"HTTP/1.2", "GET /hello HTTP/1.2\r\nHost: a\r\n\r\n", "505"},
    {"HTTP/0.9", "GET /hello\r\n\r\n", "400"},
    {"another protocol", "GET /hello ICE/1.0\r\n\r\n", "400"},
    {"two spaces", "GET  /hello HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
    {"a space at the end", "GET /hello HTTP/1.1 \r\nHost: a\r\n\r\n", "400"},
    {"an unknown expectation", "PUT /echo/ HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", "417"},
    {"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"sv, "400"},
    {"garbage", "\x80\xff\x00\x01garbage"sv, "400"},
    {"a chunk with a bad size",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "400"},
    {"a negative chunk",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", "400"},
    {"a chunk size over 64 bits",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\n",
     "400"},
    {"the largest chunk size",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
     "413"},
    {"chunks over the limit together",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
     "5\r\nhello\r\n186a0\r\n",
     "413"},
    {"a chunk size in C",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
     "400"},
    {"a chunk with a bare LF",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
     "400"},
    {"a chunk longer than it says",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
     "400"},
    {"a LF in a chunk extension",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
     "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n",
     "400"},
    {"an open quote in a chunk extension",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
     "5;a=\"\r\nhello\r\n\"0\r\n\r\n",
     "400"},
    {"a length in the trailers",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
     "0\r\nContent-Length: 5\r\n\r\n",
     "400"},
    {"a folded trailer",
     "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n",
     "400"},
};

}  // namespace trellis
