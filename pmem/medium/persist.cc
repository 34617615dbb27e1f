#include "pmem/medium/persist.h"

#include <cpuid.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "pmem/medium/latency.h"
#include "pmem/medium/medium.h"

namespace flugs::pmem {

namespace {

FlushInstruction detect_flush_instruction() noexcept {
  if (const char* wanted = std::getenv("FLUGS_FLUSH")) {
    const std::string_view name(wanted);
    if (name == "clwb") return FlushInstruction::kClwb;
    if (name == "clflushopt") return FlushInstruction::kClflushopt;
    if (name == "clflush") return FlushInstruction::kClflush;
    std::fprintf(stderr, "flugs: FLUGS_FLUSH=%s is ignored: expected clwb, clflushopt or clflush\n",
                 wanted);
  }
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    if ((ebx & (1U << 24)) != 0) return FlushInstruction::kClwb;
    if ((ebx & (1U << 23)) != 0) return FlushInstruction::kClflushopt;
  }
  return FlushInstruction::kClflush;  // every x86-64 processor has it
}

std::uint64_t load_counter(const std::uint64_t& counter) noexcept {
  // atomic_ref requires a mutable object, although a load does not change it. Partner:
  // Persister::add.
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(counter))
      .load(std::memory_order_relaxed);
}

}  // namespace

FlushInstruction flush_instruction() noexcept {
  static const FlushInstruction instruction = detect_flush_instruction();
  return instruction;
}

std::string_view to_string(FlushInstruction instruction) noexcept {
  switch (instruction) {
    case FlushInstruction::kClflush:
      return "clflush";
    case FlushInstruction::kClflushopt:
      return "clflushopt";
    case FlushInstruction::kClwb:
      return "clwb";
  }
  return "unknown";
}

Persister::Persister(Medium& medium) : route_(medium.route_), medium_(medium) {
  medium.enter(*this);
}

Persister::~Persister() {
  FLUGS_CHECK(!has_unfenced_flushes());
  medium_.leave(*this);
}

void Persister::zero(void* address, std::size_t bytes, Label label) noexcept {
  if (bytes == 0) return;
  std::memset(address, 0, bytes);
  flush(address, bytes, label);
}

PersistCounters Persister::counters() const noexcept {
  return {load_counter(counters_.lines_flushed), load_counter(counters_.fences),
          load_counter(counters_.bytes_written)};
}

void Persister::flush_indirect(const void* address, std::size_t bytes, Label label) noexcept {
  FLUGS_DCHECK(label != nullptr);
  switch (medium_.facts().flush) {
    case FlushMethod::kInstructions:
      write_back(line_of(address), reinterpret_cast<std::uintptr_t>(address) + bytes,
                 route_.instruction);
      break;
    case FlushMethod::kMsync: {
      const auto begin = reinterpret_cast<std::uintptr_t>(address);
      const bool is_first = file_span_end_ == 0;
      file_span_begin_ = is_first ? begin : std::min(file_span_begin_, begin);
      file_span_end_ = std::max(file_span_end_, begin + bytes);
      break;
    }
    case FlushMethod::kNone:
      break;
  }
  if (medium_.observer_ != nullptr) medium_.observer_->on_flush_by(*this, address, bytes, label);
}

void Persister::fence_indirect(Label label) noexcept {
  FLUGS_DCHECK(unfenced_lines_ != 0);
  if (medium_.observer_ != nullptr) medium_.observer_->on_fence_by(*this, label);
  switch (medium_.facts().flush) {
    case FlushMethod::kInstructions:
      drain();
      break;
    case FlushMethod::kMsync:
      sync_file_span();
      break;
    case FlushMethod::kNone:
      break;
  }
  const Latency& latency = medium_.latency_;
  const std::uint64_t write_ns = latency.write_ns;
  if (write_ns != 0) spin_ns(write_ns + (unfenced_lines_ - 1) * write_ns / latency.lines_in_flight);
}

/// One msync from the first to the last flushed page. Each msync costs a device flush of some 100
/// us, whatever it covers, so one over all is cheaper than one per range. It may write other
/// threads' dirty pages, which is harmless: any line may reach the medium at any time.
///
/// When msync fails, the kernel has marked the pages clean and forgotten the lost writes, and a
/// second msync would succeed without writing them (PostgreSQL's lesson of 2018). It is then
/// unknown what is durable, so the process ends; recovery handles that like any crash.
void Persister::sync_file_span() noexcept {
  const std::uintptr_t begin = file_span_begin_ & ~(kPageBytes - 1);
  FLUGS_CHECK(file_span_begin_ < file_span_end_);
  const std::size_t bytes = file_span_end_ - begin;
  if (::msync(reinterpret_cast<void*>(begin), bytes, MS_SYNC) != 0) {
    std::fprintf(stderr,
                 "flugs: msync of %zu bytes failed: %s; the process ends, because it cannot know "
                 "which data is durable\n",
                 bytes, std::strerror(errno));
    std::abort();
  }
  file_span_begin_ = 0;
  file_span_end_ = 0;
}

}  // namespace flugs::pmem
