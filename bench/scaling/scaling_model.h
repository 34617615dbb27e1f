#pragma once

#include "flugs/database.h"

namespace flugs::bench {

/// Throughput of a machine with many cores from what was measured on one with two
/// (docs/scaling.md). Cores are customers of a closed queueing network: each computes, waits for
/// lines that other cores have, all of them different, and, with a counter for a clock, queues for
/// its line. That queue is solved exactly (mean value analysis, Reiser and Lavenberg 1980).
struct ScalingInputs {
  double transaction_ns = 0;  ///< of one core that shares nothing
  double write_share = 0;     ///< of transactions, those that take a time-stamp
  /// Lines but the clock's that a transaction gets from another core, of two.
  double lines_of_two = 0;
  double line_ns = 0;             ///< a line from another core of the same socket
  double remote_line_ns = 0;      ///< of another socket
  double line_read_ns = 0;        ///< between two that read a line, once it is there to be read
  double processor_clock_ns = 0;  ///< what a transaction takes longer with the processors' clocks
  unsigned cores_per_socket = 15;
};

struct ScalingPoint {
  unsigned cores = 0;
  double line_ns = 0;     ///< a line from any other core, on average
  double lines = 0;       ///< that a transaction gets so, without the clock's
  double clock_ns = 0;    ///< that a transaction waits for the clock's line
  double per_second = 0;  ///< transactions, of all cores
  double bound = 0;       ///< that the clock's line sets, however many cores; 0: none
  double per_core() const noexcept { return per_second / cores; }
};

ScalingPoint predict(const ScalingInputs& inputs, unsigned cores, CommitClock clock);

}  // namespace flugs::bench
