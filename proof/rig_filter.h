#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proof/rig.h"

namespace flugs::proof {

/// Passes flushes and fences on to an explorer, with the mistake that the mutation makes.
class CrashRig::Filter final : public pmem::PersistObserver {
 public:
  Filter(CrashRig& rig, std::span<const std::byte> memory, pmem::PersistObserver* next,
         CrashExplorer* live)
      : rig_(rig), memory_(memory), next_(next), live_(live) {}

  void on_flush(const void*, std::size_t, pmem::Label) override { std::abort(); }
  void on_fence(pmem::Label) override { std::abort(); }
  void on_flush_by(const pmem::Persister& by, const void* address, std::size_t bytes,
                   pmem::Label label) override {
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
        case Mutation::Kind::kNone:
        case Mutation::Kind::kNoFence:
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
    next_->on_fence_by(by, label);
    flush_late(by);
  }

 private:
  struct LateFlush {
    const pmem::Persister* by;
    const void* address;
    std::size_t bytes;
    pmem::Label label;
  };
  /// Just before the last fence of a Persister.
  struct BeforeFence {
    std::shared_ptr<CrashExplorer::Moment> moment;
    Expectation expectation;
    std::uint64_t fences = 0;  // a Persister may come to lie where another one lay
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
  std::vector<LateFlush> late_;
  std::map<const pmem::Persister*, BeforeFence> moments_;
};

}  // namespace flugs::proof
