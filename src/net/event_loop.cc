#include "net/event_loop.h"

#include <sched.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "base/assert.h"
#include "base/log.h"

namespace trellis {
namespace {

constexpr int polls_in_a_row_max = 16;
constexpr size_t few_ready = 12;
constexpr size_t crowd = 12;  // members
constexpr size_t no_crowd_more = 6;
constexpr auto yield_time_max = std::chrono::microseconds(500);
constexpr uint32_t turns_without_yield = 256;
constexpr auto load_window = std::chrono::milliseconds(50);

void run_all(const std::vector<std::function<void()>>& functions) {
  for (const std::function<void()>& function : functions) {
    try {
      function();
    } catch (const std::exception& error) {  // the others must run all the same
      log_error("an event handler threw", {{"what", error.what()}});
    }
  }
}

}  // namespace

void Mailbox::post(std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  if (io_ == nullptr) return;
  queue_.push_back(std::move(function));
  // One wake-up for all that come before it is heard.
  if (queue_.size() == 1) boost::asio::post(*io_, [self = shared_from_this()] { self->run(); });
}

void Mailbox::run() {
  std::vector<std::function<void()>> functions;
  {
    const std::lock_guard lock(mutex_);
    functions.swap(queue_);
  }
  run_all(functions);
}

void Mailbox::close() {
  std::vector<std::function<void()>> functions;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  io_ = nullptr;
  functions.swap(queue_);
}

EventLoop::EventLoop(uint32_t sweep_ms)
    : mailbox_(std::make_shared<Mailbox>(io_)),
      guard_(io_.get_executor()),
      timer_(io_),
      sweep_ms_(sweep_ms),
      poller_(io_, epoll_create1(EPOLL_CLOEXEC)) {}

EventLoop::~EventLoop() {
  mailbox_->close();
  if (!thread_.joinable()) return;
  io_.stop();  // only where a start failed half-way
  thread_.join();
}

void EventLoop::start() {
  sweep_later();
  poll_later();
  thread_ = std::thread([this] { run(); });
}

void EventLoop::run() {
  while (true) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {
      log_error("an event handler threw", {{"what", error.what()}});
    }
  }
}

void EventLoop::finish() {
  mailbox_->post([this] {
    timer_.cancel();
    poller_.close();
    guard_.reset();
  });
  thread_.join();
  mailbox_->close();
  ASSERT(members_.empty());
}

void EventLoop::sweep_later() {
  timer_.expires_after(std::chrono::milliseconds(sweep_ms_));
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // finish()
    for_each(&LoopMember::tick);
    if (guard_.owns_work()) sweep_later();
  });
}

void EventLoop::add(std::shared_ptr<LoopMember> member) {
  member->index_ = members_.size();
  members_.push_back(std::move(member));
  if (!is_crowded_ && members_.size() >= crowd) set_crowded(true);
}

void EventLoop::remove(LoopMember& member) {
  for (size_t i = 0; i < ready_count_; ++i)
    if (ready_[i].data.ptr == &member) ready_[i].data.ptr = nullptr;
  const size_t index = member.index_;
  ASSERT(members_[index].get() == &member);
  const std::shared_ptr<LoopMember> removed = std::move(members_[index]);
  if (index + 1 < members_.size()) {
    members_[index] = std::move(members_.back());
    members_[index]->index_ = index;
  }
  members_.pop_back();
  if (is_crowded_ && members_.size() <= no_crowd_more) set_crowded(false);
}

// As a batch thread, one that wakes up takes no core from who runs there. On cores that are shared
// with clients, that is who makes more members ready; taken off after each request, it makes turns
// small and switches many. Where a core is idle it changes nothing. A few members are not kept
// waiting, and a policy that was given from outside stays.
void EventLoop::set_crowded(bool is_crowded) {
  is_crowded_ = is_crowded;
  const sched_param none{};
  if (is_crowded && sched_getscheduler(0) == SCHED_OTHER)
    is_batch_thread_ = sched_setscheduler(0, SCHED_BATCH, &none) == 0;
  else if (is_batch_thread_)
    is_batch_thread_ = sched_setscheduler(0, SCHED_OTHER, &none) != 0;
}

bool EventLoop::watch(int socket, uint32_t events, LoopMember& member) {
  epoll_event event{.events = events | EPOLLET, .data = {.ptr = &member}};
  return epoll_ctl(poller_.native_handle(), EPOLL_CTL_ADD, socket, &event) == 0;
}

void EventLoop::change_watch(int socket, uint32_t events, LoopMember& member) {
  epoll_event event{.events = events | EPOLLET, .data = {.ptr = &member}};
  epoll_ctl(poller_.native_handle(), EPOLL_CTL_MOD, socket, &event);
}

void EventLoop::end_watch(int socket) {
  epoll_ctl(poller_.native_handle(), EPOLL_CTL_DEL, socket, nullptr);
}

void EventLoop::poll_later() {
  poller_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this](boost::system::error_code error) {
                       if (error) return;  // finish()
                       // A busy loop finds more; but Asio's own events have their turn too.
                       for (int turn = 0; turn < polls_in_a_row_max && poll(); ++turn) continue;
                       poll_later();
                     });
}

// How many more are ready now.
size_t EventLoop::look() {
  const int count = epoll_wait(poller_.native_handle(), ready_.data() + ready_count_,
                               static_cast<int>(ready_.size() - ready_count_), 0);
  return count > 0 ? static_cast<size_t>(count) : 0;
}

// A turn for few costs almost what a turn for many does, and where clients share our cores, those
// who would make them many may wait for this one: they go first. Not where it is somebody else who
// then keeps it for long.
void EventLoop::wait_for_more() {
  if (ready_count_ >= std::min(few_ready, members_.size())) return;
  if (turns_until_yield_ > 0) {
    --turns_until_yield_;
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::yield();
  if (std::chrono::steady_clock::now() - start > yield_time_max)
    turns_until_yield_ = turns_without_yield;
  ready_count_ += look();
}

// One turn: tells all that are ready, then ends it. False if it is not worth to look again at once.
bool EventLoop::poll() {
  ready_count_ = look();
  if (ready_count_ == 0) return false;
  wait_for_more();
  const size_t count = ready_count_;
  served_ += count;
  const Time start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < ready_count_; ++i) {
    auto* const member = static_cast<LoopMember*>(ready_[i].data.ptr);
    if (member != nullptr) member->ready(ready_[i].events);
  }
  ready_count_ = 0;
  end_turn();
  count_load(start);
  return count > 1;
}

void EventLoop::count_load(Time turn_start) {
  const Time now = std::chrono::steady_clock::now();
  busy_ += now - turn_start;
  if (now - load_since_ < load_window) return;
  const LoopLoad load{.busy = std::chrono::duration<double>(busy_) / (now - load_since_),
                      .served = std::exchange(served_, 0)};
  busy_ = {};
  load_since_ = now;
  if (on_load_) run_all({[&] { on_load_(load); }});
}

// A wait for events queues the handlers of all sockets that it found ready, so what is posted by
// one of them runs behind the last.
void EventLoop::at_end_of_turn(std::function<void()> function) {
  const bool is_polling = ready_count_ > 0;  // then the turn ends by itself
  if (at_end_of_turn_.empty() && !is_polling) boost::asio::post(io_, [this] { end_turn(); });
  at_end_of_turn_.push_back(std::move(function));
}

void EventLoop::end_turn() {
  ending_.swap(at_end_of_turn_);
  run_all(ending_);
  ending_.clear();
}

// From the end here too: the last one takes the place of a removed one.
void EventLoop::visit(FunctionRef<bool(LoopMember&)> visitor) {
  for (size_t i = members_.size(); i-- > 0;)
    if (!visitor(*members_[i])) return;
}

// From the end, because members may be removed meanwhile and the last one takes a removed one's
// place: so none is missed, but one may be met again.
void EventLoop::for_each(void (LoopMember::*action)()) {
  for (size_t i = members_.size(); i-- > 0;) {
    if (i >= members_.size()) continue;
    const std::shared_ptr<LoopMember> member = members_[i];
    (member.get()->*action)();
  }
}

}  // namespace trellis
