#include "cluster_engine/range_object.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "codec/meta_keys.h"
#include "range/directory.h"

namespace trellis {
namespace {

constexpr char payload_format = '\x01';

// By RangeState.
constexpr std::string_view state_names[] = {"live",  "split",   "unsplit", "halved", "building",
                                            "merge", "unmerge", "merged",  "frozen", "gone"};

bool parse_number(ByteView text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Bytes encode_state(const RangeHeader& header) {
  Bytes text(to_string(header.state));
  if (header.state != RangeState::live) text += fmt::format(" {}", header.other.value);
  if (header.state == RangeState::split) (text += ' ') += header.split_at;
  return text;
}

// False if the text is no state.
bool decode_state(ByteView text, RangeHeader& header) {
  const size_t name_end = std::min(text.find(' '), text.size());
  size_t state = 0;
  while (state < std::size(state_names) && state_names[state] != text.substr(0, name_end)) ++state;
  if (state == std::size(state_names)) return false;
  header.state = static_cast<RangeState>(state);
  if (header.state == RangeState::live) return name_end == text.size();
  if (name_end == text.size()) return false;
  text.remove_prefix(name_end + 1);
  const size_t number_end = std::min(text.find(' '), text.size());
  if (!parse_number(text.substr(0, number_end), header.other.value)) return false;
  if (header.state != RangeState::split) return number_end == text.size();
  if (number_end == text.size()) return false;
  header.split_at = text.substr(number_end + 1);
  return header.start < header.split_at && header.split_at < header.end;
}

}  // namespace

Bytes range_object_name(RangeId id) { return fmt::format("r.{}", id.value); }

Result<RangeId> parse_range_object_name(ByteView object) {
  RangeId id;
  if (!object.starts_with("r.") || !parse_number(object.substr(2), id.value) ||
      range_object_name(id) != object)
    return Error{Code::invalid, fmt::format("{} is not the name of a range object", quote(object))};
  return id;
}

Bytes entry_key(EntryKind kind, ByteView address) {
  Bytes key(1, static_cast<char>(kind));
  key.append(address);
  return key;
}

Bytes encode_payload(ByteView value) {
  Bytes stored(1, payload_format);
  stored.append(value);
  return stored;
}

Result<ByteView> decode_payload(ByteView stored) {
  if (stored.empty() || stored[0] != payload_format)
    return Error{Code::corrupt, "a stored value does not begin with its format byte 01"};
  return stored.substr(1);
}

std::string_view to_string(RangeState state) { return state_names[static_cast<size_t>(state)]; }

std::vector<ObjectChange> header_changes(const RangeHeader& header) {
  return {SetAttribute{"gen", std::to_string(header.generation)},
          SetAttribute{"start", header.start},
          SetAttribute{"end", header.end},
          SetAttribute{"right", std::to_string(header.right.value)},
          SetAttribute{"st", encode_state(header)},
          SetAttribute{"step", std::to_string(header.step)},
          SetAttribute{"sticky", std::to_string(header.sticky_until_ms)}};
}

Result<RangeHeader> decode_header(RangeId id, const ReadAnswer& answer) {
  const auto attribute = [&](ByteView name) {
    const auto found = answer.attributes.find(name);
    return found == answer.attributes.end() ? ByteView() : ByteView(found->second);
  };
  RangeHeader header{.id = id,
                     .start = Bytes(attribute("start")),
                     .end = Bytes(attribute("end")),
                     .right = {},
                     .other = {},
                     .split_at = {}};
  const bool ok = parse_number(attribute("gen"), header.generation) && header.generation > 0 &&
                  parse_number(attribute("right"), header.right.value) &&
                  parse_number(attribute("step"), header.step) &&
                  parse_number(attribute("sticky"), header.sticky_until_ms) &&
                  header.start < header.end && header.end <= map_key_max &&
                  decode_state(attribute("st"), header);
  if (!ok)
    return Error{
        Code::corrupt,
        fmt::format("object {} has no header of a range that makes sense (gen {}, st {}): "
                    "`trellis range verify` finds what else is wrong",
                    range_object_name(id), quote(attribute("gen")), quote(attribute("st")))};
  return header;
}

Result<RangeHeader> read_header(ObjectStore& store, FaultPoint point, RangeId id) {
  const Bytes object = range_object_name(id);
  ReadAnswer answer;
  TRY(object_status(store.read(point, object, {.want_attributes = true}, answer), object));
  return decode_header(id, answer);
}

Guard generation_is(const RangeHeader& header) {
  return NumberAttributeIs{"gen", Compare::equal, header.generation};
}

RangeDescriptor to_descriptor(const RangeHeader& header) {
  return {header.id,
          header.start,
          header.end,
          header.generation,
          range_object_name(header.id),
          header.sticky_until_ms};
}

std::string to_string(const RangeHeader& header) {
  return fmt::format("{} {}", to_string(to_descriptor(header)), quote(encode_state(header)));
}

Bytes encode_writer(const Writer& writer) {
  Bytes bytes;
  append_be64(bytes, writer.incarnation);
  append_be64(bytes, writer.sequence);
  return bytes;
}

Bytes encode_range_writer(char tag, RangeId id, uint64_t generation, uint64_t version) {
  Bytes bytes(1, tag);
  append_be64(bytes, id.value);
  append_be64(bytes, generation);
  append_be64(bytes, version);
  return bytes;
}

Status bootstrap_ranges(ObjectStore& store) {
  const RangeDescriptor all = bootstrap_range(range_object_name(first_range_id));
  const RangeHeader first{.id = all.id,
                          .generation = all.generation,
                          .start = all.start,
                          .end = all.end,
                          .right = {},
                          .other = {},
                          .split_at = {}};
  WriteOperation operation{.create_exclusively = true, .changes = header_changes(first)};
  const Bytes writer = encode_range_writer('b', first.id, first.generation);
  TRY_ASSIGN(const std::vector<Bytes> records, directory_keys(all));
  for (const Bytes& address : records) {
    operation.changes.emplace_back(
        OmapSet{entry_key(EntryKind::payload, address), encode_payload(encode_descriptor(all))});
    operation.changes.emplace_back(OmapSet{entry_key(EntryKind::version, address), writer});
  }
  const Bytes object = range_object_name(first.id);
  const int answer = store.write("bootstrap", object, operation);
  return answer == -EEXIST ? Status() : object_status(answer, object);
}

Status object_status(int answer, std::string_view what) {
  if (answer >= 0) return {};
  const auto error = [&](Code code, std::string_view text) {
    return Error{code, fmt::format("{}: {}", what, text)};
  };
  switch (-answer) {
    case ECANCELED: return error(Code::conflict, "it was changed meanwhile");
    case ERANGE:
    case EOVERFLOW: return error(Code::conflict, "it has another version");
    case ENOENT: return error(Code::not_found, "there is no such object");
    case EEXIST: return error(Code::exists, "there is such an object");
    case ETIMEDOUT: return error(Code::maybe, "no answer in time: it may or may not be done");
    case EMSGSIZE: return error(Code::too_large, "one operation of over 90 MiB");
    case ENAMETOOLONG: return error(Code::too_large, "the name of the object is too long");
    case ENOSPC:
    case EDQUOT: return error(Code::no_space, "the cluster is full");
    case ESHUTDOWN: return error(Code::unavailable, "this client is shut down");
    default: return error(Code::unavailable, std::strerror(-answer));
  }
}

}  // namespace trellis
