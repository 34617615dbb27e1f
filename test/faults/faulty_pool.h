#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::test {

/// The allocations of a FaultyPool that fail. Must outlive the pool.
struct AllocationFaults {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t first = kNone;  ///< number of the first that fails, from 1
  std::uint64_t last = kNone;
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::uint64_t> failed{0};

  void arm(std::uint64_t first_failing, std::uint64_t last_failing) noexcept {
    first = first_failing;
    last = last_failing;
    seen = 0;
    failed = 0;
  }
  void disarm() noexcept { first = kNone; }
  bool next_fails() noexcept {
    const std::uint64_t number = ++seen;
    if (number < first || number > last) return false;
    ++failed;
    return true;
  }
};

/// A pool whose n-th extent allocation finds no space; everything else passes to the wrapped pool.
class FaultyPool final : public pmem::Pool {
 public:
  FaultyPool(std::unique_ptr<pmem::Pool> pool, AllocationFaults& faults)
      : pool_(std::move(pool)), allocator_(pool_->allocator(), faults) {}

  pmem::Medium& medium() noexcept override { return pool_->medium(); }
  pmem::ExtentAllocator& allocator() noexcept override { return allocator_; }
  std::byte* application_root() noexcept override { return pool_->application_root(); }
  const std::string& path() const noexcept override { return pool_->path(); }
  std::uint64_t uuid() const noexcept override { return pool_->uuid(); }
  std::uint32_t format_version() const noexcept override { return pool_->format_version(); }
  Status grow(std::uint64_t max_bytes) override { return pool_->grow(max_bytes); }

 private:
  class Allocator final : public pmem::ExtentAllocator {
   public:
    Allocator(pmem::ExtentAllocator& allocator, AllocationFaults& faults)
        : allocator_(allocator), faults_(faults) {}
    Result<pmem::Extent> allocate(std::uint64_t bytes, pmem::Persister& persister,
                                  pmem::Purpose purpose, pmem::Zeros zeros) override {
      if (faults_.next_fails()) return Status(StatusCode::kOutOfSpace, "as the test wants it");
      return allocator_.allocate(bytes, persister, purpose, zeros);
    }
    Result<pmem::Extent> allocate_below(std::uint64_t bytes, std::uint64_t end,
                                        pmem::Persister& persister) override {
      if (faults_.next_fails()) return Status(StatusCode::kOutOfSpace, "as the test wants it");
      return allocator_.allocate_below(bytes, end, persister);
    }
    void keep_reserve(pmem::Reserve reserve) override { allocator_.keep_reserve(reserve); }
    void lend_reserve() noexcept override { allocator_.lend_reserve(); }
    void pledge(std::uint64_t bytes) noexcept override { allocator_.pledge(bytes); }
    void end_pledge(std::uint64_t bytes) noexcept override { allocator_.end_pledge(bytes); }
    void release(pmem::Extent extent) override { allocator_.release(extent); }
    void give_back(pmem::Slack slack) override { allocator_.give_back(slack); }
    Status claim(pmem::Extent extent, std::string_view owner) override {
      return allocator_.claim(extent, owner);
    }
    void finish_claims() override { allocator_.finish_claims(); }
    void tell_growth(std::function<void(std::uint64_t bytes)> told) override {
      allocator_.tell_growth(std::move(told));
    }
    pmem::SpaceReport space() const override { return allocator_.space(); }
    std::uint32_t unit_bytes() const noexcept override { return allocator_.unit_bytes(); }
    std::uint64_t free_bytes() const override { return allocator_.free_bytes(); }

   private:
    pmem::ExtentAllocator& allocator_;
    AllocationFaults& faults_;
  };

  std::unique_ptr<pmem::Pool> pool_;
  Allocator allocator_;
};

}  // namespace flugs::test
