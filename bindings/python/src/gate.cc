#include "bindings/python/src/gate.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "bindings/python/src/interpreter.h"

namespace flugs::python {

namespace {

/// A pause that grows from round to round: what is waited for takes nanoseconds or seconds.
void pause(unsigned round) {
  const Detached detached;
  if (round < 16)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(round * 4, 1000u)));
}

}  // namespace

void Gate::wait(std::uintptr_t self) {
  for (unsigned round = 0; !try_enter(self); ++round) {
    pause(round);
    const bool looks = round % 16 == 15 && is_attached() && is_main_thread();
    if (looks && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void Gate::enter_surely() noexcept {
  const std::uintptr_t self = name_of_thread();
  if (owner_.load(std::memory_order_relaxed) != self)
    for (unsigned round = 0; !try_enter(self); ++round) pause(round);
  ++depth_;
}

bool Gate::enter_within(std::chrono::milliseconds patience) noexcept {
  const std::uintptr_t self = name_of_thread();
  if (owner_.load(std::memory_order_relaxed) != self) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (unsigned round = 0; !try_enter(self); ++round) {
      if (std::chrono::steady_clock::now() >= end) return false;
      pause(round);
    }
  }
  ++depth_;
  return true;
}

}  // namespace flugs::python
