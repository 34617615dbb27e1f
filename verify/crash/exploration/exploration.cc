#include "verify/crash/exploration/exploration.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <vector>

#include "verify/crash/exploration/scheduled_exploration.h"

namespace flugs::crash {

namespace {

// Size of the hint indexes of a few small tables.
constexpr std::uint32_t kHintKilobytes = 192;

constexpr std::uint32_t kTurnsMax = 400;
constexpr unsigned kMutantSecondsMax = 60;

Status bad_words(std::string_view what) {
  return Status(StatusCode::kInvalidArgument, fmt::format("replay: {}", what));
}

bool read_number(std::string_view words, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  return error == std::errc() && end == words.data() + words.size();
}

/// Cuts off the words before `mark`; all words when there is no mark.
std::string_view cut(std::string_view& words, char mark) {
  const std::size_t end = std::min(words.find(mark), words.size());
  const std::string_view first = words.substr(0, end);
  words.remove_prefix(std::min(end + 1, words.size()));
  return first;
}

Status read_points(std::string_view words, ExplorerOptions& options) {
  while (!words.empty()) {
    std::string_view pair = cut(words, ';');
    std::uint64_t point = 0;
    std::uint64_t image = 0;
    const std::string_view first = cut(pair, ',');
    if (!read_number(first, point) || !read_number(pair, image))
      return bad_words("expected <point>,<image>[;<point>,<image>]...");
    options.replay.emplace_back(point, image);
  }
  return {};
}

Result<RigOptions> rig_options(const Exploration& exploration, const Protocol& protocol) {
  RigOptions options;
  options.pool_bytes = pool_bytes(exploration, protocol);
  options.gives_back = protocol.gives_back;
  options.index_place = exploration.hints ? IndexPlace::kPool : IndexPlace::kDram;
  options.slots = exploration.slots;
  options.late_indexes = exploration.late;
  options.watches_creation = protocol.watches_creation && exploration.round == 0;
  options.mutes_script = exploration.round != 0;
  Result<ExplorerOptions> explorer = explorer_options(exploration);
  if (!explorer.ok()) return std::move(explorer).status();
  options.explorer = std::move(*explorer);
  return options;
}

}  // namespace

std::string replay_words(const Exploration& exploration) {
  return fmt::format(
      "{},round={},seed={},slots={},hints={},late={},torn={},flushes={},depth={},combinations={},"
      "random={}"
      "{}{}:",
      exploration.protocol, exploration.round, exploration.seed, exploration.slots,
      exploration.hints ? 1 : 0, exploration.late ? 1 : 0, exploration.tears_words ? 1 : 0,
      exploration.at_flushes ? 1 : 0, exploration.nested_depth, exploration.combinations_max,
      exploration.random_images,
      exploration.schedule.empty() ? "" : ",schedule=", exploration.schedule);
}

std::string replay_words(const Exploration& exploration, const CrashFailure& failure) {
  std::string words = replay_words(exploration);
  for (std::size_t i = 0; i < failure.replay.size(); ++i)
    words += fmt::format("{}{},{}", i == 0 ? "" : ";", failure.replay[i].first,
                         failure.replay[i].second);
  return words;
}

std::size_t pool_bytes(const Exploration& exploration, const Protocol& protocol) {
  return std::size_t{protocol.pool_kilobytes + (exploration.hints ? kHintKilobytes : 0)} << 10;
}

Result<ExplorerOptions> explorer_options(const Exploration& exploration) {
  ExplorerOptions options;
  options.seed = exploration.seed + exploration.round;
  options.tears_words = exploration.tears_words;
  options.at_flushes = exploration.at_flushes;
  options.nested_depth = exploration.nested_depth;
  options.nested_one_in = exploration.nested_one_in;
  options.images_max = exploration.images_max;
  options.combinations_max = exploration.combinations_max;
  options.random_images = exploration.random_images;
  if (Status s = read_points(exploration.replay, options); !s.ok()) return s;
  return options;
}

ExplorationResult explore(const Exploration& exploration, const Mutation& mutation) {
  const std::clock_t start = std::clock();
  ExplorationResult result;
  const Protocol* protocol = find_protocol(exploration.protocol);
  if (protocol == nullptr) {
    result.outcome =
        Status(StatusCode::kInvalidArgument, fmt::format("no protocol '{}'", exploration.protocol));
    return result;
  }
  if (protocol->threads != 0) return explore_schedules(exploration, *protocol, mutation);
  Result<RigOptions> options = rig_options(exploration, *protocol);
  if (!options.ok()) {
    result.outcome = std::move(options).status();
    return result;
  }
  options->mutation = mutation;
  CrashRig rig(*options);
  protocol->script(rig);
  if (exploration.round != 0) {
    rig.unmute();
    rig.abort_all();
    run_turns(rig, protocol->turns, exploration.seed + exploration.round, kTurnsMax);
  }
  result.report = rig.report();
  result.unflushed = rig.unflushed_at_acknowledgement();
  result.outcome = rig.outcome();
  if (!result.report.failures.empty())
    result.replay = replay_words(exploration, result.report.failures[0]);
  result.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return result;
}

Result<Exploration> read_replay(std::string_view words) {
  Exploration exploration;
  std::string_view options = cut(words, ':');
  exploration.protocol = cut(options, ',');
  exploration.replay = words;
  exploration.images_max = std::numeric_limits<std::uint64_t>::max();
  while (!options.empty()) {
    std::string_view option = cut(options, ',');
    const std::string_view name = cut(option, '=');
    std::uint64_t number = 0;
    if (name == "schedule") {
      exploration.schedule = option;
      if (Result<Schedule> schedule = read_schedule(option); !schedule.ok())
        return std::move(schedule).status();
      continue;
    }
    if (!read_number(option, number)) return bad_words(fmt::format("option '{}'", name));
    if (name == "round") {
      exploration.round = static_cast<std::uint32_t>(number);
    } else if (name == "seed") {
      exploration.seed = number;
    } else if (name == "slots") {
      exploration.slots = static_cast<std::uint32_t>(number);
    } else if (name == "hints") {
      exploration.hints = number != 0;
    } else if (name == "late") {
      exploration.late = number != 0;
    } else if (name == "torn") {
      exploration.tears_words = number != 0;
    } else if (name == "flushes") {
      exploration.at_flushes = number != 0;
    } else if (name == "depth") {
      exploration.nested_depth = static_cast<std::uint32_t>(number);
    } else if (name == "combinations") {
      exploration.combinations_max = number;
    } else if (name == "random") {
      exploration.random_images = static_cast<std::uint32_t>(number);
    } else {
      return bad_words(fmt::format("no option '{}'", name));
    }
  }
  ExplorerOptions checked;
  if (Status s = read_points(exploration.replay, checked); !s.ok()) return s;
  return exploration;
}

Result<bool> finds(const Exploration& exploration, const Mutation& mutation, std::string& found) {
  int ends[2];
  if (::pipe(ends) != 0) return Status(StatusCode::kIoError, "pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return Status(StatusCode::kIoError, "fork");
  if (child == 0) {
    ::alarm(kMutantSecondsMax);
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM}) ::signal(signal, SIG_DFL);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);
    const Status outcome = explore(exploration, mutation).outcome;
    const std::string words = outcome.to_string();
    const bool is_written = ::write(ends[1], words.data(), words.size()) >= 0;
    ::_exit(outcome.ok() && is_written ? 0 : 1);
  }
  ::close(ends[1]);
  std::array<char, 4096> words{};
  found.clear();
  for (ssize_t n = 0; (n = ::read(ends[0], words.data(), words.size())) > 0;)
    found.append(words.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return Status(StatusCode::kIoError, "waitpid");
  if (found.find("out of space") != std::string::npos)
    return Status(StatusCode::kOutOfSpace, "the protocol needs a larger pool: " + found);
  if (WIFSIGNALED(status)) found += fmt::format(" ended by signal {}", WTERMSIG(status));
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace flugs::crash
