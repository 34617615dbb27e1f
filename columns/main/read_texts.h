#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "columns/column/read_text_memory.h"
#include "columns/main/compressed_texts.h"

namespace flugs::columns {

/// Texts of a main column as they were before they were compressed, some rows at a time, made when
/// one of the rows is first read. A text stays in its place until the object that `take` returned
/// is destroyed, or this one: like a row group that was replaced, they must wait until every
/// transaction that may have found a text has ended.
/// Thread-safety: any thread, except begin, take and destroying what it returned.
class ReadTexts {
 public:
  /// What was made so far.
  class Made {
   public:
    Made(std::uint32_t blocks, ReadTextMemory& memory);
    ~Made();
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;

   private:
    friend class ReadTexts;
    struct Block;
    std::unique_ptr<std::atomic<Block*>[]> blocks_;
    std::uint32_t count_;
    ReadTextMemory& memory_;
    std::atomic<std::uint64_t> bytes_{0};
  };

  ReadTexts() = default;
  ~ReadTexts() { delete made_.load(std::memory_order_relaxed); }
  ReadTexts(const ReadTexts&) = delete;
  ReadTexts& operator=(const ReadTexts&) = delete;

  /// Once, before any other thread has the object. `memory` must outlive all texts.
  void begin(const CompressedTexts& texts, ReadTextMemory& memory) noexcept {
    texts_ = texts;
    memory_ = &memory;
  }
  const CompressedTexts& compressed() const noexcept { return texts_; }
  /// Whether readers that can do without `text` must do so: the texts would take too much memory.
  bool is_full() const noexcept { return memory_->bytes() >= memory_->limit(); }
  /// Empty for NULL. Ends the process if there is no memory.
  std::string_view text(std::uint32_t row) noexcept;
  /// All texts that were made, which are no longer found; null: none were.
  std::unique_ptr<Made> take() noexcept {
    return std::unique_ptr<Made>(made_.exchange(nullptr, std::memory_order_acq_rel));
  }

 private:
  Made& made();

  CompressedTexts texts_;
  ReadTextMemory* memory_ = nullptr;
  std::atomic<Made*> made_{nullptr};
};

}  // namespace flugs::columns
