// Runs the files of tests/text/redis: what clients say and what they must hear.
//
//   # a comment
//   > SET cart "two words"       the first client; quoted as in a C string
//   < +OK                        one line of the reply's bytes; bulks are escaped likewise, and
//                                so is a blank at the end
//   2> GET cart                  another client
//   @ 1500                       the clock goes on by so many milliseconds
//   | > INCR a                   a pipeline: the lines with | up to the first reply run together
//
// Behind each file the counters must equal a recount, also those of each key's records, and the
// collector must leave nothing of keys that are gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "record_bytes.h"
#include "redis/executor.h"
#include "redis/garbage.h"
#include "support/tenant_fixture.h"
#include "tenant/tokens.h"

namespace trellis {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> text_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(TRELLIS_SOURCE_DIR "/tests/text/redis"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// The words of a line; a quoted one may have blanks and escapes.
std::vector<Bytes> split(std::string_view line) {
  std::vector<Bytes> words;
  for (size_t at = 0; at < line.size();) {
    if (line[at] == ' ') {
      at++;
      continue;
    }
    size_t end = at;
    if (line[at] == '"') {
      for (end++; end < line.size() && line[end] != '"'; end++)
        if (line[end] == '\\') end++;
      end++;
      words.push_back(unquote(line.substr(at, end - at)).value());
    } else {
      end = std::min(line.find(' ', at), line.size());
      words.emplace_back(line.substr(at, end - at));
    }
    at = end;
  }
  return words;
}

// Bytes of replies as lines: CR LF ends one, everything unprintable is escaped.
std::vector<std::string> lines_of(ByteView replies) {
  std::vector<std::string> lines;
  while (!replies.empty()) {
    const size_t end = std::min(replies.find("\r\n"), replies.size());
    std::string quoted = quote(replies.substr(0, end));
    quoted = quoted.substr(1, quoted.size() - 2);
    if (quoted.ends_with(' ')) quoted.replace(quoted.size() - 1, 1, "\\x20");  // files have none
    lines.push_back(std::move(quoted));
    replies.remove_prefix(std::min(end + 2, replies.size()));
  }
  return lines;
}

class RedisText : public TenantFixture {
 protected:
  void SetUp() override {
    TenantFixture::SetUp();
    tokens_.emplace(map_, keyspaces_->changes());
    server_.emplace(*keyspaces_, *tokens_, RedisOptions());
  }

  struct Said {
    int client;
    std::vector<Bytes> words;
  };

  // The replies of all, in the order of what was said.
  Bytes say(const std::vector<Said>& all) {
    std::vector<std::vector<ByteView>> args;
    std::vector<Bytes> out(all.size());
    std::vector<Request> requests;
    for (const Said& said : all) args.emplace_back(said.words.begin(), said.words.end());
    for (size_t i = 0; i < all.size(); i++)
      requests.push_back({&session(all[i].client), args[i], &out[i]});
    // Those of one client stand together, clients in the order in which they come.
    for (auto at = requests.begin(); at != requests.end();) {
      const Session* const client = at->session;
      at = std::stable_partition(at, requests.end(),
                                 [&](const Request& request) { return request.session == client; });
    }
    Executor(*server_).run(requests);
    Bytes replies;
    for (const Bytes& reply : out) replies += reply;
    return replies;
  }

  Session& session(int number) {
    std::unique_ptr<Session>& session = sessions_[number];
    if (session == nullptr) {
      session = std::make_unique<Session>();
      session->id = static_cast<uint64_t>(number);
      session->is_local = true;
      session->address = "10.0.0." + std::to_string(number) + ":4000";
      session->local_address = "10.0.0.0:6379";
      session->connected_ms = clock_.unix_ms();
      EXPECT_OK(server_->greet(*session));
      server_->clients().add(*session);
    }
    return *session;
  }

  void end_sessions() {
    for (const auto& [number, session] : sessions_) server_->leave(*session);
    sessions_.clear();
  }

  // All that is due in a long time from now.
  void collect_all() {
    Gc gc(map_, keyspaces_->changes());
    Collector collector(*keyspaces_, gc, {.gc_life_time_ms = 1});
    RedisGarbageOwner owner(*server_);
    collector.own(Model::redis, owner);
    for (int i = 0; i < 1'000; i++) {
      const auto wait_ms = collector.step();
      ASSERT_OK(wait_ms);
      if (!wait_ms->has_value()) return;
      clock_.advance_ms(**wait_ms);
    }
    FAIL() << "the collector does not come to an end";
  }
  size_t counters_of(KeyspaceId keyspace) {
    Bytes prefix;
    append_keyspace_prefix(prefix, KeyMode::txn, keyspace);
    prefix.push_back('k');
    return entries_in(prefix, prefix_end(prefix));
  }

  void run_file(const fs::path& path) {
    std::ifstream in(path);
    ASSERT_TRUE(in.is_open());
    std::vector<Said> said;
    std::vector<std::string> expected;
    size_t said_at = 0;
    size_t number = 0;
    const auto check = [&] {
      if (said.empty()) return;
      EXPECT_EQ(lines_of(say(said)), expected) << path.filename().string() << ":" << said_at;
      said.clear();
      expected.clear();
    };
    for (std::string line; std::getline(in, line);) {
      number++;
      if (line.empty() || line[0] == '#') continue;
      const bool piped = line.starts_with("| ");
      if (piped) line.erase(0, 2);
      const size_t mark = line.find("> ");
      if (line == "<" || line.starts_with("< ")) {
        expected.push_back(line.substr(std::min<size_t>(2, line.size())));
      } else if (line.starts_with("@ ")) {
        check();
        clock_.advance_ms(std::stoull(line.substr(2)));
      } else if (mark != std::string::npos && mark <= 2) {
        if (!piped || !expected.empty()) check();
        said_at = number;
        const int client = mark == 0 ? 1 : std::stoi(line.substr(0, mark));
        said.push_back({client, split(line.substr(mark + 2))});
      } else {
        FAIL() << path.filename().string() << ":" << number << ": what is " << line;
      }
    }
    check();
  }

  std::optional<Tokens> tokens_;
  std::optional<RedisServer> server_;
  std::map<int, std::unique_ptr<Session>> sessions_;
};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisText, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(RedisText, Files) {
  for (const fs::path& path : text_files()) {
    run_file(path);
    const auto tenant = keyspaces_->tenant(default_keyspace).value();
    EXPECT_EQ(tenant->figures().value(), recount(memory_, default_keyspace).value()) << path;
    expect_record_bytes(memory_, default_keyspace);
    end_sessions();
    say({{1, {"FLUSHALL"}}});
    collect_all();
    const Bytes slots = encode(RedisDatabasesKey{default_keyspace});  // of the databases: stays
    EXPECT_EQ(entries_of(default_keyspace),
              counters_of(default_keyspace) + entries_in(slots, successor(slots)))
        << path;
    EXPECT_EQ(tenant->figures().value(), recount(memory_, default_keyspace).value()) << path;
    EXPECT_EQ(tenant->figures().value().keys, 0) << path;
    end_sessions();
  }
}

}  // namespace
}  // namespace trellis
