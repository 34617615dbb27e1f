#include "base/thread.h"

#include <pthread.h>

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace flugs {

Result<std::jthread> start_thread(const char* name,
                                  std::function<void(const std::stop_token&)> run) {
  FLUGS_CHECK(std::string_view(name).size() <= 15);  // the system takes no more
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
