#include "tools/support/tatp_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "bench/support/environment.h"
#include "tools/support/command.h"

namespace flugs::tools {

namespace {

const std::map<std::string, bench::TatpMix> kMixes = {
    {"full", bench::TatpMix::kFull},
    {"read", bench::TatpMix::kRead},
    {"get-sub", bench::TatpMix::kGetSubscriber},
    {"update-location", bench::TatpMix::kUpdateLocation}};
const std::map<std::string, Isolation, std::less<>> kLevels = {
    {"snapshot", Isolation::kSnapshot},
    {"serializable", Isolation::kSerializable},
    {"read-committed", Isolation::kReadCommitted}};
const std::map<std::string, ScmCache> kScmCaches = {{"task", ScmCache::kTask},
                                                    {"processor", ScmCache::kProcessor}};
const std::map<std::string, TatpMerge::Mode> kMergeModes = {{"default", TatpMerge::Mode::kDefault},
                                                            {"auto", TatpMerge::Mode::kAuto},
                                                            {"off", TatpMerge::Mode::kOff}};
const std::map<std::string, bench::TatpDistribution> kDistributions = {
    {"nurand", bench::TatpDistribution::kNuRand}, {"uniform", bench::TatpDistribution::kUniform}};

template <typename Enum>
std::string name_in(const std::map<std::string, Enum>& names, Enum wanted) {
  for (const auto& [name, value] : names)
    if (value == wanted) return name;
  return "unknown";
}

/// An option that takes one of the names.
template <typename Enum>
void add_named_option(CLI::App& command, const std::string& option,
                      const std::map<std::string, Enum>& names, Enum& value,
                      const std::string& description) {
  std::string choices;
  for (const auto& [name, unused] : names) choices += (choices.empty() ? "" : "|") + name;
  command
      .add_option_function<std::string>(
          option,
          [&names, &value, option, choices](const std::string& text) {
            const auto found = names.find(text);
            if (found == names.end())
              throw CLI::ValidationError(option, "'" + text + "' is not one of " + choices);
            value = found->second;
          },
          description)
      ->type_name(choices)
      ->default_str(name_in(names, value));
}

bool parse_number(std::string_view text, std::uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

void add_mix_option(CLI::App& command, bench::TatpMix& mix) {
  add_named_option(command, "--mix", kMixes, mix, "Transactions");
}

void add_distribution_option(CLI::App& command, bench::TatpDistribution& distribution) {
  add_named_option(
      command, "--distribution", kDistributions, distribution,
      "Distribution of subscriber ids; results with uniform are not comparable with others");
}

std::string name_of(TatpMerge::Mode mode) { return std::string(name_in(kMergeModes, mode)); }

void add_background_merge_options(CLI::App& command, TatpMerge& merge) {
  add_named_option(command, "--merge", kMergeModes, merge.mode,
                   "Merges of tables by themselves during the run: to give space back, of every "
                   "full chunk, or none");
  command
      .add_option("--merge-interval", merge.interval_ms,
                  "Interval in ms at which a table is examined, and merged at most once")
      ->check(CLI::Range(10u, 86'400'000u))
      ->capture_default_str();
  command
      .add_option("--merge-written", merge.written_percent,
                  "Merge a chunk if at most this percentage of its rows was written in an "
                  "interval; 100: merge every full chunk")
      ->check(CLI::Range(0u, 100u))
      ->capture_default_str();
  command
      .add_option("--merge-niceness", merge.niceness,
                  "Niceness of the merging thread, as of nice(1)")
      ->check(CLI::Range(0u, 19u))
      ->capture_default_str();
}

void add_merge_options(CLI::App& command, TatpMerge& merge) {
  add_background_merge_options(command, merge);
  command.add_flag("--merge-first", merge.first, "Merge all rows before the run");
}

MergePolicy policy_of(const TatpMerge& merge) {
  MergePolicy policy;
  policy.automatic = merge.mode != TatpMerge::Mode::kOff;
  if (merge.mode != TatpMerge::Mode::kAuto) return policy;
  policy.delta_bytes = 1;  // one full chunk, however small
  policy.written_percent = merge.written_percent;
  policy.interval = std::chrono::milliseconds(merge.interval_ms);
  return policy;
}

Status merge_everything(Database& database) {
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  for (const TableId table : database.tables())
    if (Result<MergeReport> report = database.merge(table, options); !report.ok())
      return std::move(report).status();
  return {};
}

void add_scm_options(CLI::App& command, bench::ScmModel& scm) {
  command
      .add_option_function<std::string>(
          "--scm-latency",
          [&scm](const std::string& text) {
            const std::size_t colon = text.find(':');
            const std::string_view view = text;
            if (colon == std::string::npos || !parse_number(view.substr(0, colon), scm.read_ns) ||
                !parse_number(view.substr(colon + 1), scm.write_ns))
              throw CLI::ValidationError("--scm-latency", "'" + text + "' is not READ_NS:WRITE_NS");
          },
          "Latency of emulated SCM for reads, which need a build with FLUGS_SCM, and writes")
      ->type_name("READ_NS:WRITE_NS")
      ->default_str("0:0");
  add_named_option(command, "--scm-cache", kScmCaches, scm.cache,
                   "Lines that are read without that latency: lines that the task has touched, or "
                   "the latest 16 MB of lines of the thread");
  command
      .add_option("--scm-in-flight", scm.lines_in_flight,
                  "Lines in sequence that are read or flushed at the same time")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
}

bench::Json scm_json(const bench::ScmModel& scm) {
  return {{"read", scm.read_ns},
          {"write", scm.write_ns},
          {"lines_in_flight", scm.lines_in_flight},
          {"cache", name_in(kScmCaches, scm.cache)}};
}

bench::Json scm_lines_json(const bench::TatpRunResult& run) {
  return {{"whole", run.per_executed(&Statistics::scm_lines_read)},
          {"in_sequence", run.per_executed(&Statistics::scm_lines_read_in_sequence)}};
}

std::string to_string(bench::TatpMix mix) { return name_in(kMixes, mix); }

std::string to_string(bench::TatpDistribution distribution) {
  return name_in(kDistributions, distribution);
}

bench::Json invariants_json(const bench::InvariantReport& report) {
  bench::Json json = bench::Json::object();
  for (std::size_t i = 0; i < bench::kInvariants; ++i) {
    const std::string name = fmt::format("T{}", i + 1);
    if (report.state(i) == bench::Check::kNotChecked)
      json[name] = "not checked";
    else
      json[name] = report.state(i) == bench::Check::kHeld;
  }
  return json;
}

std::string describe_invariants(const bench::InvariantReport& report) {
  std::string text;
  for (const auto& [state, words] :
       {std::pair{bench::Check::kHeld, "held"}, std::pair{bench::Check::kBroken, "BROKEN"},
        std::pair{bench::Check::kNotChecked, "not checked"}}) {
    std::string names;
    for (std::size_t i = 0; i < bench::kInvariants; ++i)
      if (report.state(i) == state) names += fmt::format("T{} ", i + 1);
    if (!names.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : "; ", names, words);
  }
  return text;
}

std::uint64_t tatp_pool_bytes(std::uint32_t subscribers) {
  constexpr std::uint64_t kBytesPerSubscriber = 1500;  // ten rows with their strings and stamps
  return kBytesPerSubscriber * subscribers + (std::uint64_t{512} << 20);
}

void add_index_option(CLI::App& command, IndexPlace& mode) {
  command
      .add_option_function<std::string>(
          "--index",
          [&mode](const std::string& word) {
            mode = word == "pool" ? IndexPlace::kPool : IndexPlace::kDram;
          },
          "Place of indexes: in DRAM, rebuilt at opening, or in the pool")
      ->check(CLI::IsMember({"dram", "pool"}))
      ->default_str(std::string(to_string(mode)));
}

void add_ready_option(CLI::App& command, std::string& ready) {
  command
      .add_option("--ready", ready,
                  "When opening returns: as soon as queries can be answered, or with all indexes")
      ->check(CLI::IsMember({"first-answer", "indexes-built"}))
      ->capture_default_str();
}

std::string_view to_string(IndexPlace mode) noexcept {
  return mode == IndexPlace::kPool ? "pool" : "dram";
}

void add_isolation_option(CLI::App& command, Isolation& isolation) {
  command
      .add_option_function<std::string>(
          "--isolation", [&isolation](const std::string& word) { isolation = kLevels.at(word); },
          "Isolation level of transactions")
      ->check(CLI::IsMember(kLevels))
      ->default_str("snapshot");
}

void add_period_options(CLI::App& command, double& seconds, double& ramp_up_seconds) {
  command.add_option("--seconds", seconds, "Sampling period")
      ->check(real_range(0.01, 1e6))
      ->capture_default_str();
  command.add_option("--ramp-up", ramp_up_seconds, "Seconds before sampling begins")
      ->check(real_range(0.0, 1e6))
      ->capture_default_str();
}

void add_journal_options(CLI::App& command, std::uint32_t& restart_budget_ms,
                         std::uint32_t& journal_mb) {
  command
      .add_option("--restart-budget", restart_budget_ms,
                  "On a disk: time of replay, ms, from which on a checkpoint begins")
      ->check(CLI::Range(0u, 86'400'000u))
      ->capture_default_str();
  command
      .add_option("--journal", journal_mb,
                  "On a disk: size of the journal, MB; 0: by the size of the pool")
      ->check(CLI::Range(0u, 1u << 20))
      ->capture_default_str();
}

void add_durability_option(CLI::App& command, CommitOptions& commit) {
  command
      .add_option_function<std::uint32_t>(
          "--durable-within",
          [&commit](std::uint32_t ms) {
            commit = {.durability = Durability::kSoon, .soon = std::chrono::milliseconds(ms)};
          },
          "Commits return at once, and should be durable after this many ms; without: they are "
          "durable when they return")
      ->check(CLI::Range(0u, 60000u));
}

CLI::Option* add_process_crash_option(CLI::App& command, CommitOptions& commit) {
  return command.add_flag_callback(
      "--process-crash-only", [&commit] { commit = {.durability = Durability::kProcessCrash}; },
      "Commits return at once, and survive the death of the process only");
}

std::string_view to_string(Isolation isolation) noexcept {
  for (const auto& [word, level] : kLevels)
    if (level == isolation) return word;
  return "unknown";
}

void add_clock_option(CLI::App& command, CommitClock& clock) {
  command
      .add_option_function<std::string>(
          "--clock",
          [&clock](const std::string& word) {
            clock = word == "processors" ? CommitClock::kProcessors
                    : word == "counter"  ? CommitClock::kCounter
                                         : CommitClock::kAutomatic;
          },
          "Source of time-stamps: a counter, the processors' time-stamp counters, or a choice by "
          "the number of processors")
      ->check(CLI::IsMember({"auto", "counter", "processors"}))
      ->default_str("auto");
}

std::string_view to_string(CommitClock clock) noexcept {
  switch (clock) {
    case CommitClock::kCounter:
      return "counter";
    case CommitClock::kProcessors:
      return "processors";
    case CommitClock::kAutomatic:
      break;
  }
  return "auto";
}

OpenOptions tatp_open_options(const std::string& path, OpenMode mode, std::uint32_t users,
                              const bench::ScmModel& scm) {
  OpenOptions options;
  options.path = path;
  options.mode = mode;
  options.slots_max = std::max(options.slots_max, 4 * users);
  scm.put_into(options);
  return options;
}

std::uint32_t default_load_threads() { return bench::usable_cores(); }

}  // namespace flugs::tools
