#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "bench/restart/restart_control.h"
#include "flugs/status.h"

namespace flugs::bench {

/// The writers' transaction `number` in `life`, from which the ordinals of its rows follow; the
/// slots are its inserted rows, then the change.
constexpr std::uint64_t restart_serial(std::uint32_t life, std::uint32_t writer,
                                       std::uint64_t number, std::size_t slot) noexcept {
  return (((std::uint64_t{life} << 4 | writer) << 32 | number) << 4) | slot;
}

/// A writer's transaction `number`, durable when it returns ok. It stores in the entry what it must
/// remember, but not the entry's life and state.
using RestartTransact = std::function<Status(std::uint64_t number, RestartEntry& entry)>;

/// Runs the plan's writers, a thread each, until the process is killed, or until a transaction
/// fails, which it should not: then it returns why. The log says what each of them was promised.
Status write_until_killed(RestartControl& control,
                          const std::function<RestartTransact(std::uint32_t writer)>& writer_of);

}  // namespace flugs::bench
