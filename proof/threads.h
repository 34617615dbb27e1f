#pragma once

#include <vector>

#include "proof/rig.h"

// Transactions of several threads on the rig's database, one thread at a time as the rig's schedule
// says (proof/scheduler.h).
//
// A step is in flight from its commit (or its creating or dropping a table) until it is settled:
// when its thread has been told and says so, or earlier when another transaction has seen it. An
// image must hold all that is settled, and each step in flight completely or not at all. So what a
// transaction reads or overwrites must be durable by then, and if it is there, so is what it rests
// on.
//
// Each transaction reads everything when it begins and again before it ends, and must find the
// database as of its snapshot: all that was settled before it began, of what was in flight then
// those steps whose time-stamps turn out not above its snapshot, and its own writes. A write that
// fails must have a reason: the model admits it not, or another transaction wrote the same row
// meanwhile.

namespace flugs::proof {

struct ThreadStep {
  Step step;  ///< without writes, tables created or dropped: only reads
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

/// Runs each script in a thread of its own, and audits the database that they leave.
void run_threads(CrashRig& rig, const std::vector<ThreadScript>& scripts);

/// What `threads` threads do, drawn from the seed: transactions on a few rows of each table, so
/// that they meet, with values that some have in common, and tables of each thread's own.
std::vector<ThreadScript> draw_scripts(CrashRig& rig, std::uint64_t seed, std::uint32_t threads);

}  // namespace flugs::proof
