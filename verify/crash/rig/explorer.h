#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flugs/status.h"
#include "pmem/medium/medium.h"
#include "pmem/medium/persist.h"

// The crash-state explorer. At each fence of a running program it makes up every state in which a
// power cut just then could have left the medium, and has each state judged.
//
// Fault model. The program works on a plain buffer. Per 64-byte line the explorer knows the durable
// content, the contents that were flushed but not fenced, and the present content. Between two
// fences any line may reach the medium at any time without being flushed, and lines may do so in
// any order. So a power cut leaves, for each line, its durable content, one of the flushed ones, or
// the present one, in any combination. With `tears_words`, lines also tear: any subset of their
// changed 8-byte words. A fence makes durable what the same Persister flushed, and nothing else.
//
// Not modelled: contents that a line had between two flushes and has no longer (there is no hook at
// stores); torn 8-byte words, which the processor excludes.

namespace flugs::crash {

class CrashExplorer;

struct ExplorerOptions {
  bool tears_words = false;
  /// Each flush is a crash point as well, before it is executed. This tries contents that a line
  /// has then, and no longer has when it is flushed itself.
  bool at_flushes = false;
  /// A crash point with at most this many combinations tries all of them. Beyond, it tries: no
  /// line, all lines, each line missing, each line alone, and `random_images` at random.
  std::uint64_t combinations_max = 4096;
  std::uint32_t random_images = 64;
  std::uint64_t seed = 1;
  /// How many crashes deep to crash again inside the recovery from a crash; 0: not at all.
  std::uint32_t nested_depth = 0;
  /// Crashes only one image in this many again, so that the budget is not spent on the first ones.
  std::uint32_t nested_one_in = 1;
  /// Images to check in all, with nested ones; exploring ends when they are used up.
  std::uint64_t images_max = std::numeric_limits<std::uint64_t>::max();
  /// Exploring ends after this many failures.
  std::uint32_t failures_max = 1;
  /// Explores as if this flush or fence were missing in the sources: a test of the test.
  std::string ignored_flush;
  std::string ignored_fence;
  /// From CrashFailure::replay, per depth: tries only this image at only this crash point.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> replay;
};

struct CrashFailure {
  std::string label;     ///< crash point: the label of the fence or of crash_now(), per depth
  std::string versions;  ///< the content chosen for each uncertain line
  std::uint64_t seed = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> replay;
  Status status;  ///< the status of the check

  std::string to_string() const;
};

/// What the flushes or the fences of one label did.
struct SiteCounts {
  std::uint64_t calls = 0;
  std::uint64_t lines = 0;     ///< a fence: lines it made durable
  std::uint64_t clean = 0;     ///< lines that were durable already
  std::uint64_t repeated = 0;  ///< lines flushed before, unchanged since, by the same Persister
  std::uint64_t unfenced = 0;  ///< lines still without a fence at an acknowledgement
  std::uint64_t idle = 0;      ///< fences that made nothing durable

  SiteCounts& operator+=(const SiteCounts& other) noexcept;
};

struct ExplorerReport {
  std::uint64_t crash_points = 0;  ///< with nested ones, as in the next three
  std::uint64_t images_checked = 0;
  std::uint64_t images_skipped = 0;  ///< checked before at the same crash point
  std::uint64_t sampled_points = 0;  ///< where not all combinations were tried
  std::uint64_t nested_images = 0;   ///< of images_checked, crashes inside recovery
  /// Digest of all images checked, in any order: two runs with the same digest checked the same
  /// states.
  std::uint64_t digest = 0;
  std::uint64_t lines_uncertain_max = 0;
  std::uint64_t failure_count = 0;
  bool used_up = false;  ///< images_max ended it
  std::vector<CrashFailure> failures;
  std::map<std::string, SiteCounts> sites;  ///< by "flush <label>", "fence <label>"

  bool ok() const noexcept { return failure_count == 0; }
  std::string to_string() const;  ///< for Catch2's INFO
};

/// What a check may know about the image it judges.
class ExplorerContext {
 public:
  /// Set it as PoolOptions::observer, or at the medium, of the pool that is opened on the image:
  /// then crashes inside the recovery are explored with the same check. nullptr when deep enough.
  /// Take it off before new transactions run.
  pmem::PersistObserver* observer() const noexcept;
  std::uint32_t depth() const noexcept { return depth_; }
  /// Crash point: recovery is over.
  void crash_now(const char* label) const;

 private:
  friend class CrashExplorer;
  ExplorerContext(CrashExplorer* child, std::uint32_t depth) : child_(child), depth_(depth) {}
  CrashExplorer* child_;
  std::uint32_t depth_;
};

/// Judges one image: ok when recovery from it gives a state that is allowed at this point. The
/// image belongs to the check, which may write to it; it is 64-byte aligned and kept until the
/// check returns.
using CrashCheck = std::function<Status(std::span<std::byte> image, ExplorerContext& context)>;

/// Observes a pool in memory and explores at each fence. Thread-safety: any thread may flush and
/// fence; while a check runs, the others wait at their next flush.
class CrashExplorer final : public pmem::PersistObserver {
 public:
  /// All that `memory` holds now counts as durable.
  CrashExplorer(std::span<std::byte> memory, CrashCheck check, ExplorerOptions options = {});
  ~CrashExplorer() override;
  CrashExplorer(const CrashExplorer&) = delete;
  CrashExplorer& operator=(const CrashExplorer&) = delete;

  void on_flush(const void* address, std::size_t bytes, pmem::Label label) override;
  void on_fence(pmem::Label label) override;
  void on_flush_by(const pmem::Persister& by, const void* address, std::size_t bytes,
                   pmem::Label label) override;
  void on_fence_by(const pmem::Persister& by, pmem::Label label) override;

  /// A crash point: now, for instance because a commit has just been acknowledged.
  void crash_now(const char* label);
  /// One of the images that a power cut could leave now. `choice` 0: nothing uncertain has arrived;
  /// 1: all of it has; any other is the seed of a draw line by line.
  std::vector<std::byte> crash_image(std::uint64_t choice) const;
  /// A line with content that is not durable, and was not flushed since it was stored.
  struct UnflushedLine {
    std::size_t offset;
    pmem::Label last_flush;  ///< before; null when there was none
  };
  std::vector<UnflushedLine> unflushed_lines() const;
  /// Counts flushes that are still without a fence.
  void count_unfenced();
  /// While muted, it explores no crash points, but keeps track of what is durable.
  void set_muted(bool is_muted) noexcept { is_muted_ = is_muted; }
  bool is_muted() const noexcept { return is_muted_; }
  /// The states that a power cut at the present moment could leave, to return to later.
  struct Moment;
  std::shared_ptr<Moment> moment() const;
  /// As if the power had been cut at that moment, with what [address, address + bytes) holds now
  /// stored before it.
  void crash_then(Moment& moment, const void* address, std::size_t bytes, const char* label);
  /// All that the memory holds now counts as durable: the power was cut, and it holds an image.
  void restart();
  /// Whether exploring has ended early, by failures or budget: the program may stop as well.
  bool is_done() const noexcept;
  const ExplorerReport& report() const noexcept;

 private:
  struct Shared;
  using LineBytes = std::array<std::byte, pmem::kLineBytes>;
  struct FlushedVersion {
    LineBytes content;
    pmem::Label label;
    std::vector<std::uint64_t> by;  // identities of those whose next fence makes it durable
  };
  /// A line whose content after a power cut is not certain; versions[0] is the durable one,
  /// `newest` what it holds now.
  struct UncertainLine {
    std::size_t index;
    std::vector<LineBytes> versions;
    std::size_t newest;
  };
  using Choice = std::vector<std::size_t>;  // per uncertain line an index into its versions

  CrashExplorer(std::span<std::byte> memory, std::shared_ptr<Shared> shared, std::uint32_t depth,
                std::string context, std::vector<std::pair<std::uint64_t, std::uint64_t>> replay,
                std::uint64_t durable_hash);

  SiteCounts* site_counts(const char* kind, pmem::Label label);
  std::uint64_t identity_of(const pmem::Persister& by, std::uint64_t lines);
  void explore(const char* label);
  /// Nothing when what is uncertain is what it was at the last crash point.
  void explore_changes(const char* label);
  static std::uint64_t digest_of(const std::vector<UncertainLine>& lines);
  void explore_lines(const std::vector<UncertainLine>& lines, const char* label);
  std::vector<UncertainLine> uncertain_lines() const;
  void add_line(std::size_t index, std::vector<UncertainLine>& lines) const;
  void add_torn(UncertainLine& line) const;
  void explore_all(const std::vector<UncertainLine>& lines, const char* label);
  void explore_some(const std::vector<UncertainLine>& lines, const char* label);
  void try_choice(const std::vector<UncertainLine>& lines, const Choice& choice, const char* label);
  Status judge(std::span<std::byte> image, std::uint64_t hash, std::uint32_t depth_left,
               const char* label);
  bool is_new_image(std::uint64_t hash, std::uint32_t depth_left);
  void set_durable(std::size_t index, const LineBytes& content);
  bool is_replayed(std::uint64_t image) const;
  void report_failure(const std::vector<UncertainLine>& lines, const Choice& choice,
                      const char* label, Status status);
  std::string flush_words(std::size_t index) const;
  LineBytes line_of(const std::byte* base, std::size_t index) const;

  std::span<std::byte> memory_;
  std::shared_ptr<Shared> shared_;  // with the explorers of nested crashes
  std::uint32_t depth_ = 0;
  std::string context_;  // labels of the crash points around this one
  std::vector<std::pair<std::uint64_t, std::uint64_t>> path_;
  std::mutex mutex_;
  std::vector<std::byte> durable_;
  // Sum of the hashes of all lines: that of an image follows from the lines in which it differs.
  std::uint64_t durable_hash_ = 0;
  std::map<std::size_t, std::vector<FlushedVersion>> flushed_;  // by line, oldest first
  std::vector<pmem::Label> last_flush_;  // by line; empty inside recoveries from a crash
  std::map<const pmem::Persister*, std::uint64_t> identities_;
  std::uint64_t next_identity_ = 0;
  bool is_muted_ = false;
  std::uint64_t explored_ = 0;  // digest of what was uncertain at the last crash point
  std::uint64_t point_ = 0;     // crash points so far
  std::uint64_t image_ = 0;     // images tried at this crash point
};

}  // namespace flugs::crash
