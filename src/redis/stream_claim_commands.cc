// XCLAIM and XAUTOCLAIM: what one consumer does not come to terms with another one gets.
#include <fmt/format.h>

#include <algorithm>

#include "redis/number_text.h"
#include "redis/stream_group.h"
#include "redis/stream_handlers.h"

namespace trellis {
namespace {

Result<StreamGroup*> group_to_claim_in(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::stream));
  TRY_ASSIGN(StreamGroup* const group, StreamGroup::open(call.keys, *key, call.arg(2)));
  if (group == nullptr)
    return reply_with(fmt::format("NOGROUP No such key '{}' or consumer group '{}'",
                                  shown(call.arg(1)), shown(call.arg(2))));
  return group;
}

Result<int64_t> number_at(const Call& call, size_t i, std::string_view what) {
  const auto number = parse_integer(call.arg(i));
  if (!number)
    return reply_with(fmt::format("ERR Invalid {} for {}", what, upper(call.command.name)));
  return *number;
}

struct Claim {
  uint64_t delivered_ms = 0;
  int64_t deliveries = -1;  // negative: one more than before
  bool ids_only = false;
};

// Gives it to the consumer that argument 3 names. `was` is absent if it was not pending.
Status claim_entry(Call& call, StreamGroup& group, const Claim& claim, const StreamId& id,
                   const StreamGroup::Pending& was, const Value& entry) {
  PendingEntry now{id, claim.delivered_ms, was ? was->deliveries : 1, Bytes(call.arg(3))};
  if (claim.deliveries >= 0)
    now.deliveries = static_cast<uint64_t>(claim.deliveries);
  else if (!claim.ids_only)
    now.deliveries++;
  TRY(group.serve(call.arg(3)));
  TRY(group.put_pending(now, was));
  if (!claim.ids_only) return reply_entry(call.reply, id, entry.bytes());
  call.reply.bulk(id_text(id));
  return {};
}

bool is_idle(const Call& call, const PendingEntry& entry, int64_t idle_ms) {
  return idle_ms == 0 || static_cast<int64_t>(call.now_ms() - entry.delivered_ms) >= idle_ms;
}

// --- XCLAIM ---

struct ClaimOptions {
  Claim claim;
  bool forces = false;
  StreamId last = {};
};

Result<ClaimOptions> parse_claim_options(Call& call, size_t first) {
  ClaimOptions options;
  std::optional<int64_t> delivered_ms;
  const auto now_ms = static_cast<int64_t>(call.now_ms());
  for (size_t i = first; i < call.count(); i++) {
    const bool has_more = i + 1 < call.count();
    if (call.is_word(i, "force")) {
      options.forces = true;
    } else if (call.is_word(i, "justid")) {
      options.claim.ids_only = true;
    } else if (call.is_word(i, "idle") && has_more) {
      TRY_ASSIGN(const int64_t idle_ms, number_at(call, ++i, "IDLE option argument"));
      delivered_ms =
          static_cast<int64_t>(static_cast<uint64_t>(now_ms) - static_cast<uint64_t>(idle_ms));
    } else if (call.is_word(i, "time") && has_more) {
      TRY_ASSIGN(delivered_ms, number_at(call, ++i, "TIME option argument"));
    } else if (call.is_word(i, "retrycount") && has_more) {
      TRY_ASSIGN(options.claim.deliveries, number_at(call, ++i, "RETRYCOUNT option argument"));
    } else if (call.is_word(i, "lastid") && has_more) {
      TRY_ASSIGN(options.last, id_at(call, ++i));
    } else {
      return reply_with(fmt::format("ERR Unrecognized XCLAIM option '{}'", shown(call.arg(i))));
    }
  }
  // Clocks of clients may differ.
  const bool is_past = delivered_ms && *delivered_ms >= 0 && *delivered_ms <= now_ms;
  options.claim.delivered_ms = static_cast<uint64_t>(is_past ? *delivered_ms : now_ms);
  return options;
}

}  // namespace

Status xclaim(Call& call) {
  TRY_ASSIGN(StreamGroup* const group, group_to_claim_in(call));
  TRY_ASSIGN(const int64_t idle_ms, number_at(call, 4, "min-idle-time argument"));
  std::vector<StreamId> ids;
  size_t options_at = 5;
  for (; options_at < call.count(); options_at++) {
    const auto id = parse_id(call.arg(options_at));
    if (!id) break;
    ids.push_back(*id);
  }
  TRY_ASSIGN(const ClaimOptions options, parse_claim_options(call, options_at));
  TRY_ASSIGN(const Key* const key, call.open(1));
  if (options.last > group->last()) group->set_last(options.last);
  const size_t mark = call.reply.mark();
  size_t claimed = 0;
  for (const StreamId& id : ids) {
    Value entry;
    TRY(get_entries(call.keys, *key, {&id, 1}, {&entry, 1}));
    TRY_ASSIGN(const std::vector<StreamGroup::Pending> was, group->get_pending({&id, 1}));
    if (!entry.found() && was[0]) TRY(group->remove_pending(*was[0]));
    if (!entry.found() || (!was[0] && !options.forces)) continue;
    if (was[0] && !is_idle(call, *was[0], std::max<int64_t>(idle_ms, 0))) continue;
    TRY(claim_entry(call, *group, options.claim, id, was[0], entry));
    claimed++;
  }
  call.reply.insert_array(mark, claimed);
  return {};
}

// --- XAUTOCLAIM ---

namespace {

struct AutoClaim {
  int64_t idle_ms = 0;
  StreamId first = {};
  int64_t count = 100;
  bool ids_only = false;
};

Result<AutoClaim> parse_auto_claim(const Call& call) {
  constexpr int64_t count_max = INT64_MAX / 16;
  AutoClaim wanted;
  TRY_ASSIGN(const int64_t idle_ms, number_at(call, 4, "min-idle-time argument"));
  wanted.idle_ms = std::max<int64_t>(idle_ms, 0);
  TRY_ASSIGN(wanted.first, first_of_range(call, 5));
  for (size_t i = 6; i < call.count(); i++) {
    if (call.is_word(i, "count") && i + 1 < call.count()) {
      const auto count = parse_integer(call.arg(++i));
      if (!count || *count < 1 || *count > count_max) return reply_with("ERR COUNT must be > 0");
      wanted.count = *count;
    } else if (call.is_word(i, "justid")) {
      wanted.ids_only = true;
    } else {
      return syntax_error();
    }
  }
  return wanted;
}

// Some that are pending, from `first` on.
Result<std::vector<PendingEntry>> pending_page(const StreamGroup& group, const StreamId& first,
                                               size_t count) {
  std::vector<PendingEntry> page;
  TRY(group.visit_pending({}, {.first = first}, [&](const PendingEntry& entry) {
    page.push_back(entry);
    return page.size() == count ? Visit::stop : Visit::go_on;
  }));
  return page;
}

// What is claimed is written as the reply goes on.
struct AutoClaimed {
  std::optional<StreamId> next;  // to look at; absent: it was the last
  size_t claimed = 0;
  std::vector<StreamId> deleted = {};
};

// Of each 10 that it looks at it has to give one, as in Redis.
Result<AutoClaimed> claim_idle(Call& call, const Key& key, StreamGroup& group, AutoClaim wanted) {
  constexpr size_t page_entries = 256;
  constexpr int64_t looks_of_each = 10;
  AutoClaimed done{.next = wanted.first};
  const Claim claim{.delivered_ms = call.now_ms(), .ids_only = wanted.ids_only};
  int64_t looks = wanted.count * looks_of_each;
  while (done.next && wanted.count > 0 && looks > 0) {
    TRY_ASSIGN(const auto page, pending_page(group, *done.next, page_entries));
    std::vector<StreamId> ids;
    for (const PendingEntry& entry : page) ids.push_back(entry.id);
    std::vector<Value> entries(ids.size());
    TRY(get_entries(call.keys, key, ids, entries));
    for (size_t i = 0; i < page.size() && wanted.count > 0 && looks > 0; i++) {
      looks--;
      done.next = id_behind(ids[i]);
      if (!entries[i].found()) {
        TRY(group.remove_pending(page[i]));
        done.deleted.push_back(ids[i]);
        wanted.count--;
      } else if (is_idle(call, page[i], wanted.idle_ms)) {
        TRY(claim_entry(call, group, claim, ids[i], page[i], entries[i]));
        done.claimed++;
        wanted.count--;
      }
    }
    if (page.size() < page_entries && (page.empty() || done.next == id_behind(ids.back())))
      done.next.reset();
  }
  return done;
}

}  // namespace

Status xautoclaim(Call& call) {
  TRY_ASSIGN(const AutoClaim wanted, parse_auto_claim(call));
  TRY_ASSIGN(StreamGroup* const group, group_to_claim_in(call));
  TRY_ASSIGN(const Key* const key, call.open(1));
  Bytes entries;
  Reply entries_reply(entries, call.reply.protocol());
  Call inner{call.command, call.args,   entries_reply, call.keys,
             call.session, call.server, call.lookups};
  TRY_ASSIGN(const AutoClaimed done, claim_idle(inner, *key, *group, wanted));
  StreamId next;
  if (done.next) {
    TRY_ASSIGN(const auto behind, pending_page(*group, *done.next, 1));
    if (!behind.empty()) next = behind[0].id;
  }
  call.reply.array(3);
  call.reply.bulk(id_text(next));
  call.reply.array(done.claimed);
  call.reply.raw(entries);
  call.reply.array(done.deleted.size());
  for (const StreamId& id : done.deleted) call.reply.bulk(id_text(id));
  return {};
}

}  // namespace trellis
