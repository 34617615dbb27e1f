#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "columns/main/main_column.h"
#include "columns/main/main_column_builder.h"
#include "test/support/model_value.h"
#include "test/support/random.h"

namespace flugs::test {

/// One column of a row group in a buffer, as the builder made it, and its values. Strings longer
/// than a cell are in front, as in a pool.
class MainColumnGroup {
 public:
  MainColumnGroup(Type type, std::vector<ModelValue> values,
                  columns::MainEncodings allowed = columns::MainEncodings::all());

  const std::vector<ModelValue>& values() const { return values_; }
  /// Texts of the column stay as long as the group.
  columns::MainColumn column() const {
    read_texts_.push_back(std::make_unique<columns::ReadTexts>());
    read_texts_.back()->begin(columns::MainColumn::compressed_texts(layout(), group()),
                              *read_text_memory_);
    return {layout(), group(), memory(), read_texts_.back().get()};
  }
  columns::MainColumnLayout& layout() const {
    return *reinterpret_cast<columns::MainColumnLayout*>(group());
  }
  std::span<std::byte> parts() const {
    return {group() + layout().parts_offset, layout().parts_bytes};
  }
  std::byte* group() const { return pool_.get() + group_offset_; }
  std::span<const std::byte> extent() const { return {group(), pool_bytes_ - group_offset_}; }
  columns::TextMemory memory() const { return {pool_.get(), pool_bytes_word_.get()}; }
  columns::MainColumnOwner owner() const {
    return {"pool: table t, column c", group_offset_, type_,
            static_cast<std::uint32_t>(values_.size())};
  }
  Status check() const { return columns::MainColumn::check(layout(), extent(), owner()); }
  Status audit() const { return columns::MainColumn::audit(layout(), extent(), owner(), memory()); }
  /// Corrects the layout's checksum; sign_parts corrects that of the parts.
  void sign();
  void sign_parts();

 private:
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{64}); }
  };
  Type type_;
  std::vector<ModelValue> values_;
  std::unique_ptr<std::byte[], Free> pool_;
  std::uint64_t pool_bytes_ = 0;
  std::unique_ptr<std::atomic<std::uint64_t>> pool_bytes_word_ =
      std::make_unique<std::atomic<std::uint64_t>>(0);
  std::uint64_t group_offset_ = 0;
  std::unique_ptr<columns::ReadTextMemory> read_text_memory_ =
      std::make_unique<columns::ReadTextMemory>();
  mutable std::vector<std::unique_ptr<columns::ReadTexts>> read_texts_;
};

/// The shape of a column of random values.
struct MainColumnShape {
  Type type = Type::kInt64;
  std::size_t rows = 1000;
  std::uint64_t spread = 1000;  ///< payloads from `base` on
  std::int64_t base = 0;
  std::uint64_t run_rows = 1;  ///< mean length of runs
  std::uint32_t null_percent = 0;
};
std::vector<ModelValue> random_values(const MainColumnShape& shape, Random& random);
ModelValue integer_value(Type type, std::int64_t raw);
ModelValue text_value(std::string text);

/// Compares everything that a column can answer with its values; returns the first difference,
/// empty if there is none. `random` chooses ranges of rows, bounds and masks.
std::string first_difference(const MainColumnGroup& group, Random& random);

}  // namespace flugs::test
