#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "test/journal/life.h"
#include "test/journal/state_set.h"

namespace flugs::test {

/// Explores the crash states of the journal of a pool, without an engine on top. Scripts are drawn
/// from their number: lives of one pool, each of which begins with what a power cut, a kill or a
/// closing has left of the one before.
///
/// At each call of a device the states are built that a power cut could leave: the durable bytes of
/// both files, and any subset of the sectors that were written since the file's last sync. While
/// there are few sectors, all subsets are; else none, all, those of one file, each sector missing,
/// each only, and drawn ones. Each state that the script has not had is recovered, and judged by
/// LineModel. From some of them another life begins at once: its opening is cut as well, and it
/// does a few steps.
///
/// Half of the lives have a crash ring. At each call, and around the copy of a record, a process
/// with a ring may be killed: what it has written stays, but of the write of the journal that is in
/// flight any sectors; the ring stays as it is at that moment. Such states must have every record
/// that was appended.
class CrashStates final : public Deaths {
 public:
  explicit CrashStates(std::uint64_t first_script);

  /// Runs scripts until it has judged `states` distinct states, or has found something wrong.
  void explore(std::uint64_t states);
  std::uint64_t states() const noexcept { return states_; }
  /// Of these, in lives that began inside another one.
  std::uint64_t nested() const noexcept { return nested_; }
  /// Of these, left by a kill, with what waited in a crash ring.
  std::uint64_t killed() const noexcept { return killed_; }
  std::uint64_t scripts() const noexcept { return script_; }
  /// Empty: nothing is wrong.
  const std::string& violation() const noexcept { return violation_; }

  void cut(Life& life, const char* when) override;
  void kill(Life& life, const char* when) override;
  void wrong(const Life& life, const std::string& what) override;
  bool is_over() const override { return !violation_.empty() || states_ >= states_max_; }

 private:
  void run_script();
  Begin first_begin();
  void end_life(Life& life);
  void judge(Life& life, Death death, Chosen chosen, const char* when);
  bool is_new_case(Life& life, Death death, Chosen chosen);
  std::string recover(Life& life, Death death, Chosen chosen);
  Begin begin_from(Life& life, Death death, Chosen chosen);
  void begin_nested(Life& life, Death death, Chosen chosen);

  Random random_{0};
  std::deque<TemporaryPath> paths_;  // one for each depth
  std::deque<PoolBuffer> pools_;     // what was recovered, one for each depth
  StateSet seen_;                    // in this script
  StateSet judged_;
  std::optional<Begin> next_;  // life of this script
  std::uint64_t candidates_ = 0;
  std::uint64_t script_;
  std::uint64_t life_ = 0;
  std::uint64_t states_ = 0;
  std::uint64_t nested_ = 0;
  std::uint64_t killed_ = 0;
  std::uint64_t states_max_ = 0;
  std::string violation_;
};

}  // namespace flugs::test
