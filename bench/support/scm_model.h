#pragma once

#include <cstdint>

#include "flugs/database.h"

namespace flugs::bench {

/// The cost of an emulated SCM, as in OpenOptions; constant while a benchmark runs.
struct ScmModel {
  std::uint32_t read_ns = 0;
  std::uint32_t write_ns = 0;
  std::uint32_t lines_in_flight = 8;
  ScmCache cache = ScmCache::kTask;

  void put_into(OpenOptions& options) const noexcept {
    options.tuning.scm_read_ns = read_ns;
    options.tuning.scm_write_ns = write_ns;
    options.tuning.scm_lines_in_flight = lines_in_flight;
    options.tuning.scm_cache = cache;
  }
};

}  // namespace flugs::bench
