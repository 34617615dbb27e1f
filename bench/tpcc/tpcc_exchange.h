#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "bench/support/shared_file.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_findings.h"
#include "flugs/status.h"

namespace flugs::bench {

/// A run of TPC-C in another process, with another database: what it must do, and its result.
struct TpccExchange {
  // What it must do.
  char directory[1024] = {};  ///< exists, and is empty
  TpccOptions population;
  std::uint32_t users = 1;
  double seconds = 10;
  double ramp_up_seconds = 0;
  TpccMix mix = TpccMix::kFull;
  bool survives_kill_only = false;  ///< commits need not be synced to the device

  // What came of it.
  char engine[64] = {};  ///< name and version
  char setup[512] = {};
  char guarantee[256] = {};
  double load_seconds = 0;
  std::uint64_t rows_loaded = 0;
  std::uint64_t file_bytes = 0;
  double sampled_seconds = 0;
  std::uint64_t skipped_deliveries = 0;
  std::uint64_t checksum = 0;
  ProcessorTime processor;
  std::array<Check, kTpccConditionNames.size()> conditions{};
  std::array<TpccTypeResult, kTpccTypes> types{};

  /// The run as far as it is here: without the curve.
  TpccRunResult result() const {
    TpccRunResult run;
    run.loop.seconds = sampled_seconds;
    run.types = types;
    for (const TpccTypeResult& type : types) run.latency.merge(type.latency);
    run.skipped_deliveries = skipped_deliveries;
    run.loop.processor = processor;
    run.checksum = checksum;
    return run;
  }
  void set_result(const TpccRunResult& run) {
    sampled_seconds = run.loop.seconds;
    types = run.types;
    skipped_deliveries = run.skipped_deliveries;
    processor = run.loop.processor;
    checksum = run.checksum;
  }
};
static_assert(std::is_trivially_copyable_v<TpccExchange>);

}  // namespace flugs::bench
