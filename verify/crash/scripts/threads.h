#pragma once

#include <vector>

#include "verify/crash/rig/rig.h"

// Transactions of several threads on the rig's database; one thread runs at a time, by the rig's
// schedule (verify/crash/rig/scheduler.h).
//
// A step is in flight from its commit (or from creating or dropping a table) until it is settled:
// when its thread has been told and says so, or earlier, when another transaction has seen it. An
// image must have all settled steps, and each step in flight completely or not at all. So what a
// transaction reads or overwrites must be durable by then; and if a step is there, so must be all
// that it depends on.
//
// Each transaction reads everything when it begins and again before it ends. It must find the
// database as of its snapshot: all that was settled before it began; of the steps in flight then,
// those with a time-stamp that turns out not to be above its snapshot; and its own writes. A write
// that fails must have a reason: the model does not allow it, or another transaction wrote the same
// row meanwhile.

namespace flugs::crash {

struct ThreadStep {
  Step step;  ///< without writes and tables created or dropped: only reads
  bool aborts = false;
  bool keeps = false;  ///< nothing else: CrashRig::keep_hints
};
using ThreadScript = std::vector<ThreadStep>;

ThreadStep commits(Writes writes);
ThreadStep aborts(Writes writes);
ThreadStep reads();
ThreadStep creates(const TableSchema& schema);
ThreadStep drops(std::string table);
ThreadStep keeps();

/// Runs each script in a thread of its own, and audits the database at the end.
void run_threads(CrashRig& rig, const std::vector<ThreadScript>& scripts);

/// Draws from the seed what `threads` threads do: transactions on a few rows of each table, so that
/// they meet; some values are in common, and each thread has tables of its own.
std::vector<ThreadScript> draw_scripts(CrashRig& rig, std::uint64_t seed, std::uint32_t threads);

}  // namespace flugs::crash
