#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "verify/crash/exploration/mutations.h"

namespace flugs::tools {

/// So that progress is seen, and no job is left when the others are done.
inline constexpr std::uint64_t kStatesPerJobMax = 20'000;

/// Figures of explorations, added up.
struct ExploreFigures {
  std::uint64_t crash_points = 0;
  std::uint64_t states = 0;
  std::uint64_t nested = 0;
  std::uint64_t skipped = 0;  ///< the same image at the same crash point
  std::uint64_t failures = 0;
  std::uint64_t digest = 0;  ///< ExplorerReport::digest
  double seconds = 0;        ///< of one core
  std::map<std::string, crash::SiteCounts> sites;
  std::map<crash::UnflushedSite, std::uint64_t> unflushed;
  std::vector<std::string> failure_words;

  ExploreFigures& operator+=(const ExploreFigures& other);
};

bench::Json to_json(const ExploreFigures& figures);

/// `command` is what explores again; the words that name the state are added.
ExploreFigures figures_of(const crash::Exploration& exploration,
                          const crash::ExplorationResult& result, const std::string& command);
/// The figures of an exploration whose process died.
ExploreFigures figures_of_death(const crash::Exploration& exploration, int signal,
                                const std::string& command);

/// Runs work in processes of its own, a bounded number at a time: the death of a process is a
/// finding, too.
class JobPool {
 public:
  /// Is given the answer of the work; empty when its process died, then with the signal.
  using Done = std::function<void(const bench::Json& answer, int signal)>;

  explicit JobPool(std::uint32_t processes) : processes_(processes) {}
  JobPool(const JobPool&) = delete;
  JobPool& operator=(const JobPool&) = delete;
  /// Ends what still runs.
  ~JobPool();

  bool is_full() const noexcept { return jobs_.size() >= processes_; }
  bool is_empty() const noexcept { return jobs_.empty(); }
  Status start(const std::function<bench::Json()>& work, Done done);
  /// Waits until one is done.
  Status wait();

 private:
  struct Job {
    pid_t process;
    int answer;  // end of a pipe
    std::string words;
    Done done;
  };
  Status finish(std::size_t index);

  std::uint32_t processes_;
  std::vector<Job> jobs_;
};

/// The other way of to_json.
ExploreFigures figures_from(const bench::Json& json);

}  // namespace flugs::tools
