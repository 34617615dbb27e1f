#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "columns/cells/cell.h"
#include "columns/main/main_column_layout.h"
#include "columns/main/main_encoding.h"
#include "flugs/value.h"

namespace flugs::columns {

/// Makes one column of a row group from the values of its rows. Its construction examines the
/// values; then it says how much room the column takes, and writes the column where the caller
/// wants it. It neither allocates in the pool nor flushes.
///
///   builder = MainColumnBuilder::of_integers(type, payloads, nulls);
///   ... allocate a group with builder.parts_bytes() in it, at an offset that is a multiple of 64
///   builder.write(group_begin, offset_in_group, layout);
///   ... flush layout and parts
///
/// Throws std::bad_alloc. Thread-safety: one thread.
class MainColumnBuilder {
 public:
  /// `payloads` are `Value::raw()` of normalised values, doubles included; `nulls` is empty, or has
  /// a byte per row that is not 0 for NULL. Both, and 1 to 2^30 rows, must stay until `write` is
  /// done.
  static MainColumnBuilder of_integers(Type type, std::span<const std::int64_t> payloads,
                                       std::span<const std::uint8_t> nulls,
                                       MainEncodings allowed = MainEncodings::all());
  /// `cells` are text cells, NULL by `is_null`, that must stay until `write` is done; out-of-line
  /// text stays where it is, in `memory`.
  static MainColumnBuilder of_texts(Type type, std::span<const Cell> cells, TextMemory memory,
                                    MainEncodings allowed = MainEncodings::all());
  MainColumnBuilder(MainColumnBuilder&&) noexcept;
  MainColumnBuilder& operator=(MainColumnBuilder&&) noexcept;
  ~MainColumnBuilder();

  MainEncoding encoding() const noexcept;
  /// All fields but the offsets of the parts and the checksums.
  const MainColumnLayout& layout() const noexcept;
  /// Sets the edition of the table's column; the default is 0.
  void set_edition(std::uint16_t edition) noexcept;
  /// A multiple of 64; 0 for constant columns.
  std::uint64_t parts_bytes() const noexcept;
  /// Writes `parts_bytes()` bytes at `group + parts_offset`, padding included, and the layout with
  /// its checksums. `parts_offset` is a multiple of 64 and so is the address.
  void write(std::byte* group, std::uint64_t parts_offset, MainColumnLayout& layout) const;

 private:
  struct Plan;
  explicit MainColumnBuilder(std::unique_ptr<Plan> plan) noexcept;
  std::unique_ptr<Plan> plan_;
};

}  // namespace flugs::columns
