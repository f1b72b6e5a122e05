#include "net/event_loop.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <boost/asio/post.hpp>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace trellis {
namespace {

constexpr uint32_t no_sweep_ms = 3'600'000;

class Member final : public LoopMember {
 public:
  explicit Member(std::function<void()> on_stop) : on_stop_(std::move(on_stop)) {}
  void tick() override {}
  void stop() override { on_stop_(); }
  void abort() override {}

 private:
  const std::function<void()> on_stop_;
};

void run_on(EventLoop& loop, const std::function<void()>& function) {
  std::promise<void> done;
  loop.mailbox()->post([&] {
    function();
    done.set_value();
  });
  done.get_future().wait();
}

// As when what one connection does closes others.
TEST(EventLoopTest, AMemberMayRemoveAnyOthers) {
  constexpr size_t count = 10;
  for (size_t kept = 0; kept < count; ++kept) {
    EventLoop loop(no_sweep_ms);
    loop.start();
    run_on(loop, [&] {
      std::vector<std::shared_ptr<Member>> members;
      std::vector<size_t> stops(count);
      for (size_t i = 0; i < count; ++i) {
        members.push_back(std::make_shared<Member>([&, i] {
          if (++stops[i] > 1) return;
          for (size_t other = 0; i == count - 1 && other < count; ++other) {
            if (other != kept) loop.remove(*members[other]);
          }
        }));
        loop.add(members[i]);
      }
      loop.for_each(&LoopMember::stop);
      EXPECT_GE(stops[kept], 1U) << kept;
      loop.remove(*members[kept]);
    });
    loop.finish();
  }
}

TEST(EventLoopTest, OnlyACrowdedLoopLetsWhoRunsGoOn) {
  if (sched_getscheduler(0) != SCHED_OTHER) GTEST_SKIP() << "another policy was given from outside";
  EventLoop loop(no_sweep_ms);
  loop.start();
  run_on(loop, [&] {
    std::vector<std::shared_ptr<Member>> members;
    for (int i = 0; i < 100; ++i) {
      if (i <= 1) {
        EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
      }
      members.push_back(std::make_shared<Member>([] {}));
      loop.add(members.back());
    }
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
    for (const auto& member : members) loop.remove(*member);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  });
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  loop.finish();
}

TEST(EventLoopTest, TheEndOfATurnComesBehindWhatIsQueued) {
  EventLoop loop(no_sweep_ms);
  loop.start();
  std::string order;
  std::promise<void> done;
  run_on(loop, [&] {
    boost::asio::post(loop.io(), [&] {
      loop.at_end_of_turn([&] {
        order += "end ";
        loop.at_end_of_turn([&] {  // the next turn's
          order += "next";
          done.set_value();
        });
      });
      loop.at_end_of_turn([&] { order += "end "; });
      order += "first ";
    });
    boost::asio::post(loop.io(), [&] { order += "second "; });
  });
  done.get_future().wait();
  EXPECT_EQ(order, "first second end end next");
  loop.finish();
}

}  // namespace
}  // namespace trellis
