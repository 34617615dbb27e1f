#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flugs/column_batch.h"
#include "tables/batches/column_encoder.h"
#include "tables/batches/column_reader.h"
#include "tables/table/row_writer.h"

namespace flugs::engine {

/// Inserts rows that are given column by column: one call of RowWriter::insert_columns, with one
/// definition of the table.
///
/// The story of a block of kBlockRows rows: each column is read and checked (ColumnReader), rows
/// without a number get one, and checks are evaluated. The columns become cells (ColumnEncoder),
/// rows are taken, and their cells stored column by column. Then the rows enter the key indexes one
/// after the other, as all inserted rows do. What is the same for all rows is done once per call or
/// once per block.
///
/// The outcome is that of inserting the rows one by one and in order, up to the first that is
/// refused; but foreign keys are followed at the end. (Keys of all rows are looked up early when
/// long texts are stored, so that refused rows do not leave texts behind: then the status may name
/// a later row than the first.)
///
/// Thread-safety: one thread, as the context.
class ColumnsWriter final {
 public:
  ColumnsWriter(RowWriter& writer, const TableDefinition& now, const ColumnBatch& batch,
                std::span<RowId> ids, LongCall& call);

  /// All rows, or none.
  Status insert();

 private:
  // What a block works with; too large for the stack.
  struct Block {
    std::size_t first = 0;  // row of the batch
    std::size_t good = 0;   // rows that have all their values
    std::array<std::uint32_t, kBlockRows> rows;
    std::array<std::byte*, kBlockRows> addresses;
    std::array<std::array<std::uint64_t, kBlockRows>, kKeysMax> hashes;
  };

  // Before the first block.
  Status prepare();
  Status add_reader(std::size_t column, const BatchColumn* given);

  // Values of a block.
  Status insert_blocks();
  Status insert_block(std::size_t rows);
  std::size_t read(std::size_t rows, std::size_t& stopped_by);
  std::size_t takeable(std::size_t column, std::size_t rows) const noexcept;
  Status number(std::size_t rows);
  std::size_t check(std::size_t rows, Status& why) const;
  Status why_refused(std::size_t row, std::size_t column) const;

  // Rows of a block.
  Status write_block(std::size_t rows);
  Status encode(std::size_t rows);
  Status store(std::size_t rows);
  bool store_run(const columns::RowLayout& layout, std::size_t begin, std::size_t end);
  void store_column(const columns::RowLayout& layout, std::size_t column, std::size_t begin,
                    std::size_t end) const noexcept;
  void hash(std::size_t key, std::size_t rows) noexcept;
  Status enter(std::size_t rows, KeyMask kept);

  // Keys of rows that have not been written.
  Status check_rest();
  std::size_t look_up_keys(std::size_t place, std::size_t first, std::size_t rows, Status& why);
  Value value(std::size_t row, std::size_t column) const;
  void note_refused();
  Status at_row(std::size_t row, const Status& why);
  SchemaPart part_of(std::size_t column) const;

  RowWriter& writer_;
  TableData& data_;
  TransactionContext& context_;
  const TableDefinition& now_;
  const ColumnBatch& batch_;
  const std::span<RowId> ids_;
  LongCall& call_;
  std::vector<ColumnReader> readers_;
  std::vector<ColumnEncoder> encoders_;
  std::unique_ptr<BlockColumn[]> values_;
  std::unique_ptr<BlockCells[]> cells_;
  std::unique_ptr<Block> block_;
  std::size_t numbered_;          // the auto-increment column; the number of columns: none
  bool is_rest_checked_ = false;  // check_rest has found the keys of all further rows free
  std::size_t refused_row_ = 0;   // of the batch
};

}  // namespace flugs::engine
