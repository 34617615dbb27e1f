#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "verify/isolation/checker/checker.h"
#include "verify/isolation/checker/history.h"

namespace flugs::test {

/// Objects of hand-made histories: lists have even keys.
inline constexpr std::uint32_t kListX = 0;
inline constexpr std::uint32_t kListY = 2;
inline constexpr std::uint32_t kListZ = 4;
inline constexpr std::uint32_t kRegisterX = 1;
inline constexpr std::uint32_t kRegisterY = 3;

/// A hand-made history, each transaction in one go. Without times all of them overlap.
class Story {
 public:
  static constexpr std::uint64_t kBegin = 100;
  static constexpr std::uint64_t kEnd = 200;

  Story& t(std::uint64_t begin_ns = kBegin, std::uint64_t end_ns = kEnd,
           isolation::Outcome outcome = isolation::Outcome::kCommitted) {
    history_.begin(process_++, begin_ns);
    history_.end(outcome, end_ns);
    return *this;
  }
  Story& aborted() { return t(kBegin, kEnd, isolation::Outcome::kAborted); }
  Story& killed() { return t(kBegin, kEnd, isolation::Outcome::kUnknown); }
  Story& append(std::uint32_t key, std::uint32_t value) {
    history_.append(key, value);
    return *this;
  }
  Story& write(std::uint32_t key, std::uint32_t value) {
    history_.write(key, value);
    return *this;
  }
  Story& reads(std::uint32_t key, std::initializer_list<std::uint32_t> elements,
               bool is_predicate = false) {
    const std::vector<std::uint32_t> copy(elements);
    history_.read_list(key, copy, is_predicate);
    return *this;
  }
  Story& sees(std::uint32_t key, std::uint32_t value, bool is_predicate = false) {
    history_.read_register(key, value, is_predicate);
    return *this;
  }

  const isolation::History& history() const noexcept { return history_; }

 private:
  isolation::History history_;
  std::uint32_t process_ = 0;
};

inline isolation::Report judge(const Story& story, isolation::Level level) {
  Result<isolation::Report> report =
      isolation::check(story.history(), {.level = level, .reports_allowed = true});
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  return std::move(*report);
}

inline std::uint64_t forbidden(const isolation::Report& report, isolation::Anomaly anomaly) {
  return report.by_kind[static_cast<std::size_t>(anomaly)].forbidden;
}
inline std::uint64_t allowed(const isolation::Report& report, isolation::Anomaly anomaly) {
  return report.by_kind[static_cast<std::size_t>(anomaly)].allowed;
}

}  // namespace flugs::test
