// What a read found: nothing, or bytes that stay where the engine has them.
//
// The engine's own pin (a RocksDB block, a shared string) lives inside the Value, so that a get
// neither copies nor allocates. A Value may be used for many reads in turn; each read replaces
// what it held.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "base/bytes.h"

namespace trellis {

class Value {
 public:
  Value() = default;
  Value(Value&& other) noexcept { take(other); }
  Value& operator=(Value&& other) noexcept {
    if (this != &other) {
      drop_pin();
      take(other);
    }
    return *this;
  }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  ~Value() { drop_pin(); }

  bool found() const { return found_; }
  // REQUIRES: found(). Valid until the Value is moved from, read into again or destroyed.
  ByteView bytes() const { return bytes_; }

  // For engines. The pin of type Pin, made if the Value holds none of that type.
  template <class Pin>
  Pin& pin() {
    static_assert(sizeof(Pin) <= sizeof(storage_) && alignof(Pin) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Pin>);
    if (kind_ != &pin_kind<Pin>) {
      drop_pin();
      new (storage_) Pin();
      kind_ = &pin_kind<Pin>;
    }
    return *std::launder(reinterpret_cast<Pin*>(storage_));
  }
  // Null if it holds none of that type.
  template <class Pin>
  const Pin* find_pin() const {
    return kind_ == &pin_kind<Pin> ? std::launder(reinterpret_cast<const Pin*>(storage_)) : nullptr;
  }
  // REQUIRES: the bytes are those of the pin, which says where they are after a move.
  void set_found(ByteView bytes) {
    found_ = true;
    bytes_ = bytes;
  }
  // For bytes that somebody else keeps for as long as the Value is used.
  void set_borrowed(ByteView bytes) {
    drop_pin();
    set_found(bytes);
  }
  void set_absent() {
    found_ = false;
    bytes_ = {};
  }

 private:
  struct PinKind {
    void (*destroy)(void*);
    // Move-constructs at `to` from `from`, destroys `from`, and says where a view into `from` is
    // now: pins that hold their bytes inside themselves move them.
    void (*relocate)(void* to, void* from);
    ByteView (*bytes)(const void*);
  };
  template <class Pin>
  static constexpr PinKind pin_kind{[](void* pin) { static_cast<Pin*>(pin)->~Pin(); },
                                    [](void* to, void* from) {
                                      new (to) Pin(std::move(*static_cast<Pin*>(from)));
                                      static_cast<Pin*>(from)->~Pin();
                                    },
                                    [](const void* pin) {
                                      return ByteView(static_cast<const Pin*>(pin)->data(),
                                                      static_cast<const Pin*>(pin)->size());
                                    }};

  void drop_pin() {
    if (kind_ != nullptr) kind_->destroy(storage_);
    kind_ = nullptr;
  }
  void take(Value& other) {
    kind_ = std::exchange(other.kind_, nullptr);
    found_ = std::exchange(other.found_, false);
    bytes_ = std::exchange(other.bytes_, {});
    if (kind_ != nullptr) {
      kind_->relocate(storage_, other.storage_);
      if (found_) bytes_ = kind_->bytes(storage_);
    }
  }

  const PinKind* kind_ = nullptr;
  bool found_ = false;
  ByteView bytes_;
  alignas(std::max_align_t) std::byte storage_[112];
};

}  // namespace trellis
