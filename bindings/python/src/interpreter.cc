#include "bindings/python/src/interpreter.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace flugs::python {

namespace {

// How long Ctrl-C may go unnoticed.
constexpr std::chrono::milliseconds kLookInterval{20};

std::atomic<unsigned> forks_counted{0};
std::thread::id main_thread;

void count_fork() {
  forks_counted.fetch_add(1, std::memory_order_relaxed);
  main_thread = std::this_thread::get_id();
}

}  // namespace

bool is_attached() noexcept { return PyGILState_Check() != 0; }
bool is_main_thread() noexcept { return std::this_thread::get_id() == main_thread; }
unsigned forks() noexcept { return forks_counted.load(std::memory_order_relaxed); }

void count_forks() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  const nb::object here = nb::module_::import_("threading").attr("current_thread")();
  if (main.is(here)) main_thread = std::this_thread::get_id();
  static std::once_flag once;
  std::call_once(once, [] {
    if (const int error = ::pthread_atfork(nullptr, nullptr, &count_fork); error != 0)
      throw std::system_error(error, std::generic_category(), "pthread_atfork");
  });
}

void Interrupt::begin() noexcept {
  thread_ = is_main_thread() ? main_thread : std::thread::id();
  looked_ = std::chrono::steady_clock::now();
}

std::function<void(const Progress&)> Interrupt::progress() {
  return [this](const Progress&) {
    if (std::this_thread::get_id() != thread_ || error_.has_value()) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < kLookInterval) return;
    looked_ = now;
    look();
  };
}

void Interrupt::look() {
  const nb::gil_scoped_acquire attached;
  if (PyErr_CheckSignals() == 0) return;
  error_.emplace();
  source_.request_stop();
}

void Interrupt::check() {
  if (!error_.has_value()) return;
  nb::python_error error = *std::exchange(error_, std::nullopt);
  throw error;
}

bool Interrupt::leave_to_python() noexcept {
  if (!error_.has_value()) return false;
  const nb::gil_scoped_acquire attached;
  error_.reset();
  PyErr_SetInterrupt();
  return true;
}

Status run_long(const std::function<Status(std::stop_token)>& work, const std::stop_token& also) {
  std::stop_source source;
  const std::stop_callback stops(also, [&] { source.request_stop(); });
  if (!is_main_thread()) {
    const Detached detached;
    return work(source.get_token());
  }
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Status> status;
  std::optional<nb::python_error> interrupt;
  std::thread worker([&] {
    Status result = work(source.get_token());
    const std::lock_guard lock(mutex);
    status = std::move(result);
    ended.notify_one();
  });
  for (bool is_done = false; !is_done;) {
    {
      const Detached detached;
      std::unique_lock lock(mutex);
      is_done = ended.wait_for(lock, kLookInterval, [&] { return status.has_value(); });
    }
    if (!is_done && !interrupt.has_value() && PyErr_CheckSignals() != 0) {
      interrupt.emplace();
      source.request_stop();
    }
  }
  worker.join();
  if (interrupt.has_value()) throw nb::python_error(*std::move(interrupt));
  return *std::move(status);
}

}  // namespace flugs::python
