#include "codec/key_kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/all_keys.h"
#include "codec/pretty_key.h"

namespace trellis {
namespace {

template <class T>
KeyKind make_kind(const KeyEntry<T>& entry) {
  return {.area = entry.area,
          .kind = T::kind,
          .summary = entry.summary,
          .place = entry.place,
          .description = describe<T>(),
          .explain = &explain<T>,
          .encode = [](const TextFields& fields) -> Result<Bytes> {
            TextArena arena;
            T record{};
            const layout_detail::Items& items = layout_detail::items_of<T>();
            TRY(layout_detail::parse_items(items, fields, arena, &record));
            return layout_detail::encode_items(items, &record);
          }};
}

// Of all kinds that failed, what the furthest of them wanted.
class Furthest {
 public:
  void add(const DecodeFailure& failure) {
    if (!failures_.empty() && failure.offset < failures_[0].offset) return;
    if (!failures_.empty() && failure.offset > failures_[0].offset) failures_.clear();
    failures_.push_back(failure);
  }

  bool past_first_byte() const { return !failures_.empty() && failures_[0].offset > 0; }

  UnexplainedKey why(ByteView key) const {
    if (key.empty()) return {0, "a key has at least one byte"};
    const size_t offset = failures_[0].offset;
    if (offset == 0 && failures_.size() > 1)
      return {0, fmt::format("no key starts with {}: `trellis map` shows what does; a key of "
                             "Kvrocks is read with --as, for example --as kvrocks.sub",
                             to_hex(key.substr(0, 1)))};
    // The one that read fields knows more than those that missed a literal.
    for (const DecodeFailure& failure : failures_)
      if (failure.wanted.empty())
        return {offset, fmt::format("{}: {}", failure.field, failure.why)};
    std::vector<std::string> wanted;
    for (const DecodeFailure& failure : failures_) {
      std::string want = quote(failure.wanted);
      if (std::find(wanted.begin(), wanted.end(), want) == wanted.end())
        wanted.push_back(std::move(want));
    }
    const std::string found =
        offset < key.size() ? to_hex(key.substr(offset, 1)) : "the end of the key";
    return {offset, fmt::format("{}: found {}, want {}", failures_[0].field, found,
                                fmt::join(wanted, " or "))};
  }

 private:
  std::vector<DecodeFailure> failures_;
};

}  // namespace

std::span<const KeyKind> key_kinds() {
  static const std::vector<KeyKind> kinds = std::apply(
      [](const auto&... entry) { return std::vector<KeyKind>{make_kind(entry)...}; }, all_keys);
  return kinds;
}

tl::expected<ExplainedKey, UnexplainedKey> explain_key(ByteView key) {
  Furthest furthest;
  ExplainedKey explained;
  for (const KeyKind& kind : key_kinds()) {
    if (kind.place == Place::by_name) continue;
    Explanation explanation;
    DecodeFailure failure;
    if (!kind.explain(key, explanation, failure)) {
      // A key that starts like one of ours is judged as one of ours.
      if (kind.place == Place::in_map || !furthest.past_first_byte()) furthest.add(failure);
    } else if (explained.area.empty()) {
      explained.area = kind.area;
      explained.explanation = std::move(explanation);
    } else {
      explained.also.push_back(kind.kind);
    }
  }
  if (explained.area.empty()) return tl::unexpected(furthest.why(key));
  return explained;
}

Result<const KeyKind*> find_key_kind(std::string_view name) {
  for (const KeyKind& kind : key_kinds())
    if (kind.kind == name) return &kind;
  return Error{Code::invalid,
               fmt::format("{} is not a kind of key: `trellis map` lists them all", quote(name))};
}

tl::expected<ExplainedKey, UnexplainedKey> explain_key_as(const KeyKind& kind, ByteView key) {
  ExplainedKey explained{.area = kind.area, .explanation = {}, .also = {}};
  DecodeFailure failure;
  if (kind.explain(key, explained.explanation, failure)) return explained;
  Furthest only;
  only.add(failure);
  return tl::unexpected(only.why(key));
}

Result<Bytes> encode_key(const KeyKind& kind, const TextFields& fields) {
  const Description& description = kind.description;
  const auto takes = [&] {
    return fmt::format("; {} takes: {}", kind.kind, fmt::join(description.fields, ", "));
  };
  for (const auto& given : fields) {
    const auto known = [&](const auto& names) {
      return std::find(names.begin(), names.end(), given.first) != names.end();
    };
    if (!known(description.fields) && !known(description.literals))
      return Error{Code::invalid, fmt::format("{}: no such field{}", given.first, takes())};
  }
  auto bytes = kind.encode(fields);
  if (!bytes) return Error{bytes.error().code, bytes.error().message + takes()};
  return bytes;
}

Result<TextFields> parse_text_fields(std::string_view text) {
  TextFields fields;
  size_t at = 0;
  const auto skip_blanks = [&] { at = std::min(text.find_first_not_of(' ', at), text.size()); };
  for (skip_blanks(); at < text.size(); skip_blanks()) {
    const size_t equals = text.find('=', at);
    if (equals == std::string_view::npos)
      return Error{Code::invalid, fmt::format("{} is not field=value", quote(text.substr(at)))};
    const size_t start = equals + 1;
    size_t end = start;
    if (end < text.size() && text[end] == '"') {
      for (end++; end < text.size() && text[end] != '"'; end++)
        if (text[end] == '\\') end++;
      if (end >= text.size())
        return Error{Code::invalid, fmt::format("{} has no closing quote", text.substr(at))};
      end++;
    } else {
      end = std::min(text.find(' ', end), text.size());
    }
    fields.emplace_back(text.substr(at, equals - at), text.substr(start, end - start));
    at = end;
  }
  return fields;
}

std::string pretty_key(ByteView key) {
  // Meta and range-local keys hold keys, and hostile ones hold many: a few levels are enough.
  constexpr int depth_max = 4;
  thread_local int depth = 0;
  if (key.empty()) return "/Min";
  if (key == map_key_max) return "/Max";
  if (depth >= depth_max) return quote(key);
  depth++;
  const auto explained = explain_key(key);
  depth--;
  return explained ? explained->explanation.pretty : quote(key);
}

}  // namespace trellis
