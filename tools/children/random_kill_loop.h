#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "bench/support/shared_file.h"
#include "flugs/database.h"
#include "tools/support/command.h"

namespace flugs::tools {

inline constexpr std::uint32_t kRandomUsersMax = 64;

/// Outside of the pool, shared with the process that is killed: how far its users have come.
struct RandomWitness {
  struct alignas(64) User {
    std::atomic<std::uint64_t> begun;         ///< steps below it were begun
    std::atomic<std::uint64_t> acknowledged;  ///< steps below it were acknowledged
  };
  char pool_path[1024];
  std::uint64_t seed;
  std::uint32_t users;
  IndexPlace index_place;
  std::atomic<std::uint32_t> is_running;
  std::uint32_t may_be_full;  ///< a program fills the medium: a refused step is tried again
  std::atomic<std::uint64_t> refused;  ///< with kOutOfSpace
  User user[kRandomUsersMax];
};

OpenOptions random_open_options(const std::string& pool, std::uint32_t users, IndexPlace mode);

struct RandomKillOptions {
  std::string pool;
  std::uint32_t rounds = 0;
  std::uint32_t users = 0;
  std::uint32_t run_ms_max = 0;
  std::uint64_t seed = 0;
  IndexPlace index_place = kDefaultIndexPlace;
  bool keep = false;
  bool fills_medium = false;
  std::string json;
};

/// `flugs prove kill-loop --workload random`: random transactions on random tables, which come and
/// go, in a process that is killed; each user's tables compared with what its acknowledged steps
/// make of them. With `fills_medium`, the medium is filled and freed again beside the work: nothing
/// acknowledged may be lost, and the work must go on when there is room. Gives the exit status.
int run_random_kill_loop(const RandomKillOptions& options);

}  // namespace flugs::tools
