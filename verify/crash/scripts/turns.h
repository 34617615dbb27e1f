#pragma once

#include <cstdint>

#include "verify/crash/rig/rig.h"

namespace flugs::crash {

/// What a random continuation does, by weight.
struct TurnMix {
  std::uint8_t insert = 0;
  std::uint8_t update = 0;
  std::uint8_t remove = 0;
  std::uint8_t multi = 0;       ///< several rows of several tables
  std::uint8_t abort = 0;       ///< the same, then aborted
  std::uint8_t partly = 0;      ///< several rows, some of them undone before the commit
  std::uint8_t interleave = 0;  ///< a transaction that stays open while others run
  std::uint8_t columns = 0;     ///< several new rows of a table, given column by column
  std::uint8_t large = 0;       ///< more rows than a slot has space for
  std::uint8_t text = 0;        ///< a long string in every text column
  std::uint8_t tables = 0;      ///< created or dropped
  std::uint8_t alter = 0;       ///< given another schema
  std::uint8_t merge = 0;       ///< merge of a whole table
  std::uint8_t reopen = 0;      ///< also with another number of slots
  std::uint8_t crash = 0;
  std::uint8_t kill = 0;
  std::uint8_t kill_midway = 0;  ///< within any of the other turns that write
};

/// Runs turns until the rig is done, its pool is nearly full, or there were `turns_max` of them.
/// The same seed gives the same turns.
void run_turns(CrashRig& rig, const TurnMix& mix, std::uint64_t seed, std::uint32_t turns_max);

}  // namespace flugs::crash
