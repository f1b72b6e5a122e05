// How a handler that runs on a loop (Route::Runs::loop) says that it would have to wait, which a
// loop must not do (base/no_wait.h): with this as its status. It is then run once more, on a
// worker.
#pragma once

namespace trellis {

inline constexpr unsigned would_wait_status = 0;

}  // namespace trellis
