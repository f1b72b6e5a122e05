#include "range/range_jobs.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "base/job_control.h"
#include "codec/meta_keys.h"

namespace trellis {
namespace {

constexpr size_t jobs_kept = 20;
constexpr size_t findings_max = 1'000;
constexpr unsigned threads_max = 16;
constexpr unsigned listings_max = 10;

}  // namespace

void RangeSum::add(ByteView key, ByteView value) {
  entries++;
  bytes += key.size() + value.size();
  const XXH128_hash_t of_key = XXH3_128bits(key.data(), key.size());
  const XXH128_hash_t all = XXH3_128bits_withSeed(value.data(), value.size(), of_key.low64);
  hash += (static_cast<unsigned __int128>(all.high64 ^ of_key.high64) << 64) + all.low64;
}

std::string to_hex(const RangeSum& sum) {
  return fmt::format("{:016x}{:016x}", static_cast<uint64_t>(sum.hash >> 64),
                     static_cast<uint64_t>(sum.hash));
}

std::string_view to_string(RangeJobKind kind) {
  return kind == RangeJobKind::recount ? "recount" : "check";
}

std::string_view to_string(RangeJobState state) {
  switch (state) {
    case RangeJobState::running: return "running";
    case RangeJobState::paused: return "paused";
    case RangeJobState::done: return "done";
    case RangeJobState::canceled: return "canceled";
    case RangeJobState::failed: return "failed";
  }
  return "";
}

class RangeJobs::Job {
 public:
  Job(uint64_t id, const RangeJobRequest& request, RangeHome& home, Clock& clock,
      const Hooks& hooks)
      : home_(home), clock_(clock), hooks_(hooks) {
    status_.id = id;
    status_.request = request;
    status_.started_ms = clock.unix_ms();
    control_.set_bytes_per_second(request.bytes_per_s);
  }
  ~Job() { stop(); }

  Status start() {
    TRY(list_ranges());
    status_.ranges_total = ranges_.size();
    sums_.resize(ranges_.size());
    control_.begin_phase("walking", hooks_.bytes_total());
    thread_ = std::thread([this] { run(); });
    return {};
  }

  RangeJobStatus status() const {
    const std::lock_guard lock(mutex_);
    RangeJobStatus status = status_;
    const JobControl::Progress progress = control_.progress();
    status.bytes_done = progress.bytes_done;
    status.bytes_total = progress.bytes_total;
    status.request.bytes_per_s = progress.bytes_per_second;
    if (status.finished_ms == 0 && progress.paused) status.state = RangeJobState::paused;
    return status;
  }
  bool has_ended() const {
    const std::lock_guard lock(mutex_);
    return status_.finished_ms != 0;
  }
  std::vector<CheckedRange> checked(ByteView from, size_t limit) const {
    const std::lock_guard lock(mutex_);
    const auto first = std::ranges::upper_bound(ranges_, from, {}, &RangeDescriptor::end);
    std::vector<CheckedRange> page;
    for (auto i = static_cast<size_t>(first - ranges_.begin());
         i < ranges_.size() && page.size() < limit; i++)
      if (sums_[i]) page.push_back({ranges_[i], *sums_[i]});
    return page;
  }
  JobControl& control() { return control_; }
  void stop() {
    control_.cancel();
    if (thread_.joinable()) thread_.join();
  }

 private:
  // What no range holds would not be walked, and nobody would know. One that is merged while they
  // are listed may leave a hole in the list: so it is looked at again.
  Status list_ranges() {
    Bytes end;
    for (unsigned attempt = 0; attempt < listings_max; attempt++) {
      ranges_.clear();
      end.clear();
      bool tiles = true;
      TRY(home_.for_each([&](const RangeDescriptor& range) {
        tiles = range.start == end;
        if (!tiles) return Visit::stop;
        end = range.end;
        ranges_.push_back(range);
        return Visit::go_on;
      }));
      if (tiles && end == map_key_max) return {};
    }
    return Error{
        Code::corrupt,
        fmt::format("the ranges do not tile the map at {}: run trellis range verify", to_hex(end))};
  }

  void run() {
    const unsigned threads = std::clamp(status_.request.threads, 1u, threads_max);
    const Status done = run_in_parallel(threads, ranges_.size(), [&](size_t i) { return work(i); });
    const std::lock_guard lock(mutex_);
    const bool canceled = !done && done.error().reason == job_canceled;
    status_.state = done       ? RangeJobState::done
                    : canceled ? RangeJobState::canceled
                               : RangeJobState::failed;
    if (!done && !canceled) status_.error = to_string(done.error());
    status_.finished_ms = clock_.unix_ms();
  }

  Result<RangeSum> walk(const RangeDescriptor& range, bool is_progress) {
    RangeSum sum;
    uint64_t paid_bytes = 0;
    Status passed;
    const auto visit = [&](ByteView key, ByteView value) {
      sum.add(key, value);
      return Visit::go_on;
    };
    const auto between = [&] {
      const uint64_t bytes = sum.bytes - paid_bytes;
      paid_bytes = sum.bytes;
      passed = is_progress ? control_.pass(bytes) : control_.pass_again(bytes);
      return passed ? Visit::go_on : Visit::stop;
    };
    TRY(home_.walk(range, visit, between));
    TRY(passed);
    return sum;
  }

  // Whether what is read twice is the same; written meanwhile it need not be, so it is tried again.
  Result<bool> agrees(const RangeDescriptor& range, RangeSum last) {
    for (int attempt = 0; attempt < 2; attempt++) {
      TRY_ASSIGN(const RangeSum again, walk(range, false));
      if (again == last) return true;
      last = again;
    }
    return false;
  }

  Status work(size_t number) {
    const RangeDescriptor& range = ranges_[number];
    TRY_ASSIGN(const RangeSum sum, walk(range, true));
    bool agreed = true;
    if (status_.request.kind == RangeJobKind::check) {
      TRY_ASSIGN(agreed, agrees(range, sum));
    } else {
      hooks_.counted(range, sum);
    }
    const std::lock_guard lock(mutex_);
    status_.ranges_done++;
    status_.sum.entries += sum.entries;
    status_.sum.bytes += sum.bytes;
    status_.sum.hash += sum.hash;
    sums_[number] = sum;
    if (!agreed && status_.findings.size() < findings_max)
      status_.findings.push_back(
          {range,
           "three walks found three things: it is being written, or does not read the same"});
    return {};
  }

  RangeHome& home_;
  Clock& clock_;
  const Hooks& hooks_;
  JobControl control_;
  std::vector<RangeDescriptor> ranges_;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::vector<std::optional<RangeSum>> sums_;  // of each; absent: not done
  RangeJobStatus status_;
};

RangeJobs::RangeJobs(RangeHome& home, Clock& clock, Hooks hooks)
    : home_(home), clock_(clock), hooks_(std::move(hooks)) {}

RangeJobs::~RangeJobs() { stop(); }

void RangeJobs::stop() {
  std::deque<std::shared_ptr<Job>> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(jobs_);
  }
  for (const auto& job : jobs) job->stop();  // also if somebody else holds it
}

Result<RangeJobStatus> RangeJobs::start(const RangeJobRequest& request) {
  const std::lock_guard lock(mutex_);
  for (const auto& job : jobs_)
    if (!job->has_ended())
      return Error{Code::busy,
                   fmt::format("job {} is under way: wait for it, or cancel it", job->status().id)};
  auto job = std::make_shared<Job>(++last_id_, request, home_, clock_, hooks_);
  TRY(job->start());
  jobs_.push_front(job);
  if (jobs_.size() > jobs_kept) jobs_.pop_back();
  return job->status();
}

std::vector<RangeJobStatus> RangeJobs::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<RangeJobStatus> all;
  for (const auto& job : jobs_) all.push_back(job->status());
  return all;
}

Result<std::shared_ptr<RangeJobs::Job>> RangeJobs::job(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& job : jobs_)
    if (job->status().id == id) return job;
  return Error{Code::not_found, fmt::format("there is no job {}: the list of jobs has them", id)};
}

Result<RangeJobStatus> RangeJobs::find(uint64_t id) const {
  TRY_ASSIGN(const auto found, job(id));
  return found->status();
}

Result<std::vector<CheckedRange>> RangeJobs::checked(uint64_t id, ByteView from,
                                                     size_t limit) const {
  TRY_ASSIGN(const auto found, job(id));
  return found->checked(from, limit);
}

Result<RangeJobStatus> RangeJobs::set_paused(uint64_t id, bool paused) {
  TRY_ASSIGN(const auto found, job(id));
  found->control().pause(paused);
  return found->status();
}

Result<RangeJobStatus> RangeJobs::set_limit(uint64_t id, uint64_t bytes_per_s) {
  TRY_ASSIGN(const auto found, job(id));
  found->control().set_bytes_per_second(bytes_per_s);
  return found->status();
}

Result<RangeJobStatus> RangeJobs::cancel(uint64_t id) {
  TRY_ASSIGN(const auto found, job(id));
  found->control().cancel();
  return found->status();
}

}  // namespace trellis
