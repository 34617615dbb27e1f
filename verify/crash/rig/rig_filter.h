#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "verify/crash/rig/rig.h"

namespace flugs::crash {

/// Passes flushes and fences on to an explorer, and makes the mistake of the mutation.
class CrashRig::Filter final : public pmem::PersistObserver {
 public:
  Filter(CrashRig& rig, std::span<const std::byte> memory, pmem::PersistObserver* next,
         CrashExplorer* live)
      : rig_(rig), memory_(memory), next_(next), live_(live) {}

  void on_flush(const void*, std::size_t, pmem::Label) override { std::abort(); }
  void on_fence(pmem::Label) override { std::abort(); }
  void on_flush_by(const pmem::Persister& by, const void* address, std::size_t bytes,
                   pmem::Label label) override {
    if (is_dying_ && flushes_left_-- == 0) left_.assign(memory_.begin(), memory_.end());
    if (!left_.empty()) return;
    if (live_ != nullptr) watched_sites().insert(std::string("flush ") + label);
    if (is_mutated(address, label)) {
      switch (rig_.options_.mutation.kind) {
        case Mutation::Kind::kNoFlush:
          return;
        case Mutation::Kind::kLateFlush:
          late_.push_back({&by, address, bytes, label});
          return;
        case Mutation::Kind::kShortFlush:
          bytes = without_last_line(address, bytes);
          break;
        case Mutation::Kind::kEarlyStore:
          store_early(by, address, bytes, label);
          break;
        case Mutation::Kind::kOthersFlush:
          if (others_have_flushed(by, address, bytes)) return;
          break;
        case Mutation::Kind::kNone:
        case Mutation::Kind::kNoFence:
        case Mutation::Kind::kLateFence:
          break;
      }
    }
    if (live_ != nullptr)
      rig_.note_flush(
          static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.data()), bytes,
          label);
    next_->on_flush_by(by, address, bytes, label);
  }
  void on_fence_by(const pmem::Persister& by, pmem::Label label) override {
    if (!left_.empty()) return;
    if (live_ != nullptr) watched_sites().insert(std::string("fence ") + label);
    if (live_ != nullptr && rig_.before_fence && !is_in_hook_) {
      is_in_hook_ = true;
      rig_.before_fence(label);
      is_in_hook_ = false;
    }
    const Mutation& mutation = rig_.options_.mutation;
    if (mutation.kind == Mutation::Kind::kEarlyStore && live_ != nullptr)
      moments_[&by] = {live_->moment(), rig_.now_, by.counters().fences};
    if (mutation.kind == Mutation::Kind::kNoFence && label == mutation.label) return;
    end_late_fences([&](const LateFence& fence) { return fence.by == &by; });
    if (mutation.kind == Mutation::Kind::kLateFence && label == mutation.label && live_ != nullptr)
      return late_fences_.push_back({&by, label, std::this_thread::get_id()});
    next_->on_fence_by(by, label);
    unfenced_.erase(&by);
    flush_late(by);
  }
  /// The process dies before the flush with that number, counted from now: later flushes are not
  /// seen.
  void die_before(std::uint64_t flush) {
    is_dying_ = true;
    flushes_left_ = flush;
  }
  /// What the process left in the caches; empty when it did not come to such a flush.
  std::vector<std::byte> end_dying() {
    is_dying_ = false;
    if (!left_.empty()) {
      late_.clear();
      late_fences_.clear();
      unfenced_.clear();
      moments_.clear();
    }
    return std::exchange(left_, {});
  }
  /// The step of this thread is acknowledged.
  void end_late_fences() {
    end_late_fences(
        [](const LateFence& fence) { return fence.thread == std::this_thread::get_id(); });
  }

 private:
  struct LateFlush {
    const pmem::Persister* by;
    const void* address;
    std::size_t bytes;
    pmem::Label label;
  };
  struct LateFence {
    const pmem::Persister* by;
    pmem::Label label;
    std::thread::id thread;
  };
  /// The moment just before the last fence of a Persister.
  struct BeforeFence {
    std::shared_ptr<CrashExplorer::Moment> moment;
    Expectation expectation;
    std::uint64_t fences = 0;  // a Persister may get the address of an earlier one
  };

  bool is_mutated(const void* address, pmem::Label label) const {
    const Mutation& mutation = rig_.options_.mutation;
    return label == mutation.label &&
           (mutation.region == Region::kOther || region_of(memory_, address) == mutation.region);
  }
  static std::size_t without_last_line(const void* address, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t last = (begin + bytes - 1) / pmem::kLineBytes * pmem::kLineBytes;
    return last <= begin ? bytes : last - begin;
  }
  template <typename Which>
  void end_late_fences(Which&& which) {
    const auto ends = std::partition(late_fences_.begin(), late_fences_.end(),
                                     [&](const LateFence& fence) { return !which(fence); });
    const std::vector<LateFence> ending(ends, late_fences_.end());
    late_fences_.erase(ends, late_fences_.end());
    // No crash point: the mistake is what others do meanwhile, not that the fence comes here.
    const bool was_muted = live_ != nullptr && live_->is_muted();
    if (live_ != nullptr) live_->set_muted(true);
    for (const LateFence& fence : ending) next_->on_fence_by(*fence.by, fence.label);
    if (live_ != nullptr) live_->set_muted(was_muted);
  }
  /// Notes what the flush covers. Returns whether others have flushed exactly that, without a
  /// fence.
  bool others_have_flushed(const pmem::Persister& by, const void* address, std::size_t bytes) {
    const std::string content(static_cast<const char*>(address), bytes);
    unfenced_[&by].insert({address, content});
    return std::any_of(unfenced_.begin(), unfenced_.end(), [&](const auto& other) {
      return other.first != &by && other.second.contains({address, content});
    });
  }
  void flush_late(const pmem::Persister& by) {
    const std::vector<LateFlush> late = std::exchange(late_, {});
    for (const LateFlush& flush : late) {
      if (flush.by == &by) {
        next_->on_flush_by(by, flush.address, flush.bytes, flush.label);
      } else {
        late_.push_back(flush);
      }
    }
  }
  void store_early(const pmem::Persister& by, const void* address, std::size_t bytes,
                   pmem::Label label) {
    const auto found = moments_.find(&by);
    if (live_ == nullptr || found == moments_.end()) return;
    BeforeFence& before = found->second;
    if (before.fences != by.counters().fences) return;
    std::swap(rig_.now_, before.expectation);
    live_->crash_then(*before.moment, address, bytes, label);
    std::swap(rig_.now_, before.expectation);
  }

  CrashRig& rig_;
  std::span<const std::byte> memory_;
  pmem::PersistObserver* next_;
  CrashExplorer* live_;  // null inside a recovery
  bool is_in_hook_ = false;
  bool is_dying_ = false;
  std::uint64_t flushes_left_ = 0;
  std::vector<std::byte> left_;
  std::vector<LateFlush> late_;
  std::vector<LateFence> late_fences_;
  std::map<const pmem::Persister*, std::set<std::pair<const void*, std::string>>> unfenced_;
  std::map<const pmem::Persister*, BeforeFence> moments_;
};

}  // namespace flugs::crash
