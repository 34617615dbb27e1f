#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace flugs::query {

class MemoryBudget;

/// Memory for texts that a query computes: each stays where it is until all go. Thread-safety: one
/// thread at a time.
class TextArena {
 public:
  /// With a budget, the memory counts for it, which must outlive the arena.
  explicit TextArena(MemoryBudget* budget = nullptr) noexcept : budget_(budget) {}
  TextArena(const TextArena&) = delete;
  TextArena& operator=(const TextArena&) = delete;
  ~TextArena();

  /// Room for a text of this many bytes. Fails with kOutOfMemory.
  char* add(std::size_t bytes) {
    if (bytes > left_) add_block(bytes);
    left_ -= bytes;
    char* const place = next_;
    next_ += bytes;
    return place;
  }
  std::string_view keep(std::string_view text);
  /// Forgets all texts, whose views become invalid. Keeps the memory for the next ones.
  void clear() noexcept;
  /// Forgets all texts, and frees the memory.
  void give_up() noexcept;

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;
  };
  void add_block(std::size_t bytes);

  std::vector<Block> blocks_;
  std::size_t used_ = 0;  // blocks with texts
  char* next_ = nullptr;
  std::size_t left_ = 0;
  MemoryBudget* budget_;
};

}  // namespace flugs::query
