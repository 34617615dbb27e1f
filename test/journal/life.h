#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmem/journal/pool_journal.h"
#include "test/journal/journal_calls.h"
#include "test/journal/line_model.h"
#include "test/journal/ring_file.h"
#include "test/journal/sector_file.h"
#include "test/support/random.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

inline constexpr std::uint64_t kPoolUuid = 0x1234;
/// The smallest ring: four segments of four pages.
inline constexpr std::uint64_t kRingBytes = 16 * pmem::kPageBytes;
inline constexpr std::uint64_t kJournalBytes = pmem::kJournalDataOffset + kRingBytes;

/// The journal that a pool names in its header line; 0: none.
std::uint64_t& journal_id_of(std::span<std::byte> pool);

/// How a process ends. A killed one leaves the calls that it has made, and its crash ring.
enum class Death : std::uint8_t { kPowerCut, kKill };

/// What an opening finds.
struct Begin {
  SectorFile pool;
  SectorFile journal;
  LineModel model;
  Bytes ring;  ///< empty: there is none
};

class Life;

/// Is told whenever the power may be cut, or the process be killed.
class Deaths {
 public:
  virtual ~Deaths() = default;
  /// Either.
  virtual void cut(Life& life, const char* when) = 0;
  /// Only a kill is new here.
  virtual void kill(Life& life, const char* when) = 0;
  /// Something is wrong, without a power cut.
  virtual void wrong(const Life& life, const std::string& what) = 0;
  virtual bool is_over() const = 0;
};

/// A pool from an opening to the next cut: the real journal, its checkpoints and its replay, over
/// files that say what is durable. Steps are drawn. All of it happens in one thread. What other
/// threads would do meanwhile is done inside the calls of the devices, where the journal holds no
/// lock that a step needs.
class Life final : public pmem::PageFile, public JournalDisk {
 public:
  /// `path` is nobody else's, and a file of the journal's size lies beside it.
  Life(Deaths& cuts, Random& random, const TemporaryPath& path, std::uint32_t depth,
       const Begin& begin);
  ~Life() override;

  /// Recovers the pool, or begins a new journal if it names none. False: it cannot be used.
  bool open();
  void do_steps(std::uint64_t steps);
  /// Closes the pool as protocol journal-end does. False: a failure came in between.
  bool close();

  /// A write of the journal has failed: what the journal has of it, nobody knows.
  bool has_failed() const { return journal_ != nullptr && journal_->journal().has_failed(); }
  bool is_open() const noexcept { return is_open_; }
  /// A checkpoint has failed, and then it did nothing more.
  bool is_ended() const noexcept { return is_ended_; }
  /// The journal has a head besides the one that may be in flight.
  bool has_whole_head() const;

  std::uint32_t depth() const noexcept { return depth_; }
  const TemporaryPath& path() const noexcept { return path_; }
  SectorFile& pool_file() noexcept { return pool_file_; }
  SectorFile& journal_file() noexcept { return journal_file_; }
  /// With all promises made so far.
  LineModel& model();
  /// What a kill leaves is more than a power cut may leave: records wait in a crash ring.
  bool outlives_process() const;
  std::span<const std::byte> ring() const noexcept { return ring_.bytes(); }
  /// While a state is judged: how it came to be.
  void judge_as(std::optional<Death> death) noexcept { judged_as_ = death; }

  Status write(std::uint64_t offset, std::span<const std::byte> pages) override;
  Status send(std::uint64_t offset, std::uint64_t bytes) override;
  Status sync_data() override;
  Status write_through(std::uint64_t offset, std::span<const std::byte> pages) override;
  Status show_again(std::uint64_t offset, std::span<std::byte> pages) const override;
  void read_journal(std::uint64_t offset, std::span<std::byte> bytes) override;
  int write_journal(std::uint64_t offset, std::span<const std::byte> bytes) override;
  void meanwhile() override;
  void wait_for_others() override;
  int open_ring(bool makes) override;
  void allocated_ring() override;
  void remove_ring() override;
  void copy_record(std::span<std::byte> record, FunctionRef<void()> copy) override;

 private:
  bool is_well() const;
  void begin_of_ring();
  void name_journal();
  void step();
  void others(std::uint64_t steps_max = 4);
  void others_outside_batch();
  void store_into(std::uint32_t line);
  void store_some();
  void fence_some();
  void fence_many();
  void fence_to_page_end();
  bool fence(std::vector<std::uint32_t> lines);
  void write_directly();
  bool fence_outside(const std::vector<std::uint32_t>& lines);
  void recover_lines();
  void punch_page();
  bool has_room(std::uint64_t bytes, std::uint64_t runs);
  void wait();
  void checkpoint();
  std::uint32_t drawn_line();
  bool fails();
  Status refused(const char* what) const;
  std::span<std::byte> memory() const { return memory_.span(); }
  pmem::Journal& journal() { return journal_->journal(); }

  Deaths& cuts_;
  Random& random_;
  const TemporaryPath& path_;
  const std::uint32_t depth_;
  SectorFile pool_file_;
  SectorFile journal_file_;
  RingFile ring_;
  PoolBuffer memory_{kPoolBytes};
  LineModel model_;
  JournalDiskInUse in_use_;
  std::vector<std::uint32_t> hot_lines_;
  std::vector<std::uint32_t> unflushed_;
  std::vector<std::uint32_t> appending_;   // by an append that others may interrupt
  std::vector<std::uint32_t> unshared_;    // ascending; only a direct write uses them
  std::uint64_t calls_until_failure_ = 0;  // of devices; 0: none fails
  std::uint64_t reserved_ = 0;             // of the ring, by an append that others interrupt
  std::optional<Death> judged_as_;
  std::uint64_t free_page_ = kPoolPages;  // nobody uses it any more; kPoolPages: none
  bool has_ring_ = false;                 // uses a crash ring
  bool is_lazy_ = false;                  // waits seldom: batches are large
  bool is_ended_ = false;                 // no further steps
  bool is_open_ = false;                  // steps may be done
  bool is_others_turn_ = false;
  bool is_writing_batch_ = false;
  std::unique_ptr<pmem::PoolJournal> journal_;  // last: it uses all of the above
};

}  // namespace flugs::test
