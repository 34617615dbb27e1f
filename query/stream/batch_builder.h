#pragma once

#include <memory>
#include <string>
#include <vector>

#include "columns/main/main_column.h"
#include "query/stream/batch_data.h"
#include "query/stream/code_map.h"
#include "query/stream/domain_texts.h"
#include "query/vectors/run_context.h"
#include "query/vectors/vec.h"

namespace flugs::query {

/// A column of a stream, as it comes out of the pipeline: `form` kCode for texts with a domain.
struct StreamColumn {
  Form form = Form::kInt;
  IntForm ints = IntForm::kInt64;      ///< of a column of integers
  std::shared_ptr<DomainTexts> texts;  ///< of a column of codes
};

/// Collects rows until they are a batch.
///
/// Thread-safety: one thread.
class BatchBuilder {
 public:
  /// `columns` outlive it.
  BatchBuilder(RunContext& context, const std::vector<StreamColumn>& columns,
               std::shared_ptr<const std::vector<ResultColumn>> schema);

  std::size_t rows() const noexcept { return rows_; }
  /// Whether a batch takes no more rows than it has.
  bool is_full() const noexcept { return rows_ == rows_max_; }
  /// Takes rows of `from`, from `first` on; returns how many. They are fewer than there are when
  /// the batch is full. An empty builder takes at least one. Fails with kOutOfMemory.
  std::size_t append(const Batch& from, std::size_t first);
  /// The same of `count` rows of packed columns of numbers, from `first` on: one for each column.
  /// An empty builder takes at least one. Fails with kOutOfMemory.
  std::size_t append_packed(const std::vector<const columns::MainColumn*>& from,
                            std::uint32_t first, std::size_t count);
  /// The rows taken so far, and begins anew. There must be some.
  ReadyBatch take();
  /// From now on no batch gives room back that it does not need. For a user that gives the whole
  /// batch back soon.
  void keep_room() noexcept { keeps_room_ = true; }
  /// Takes back the memory of a batch that it has made. There must be no rows.
  void reuse(std::vector<BatchValues> columns);

 private:
  /// What a column needs while its batch is being built.
  struct Building {
    BatchValues column;
    // A dictionary of the batch's own has these offsets, and its texts in `column.bytes`.
    std::vector<std::int32_t> offsets;
    CodeMap codes;
  };

  void make_room(std::size_t rows);
  std::size_t append_values(std::size_t column, const ColumnView& from, std::size_t count);
  std::size_t append_texts(BatchValues& to, const ColumnView& from, std::size_t count);
  std::size_t append_codes(Building& to, DomainTexts& texts, const ColumnView& from,
                           std::size_t count);
  void append_packed(std::size_t column, const columns::MainColumn& from, std::uint32_t first,
                     std::size_t count);
  void append_nulls(BatchValues& to, const ColumnView& from, std::size_t count);
  void append_nulls(BatchValues& to, const columns::MainColumn& from, std::uint32_t first,
                    std::size_t count);
  void close(Building& building, const StreamColumn& of);
  std::uint64_t memory() const noexcept;

  RunContext& context_;
  const std::vector<StreamColumn>& columns_;
  std::shared_ptr<const std::vector<ResultColumn>> schema_;
  std::vector<Building> building_;
  std::size_t rows_max_;
  std::size_t rows_ = 0;
  std::size_t capacity_ = 0;
  bool keeps_room_ = false;
  bool was_full_ = false;  // an earlier batch was full: the next one gets all its room at once
  Charge charge_;
};

}  // namespace flugs::query
