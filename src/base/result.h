// Result<T> and Status: how a call that can fail says so.
//
//   Result<Inode> load(InodeId id);             // a value or an Error
//   Status store(const Inode& inode);           // nothing or an Error
//   Result<std::optional<Inode>> find(name);    // absence is not an error
//
//   TRY_ASSIGN(Inode inode, load(id));          // returns the Error of load, or goes on
//   TRY(store(inode));
//   discard(engine.compact());                  // best effort, and visibly so
//
// No exception crosses a module border. Dropping a Result warns, and warnings are errors.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace trellis {

// What kind of failure: decides what a caller does next (retry, tell the user, give up) and which
// status a protocol answers with. The message says what happened and what to do about it.
enum class Code : unsigned char {
  invalid,      // the caller's input is wrong; retrying cannot help
  not_found,    // a thing that must exist does not
  exists,       // a thing that must not exist does
  conflict,     // somebody else changed it first; a retry may succeed
  refused,      // a condition that the caller gave does not hold
  denied,       // not allowed
  too_large,    // over a limit of base/limits.h
  exhausted,    // over a quota of the tenant
  no_space,     // the disk is full
  busy,         // in use by another process
  corrupt,      // stored bytes do not make sense
  unsupported,  // this engine or build cannot do it
  unavailable,  // it may work later: I/O error, shut down, timed out
  maybe,        // outcome unknown: it may or may not have happened
};

std::string_view to_string(Code code);

struct Error {
  Code code;
  std::string message;
  // A stable name for machines, finer than the code ("keyspace_not_found"); often empty. Static
  // text.
  std::string_view reason = {};
  uint64_t retry_after_ms = 0;  // when a retry may succeed, if that is known
};

// "corrupt: offset 3: ..."
std::string to_string(const Error& error);

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error) : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}
};

using Status = Result<void>;

// For best-effort calls whose failure is handled elsewhere or later; the call site says why.
template <class T>
void discard(Result<T>&&) {}

// Adds context in front of an error's message: "open /data: in use by another process".
Error with_context(std::string_view context, Error error);

// The two statements below end the enclosing function with the Error of `expr`, if it has one.
#define TRY(expr)                                              \
  do {                                                         \
    if (auto try_status_ = (expr); !try_status_.has_value())   \
      return ::trellis::Error(std::move(try_status_).error()); \
  } while (false)

#define TRY_ASSIGN(declaration, expr) \
  TRY_ASSIGN_NAMED_(TRY_CONCAT_(try_result_, __LINE__), declaration, expr)
#define TRY_ASSIGN_NAMED_(result, declaration, expr)                           \
  auto result = (expr);                                                        \
  if (!result.has_value()) return ::trellis::Error(std::move(result).error()); \
  declaration = std::move(*result)
#define TRY_CONCAT_(a, b) TRY_CONCAT_AGAIN_(a, b)
#define TRY_CONCAT_AGAIN_(a, b) a##b

}  // namespace trellis
