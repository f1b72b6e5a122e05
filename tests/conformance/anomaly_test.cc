// What must not happen between transactions. Each anomaly is first shown to appear where nothing
// keeps the transactions apart, so that its absence elsewhere says something.
#include <atomic>
#include <barrier>
#include <thread>

#include "conformance/engine_fixture.h"

namespace trellis {
namespace {

// Two transactions that would do harm to each other, on a fresh map.
struct Trap {
  virtual ~Trap() = default;
  virtual void set_up(Engine& engine) = 0;
  virtual Scope scope(size_t thread) = 0;
  // Reads; what is written follows from it. `in_between` is called once both are read.
  virtual Status run(size_t thread, View& view, FunctionRef<void()> in_between) = 0;
  // Whether both ran as if one after the other.
  virtual bool intact(Engine& engine) = 0;
};

Result<int64_t> read_number(View& view, ByteView key) {
  Value value;
  TRY(view.get(key, value));
  return value.found() ? number_of(Bytes(value.bytes())) : 0;
}

// Both add one.
struct LostUpdate final : Trap {
  void set_up(Engine& engine) override { ASSERT_OK(commit(engine, put(raw("n"), "0"))); }
  Scope scope(size_t) override {
    Scope scope = Scope::in(keyspace);
    scope.exclusive(raw("n"));
    return scope;
  }
  Status run(size_t, View& view, FunctionRef<void()> in_between) override {
    TRY_ASSIGN(const int64_t number, read_number(view, raw("n")));
    in_between();
    view.put(raw("n"), std::to_string(number + 1));
    return {};
  }
  bool intact(Engine& engine) override { return get(engine, raw("n")) == "2"; }
};

// Two doctors are on call; each leaves if the other stays.
struct WriteSkew final : Trap {
  static Bytes doctor(size_t thread) { return raw(thread == 0 ? "alice" : "bob"); }
  void set_up(Engine& engine) override {
    Commit both;
    for (const size_t thread : {0, 1}) both.writes.put(doctor(thread), "1");
    ASSERT_OK(commit(engine, both));
  }
  Scope scope(size_t thread) override {
    Scope scope = Scope::in(keyspace);
    scope.exclusive(doctor(thread));
    scope.shared(doctor(1 - thread));
    return scope;
  }
  Status run(size_t thread, View& view, FunctionRef<void()> in_between) override {
    TRY_ASSIGN(const int64_t other, read_number(view, doctor(1 - thread)));
    in_between();
    if (other == 1) view.put(doctor(thread), "0");
    return {};
  }
  bool intact(Engine& engine) override {
    return number_of(get(engine, doctor(0))) + number_of(get(engine, doctor(1))) == 1;
  }
};

// Each takes the room if nobody has.
struct Phantom final : Trap {
  void set_up(Engine& engine) override {
    Commit clear;
    clear.writes.remove_range(redis_record("room", ""), prefix_end(redis_record("room", "")));
    ASSERT_OK(commit(engine, clear));
  }
  Scope scope(size_t) override {
    Scope scope = Scope::in(keyspace);
    scope.exclusive(redis_meta("room"));
    return scope;
  }
  Status run(size_t thread, View& view, FunctionRef<void()> in_between) override {
    const Bytes begin = redis_record("room", "");
    const Bytes end = prefix_end(begin);
    TRY_ASSIGN(const ScanPage page, view.scan({.begin = begin, .end = end},
                                              [](ByteView, ByteView) { return Visit::go_on; }));
    in_between();
    if (page.entries == 0) view.put(redis_record("room", std::to_string(thread)), "taken");
    return {};
  }
  bool intact(Engine& engine) override {
    const Bytes begin = redis_record("room", "");
    const Bytes end = prefix_end(begin);
    return scan_all(engine, {.begin = begin, .end = end}).size() == 1;
  }
};

std::unique_ptr<Trap> make_trap(const std::string& name) {
  if (name == "lost update") return std::make_unique<LostUpdate>();
  if (name == "write skew") return std::make_unique<WriteSkew>();
  return std::make_unique<Phantom>();
}

const char* const trap_names[] = {"lost update", "write skew", "phantom"};

class AnomalyConformance : public TransactConformance {
 protected:
  // The whole of one transaction between the reads and the writes of the other: the one
  // interleaving in which every trap snaps. Tells how often the outer one ran.
  int interleave(Trap& trap, Transactor& outer, Transactor& inner) {
    trap.set_up(engine());
    int runs = 0;
    const auto nothing = [] {};
    EXPECT_OK(outer.transact(trap.scope(0), [&](View& view) {
      const bool first_run = runs++ == 0;
      return trap.run(0, view, [&] {
        if (!first_run) return;
        EXPECT_OK(inner.transact(trap.scope(1),
                                 [&](View& other) { return trap.run(1, other, nothing); }));
      });
    }));
    return runs;
  }
};

// Two transactors do not know each other's latches, and the latched way validates nothing: so
// this is a transaction without any protection.
class LatchedAnomaly : public AnomalyConformance {};

TEST_P(LatchedAnomaly, ATrapSnapsWithoutLatches) {
  Transactor stranger(engine(), clock_, {.way = Way::latched, .check_scope = true});
  for (const char* name : trap_names) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Trap> trap = make_trap(name);
    EXPECT_EQ(interleave(*trap, transactor(), stranger), 1);
    EXPECT_FALSE(trap->intact(engine()));
  }
}

ON_THE_WAY(LatchedAnomaly, Way::latched);

// Commits without checking what they rely on.
class ForgetfulEngine final : public Engine {
 public:
  explicit ForgetfulEngine(Engine& inner) : inner_(inner) {}
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override {
    std::vector<Commit> forgotten;
    for (const Commit* one : commits) {
      forgotten.push_back(*one);
      forgotten.back().expectations.clear();
    }
    std::vector<const Commit*> pointers;
    for (const Commit& one : forgotten) pointers.push_back(&one);
    return inner_.commit_many(pointers, outcomes);
  }
  Status get(ByteView key, Value& value) override { return inner_.get(key, value); }
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override {
    return inner_.multi_get(keys, values);
  }
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override {
    return inner_.scan(request, visit);
  }
  std::optional<Bytes> evidence(const Value& value) const override {
    return inner_.evidence(value);
  }
  Status wait_durable(CommitTicket ticket) override { return inner_.wait_durable(ticket); }
  CommitTicket last_ticket() const override { return inner_.last_ticket(); }
  bool shared() const override { return inner_.shared(); }
  BlockStore& blocks() override { return inner_.blocks(); }
  Status checkpoint(const std::filesystem::path& folder) override {
    return inner_.checkpoint(folder);
  }

 private:
  Engine& inner_;
};

class ExpectingAnomaly : public AnomalyConformance {};

TEST_P(ExpectingAnomaly, ATrapSnapsWithoutExpectations) {
  const TransactOptions options{.way = Way::expecting, .check_scope = true};
  ForgetfulEngine one(engine());
  ForgetfulEngine two(under_test_->other());
  Transactor outer(one, clock_, options);
  Transactor inner(two, clock_, options);
  for (const char* name : trap_names) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Trap> trap = make_trap(name);
    EXPECT_EQ(interleave(*trap, outer, inner), 1);
    EXPECT_FALSE(trap->intact(engine()));
  }
}

TEST_P(ExpectingAnomaly, ATrapDoesNotSnapBetweenTwoServers) {
  Transactor other(under_test_->other(), clock_, {.way = Way::expecting, .check_scope = true});
  for (const char* name : trap_names) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Trap> trap = make_trap(name);
    EXPECT_GE(interleave(*trap, transactor(), other), 2);  // it had to run again
    EXPECT_TRUE(trap->intact(engine()));
  }
}

// A transaction that only reads is at one instant as well: it must not see one key from before a
// commit and another from after it.
TEST_P(ExpectingAnomaly, ReadingTwoKeysIsOneInstant) {
  const auto write_both = [&](const char* value) {
    Commit both;
    both.writes.put(raw("a"), value);
    both.writes.put(raw("b"), value);
    ASSERT_OK(commit(under_test_->other(), both));
  };
  write_both("1");
  Scope scope = Scope::in(keyspace);
  scope.shared(raw("a"));
  scope.shared(raw("b"));
  int runs = 0;
  int64_t a = 0;
  int64_t b = 0;
  ASSERT_OK(transactor().transact(scope, [&](View& view) -> Status {
    TRY_ASSIGN(a, read_number(view, raw("a")));
    if (runs++ == 0) write_both("2");
    TRY_ASSIGN(b, read_number(view, raw("b")));
    return {};
  }));
  EXPECT_GE(runs, 2);
  EXPECT_EQ(a, 2);
  EXPECT_EQ(b, 2);
}

ON_THE_WAY(ExpectingAnomaly, Way::expecting);

// Both at once, in threads. In the expecting way both have read before either writes; in the
// latched way nobody may read while the other is between its reads and its writes.
TEST_P(AnomalyConformance, NoTrapSnapsInThreads) {
  const size_t rounds = test_rounds(300);
  for (const char* name : trap_names) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Trap> trap = make_trap(name);
    for (size_t round = 0; round < rounds && !HasFailure(); round++) {
      trap->set_up(engine());
      std::barrier start(2);
      std::barrier both_have_read(2);
      std::atomic<int> inside = 0;
      const auto work = [&](size_t thread) {
        int runs = 0;
        start.arrive_and_wait();
        EXPECT_OK(this->run(thread, trap->scope(thread), [&](View& view) {
          const bool first_run = runs++ == 0;
          return trap->run(thread, view, [&] {
            if (!latched()) {
              if (first_run) both_have_read.arrive_and_wait();
              return;
            }
            EXPECT_EQ(inside.fetch_add(1), 0) << "two at once under one latch";
            std::this_thread::yield();  // an invitation to whoever is not kept out
            inside.fetch_sub(1);
          });
        }));
      };
      std::thread second(work, 1);
      work(0);
      second.join();
      EXPECT_TRUE(trap->intact(engine())) << "round " << round;
    }
  }
}

TEST_P(AnomalyConformance, IncrementsOfManyThreadsAllCount) {
  constexpr int threads_count = 4;
  const int increments = static_cast<int>(test_rounds(1000));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < threads_count; t++) {
    threads.emplace_back([&, t] {
      Scope scope = Scope::in(keyspace);
      scope.exclusive(raw("n"));
      for (int i = 0; i < increments; i++) {
        EXPECT_OK(run(t, scope, [&](View& view) -> Status {
          TRY_ASSIGN(const int64_t number, read_number(view, raw("n")));
          std::this_thread::yield();  // so that others come in between, if they can
          view.put(raw("n"), std::to_string(number + 1));
          return {};
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(get(engine(), raw("n")), std::to_string(threads_count * increments));
}

ON_ALL_WAYS(AnomalyConformance);

}  // namespace
}  // namespace trellis
