// Text of HTTP headers: ASCII, whatever the locale.
#pragma once

#include <algorithm>
#include <string_view>

namespace trellis {

constexpr char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return x == y || ascii_lower(x) == ascii_lower(y);
         });
}

constexpr bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

constexpr bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Below space, or DEL: what no header value, target or chunk extension may have.
constexpr bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Of a method or a header's name.
constexpr bool is_token_char(char c) {
  return is_ascii_letter(c) || is_ascii_digit(c) ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

}  // namespace trellis
