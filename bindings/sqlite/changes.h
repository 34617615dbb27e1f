#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace flugs::sqlite {

/// Says whether definitions of tables of a pool have changed. All such changes come from
/// connections of this process.
///
/// Thread-safety: any thread.
class Definitions {
 public:
  Definitions() noexcept : number_(next()) {}

  /// Another one after each change; no two pools have the same.
  std::uint64_t number() const noexcept { return number_; }
  /// Whether a change has begun, and has not ended.
  bool is_changing() const noexcept { return begun_ != 0; }
  /// Held from the check of a new name to the moment when the pool has it. Rank: before all locks
  /// of the pool.
  std::mutex& names() noexcept { return names_; }

 private:
  friend class DefinitionChange;
  static std::uint64_t next() noexcept;

  std::atomic<std::uint64_t> number_;
  std::atomic<int> begun_{0};
  std::mutex names_;
};

/// A change of definitions, while it lives: made before the change, destroyed after it.
class DefinitionChange {
 public:
  explicit DefinitionChange(Definitions& of) noexcept : of_(of) { ++of_.begun_; }
  DefinitionChange(const DefinitionChange&) = delete;
  DefinitionChange& operator=(const DefinitionChange&) = delete;
  ~DefinitionChange();

 private:
  Definitions& of_;
};

}  // namespace flugs::sqlite
