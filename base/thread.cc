#include "base/thread.h"

#include <pthread.h>

#include <string>
#include <system_error>
#include <utility>

namespace flugs {

Result<std::jthread> start_thread(const char* name,
                                  std::function<void(const std::stop_token&)> run) {
  try {
    return std::jthread([name, run = std::move(run)](const std::stop_token& stop) {
      ::pthread_setname_np(::pthread_self(), name);
      run(stop);
    });
  } catch (const std::system_error& error) {
    return Status(StatusCode::kIoError,
                  std::string("the thread ") + name + " cannot be started: " + error.what());
  }
}

}  // namespace flugs
