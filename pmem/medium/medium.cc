#include "pmem/medium/medium.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "pmem/medium/latency.h"

namespace flugs::pmem {

Medium::Medium(MediumKind kind, std::byte* base, std::size_t bytes, Latency latency)
    : kind_(kind), latency_(latency), base_(base), bytes_(bytes) {
  route_.instruction = flush_instruction(nvdimms_.has_durable_caches);
  set_observer(nullptr);
  if (latency.write_ns != 0) spin_ns(0);  // calibrate now, not at the first fence
  FLUGS_CHECK(latency.lines_in_flight != 0);
  FLUGS_CHECK(reinterpret_cast<std::uintptr_t>(base) % kLineBytes == 0);
  if (facts().is_charged_for_reads) enter_scm_range(base, bytes, latency);
}

Medium::~Medium() {
  FLUGS_CHECK(persisters_.empty());
  if (facts().is_charged_for_reads) leave_scm_range(base_, bytes());
}

void Medium::grow(std::size_t bytes) noexcept {
  const std::size_t before = this->bytes();
  FLUGS_CHECK(bytes >= before);
  if (facts().is_charged_for_reads) grow_scm_range(base_, before, bytes);
  bytes_.store(bytes, std::memory_order_release);
}

void Medium::set_page_writer(PageWriter* writer, std::uint64_t bytes_min) noexcept {
  FLUGS_CHECK(writer == nullptr || bytes_min >= kDirectBytesMin);
  FLUGS_CHECK(writer == nullptr || journal_ != nullptr);  // it takes what the writer does not
  page_writer_ = writer;
  page_writer_min_ = bytes_min;
}

void Medium::set_journal(LineJournal* journal) noexcept {
  FLUGS_CHECK(facts().flush == FlushMethod::kJournal);
  journal_ = journal;
}

std::string_view Medium::guarantee_soon() const noexcept {
  if (facts().guarantee_soon.empty()) return facts().guarantee;
  if (journal_ == nullptr || !journal_->outlives_process()) return facts().guarantee_soon;
  return "A commit that returned survives the death of the process, but no reboot. It survives "
         "power loss when its token is durable; until then a reboot takes it back, with all that "
         "came after it.";
}

void Medium::set_nvdimms(Nvdimms nvdimms) {
  nvdimms_ = std::move(nvdimms);
  route_.instruction = flush_instruction(nvdimms_.has_durable_caches);
}

void Medium::set_observer(PersistObserver* observer) noexcept {
  observer_ = observer;
  const bool uses_instructions = facts().flush == FlushMethod::kInstructions;
  route_.is_direct = uses_instructions && observer == nullptr && latency_.write_ns == 0;
}

std::string_view Medium::flush_name() const noexcept {
  switch (facts().flush) {
    case FlushMethod::kInstructions:
      break;
    case FlushMethod::kJournal:
      return "journal";
    case FlushMethod::kNone:
      return "none";
  }
  return to_string(route_.instruction);
}

void Medium::enter(const Persister& persister) {
  const std::scoped_lock lock(persisters_mutex_);
  persisters_.push_back(&persister);
}

void Medium::leave(const Persister& persister) noexcept {
  const std::scoped_lock lock(persisters_mutex_);
  const auto it = std::find(persisters_.begin(), persisters_.end(), &persister);
  FLUGS_CHECK(it != persisters_.end());
  gone_ += persister.counters();
  *it = persisters_.back();
  persisters_.pop_back();
}

PersistCounters Medium::counters() const noexcept {
  const std::scoped_lock lock(persisters_mutex_);
  PersistCounters sum = gone_;
  for (const Persister* persister : persisters_) sum += persister->counters();
  return sum;
}

}  // namespace flugs::pmem
