// Every limit of Trellis, units last. What is over a limit is refused by name, never cut.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trellis {

constexpr uint32_t keyspace_id_max = 0xff'ffff;  // 3 bytes in the key; ids are never reused

constexpr size_t keyspace_name_bytes_max = 64;
constexpr size_t keyspace_config_bytes_max = 64 * 1024;  // all keys and values of one
constexpr size_t keyspace_tokens_max = 1'000;
constexpr size_t keyspace_barriers_max = 1'000;
constexpr size_t request_id_bytes_max = 128;
constexpr size_t label_bytes_max = 128;  // of tokens and services

constexpr size_t key_bytes_max = 64 * 1024;
constexpr size_t value_bytes_max = 16 * 1024 * 1024;
// One commit of any engine. What is larger is staged and made visible by one small commit.
constexpr size_t commit_bytes_max = 32 * 1024 * 1024;
// What an operation may hold in memory to write it in several commits.
constexpr size_t rewritten_bytes_max = 256 * 1024 * 1024;
// The reason of errors that tell of either.
inline constexpr const char* commit_too_large = "commit_too_large";
// What one commit may rely on: two values of the largest size and a page, with some to spare.
constexpr size_t expectation_bytes_max = 64 * 1024 * 1024;
constexpr size_t block_bytes_max = 64 * 1024;  // one block of file data

// A scan page: what one call may pin or hold in memory.
constexpr size_t scan_page_entries_max = 100'000;
constexpr size_t scan_page_bytes_max = 16 * 1024 * 1024;

// One reply of Redis's protocol: it is made in memory before it is sent.
constexpr size_t reply_bytes_max = 256 * 1024 * 1024;

// How often transact runs a function whose commits conflict before it gives up.
constexpr unsigned transact_attempts_max = 100;

static_assert(key_bytes_max + value_bytes_max < commit_bytes_max);
static_assert(block_bytes_max < commit_bytes_max);

}  // namespace trellis
