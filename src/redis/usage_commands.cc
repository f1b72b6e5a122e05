// SLOWLOG and LATENCY: what took long, in the caller's keyspace.
#include <fmt/format.h>

#include <algorithm>

#include "redis/call.h"
#include "redis/help.h"
#include "redis/number_text.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

// --- SLOWLOG ---

Status slowlog_get(AloneCall& call) {
  constexpr int64_t count_by_default = 10;
  if (call.count() > 3) return wrong_subcommand(call);
  const auto count = call.count() == 3 ? parse_integer(call.arg(2)) : count_by_default;
  if (!count || *count < -1) return reply_with("ERR count should be greater than or equal to -1");
  const std::vector<SlowCommand> commands =
      call.session.usage->slow_commands(*count < 0 ? SIZE_MAX : static_cast<size_t>(*count));
  call.reply.array(commands.size());
  for (const SlowCommand& slow : commands) {
    call.reply.array(6);
    call.reply.integer(static_cast<int64_t>(slow.id));
    call.reply.integer(static_cast<int64_t>(slow.unix_s));
    call.reply.integer(static_cast<int64_t>(slow.us));
    call.reply.array(slow.args.size());
    for (const std::string& arg : slow.args) call.reply.bulk(arg);
    call.reply.bulk(slow.address);
    call.reply.bulk(slow.name);
  }
  return {};
}

Status slowlog_len(AloneCall& call) {
  call.reply.integer(static_cast<int64_t>(call.session.usage->slow_count()));
  return {};
}

Status slowlog_reset(AloneCall& call) {
  call.session.usage->forget_slow_commands();
  call.reply.ok();
  return {};
}

// --- LATENCY ---

using Samples = std::deque<LatencyEvent::Sample>;

Status latency_latest(AloneCall& call) {
  const auto events = call.session.usage->latency_events();
  call.reply.array(events.size());
  for (const auto& [name, event] : events) {
    call.reply.array(4);
    call.reply.bulk(name);
    call.reply.integer(static_cast<int64_t>(event.samples.back().unix_s));
    call.reply.integer(static_cast<int64_t>(event.samples.back().ms));
    call.reply.integer(static_cast<int64_t>(event.highest_ms));
  }
  return {};
}

Status latency_history(AloneCall& call) {
  const auto events = call.session.usage->latency_events();
  const auto found = events.find(call.arg(2));
  const Samples samples = found == events.end() ? Samples() : found->second.samples;
  call.reply.array(samples.size());
  for (const LatencyEvent::Sample& sample : samples) {
    call.reply.array(2);
    call.reply.integer(static_cast<int64_t>(sample.unix_s));
    call.reply.integer(static_cast<int64_t>(sample.ms));
  }
  return {};
}

Status latency_reset(AloneCall& call) {
  int64_t count = 0;
  if (call.count() == 2)
    for (const auto& [name, event] : call.session.usage->latency_events())
      count += call.session.usage->forget_latency_event(name) ? 1 : 0;
  for (size_t i = 2; i < call.count(); i++)
    count += call.session.usage->forget_latency_event(call.arg(i)) ? 1 : 0;
  call.reply.integer(count);
  return {};
}

struct Extremes {
  uint64_t low_ms;
  uint64_t high_ms;
};
Extremes extremes_of(const Samples& samples) {
  const auto [low, high] = std::minmax_element(
      samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.ms < b.ms; });
  return {low->ms, high->ms};
}

// "5s", "12m", "3h", "2d".
std::string age_text(uint64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3'600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86'400) return fmt::format("{}h", seconds / 3'600);
  return fmt::format("{}d", seconds / 86'400);
}

// A column for each sample, as high as it took long, and under it how old it is.
Status latency_graph(AloneCall& call) {
  constexpr size_t rows = 4;
  const auto events = call.session.usage->latency_events();
  const auto found = events.find(call.arg(2));
  if (found == events.end())
    return reply_with(fmt::format("ERR No samples available for event '{}'", shown(call.arg(2))));
  const Samples& samples = found->second.samples;
  const Extremes extremes = extremes_of(samples);
  const uint64_t range = std::max<uint64_t>(extremes.high_ms - extremes.low_ms, 1);
  std::vector<std::string> lines(rows);
  std::vector<std::string> ages;
  for (const LatencyEvent::Sample& sample : samples) {
    const size_t height = 1 + (sample.ms - extremes.low_ms) * (rows - 1) / range;
    for (size_t row = 0; row < rows; row++) lines[row] += rows - row <= height ? '#' : ' ';
    const uint64_t now_s = call.now_ms / 1'000;
    ages.push_back(age_text(now_s - std::min(now_s, sample.unix_s)));
  }
  for (size_t row = 0, most = 1; row < most; row++) {  // written downwards
    std::string line;
    for (const std::string& age : ages) {
      most = std::max(most, age.size());
      line += row < age.size() ? age[row] : ' ';
    }
    lines.push_back(line);
  }
  std::string text = fmt::format("{} - high {} ms, low {} ms (all time high {} ms)\n{}\n",
                                 found->first, extremes.high_ms, extremes.low_ms,
                                 found->second.highest_ms, std::string(80, '-'));
  for (const std::string& line : lines) text += line + "\n";
  call.reply.verbatim(text);
  return {};
}

Status latency_doctor(AloneCall& call) {
  const auto events = call.session.usage->latency_events();
  std::string text;
  for (const auto& [name, event] : events) {
    uint64_t sum_ms = 0;
    for (const LatencyEvent::Sample& sample : event.samples) sum_ms += sample.ms;
    text += fmt::format("{}: {} seconds with latency events, average {} ms, worst {} ms.\n", name,
                        event.samples.size(), sum_ms / event.samples.size(), event.highest_ms);
  }
  if (text.empty())
    text =
        "No latency events. They are noted from so many milliseconds on: CONFIG SET "
        "latency-monitor-threshold <milliseconds>; 0 notes none.\n";
  else
    text +=
        "See which commands they were with SLOWLOG GET, and how they are spread with LATENCY "
        "HISTOGRAM.\n";
  call.reply.verbatim(text);
  return {};
}

bool is_asked_for(const AloneCall& call, const Command& command) {
  if (call.count() == 2) return true;
  for (size_t i = 2; i < call.count(); i++)
    if (call.is_word(i, full_name(command)) || call.is_word(i, command.container)) return true;
  return false;
}

Status latency_histogram(AloneCall& call) {
  const UsageFigures figures = call.session.usage->figures();
  const bool is_told =
      call.server.config().value(call.session.tenant->id(), "latency-tracking") == "yes";
  std::map<std::string, const CommandFigures*> found;
  for (const auto& [command, of_command] : figures.commands)
    if (is_told && of_command.calls > 0 && is_asked_for(call, *command))
      found.emplace(full_name(*command), &of_command);
  call.reply.map(found.size());
  for (const auto& [name, of_command] : found) {
    call.reply.bulk(name);
    call.reply.map(2);
    call.reply.bulk("calls");
    call.reply.integer(static_cast<int64_t>(of_command->calls));
    call.reply.bulk("histogram_usec");
    const size_t mark = call.reply.mark();
    size_t buckets = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < duration_buckets; i++) {
      if (of_command->durations[i] == 0) continue;
      sum += of_command->durations[i];
      call.reply.integer(static_cast<int64_t>(bucket_end_ns(i) / 1'000));
      call.reply.integer(static_cast<int64_t>(sum));
      buckets++;
    }
    call.reply.insert_map(mark, buckets);
  }
  return {};
}

constexpr Command usage_entry(std::string_view container, std::string_view name, int arity,
                              uint32_t flags, Status (*handler)(AloneCall&), std::string_view since,
                              std::string_view syntax, std::string_view summary) {
  return {.name = name,
          .arity = arity,
          .flags = admin | loading | stale | flags,
          .handler = handler,
          .since = since,
          .summary = summary,
          .container = container,
          .syntax = syntax};
}

const Command slowlog_table[] = {
    usage_entry("slowlog", "get", -2, for_everyone, slowlog_get, "2.2.12", "[<count>]",
                "The latest slow commands, 10 if not said otherwise, -1 for all."),
    help_entry("slowlog", "6.2.0"),
    usage_entry("slowlog", "len", 2, for_everyone, slowlog_len, "2.2.12", "",
                "How many slow commands are kept."),
    usage_entry("slowlog", "reset", 2, 0, slowlog_reset, "2.2.12", "",
                "Forgets the slow commands."),
};

const Command latency_table[] = {
    usage_entry("latency", "doctor", 2, noscript | for_everyone, latency_doctor, "2.8.13", "",
                "A report on latency events."),
    usage_entry("latency", "graph", 3, noscript | for_everyone, latency_graph, "2.8.13", "<event>",
                "The samples of an event, drawn."),
    help_entry("latency", "2.8.13"),
    usage_entry("latency", "histogram", -2, noscript | for_everyone, latency_histogram, "7.0.0",
                "[<command> ...]", "How many calls of commands took how long at most."),
    usage_entry("latency", "history", 3, noscript | for_everyone, latency_history, "2.8.13",
                "<event>", "The samples of an event, with their times."),
    usage_entry("latency", "latest", 2, noscript | for_everyone, latency_latest, "2.8.13", "",
                "The latest sample of all events."),
    usage_entry("latency", "reset", -2, noscript, latency_reset, "2.8.13", "[<event> ...]",
                "Forgets the samples of events."),
};

namespace usage_table {

const Command table[] = {
    {.name = "latency",
     .arity = -2,
     .since = "2.8.13",
     .summary = "What took long, by kinds of events.",
     .subcommands = latency_table},
    {.name = "slowlog",
     .arity = -2,
     .since = "2.2.12",
     .summary = "Commands that took long.",
     .subcommands = slowlog_table},
};

}  // namespace usage_table

}  // namespace

std::span<const Command> usage_commands() { return usage_table::table; }

}  // namespace trellis
