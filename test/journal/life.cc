#include "test/journal/life.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace flugs::test {

namespace {

/// Enough to use space again that is not free before the head is there.
constexpr std::uint64_t kStepsDuringHead = 12;
constexpr unsigned kTornRecordPercent = 20;
constexpr unsigned kRecoverLinesPercent = 15;

}  // namespace

std::uint64_t& journal_id_of(std::span<std::byte> pool) {
  return *reinterpret_cast<std::uint64_t*>(pool.data() + kHeaderLine * pmem::kLineBytes);
}

Life::Life(Deaths& cuts, Random& random, const TemporaryPath& path, std::uint32_t depth,
           const Begin& begin)
    : cuts_(cuts),
      random_(random),
      path_(path),
      depth_(depth),
      pool_file_(begin.pool),
      journal_file_(begin.journal),
      ring_(begin.ring),
      model_(begin.model),
      in_use_(*this) {
  const Bytes found = pool_file_.cached();
  std::memcpy(memory().data(), found.data(), found.size());
  has_ring_ = random_.chance(50);
  is_lazy_ = random_.chance(30);
  const std::uint64_t lines = 4 + random_.below(30);
  const std::uint64_t pages = 1 + random_.below(kPoolPages);
  for (std::uint64_t i = 0; i < lines; ++i)
    hot_lines_.push_back(static_cast<std::uint32_t>(
        1 + random_.below(pages * pmem::kPageBytes / pmem::kLineBytes - 1)));
}

Life::~Life() = default;

bool Life::open() {
  const pmem::PoolJournal::Target target{.pool = memory(),
                                         .pool_bytes_max = kPoolBytes,
                                         .file = *this,
                                         .replay_ns = ~std::uint64_t{0},
                                         .has_crash_ring = has_ring_};
  const std::uint64_t id = journal_id_of(memory());
  const std::uint64_t new_id = random_.next() | 1;  // no former journal has it
  Result<std::unique_ptr<pmem::PoolJournal>> opened =
      id != 0 ? pmem::PoolJournal::recover(path_.string(), kPoolUuid, id, target)
              : pmem::PoolJournal::create(path_.string(), kPoolUuid, new_id,
                                          pmem::journal_shape(kRingBytes), target);
  if (!opened.ok()) {
    cuts_.wrong(*this, "opening is refused: " + opened.status().to_string());
    return false;
  }
  journal_ = *std::move(opened);
  if (std::string wrong = model_.judge(memory(), LineModel::Kept::kEnded); !wrong.empty())
    cuts_.wrong(*this, "after opening: " + wrong);
  // What was found in a crash ring is durable, too.
  model_.promise_ended();
  if (has_ring_) begin_of_ring();
  name_journal();
  if (is_well() && random_.chance(kRecoverLinesPercent)) recover_lines();
  is_open_ = is_well();
  return is_open_;
}

/// Its first record may be missing, or a part of its head.
void Life::begin_of_ring() {
  constexpr std::uint64_t kHeadWords = 12;
  const std::span<std::byte> ring = ring_.bytes();
  const Bytes made(ring.begin(), ring.end());
  for (const std::uint64_t words : {kHeadWords, random_.below(kHeadWords)}) {
    std::fill(ring.begin() + static_cast<std::ptrdiff_t>(words * sizeof(words)), ring.end(),
              std::byte{0});
    cuts_.kill(*this, "the ring is begun");
  }
  std::copy(made.begin(), made.end(), ring.begin());
}

/// Protocol journal-begin from step 2 on.
void Life::name_journal() {
  if (journal_id_of(memory()) == journal_->id()) return;
  journal_id_of(memory()) = journal_->id();
  const pmem::LineRun header{memory().data(), 1};
  const bool is_named = journal().wait_durable(journal().append({&header, 1})).ok() &&
                        journal_->checkpointer().write_now(0, pmem::kLineBytes).ok() &&
                        journal_->set_closed(false).ok();
  if (!is_named) cuts_.wrong(*this, "the journal cannot be named");
}

bool Life::close() {
  calls_until_failure_ = 0;
  is_open_ = false;
  if (!journal_->checkpointer().run().ok() || !journal_->set_closed(true).ok()) return false;
  journal_->remove_ring();
  journal_id_of(memory()) = 0;
  const pmem::LineRun header{memory().data(), 1};
  journal().append({&header, 1});
  if (!journal_->checkpointer().run().ok()) return false;
  cuts_.cut(*this, "closed");
  return true;
}

LineModel& Life::model() {
  if (journal_ != nullptr) model_.promise(journal().durable());
  return model_;
}

/// The process may still be the one that opens the pool, and finds a ring.
bool Life::outlives_process() const {
  return journal_ == nullptr ? model_.ended() != model_.promised() : has_ring_;
}

bool Life::is_well() const { return !cuts_.is_over() && !has_failed(); }

void Life::do_steps(std::uint64_t steps) {
  // What the opening has found dirty is alone in this checkpoint.
  if (random_.chance(20) && is_well()) checkpoint();
  for (; steps != 0 && is_well() && !is_ended_; --steps) step();
}

bool Life::has_whole_head() const {
  const Bytes& bytes = journal_file_.durable();
  const auto has_magic = [&](std::uint64_t offset) {
    return std::memcmp(bytes.data() + offset, pmem::kJournalMagic.data(),
                       pmem::kJournalMagic.size()) == 0;
  };
  return has_magic(0) || has_magic(pmem::kPageBytes);
}

Status Life::refused(const char* what) const {
  return Status(StatusCode::kIoError, std::string("a drawn failure: ") + what);
}

bool Life::fails() {
  if (calls_until_failure_ == 0) return false;
  --calls_until_failure_;
  return calls_until_failure_ == 0;
}

Status Life::write(std::uint64_t offset, std::span<const std::byte> pages) {
  pool_file_.write(offset, pages, random_);
  cuts_.cut(*this, "a page is written");
  if (fails()) {
    pool_file_.fail(offset, pages.size(), random_);
    return refused("write");
  }
  others();
  return {};
}

Status Life::send(std::uint64_t, std::uint64_t) {
  if (fails()) return refused("sync_file_range");
  others_outside_batch();
  return {};
}

Status Life::sync_data() {
  others_outside_batch();
  if (fails()) {
    cuts_.cut(*this, "the pool's file is synced");
    pool_file_.fail(0, kPoolBytes, random_);
    return refused("fdatasync");
  }
  pool_file_.sync();
  cuts_.cut(*this, "the pool's file is synced");
  return {};
}

Status Life::write_through(std::uint64_t offset, std::span<const std::byte> pages) {
  if (Status s = write(offset, pages); !s.ok()) return s;
  if (fails()) {
    pool_file_.fail(offset, pages.size(), random_);
    return refused("fdatasync");
  }
  pool_file_.sync(offset, pages.size());
  cuts_.cut(*this, "pages are written directly");
  return {};
}

Status Life::show_again(std::uint64_t offset, std::span<std::byte> pages) const {
  const Bytes file = pool_file_.cached();
  std::memcpy(pages.data(), file.data() + offset, pages.size());
  return {};
}

void Life::meanwhile() { others(); }

int Life::open_ring(bool makes) {
  const bool is_gone = judged_as_ == Death::kPowerCut;
  const int file = makes ? ring_.make() : is_gone ? -1 : ring_.open_again();
  if (file < 0) errno = makes ? EEXIST : ENOENT;
  if (makes) cuts_.kill(*this, "the ring is made");
  return file;
}

void Life::allocated_ring() {
  ring_.map();
  cuts_.kill(*this, "the ring is allocated");
}

void Life::remove_ring() {
  cuts_.kill(*this, "the ring is removed");
  ring_.remove();
  cuts_.kill(*this, "the ring is gone");
}

/// The process may be killed before the record has its checksum, and when only some words of the
/// record are there.
void Life::copy_record(std::span<std::byte> record, FunctionRef<void()> copy) {
  const Bytes before(record.begin(), record.end());
  copy();
  if (!has_ring_ || !random_.chance(kTornRecordPercent)) return;
  cuts_.kill(*this, "a record has no checksum yet");
  const Bytes made(record.begin(), record.end());
  const auto percent = static_cast<unsigned>(random_.below(101));
  for (std::size_t at = 0; at < record.size(); at += sizeof(std::uint64_t))
    if (random_.chance(percent)) std::copy_n(before.begin() + at, 8, record.begin() + at);
  cuts_.kill(*this, "a record is copied in part");
  std::copy(made.begin(), made.end(), record.begin());
}

void Life::read_journal(std::uint64_t offset, std::span<std::byte> bytes) {
  std::memcpy(bytes.data(), journal_file_.durable().data() + offset, bytes.size());
}

int Life::write_journal(std::uint64_t offset, std::span<const std::byte> bytes) {
  const bool is_batch = offset >= pmem::kJournalDataOffset;
  is_writing_batch_ = is_writing_batch_ || is_batch;
  journal_file_.write(offset, bytes, random_);
  cuts_.cut(*this, is_batch ? "a batch is written" : "a head is written");
  const bool has_failed = fails();
  if (has_failed) {
    journal_file_.fail(offset, bytes.size(), random_);
  } else {
    others(is_batch ? 4 : kStepsDuringHead);
    cuts_.cut(*this, "a journal write ends");
    journal_file_.sync(offset, bytes.size());
  }
  if (is_batch) is_writing_batch_ = false;
  return has_failed ? EIO : 0;
}

}  // namespace flugs::test
