#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "verify/damage/corruption.h"
#include "verify/damage/guarded_buffer.h"
#include "verify/damage/sample_pools.h"

namespace flugs::damage {

enum class Outcome : std::uint8_t { kRefused, kAnswered };

struct InputResult {
  Outcome outcome = Outcome::kRefused;
  bool is_vouched = false;  ///< the damage is under a checksum only
  bool is_noticed = false;  ///< opening, the recovery report or the audit noticed the damage
  bool in_file = false;
  std::string words;  ///< the damage, and the messages
};

/// Makes and runs inputs of one seed. Thread-safety: one thread.
class PoolInputs {
 public:
  /// `file` is the path for pools in files; every `file_every`-th input is in a file, 0: none.
  static Result<PoolInputs> make(std::uint64_t seed, std::uint64_t file_every,
                                 const std::string& file);

  InputResult run(std::uint64_t input);
  /// Called with the damage before the pool is used: for an input that does not return.
  std::function<void(const std::string& words)> before_use;

 private:
  PoolInputs(std::uint64_t seed, std::uint64_t file_every, std::string file,
             std::vector<SamplePool> samples, std::vector<SamplePool> files);
  InputResult run_in_memory(bench::Random& random);
  InputResult run_in_file(bench::Random& random);
  Status open_and_exercise(std::span<std::byte> pool, bench::Random& random, InputResult& result);

  std::uint64_t seed_;
  std::uint64_t file_every_;
  std::string file_;
  std::vector<SamplePool> samples_;
  std::vector<SamplePool> files_;
  std::unique_ptr<GuardedBuffer> buffer_;
  std::unique_ptr<GuardedBuffer> audited_;
};

}  // namespace flugs::damage
