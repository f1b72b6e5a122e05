// What COMMAND tells of commands beyond what running them needs: what they do with which keys, ACL
// categories, tips, how they are written.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "redis/command.h"

namespace trellis {

// Keys from argument `first` on, as Redis 7 describes it.
struct KeySpec {
  std::string_view flags;  // "RO access": Redis's names, what it does with the key first
  // same: as `keys`; after_word: behind a word, which is looked for from `first`.
  enum class Find : uint8_t { same, range, counted, unknown, after_word } find = Find::same;
  int first = 0;
  int last = 0;  // behind first; negative: from the end
  int step = 1;
  std::string_view word = "KEYS";  // of after_word
  int limit = 0;                   // 2: the first half of what follows
};
std::vector<KeySpec> key_specs(const Command& command);  // none of them `same`
// What a command does with the key at that place.
std::string_view key_flags(const Command& command, Args args, size_t position);

std::vector<std::string_view> acl_categories(const Command& command);  // without @
std::vector<std::string_view> tips(const Command& command);
std::string_view syntax_of(const Command& command);  // its arguments: see command_syntax.h

std::vector<std::string_view> words_of(std::string_view text);

}  // namespace trellis
