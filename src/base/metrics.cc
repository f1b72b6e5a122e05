#include "base/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>

#include "base/assert.h"
#include "base/bytes.h"

namespace trellis {
namespace metrics_detail {

constinit thread_local uint32_t thread_slot = no_slot;

namespace {

// Neither has a destructor, so that threads may end after main.
constinit std::mutex slots_mutex;
constinit bool slot_taken[shared_slot]{};

// Held by a thread for its life. The mutex hands the totals of a slot over to its next thread.
struct SlotLease {
  uint32_t slot = shared_slot;

  SlotLease() {
    std::lock_guard lock(slots_mutex);
    const bool* free = std::find(std::begin(slot_taken), std::end(slot_taken), false);
    if (free == std::end(slot_taken)) return;
    slot = static_cast<uint32_t>(free - slot_taken);
    slot_taken[slot] = true;
  }
  ~SlotLease() {
    thread_slot = shared_slot;  // for destructors of the thread that still add
    if (slot == shared_slot) return;
    std::lock_guard lock(slots_mutex);
    slot_taken[slot] = false;
  }
};

}  // namespace

uint32_t take_slot() {
  thread_local SlotLease lease;
  return thread_slot = lease.slot;
}

uint64_t sum(const Line* lines, size_t lines_per_slot, size_t cell) {
  uint64_t total = 0;
  for (size_t slot = 0; slot < slots_max; slot++)
    total +=
        lines[slot * lines_per_slot + cell / 8].cells[cell % 8].load(std::memory_order_relaxed);
  return total;
}

}  // namespace metrics_detail

namespace {

using metrics_detail::Line;

enum class Kind { counter, gauge, histogram };
constexpr std::string_view kind_names[] = {"counter", "gauge", "histogram"};

struct Series {
  std::unique_ptr<Line[]> lines;
  std::function<double()> read;  // of watched gauges, which have no lines
};

struct Family {
  Kind kind;
  std::string help;
  std::vector<uint64_t> bounds;
  std::map<std::string, Series> series;  // by labels as in the text: a="1",b="2"

  // One cell for the sum, one for each bound, one for what is over the last bound.
  size_t cells() const { return kind == Kind::histogram ? bounds.size() + 2 : 1; }
  size_t lines_per_slot() const { return (cells() + 7) / 8; }
};

bool is_name(std::string_view name, bool colons) {
  for (size_t i = 0; i < name.size(); i++) {
    const char c = name[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (!letter && !(digit && i > 0) && !(colons && c == ':')) return false;
  }
  return !name.empty();
}

std::string escape(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

Result<std::string> label_text(Labels labels, Kind kind) {
  std::sort(labels.begin(), labels.end());
  std::string text;
  for (size_t i = 0; i < labels.size(); i++) {
    const auto& [name, value] = labels[i];
    if (!is_name(name, false) || name.starts_with("__"))
      return Error{Code::invalid, fmt::format("{} is not a label name", quote(name))};
    if (kind == Kind::histogram && name == "le")
      return Error{Code::invalid, "label le is taken by the histogram itself"};
    if (i > 0 && labels[i - 1].first == name)
      return Error{Code::invalid, fmt::format("label {} is given twice", name)};
    text += fmt::format("{}{}=\"{}\"", i > 0 ? "," : "", name, escape(value, true));
  }
  return text;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

void append_histogram(std::string& out, std::string_view name, const std::string& labels,
                      const Family& family, const Line* lines) {
  auto cell = [&](size_t index) {
    return metrics_detail::sum(lines, family.lines_per_slot(), index);
  };
  const std::string in_braces = labels.empty() ? "" : "{" + labels + "}";
  uint64_t count = 0;  // summed up from the buckets, so that it equals the last one at any time
  for (size_t i = 0; i <= family.bounds.size(); i++) {
    count += cell(i + 1);
    const auto bound = i < family.bounds.size() ? std::to_string(family.bounds[i]) : "+Inf";
    out += fmt::format("{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, labels.empty() ? "" : ",",
                       bound, count);
  }
  out += fmt::format("{}_sum{} {}\n", name, in_braces, cell(0));
  out += fmt::format("{}_count{} {}\n", name, in_braces, count);
}

}  // namespace

struct Registry::Impl {
  mutable std::mutex mutex;
  std::map<std::string, Family, std::less<>> families;  // nodes stay, so handles may refer to them

  // A histogram's lines must not look like those of another family.
  Status check_suffixes(const std::string& name, Kind kind) const {
    for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
      bool clash = kind == Kind::histogram && families.contains(name + suffix);
      if (name.ends_with(suffix)) {
        const auto stem = families.find(name.substr(0, name.size() - suffix.size()));
        clash |= stem != families.end() && stem->second.kind == Kind::histogram;
      }
      if (clash)
        return Error{Code::exists, fmt::format("metric {}: a histogram writes {}", name, suffix)};
    }
    return {};
  }

  // The family and series of that name and labels, made if they are not there.
  // REQUIRES: mutex is held
  Result<std::pair<Family*, Series*>> add(std::string_view name, std::string_view help, Kind kind,
                                          std::vector<uint64_t> bounds, Labels labels,
                                          std::function<double()> read = nullptr) {
    if (!is_name(name, true))
      return Error{Code::invalid, fmt::format("{} is not a metric name", quote(name))};
    auto text = label_text(std::move(labels), kind);
    if (!text.has_value()) return with_context(fmt::format("metric {}", name), text.error());
    auto family = families.find(name);
    if (family == families.end()) {
      TRY(check_suffixes(std::string(name), kind));
      family = families.emplace(name, Family{kind, std::string(help), std::move(bounds), {}}).first;
    } else if (const Family& old = family->second;
               old.kind != kind || old.help != help || old.bounds != bounds) {
      return Error{Code::exists,
                   fmt::format("metric {} has another kind, help or bounds already", name)};
    }
    const auto [series, is_new] = family->second.series.try_emplace(*text);
    if (is_new && read) {
      series->second.read = std::move(read);
    } else if (is_new) {
      series->second.lines =
          std::make_unique<Line[]>(family->second.lines_per_slot() * metrics_detail::slots_max);
    } else if (read || series->second.read) {
      return Error{Code::exists, fmt::format("metric {} exists already", name)};
    }
    return std::pair(&family->second, &series->second);
  }
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Result<Counter> Registry::counter(std::string_view name, std::string_view help, Labels labels) {
  std::lock_guard lock(impl_->mutex);
  TRY_ASSIGN(const auto added, impl_->add(name, help, Kind::counter, {}, std::move(labels)));
  return Counter(added.second->lines.get());
}

Result<Gauge> Registry::gauge(std::string_view name, std::string_view help, Labels labels) {
  std::lock_guard lock(impl_->mutex);
  TRY_ASSIGN(const auto added, impl_->add(name, help, Kind::gauge, {}, std::move(labels)));
  return Gauge(added.second->lines.get());
}

Result<Histogram> Registry::histogram(std::string_view name, std::string_view help,
                                      std::vector<uint64_t> bounds, Labels labels) {
  if (bounds.empty() ||
      std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>()) != bounds.end())
    return Error{Code::invalid, fmt::format("metric {}: bounds must rise", quote(name))};
  std::lock_guard lock(impl_->mutex);
  TRY_ASSIGN(const auto added,
             impl_->add(name, help, Kind::histogram, std::move(bounds), std::move(labels)));
  const Family& family = *added.first;
  return Histogram(added.second->lines.get(), family.lines_per_slot(), family.bounds);
}

Status Registry::watch(std::string_view name, std::string_view help, std::function<double()> read,
                       Labels labels) {
  ASSERT(read != nullptr);
  std::lock_guard lock(impl_->mutex);
  TRY(impl_->add(name, help, Kind::gauge, {}, std::move(labels), std::move(read)));
  return {};
}

uint64_t Histogram::count() const {
  uint64_t total = 0;
  for (size_t i = 0; i <= bounds_.size(); i++)
    total += metrics_detail::sum(lines_, lines_per_slot_, i + 1);
  return total;
}

std::vector<uint64_t> doubling_bounds(uint64_t first, size_t count) {
  std::vector<uint64_t> bounds;
  for (size_t i = 0; i < count; i++) {
    ASSERT(i < 64 && first << i >> i == first);
    bounds.push_back(first << i);
  }
  return bounds;
}

std::string prometheus_text(const Registry& registry) {
  std::lock_guard lock(registry.impl_->mutex);
  std::string out;
  for (const auto& [name, family] : registry.impl_->families) {
    out += fmt::format("# HELP {} {}\n", name, escape(family.help, false));
    out += fmt::format("# TYPE {} {}\n", name, kind_names[static_cast<size_t>(family.kind)]);
    for (const auto& [labels, series] : family.series) {
      if (family.kind == Kind::histogram) {
        append_histogram(out, name, labels, family, series.lines.get());
        continue;
      }
      const uint64_t sum = series.read ? 0 : metrics_detail::sum(series.lines.get());
      const std::string value = series.read ? number_text(series.read())
                                : family.kind == Kind::gauge
                                    ? std::to_string(static_cast<int64_t>(sum))
                                    : std::to_string(sum);
      out += labels.empty() ? fmt::format("{} {}\n", name, value)
                            : fmt::format("{}{{{}}} {}\n", name, labels, value);
    }
  }
  return out;
}

}  // namespace trellis
