#include "bench/loads/batch_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "bench/support/clock.h"

namespace flugs::bench {

namespace {

/// The arrays of a batch, and the same rows as Values.
class Batch {
 public:
  explicit Batch(const BatchLoad& load) : load_(load) {
    name_offsets_.push_back(0);
    for (std::uint32_t i = 0; i < load.texts; ++i) {
      names_ += fmt::format("name of customer {}", i);
      name_offsets_.push_back(static_cast<std::int32_t>(names_.size()));
    }
  }

  void fill(std::uint64_t first, std::uint64_t rows, BatchForm form) {
    keys_.resize(rows);
    numbers_.resize(rows);
    reals_.resize(rows);
    codes_.resize(rows);
    text_offsets_.assign(1, 0);
    texts_.clear();
    for (std::uint64_t i = 0; i < rows; ++i) {
      const std::uint64_t row = first + i;
      const auto mixed = static_cast<std::uint32_t>(row * 0x9e3779b97f4a7c15u >> 32);
      keys_[i] = static_cast<std::int64_t>(row);
      numbers_[i] = static_cast<std::int32_t>(mixed >> 4);
      reals_[i] = static_cast<double>(row) * 0.25;
      codes_[i] = static_cast<std::int32_t>(mixed % load_.texts);
      if (form != BatchForm::kColumns) continue;
      texts_ += name(codes_[i]);
      text_offsets_.push_back(static_cast<std::int32_t>(texts_.size()));
    }
    if (form == BatchForm::kRows) return fill_values(rows);
    fill_columns(rows, form);
  }

  Status insert(Transaction& transaction, TableId table, BatchForm form) const {
    if (form == BatchForm::kRows) return transaction.insert_rows(table, values_);
    return transaction.insert_columns(table, {keys_.size(), columns_});
  }

 private:
  std::string_view name(std::int32_t code) const noexcept {
    const auto place = static_cast<std::size_t>(code);
    const auto from = static_cast<std::size_t>(name_offsets_[place]);
    return std::string_view(names_).substr(
        from, static_cast<std::size_t>(name_offsets_[place + 1]) - from);
  }

  void fill_values(std::uint64_t rows) {
    values_.clear();
    for (std::uint64_t i = 0; i < rows; ++i) {
      values_.push_back(Value::int64(keys_[i]));
      values_.push_back(Value::int32(numbers_[i]));
      values_.push_back(Value::real(reals_[i]));
      values_.push_back(Value::string(name(codes_[i])));
    }
  }

  void fill_columns(std::uint64_t rows, BatchForm form) {
    const auto numbers = [&](ArrayForm of, Type type, const void* values) {
      return ValueArray{.form = of, .type = type, .size = rows, .values = values};
    };
    columns_[0] = {ColumnId(0), numbers(ArrayForm::kInt64, Type::kInt64, keys_.data()), {}};
    columns_[1] = {ColumnId(1), numbers(ArrayForm::kInt32, Type::kInt32, numbers_.data()), {}};
    columns_[2] = {ColumnId(2), numbers(ArrayForm::kDouble, Type::kDouble, reals_.data()), {}};
    ValueArray text{.form = ArrayForm::kText32, .type = Type::kString};
    if (form == BatchForm::kCoded) {
      text.size = load_.texts;
      text.values = names_.data();
      text.offsets = name_offsets_.data();
      text.text_bytes = names_.size();
      columns_[3] = {ColumnId(3), numbers(ArrayForm::kInt32, Type::kInt32, codes_.data()), text};
      return;
    }
    text.size = rows;
    text.values = texts_.data();
    text.offsets = text_offsets_.data();
    text.text_bytes = texts_.size();
    columns_[3] = {ColumnId(3), text, {}};
  }

  const BatchLoad& load_;
  std::string names_;
  std::vector<std::int32_t> name_offsets_;
  std::vector<std::int64_t> keys_;
  std::vector<std::int32_t> numbers_;
  std::vector<double> reals_;
  std::vector<std::int32_t> codes_;
  std::string texts_;
  std::vector<std::int32_t> text_offsets_;
  std::vector<Value> values_;
  std::array<BatchColumn, 4> columns_;
};

}  // namespace

std::string_view to_string(BatchForm form) noexcept {
  switch (form) {
    case BatchForm::kRows:
      return "rows";
    case BatchForm::kColumns:
      return "columns";
    case BatchForm::kCoded:
      return "coded columns";
  }
  return "?";
}

Result<BatchLoadTime> load_batches(Database& database, const BatchLoad& load, BatchForm form) {
  TableSchema schema("batches");
  schema.column("id", Type::kInt64).primary_key({"id"});
  schema.column("number", Type::kInt32).column("real", Type::kDouble);
  schema.column("text", Type::kString);
  const Result<TableId> table = database.create_table(schema);
  if (!table.ok()) return table.status();
  Batch batch(load);
  BatchLoadTime time;
  for (std::uint64_t first = 0; first < load.rows; first += load.batch_rows) {
    batch.fill(first, std::min(load.batch_rows, load.rows - first), form);
    const std::uint64_t thread_before = thread_cpu_ns();
    const std::uint64_t process_before = process_cpu_ns();
    const std::uint64_t before = monotonic_ns();
    Result<Transaction> transaction = database.begin(AccessMode::kReadWrite);
    if (!transaction.ok()) return transaction.status();
    if (Status s = batch.insert(*transaction, *table, form); !s.ok()) return s;
    if (Status s = transaction->commit(); !s.ok()) return s;
    time.elapsed_ns += monotonic_ns() - before;
    time.process_ns += process_cpu_ns() - process_before;
    time.thread_ns += thread_cpu_ns() - thread_before;
  }
  return time;
}

}  // namespace flugs::bench
