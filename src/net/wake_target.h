// The side of a Waker that belongs to the server.
#pragma once

namespace trellis {

class WakeTarget {
 public:
  virtual ~WakeTarget() = default;
  virtual void wake() = 0;  // any thread
};

}  // namespace trellis
