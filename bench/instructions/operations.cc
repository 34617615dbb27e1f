#include "bench/instructions/operations.h"

#include <array>
#include <cstdint>
#include <numeric>

namespace flugs::bench {

namespace {

constexpr std::int32_t kRows = 20'000;
constexpr std::int32_t kRowsPerTransaction = 10;
static_assert(kRows % kRowsPerTransaction == 0);
constexpr ColumnId kAmount{8};

TableSchema line_schema() {
  TableSchema schema("line");
  const auto few = [&](const char* name, std::uint32_t values) {
    schema.column(name, Type::kInt32).not_null().expect_distinct(values);
  };
  const auto many = [&](const char* name, Type type) {
    schema.column(name, type).not_null().direct();
  };
  few("warehouse", 10);
  few("district", 10);
  many("number", Type::kInt32);
  few("line", 15);
  many("item", Type::kInt32);
  few("supplier", 10);
  schema.column("delivered", Type::kTimestamp);
  few("quantity", 10);
  many("amount", Type::kInt64);
  many("text", Type::kString);
  return schema.primary_key({"warehouse", "district", "number"});
}

/// Executes the operations. None of them is inline, so that tools/instructions can tell them apart.
class Operations {
 public:
  Operations(Database& database, TableId table, KeyId key)
      : database_(database), table_(table), key_(key) {}

  Status run();

 private:
  std::array<Value, 3> key_of(std::int32_t i) const {
    return {Value::int32(i % 10), Value::int32(i / 10 % 10), Value::int32(i)};
  }
  [[gnu::noinline]] Status insert_one(Transaction& transaction, std::int32_t i);
  [[gnu::noinline]] Result<RowId> find_one(const Transaction& transaction, std::int32_t i);
  [[gnu::noinline]] Status update_one(Transaction& transaction, RowId row, std::int32_t i);
  /// Calls `act(transaction, i)` for all rows, each once, neighbours far apart.
  template <typename F>
  Status for_all(F&& act);

  Database& database_;
  const TableId table_;
  const KeyId key_;
};

Status Operations::insert_one(Transaction& transaction, std::int32_t i) {
  const std::array<Value, 3> key = key_of(i);
  return transaction
      .insert(table_, {key[0], key[1], key[2], Value::int32(i % 15), Value::int32(i * 7),
                       Value::int32(i % 3), Value::null(), Value::int32(i % 10 + 1),
                       Value::int64(std::int64_t{i} * 1000), Value::string("a few letters")})
      .status();
}

Result<RowId> Operations::find_one(const Transaction& transaction, std::int32_t i) {
  const std::array<Value, 3> key = key_of(i);
  const Result<Row> row = transaction.get(key_, key);
  if (!row.ok()) return row.status();
  return row->id();
}

Status Operations::update_one(Transaction& transaction, RowId row, std::int32_t i) {
  return transaction.update(table_, row, {{kAmount, Value::int64(i)}}).status();
}

template <typename F>
Status Operations::for_all(F&& act) {
  constexpr std::int32_t kStep = 7'919;
  static_assert(std::gcd(kRows, kStep) == 1);
  std::int32_t next = 0;
  for (std::int32_t done = 0; done < kRows;) {
    Result<Transaction> transaction = database_.begin();
    if (!transaction.ok()) return transaction.status();
    for (std::int32_t i = 0; i < kRowsPerTransaction; ++i, ++done, next = (next + kStep) % kRows)
      if (Status s = act(*transaction, next); !s.ok()) return s;
    if (Status s = transaction->commit(); !s.ok()) return s;
  }
  return {};
}

Status Operations::run() {
  Status status = for_all(
      [this](Transaction& transaction, std::int32_t i) { return insert_one(transaction, i); });
  if (!status.ok()) return status;
  return for_all([this](Transaction& transaction, std::int32_t i) {
    const Result<RowId> row = find_one(transaction, i);
    return row.ok() ? update_one(transaction, *row, i) : row.status();
  });
}

}  // namespace

Status run_operations(Database& database) {
  const Result<TableId> table = database.create_table(line_schema());
  if (!table.ok()) return table.status();
  const Result<KeyId> key = database.find_key(*table, "primary");
  if (!key.ok()) return key.status();
  return Operations(database, *table, *key).run();
}

}  // namespace flugs::bench
