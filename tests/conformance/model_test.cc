// Random operations against the simplest model of the map. TRELLIS_TEST_SEED repeats a run.
#include <cstdlib>
#include <iostream>
#include <map>

#include "codec/counter_value.h"
#include "conformance/engine_fixture.h"

namespace trellis {
namespace {

using Model = std::map<Bytes, Bytes>;

Model::const_iterator end_of(const Model& model, ByteView end) {
  return end.empty() ? model.end() : model.lower_bound(Bytes(end));
}

Entries entries_between(const Model& model, ByteView begin, ByteView end) {
  if (!end.empty() && begin >= end) return {};
  return Entries(model.lower_bound(Bytes(begin)), end_of(model, end));
}

void apply(Model& model, const WriteSet& writes) {
  for (const WriteSet::Write& write : writes) {
    const Bytes key(write.key);
    switch (write.op) {
      case WriteOp::put: model[key] = write.value; break;
      case WriteOp::remove: model.erase(key); break;
      case WriteOp::remove_range:
        model.erase(model.lower_bound(key), end_of(model, write.value));
        break;
      case WriteOp::add: {
        const auto found = model.find(key);
        const int64_t before = found == model.end() ? 0 : *decode_counter_value(found->second);
        model[key] = encode_counter_value(add_wrapping(before, write.delta));
        break;
      }
    }
  }
}

class ModelConformance : public EngineConformance {
 protected:
  // Something that was read, to be expected by a later commit.
  struct Remembered {
    Expectation expectation;
    Entries seen;
    bool touched = false;  // written since: an engine may then conflict even if it is as before
  };

  Bytes random_key() {
    Bytes name;
    for (uint64_t i = 1 + random_.below(3); i > 0; i--) {
      name.push_back("abc\xff"[random_.below(4)]);
    }
    return random_.one_in(20) ? counter(name) : raw(name);
  }
  Bytes random_begin() { return random_.one_in(8) ? Bytes(first_key) : random_key(); }
  Bytes random_end() { return random_.one_in(8) ? Bytes() : random_key(); }
  Bytes random_value() {
    return random_.one_in(200) ? random_.bytes(50'000) : random_.bytes(random_.below(12));
  }

  void fill(WriteSet& writes) {
    for (uint64_t i = 1 + random_.below(4); i > 0; i--) {
      const Bytes key = random_key();
      const uint64_t dice = random_.below(20);
      if (dice == 0) {
        const Bytes end = random_end();
        if (end.empty() ? random_.one_in(20) : key < end) writes.remove_range(key, end);
      } else if (dice < 7) {
        writes.remove(key);
      } else if (!is_counter_key(key)) {
        writes.put(key, random_value());
      } else if (random_.one_in(2)) {
        writes.add(key, static_cast<int64_t>(random_.next()));
      } else {
        writes.put(key, encode_counter_value(static_cast<int64_t>(random_.next())));
      }
    }
  }

  void check_get() {
    const Bytes key = random_key();
    const auto found = model_.find(key);
    const auto expected = found == model_.end() ? std::nullopt : std::optional(found->second);
    EXPECT_EQ(get(engine(), key), expected) << quote(key);
  }

  void check_multi_get() {
    std::vector<Bytes> keys(random_.below(9));
    for (Bytes& key : keys) key = random_key();
    const std::vector<ByteView> views(keys.begin(), keys.end());
    std::vector<Value> values(keys.size());
    ASSERT_OK(engine().multi_get(views, values));
    for (size_t i = 0; i < keys.size(); i++) {
      const auto found = model_.find(keys[i]);
      ASSERT_EQ(values[i].found(), found != model_.end()) << quote(keys[i]);
      if (values[i].found()) {
        ASSERT_EQ(values[i].bytes(), found->second) << quote(keys[i]);
      }
    }
  }

  ScanRequest random_scan(const Bytes& begin, const Bytes& end) {
    ScanRequest request{.begin = begin, .end = end, .reverse = random_.one_in(2)};
    if (random_.one_in(2)) request.entries_max = 1 + random_.below(10);
    if (random_.one_in(2)) request.bytes_max = random_.below(200);
    return request;
  }

  void check_scan() {
    const Bytes begin = random_begin();
    const Bytes end = random_end();
    const ScanRequest request = random_scan(begin, end);
    Entries expected = entries_between(model_, begin, end);
    if (request.reverse) std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(scan_all(engine(), request), expected) << quote(begin) << " to " << quote(end);
  }

  void remember_value() {
    const Bytes key = random_key();
    remembered_.push_back(
        {expect_value(engine(), key), entries_between(model_, key, successor(key))});
  }

  void remember_page() {
    const Bytes begin = random_begin();
    const Bytes end = random_end();
    if (!end.empty() && begin > end) return;
    ScanRequest request = random_scan(begin, end);
    request.want_evidence = true;
    Entries entries;
    ScanPage page = scan_page(engine(), request, entries);
    Expectation expectation{begin, end, std::move(page.evidence)};
    if (page.resume.has_value()) {
      (request.reverse ? expectation.begin : *expectation.end) = *page.resume;
    }
    if (request.reverse) std::reverse(entries.begin(), entries.end());
    EXPECT_EQ(entries, entries_between(model_, expectation.begin, *expectation.end));
    remembered_.push_back({std::move(expectation), std::move(entries)});
  }

  static Bytes end_of_interval(const Expectation& expectation) {
    return expectation.end.has_value() ? *expectation.end : successor(expectation.begin);
  }
  static bool meets(const WriteSet::Write& write, const Expectation& expectation) {
    const Bytes begin(write.key);
    const Bytes end = write.op == WriteOp::remove_range ? Bytes(write.value) : successor(write.key);
    const Bytes other_end = end_of_interval(expectation);
    return (other_end.empty() || begin < other_end) && (end.empty() || expectation.begin < end);
  }

  // Follows one commit whose answer is known, and checks that the answer is right.
  void follow(const Commit& done, const std::vector<const Remembered*>& expected,
              const Status& outcome) {
    bool must_conflict = false;
    bool may_conflict = false;
    for (const Remembered* one : expected) {
      const Entries now =
          entries_between(model_, one->expectation.begin, end_of_interval(one->expectation));
      if (now != one->seen) must_conflict = true;
      if (one->touched) may_conflict = true;
    }
    if (outcome.has_value()) {
      EXPECT_FALSE(must_conflict) << "a broken expectation went through";
      apply(model_, done.writes);
      for (const WriteSet::Write& write : done.writes) {
        for (Remembered& one : remembered_) one.touched |= meets(write, one.expectation);
      }
      commits_++;
      return;
    }
    EXPECT_EQ(outcome.error().code, Code::conflict) << outcome.error().message;
    EXPECT_TRUE(must_conflict || may_conflict) << "a conflict for nothing";
    conflicts_++;
  }

  void check_commit_many() {
    std::vector<Commit> commits(1 + random_.below(4));
    std::vector<std::vector<const Remembered*>> expected(commits.size());
    for (size_t i = 0; i < commits.size(); i++) {
      fill(commits[i].writes);
      for (uint64_t n = random_.below(3); n > 0 && !remembered_.empty(); n--) {
        expected[i].push_back(&remembered_[random_.below(remembered_.size())]);
        commits[i].expectations.push_back(expected[i].back()->expectation);
      }
    }
    std::vector<const Commit*> pointers;
    for (const Commit& one : commits) pointers.push_back(&one);
    std::vector<Status> outcomes(commits.size());
    engine().commit_many(pointers, outcomes);
    for (size_t i = 0; i < commits.size(); i++) follow(commits[i], expected[i], outcomes[i]);
    while (remembered_.size() > 8) remembered_.erase(remembered_.begin());
  }

  void check_commit_one() {
    Commit wanted;
    fill(wanted.writes);
    const Status outcome = commit(engine(), wanted);
    follow(wanted, {}, outcome);
  }

  void step() {
    const uint64_t dice = random_.below(100);
    if (dice < 20) return check_get();
    if (dice < 30) return check_multi_get();
    if (dice < 45) return check_scan();
    if (dice < 55) return remember_value();
    if (dice < 65) return remember_page();
    if (dice < 80) return check_commit_many();
    return check_commit_one();
  }

  Random random_{1};
  Model model_;
  std::vector<Remembered> remembered_;
  size_t commits_ = 0;
  size_t conflicts_ = 0;
};

TEST_P(ModelConformance, RandomOperations) {
  const uint64_t seed = test_seed(20'240'229);
  random_ = Random(seed);
  const size_t steps = test_rounds(100'000);
  for (size_t i = 0; i < steps && !HasFailure(); i++) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " step " << i);
    step();
    if (random_.one_in(steps / 5)) {
      remembered_.clear();  // evidence is for the handle that gave it
      under_test_->reopen();
    }
  }
  EXPECT_EQ(scan_all(engine(), {}), Entries(model_.begin(), model_.end()));
  EXPECT_GT(commits_, steps / 10);
  EXPECT_GT(conflicts_, steps / 1000);
  if (FaultyEngine* faulty = under_test_->faulty()) {
    const FaultCounts counts = faulty->counts();
    EXPECT_GT(counts.reads, 0u);
    EXPECT_GT(counts.commits, 0u);
    EXPECT_GT(counts.delays, 0u);
  }
}

ON_ALL_ENGINES(ModelConformance);

}  // namespace
}  // namespace trellis
