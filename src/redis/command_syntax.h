// What COMMAND DOCS tells of the arguments of a command, from one line that says how it is written:
//
//   key value [condition(NX|XX)] [LIMIT limit(offset count)] [GET pattern]...
//
// A word in capitals is a token, with what follows it or, if that is no argument, for itself. Names
// are followed by what they stand for: one of several, or several in a row. Their types go by the
// names, other ones are written behind them: increment<double>. Behind a token that is for itself
// stands its name, where it has another one: CH<change>. `...` may come again, behind a bracket
// with its token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trellis {

struct Argument {
  std::string name;
  std::string_view type;   // Redis's names: "key", "integer", "pure-token", "oneof", "block"
  std::string_view token;  // or none
  bool is_optional = false;
  bool is_multiple = false;
  bool repeats_token = false;
  std::vector<Argument> arguments;  // of a oneof or a block
};

// REQUIRES: as above. The text outlives the result.
std::vector<Argument> parse_syntax(std::string_view text);

}  // namespace trellis
