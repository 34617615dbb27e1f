#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/waiting.h"
#include "pmem/medium/medium.h"
#include "verify/crash/rig/schedule.h"

namespace flugs::crash {

/// Runs real threads one at a time by a schedule, so that the same schedule gives the same run. The
/// turn may change at switch points: before each flush, before and after each fence, and at
/// point(). It also changes when a thread waits for another one or ends.
///
/// The scheduler is in front of the observer of a medium. The observer's work, for instance judging
/// images, counts as work of the thread that flushes or fences, and the turn stays there meanwhile.
class Scheduler final : public pmem::PersistObserver, public WaitObserver {
 public:
  /// `before_switch` is called before each switch of the schedule that happens, from
  /// watched_from() on.
  Scheduler(Schedule schedule, pmem::PersistObserver& next, std::function<void()> before_switch);

  /// Returns when all threads have ended. Ends the process when all remaining threads wait.
  void run(const std::vector<std::function<void()>>& threads);
  /// Called by the thread that has the turn.
  void point() { point(false); }
  /// Gives the turn to the next thread in order.
  void pass();
  const TurnOwners& turns() const noexcept { return turns_; }

  /// While it exists, its thread keeps the turn, whatever it waits for.
  class Undisturbed {
   public:
    Undisturbed() noexcept;
    ~Undisturbed();
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;

   private:
    WaitObserver* former_;
  };

  void on_flush(const void* address, std::size_t bytes, pmem::Label label) override;
  void on_fence(pmem::Label label) override;
  void on_flush_by(const pmem::Persister& by, const void* address, std::size_t bytes,
                   pmem::Label label) override;
  void on_fence_by(const pmem::Persister& by, pmem::Label label) override;
  void on_wait() noexcept override;

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  void run_thread(std::uint32_t number, const std::function<void()>& work);
  std::uint32_t next_after(std::uint32_t thread) const noexcept;
  void pass_turn(std::uint32_t to);
  void point(bool is_flush);

  Schedule schedule_;
  pmem::PersistObserver& next_;
  std::function<void()> before_switch_;
  std::mutex mutex_;  // protects `running_`; the thread that has the turn owns all else
  std::condition_variable turn_;
  std::uint32_t running_ = kNobody;
  std::vector<bool> is_alive_;
  std::size_t next_switch_ = 0;
  TurnOwners turns_;
  std::uint32_t waits_ = 0;  // since a thread last made progress
};

}  // namespace flugs::crash
