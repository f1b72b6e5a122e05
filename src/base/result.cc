#include "base/result.h"

namespace trellis {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::invalid: return "invalid";
    case Code::not_found: return "not found";
    case Code::exists: return "exists";
    case Code::conflict: return "conflict";
    case Code::refused: return "refused";
    case Code::denied: return "denied";
    case Code::too_large: return "too large";
    case Code::exhausted: return "exhausted";
    case Code::no_space: return "no space";
    case Code::busy: return "busy";
    case Code::corrupt: return "corrupt";
    case Code::unsupported: return "unsupported";
    case Code::unavailable: return "unavailable";
    case Code::maybe: return "maybe";
  }
  return "unknown";
}

std::string to_string(const Error& error) {
  std::string text(to_string(error.code));
  text += ": ";
  text += error.message;
  return text;
}

Error with_context(std::string_view context, Error error) {
  std::string message(context);
  message += ": ";
  message += error.message;
  error.message = std::move(message);
  return error;
}

}  // namespace trellis
