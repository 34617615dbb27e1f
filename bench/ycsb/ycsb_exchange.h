#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "bench/ycsb/ycsb_driver.h"
#include "bench/ycsb/ycsb_findings.h"

namespace flugs::bench {

/// A run of YCSB in another process, with another database: what it must do, and its result.
struct YcsbExchange {
  // What it must do.
  char directory[1024] = {};  ///< exists, and is empty
  YcsbRows rows;
  YcsbMix mix;
  std::uint32_t users = 1;
  std::uint64_t seed = 1;
  double seconds = 10;
  double ramp_up_seconds = 0;
  bool survives_kill_only = false;  ///< commits need not be synced to the device

  // What came of it.
  char engine[64] = {};  ///< name and version
  char setup[512] = {};
  char guarantee[256] = {};
  double load_seconds = 0;
  std::uint64_t file_bytes = 0;
  double sampled_seconds = 0;
  std::uint64_t inserted = 0;
  std::uint64_t checksum = 0;
  ProcessorTime processor;
  std::array<Check, kYcsbInvariantNames.size()> invariants{};
  std::array<YcsbTypeResult, kYcsbTypes> types{};

  /// The run as far as it is here: without the curve.
  YcsbRunResult result() const {
    YcsbRunResult run;
    run.loop.seconds = sampled_seconds;
    run.loop.processor = processor;
    run.types = types;
    for (const YcsbTypeResult& type : types) run.latency.merge(type.latency);
    run.inserted = inserted;
    run.checksum = checksum;
    return run;
  }
  void set_result(const YcsbRunResult& run) {
    sampled_seconds = run.loop.seconds;
    processor = run.loop.processor;
    types = run.types;
    inserted = run.inserted;
    checksum = run.checksum;
  }
};
static_assert(std::is_trivially_copyable_v<YcsbExchange>);

}  // namespace flugs::bench
