#pragma once

#include <cstdint>
#include <string>

#include "flugs/database.h"

// Power cuts while a pool is on an ordinary file. Device model: what the pool's file and its
// journal had at their last sync is on the medium; every sector written since may be there or not.
// Each image that a cut could leave is opened. It must hold all acknowledged steps, and of the step
// in flight everything or nothing.

namespace flugs::test {

/// Steps on a database, done in one process and judged in another one. What a step does follows
/// from its number.
class PowerCutScenario {
 public:
  virtual ~PowerCutScenario() = default;

  virtual OpenOptions options(const std::string& path) const = 0;
  /// What is there before the first step, and is never in doubt.
  virtual Status create(Database& database) = 0;
  virtual Status do_step(Database& database, std::uint64_t step) = 0;
  /// In the working process, behind the last step. What is wrong; empty: nothing.
  virtual std::string finish(Database& /*database*/) { return {}; }
  /// In the judging process: this step, the next one, is acknowledged.
  virtual void acknowledge(std::uint64_t step) = 0;
  /// Whether the database is as after the acknowledged steps, and after one more if `is_next`.
  virtual Status compare(Database& database, bool is_next) const = 0;
};

/// Does the steps and judges `images_per_point` images, and two more, at each moment at which a
/// write, or a sync, of one of both files ends. Returns how many images that were.
std::uint64_t run_power_cuts(PowerCutScenario& scenario, std::uint64_t steps,
                             std::uint32_t images_per_point);

}  // namespace flugs::test
