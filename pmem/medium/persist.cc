#include "pmem/medium/persist.h"

#include <cpuid.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "pmem/medium/latency.h"
#include "pmem/medium/medium.h"

namespace flugs::pmem {

namespace {

static_assert(kDirectBytesMin == kPageBytes);
/// 256 KB: a larger flush is appended in parts.
constexpr std::uint64_t kNotedLinesMax = 4096;

/// What the environment asks for; nullopt: nothing.
std::optional<FlushInstruction> wanted_flush_instruction() noexcept {
  const char* wanted = std::getenv("FLUGS_FLUSH");
  if (wanted == nullptr) return std::nullopt;
  for (const FlushInstruction instruction :
       {FlushInstruction::kClflush, FlushInstruction::kClflushopt, FlushInstruction::kClwb,
        FlushInstruction::kEadr}) {
    if (to_string(instruction) == wanted) return instruction;
  }
  std::fprintf(stderr,
               "flugs: FLUGS_FLUSH=%s is ignored: expected clwb, clflushopt, clflush or eadr\n",
               wanted);
  return std::nullopt;
}

FlushInstruction best_flush_instruction() noexcept {
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

FlushInstruction flush_instruction(bool has_durable_caches) noexcept {
  static const std::optional<FlushInstruction> wanted = wanted_flush_instruction();
  static const FlushInstruction best = best_flush_instruction();
  if (wanted) return *wanted;
  return has_durable_caches ? FlushInstruction::kEadr : best;
}

std::string_view to_string(FlushInstruction instruction) noexcept {
  switch (instruction) {
    case FlushInstruction::kClflush:
      return "clflush";
    case FlushInstruction::kClflushopt:
      return "clflushopt";
    case FlushInstruction::kClwb:
      return "clwb";
    case FlushInstruction::kEadr:
      return "eadr";
  }
  return "unknown";
}

Persister::Persister(Medium& medium) : route_(medium.route_), medium_(medium) {
  medium.enter(*this);
}

Persister::~Persister() {
  FLUGS_CHECK(!has_unfenced_flushes());
  FLUGS_CHECK(noted_.empty());
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
    case FlushMethod::kJournal:
      note_lines(address, bytes);
      break;
    case FlushMethod::kNone:
      break;
  }
  if (medium_.observer_ != nullptr) medium_.observer_->on_flush_by(*this, address, bytes, label);
}

void Persister::zero_unshared(void* address, std::size_t bytes, Label label) noexcept {
  if (medium_.page_writer_ == nullptr)
    zero(address, bytes, label);
  else if (bytes != 0)
    std::memset(address, 0, bytes);
}

/// The parts of pages at both ends are flushed as by `flush`.
void Persister::flush_pages(std::byte* address, std::size_t bytes, Label label) noexcept {
  FLUGS_DCHECK(address >= medium_.base());
  std::byte* const end = address + bytes;
  const auto offset = static_cast<std::uint64_t>(address - medium_.base());
  std::byte* const first = address + (kPageBytes - offset % kPageBytes) % kPageBytes;
  std::byte* const last = end - (offset + bytes) % kPageBytes;
  const bool is_written = medium_.page_writer_ != nullptr && bytes >= medium_.page_writer_min_ &&
                          first < last && medium_.page_writer_->write({first, last});
  if (!is_written) return flush(address, bytes, label);
  const auto written = static_cast<std::size_t>(last - first);
  unfenced_lines_ += written / kLineBytes;
  add(counters_.lines_flushed, written / kLineBytes);
  add(counters_.bytes_written, written);
  if (medium_.observer_ != nullptr) medium_.observer_->on_flush_by(*this, first, written, label);
  flush(address, static_cast<std::size_t>(first - address), label);
  flush(last, static_cast<std::size_t>(end - last), label);
}

void Persister::fence_indirect(Label label) noexcept {
  FLUGS_DCHECK(unfenced_lines_ != 0 && label != nullptr);
  if (medium_.observer_ != nullptr) medium_.observer_->on_fence_by(*this, label);
  switch (medium_.facts().flush) {
    case FlushMethod::kInstructions:
      drain();
      break;
    case FlushMethod::kJournal:
      append_noted_lines();
      break;
    case FlushMethod::kNone:
      break;
  }
  const Latency& latency = medium_.latency_;
  const std::uint64_t write_ns = latency.write_ns;
  if (write_ns != 0) spin_ns(write_ns + (unfenced_lines_ - 1) * write_ns / latency.lines_in_flight);
}

/// Neighbours are joined. Many lines are appended at once, without waiting for the fence: any line
/// may reach the medium at any time.
void Persister::note_lines(const void* address, std::size_t bytes) noexcept {
  if (medium_.journal_ == nullptr) return;
  std::uintptr_t first = line_of(address);
  const std::uintptr_t end =
      line_of(reinterpret_cast<const std::byte*>(address) + bytes + (kLineBytes - 1));
  if (!noted_.empty()) {
    LineRun& last = noted_.back();
    const auto last_begin = reinterpret_cast<std::uintptr_t>(last.begin);
    const std::uintptr_t last_end = last_begin + last.lines * kLineBytes;
    if (first >= last_begin && end <= last_end) return;
    if (first >= last_begin && first <= last_end) {
      noted_lines_ += (end - last_end) / kLineBytes;
      last.lines = (end - last_begin) / kLineBytes;
      first = end;
    }
  }
  if (first != end) {
    noted_.push_back({reinterpret_cast<const std::byte*>(first), (end - first) / kLineBytes});
    noted_lines_ += noted_.back().lines;
  }
  if (noted_lines_ > kNotedLinesMax) append_noted_lines();
}

void Persister::append_noted_lines() noexcept {
  FLUGS_DCHECK(noted_.empty() == (noted_lines_ == 0));
  if (noted_.empty()) return;
  FLUGS_DCHECK(medium_.journal_ != nullptr);  // it stays while a fence is due
  appended_ = medium_.journal_->append(noted_);
  noted_.clear();
  noted_lines_ = 0;
}

Status Persister::want_of_journal(std::chrono::microseconds within) {
  return medium_.journal_ == nullptr ? Status() : medium_.journal_->want_durable(appended_, within);
}

Status Persister::wait_for_journal() {
  return medium_.journal_ == nullptr ? Status() : medium_.journal_->wait_durable(appended_);
}

}  // namespace flugs::pmem
