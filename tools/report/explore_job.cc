#include "tools/report/explore_job.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace flugs::tools {

namespace {

Status system_failure(const char* what) {
  return Status(StatusCode::kIoError, fmt::format("{}: {}", what, std::strerror(errno)));
}

bool write_all(int file, const std::string& words) {
  for (std::size_t at = 0; at < words.size();) {
    const ssize_t written = ::write(file, words.data() + at, words.size() - at);
    if (written <= 0) return false;
    at += static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

ExploreFigures& ExploreFigures::operator+=(const ExploreFigures& other) {
  crash_points += other.crash_points;
  states += other.states;
  nested += other.nested;
  skipped += other.skipped;
  failures += other.failures;
  digest += other.digest;
  seconds += other.seconds;
  for (const auto& [site, counts] : other.sites) sites[site] += counts;
  for (const auto& [site, lines] : other.unflushed) unflushed[site] += lines;
  failure_words.insert(failure_words.end(), other.failure_words.begin(), other.failure_words.end());
  return *this;
}

bench::Json to_json(const ExploreFigures& figures) {
  bench::Json json;
  json["crash_points"] = figures.crash_points;
  json["states"] = figures.states;
  json["nested"] = figures.nested;
  json["skipped"] = figures.skipped;
  json["failures"] = figures.failures;
  json["digest"] = figures.digest;
  json["seconds"] = figures.seconds;
  json["sites"] = bench::Json::object();
  for (const auto& [site, counts] : figures.sites)
    json["sites"][site] = {{"calls", counts.calls},       {"lines", counts.lines},
                           {"clean", counts.clean},       {"repeated", counts.repeated},
                           {"unfenced", counts.unfenced}, {"idle", counts.idle}};
  json["unflushed"] = bench::Json::array();
  for (const auto& [site, lines] : figures.unflushed)
    json["unflushed"].push_back({{"holds", site.holds},
                                 {"flushed_before_by", site.before},
                                 {"flushed_next_by", site.next},
                                 {"lines", lines}});
  json["failure_words"] = figures.failure_words;
  return json;
}

ExploreFigures figures_from(const bench::Json& json) {
  ExploreFigures figures;
  figures.crash_points = json["crash_points"];
  figures.states = json["states"];
  figures.nested = json["nested"];
  figures.skipped = json["skipped"];
  figures.failures = json["failures"];
  figures.digest = json["digest"];
  figures.seconds = json["seconds"];
  for (const auto& [site, counts] : json["sites"].items())
    figures.sites[site] = {counts["calls"],    counts["lines"],    counts["clean"],
                           counts["repeated"], counts["unfenced"], counts["idle"]};
  for (const auto& site : json["unflushed"])
    figures.unflushed[{site["holds"], site["flushed_before_by"], site["flushed_next_by"]}] =
        site["lines"];
  for (const auto& words : json["failure_words"]) figures.failure_words.push_back(words);
  return figures;
}

ExploreFigures figures_of(const crash::Exploration& exploration,
                          const crash::ExplorationResult& result, const std::string& command) {
  ExploreFigures figures;
  figures.crash_points = result.report.crash_points;
  figures.states = result.report.images_checked;
  figures.nested = result.report.nested_images;
  figures.skipped = result.report.images_skipped;
  figures.digest = result.report.digest;
  figures.failures = result.outcome.ok() ? 0 : 1;
  figures.seconds = result.seconds;
  figures.sites = result.report.sites;
  figures.unflushed = result.unflushed;
  if (!result.outcome.ok())
    figures.failure_words = {
        fmt::format("{}\n  to replay: {} --replay '{}'", result.outcome.to_string(), command,
                    result.replay.empty() ? crash::replay_words(exploration) : result.replay)};
  return figures;
}

ExploreFigures figures_of_death(const crash::Exploration& exploration, int signal,
                                const std::string& command) {
  ExploreFigures figures;
  figures.failures = 1;
  figures.failure_words = {
      fmt::format("the process ended, by signal {}\n  to replay: {} --replay "
                  "'{}'",
                  signal, command, crash::replay_words(exploration))};
  return figures;
}

JobPool::~JobPool() {
  for (const Job& job : jobs_) {
    ::kill(job.process, SIGKILL);
    ::waitpid(job.process, nullptr, 0);
    ::close(job.answer);
  }
}

Status JobPool::start(const std::function<bench::Json()>& work, Done done) {
  int ends[2];
  if (::pipe(ends) != 0) return system_failure("pipe");
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) return system_failure("fork");
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
    if (::getppid() != parent) ::_exit(1);
    ::close(ends[0]);
    ::_exit(write_all(ends[1], work().dump()) ? 0 : 1);
  }
  ::close(ends[1]);
  jobs_.push_back({process, ends[0], {}, std::move(done)});
  return {};
}

Status JobPool::wait() {
  for (;;) {
    std::vector<pollfd> polled;
    polled.reserve(jobs_.size());
    for (const Job& job : jobs_) polled.push_back({job.answer, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR)
      return system_failure("poll");
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      std::array<char, 65536> words{};
      const ssize_t bytes = ::read(jobs_[i].answer, words.data(), words.size());
      if (bytes > 0) {
        jobs_[i].words.append(words.data(), static_cast<std::size_t>(bytes));
      } else {
        return finish(i);
      }
    }
  }
}

Status JobPool::finish(std::size_t index) {
  const Job job = std::move(jobs_[index]);
  jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(index));
  ::close(job.answer);
  int status = 0;
  if (::waitpid(job.process, &status, 0) != job.process) return system_failure("waitpid");
  const bool is_whole = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  job.done(is_whole ? bench::Json::parse(job.words) : bench::Json(),
           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return {};
}

}  // namespace flugs::tools
