#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "flugs/status.h"

namespace flugs::tools {

/// The program of another engine for a workload, beside this one: flugs-peer-NAME.
/// Fails with kNotFound (it was not built).
Result<std::string> peer_program(const std::string& name);

/// Runs it with `exchange`, which says what it must do and gets its result. Makes the new
/// directory, and removes it. Gives whether all that the program checked did hold.
/// Fails with kInvalidArgument (the path is longer than an exchange can say), kIoError, kCorrupt
/// (it crashed).
Result<bool> run_peer_process(const std::string& program, const std::string& directory,
                              std::span<std::byte> exchange);

/// The same with a structure, whose `directory` it sets.
template <typename Exchange>
Result<bool> run_peer(const std::string& program, const std::string& directory,
                      Exchange& exchange) {
  static_assert(std::is_trivially_copyable_v<Exchange>);
  if (directory.size() >= sizeof exchange.directory)
    return Status(StatusCode::kInvalidArgument, "the pool's path is too long");
  exchange.directory[directory.copy(exchange.directory, directory.size())] = '\0';
  return run_peer_process(program, directory, std::as_writable_bytes(std::span(&exchange, 1)));
}

}  // namespace flugs::tools
