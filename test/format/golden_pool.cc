#include "test/format/golden_pool.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "flugs/merge.h"

namespace flugs::test {

namespace {

constexpr std::int64_t kMerged = 40;  // rows that are in main
constexpr std::int64_t kRows = 60;
constexpr std::int64_t kDeleted = 7;  // one row in this many; the row before is updated

bool is_deleted(std::int64_t n) { return n % kDeleted == kDeleted - 1; }
bool is_updated(std::int64_t n) { return n % kDeleted == kDeleted - 2; }

/// The texts of a row, which must outlive its values.
struct Texts {
  explicit Texts(std::int64_t n)
      : word("word " + std::to_string(n % 5)),
        bytes(static_cast<std::size_t>(n % 3) * 20, static_cast<char>(n)),
        note("note " + std::to_string(n) + (is_updated(n) ? " that has been changed since" : "")) {
    for (std::int64_t i = 0; i < 5 + n % 20; ++i) story += "and then there came another one, ";
    story += std::to_string(n);
  }
  std::string word;
  std::string bytes;
  std::string note;
  std::string story;  // row groups hold it compressed
};

/// Columns: id, number, word, big, real, money, day, moment, flag, bytes, note, story. `number`
/// becomes int64 later on, and `later` is added.
std::vector<Value> row_of(std::int64_t n, const Texts& texts, bool is_changed) {
  const std::int64_t number = (n - 30) * (n - 30) * (n - 30);
  std::vector<Value> row = {
      Value::int32(static_cast<std::int32_t>(n)),
      is_changed ? Value::int64(number) : Value::int32(static_cast<std::int32_t>(number)),
      n % 4 == 0 ? Value::null() : Value::string(texts.word),
      Value::int64(n << 40),
      n % 6 == 0 ? Value::null() : Value::real(static_cast<double>(n - 30) / 8),
      Value::decimal(n * 100 - 1234, 2),
      Value::date(static_cast<std::int32_t>(20'000 + n)),
      Value::timestamp(1'767'225'600'000'000 + n),
      Value::boolean(n % 2 == 0),
      Value::from_bytes(Type::kBytes, texts.bytes),
      Value::string(texts.note),
      Value::string(texts.story)};
  if (is_changed) row.push_back(n < kMerged ? Value::int32(-5) : Value::null());
  return row;
}

TableSchema schema_of(const std::string& name) {
  TableSchema schema(name);
  schema.column("id", Type::kInt32).not_null();
  schema.column("number", Type::kInt32).not_null();
  schema.column("word", Type::kString);
  schema.column("big", Type::kInt64).not_null().direct();
  schema.column("real", Type::kDouble);
  schema.column("money", Type::kDecimal).scale(2).not_null();
  schema.column("day", Type::kDate).not_null();
  schema.column("moment", Type::kTimestamp).not_null().direct();
  schema.column("flag", Type::kBool).not_null();
  schema.column("bytes", Type::kBytes).not_null();
  schema.column("note", Type::kString).not_null().direct();
  schema.column("story", Type::kString).not_null().direct();
  schema.primary_key({"id"});
  schema.key("by_number", {"number", "id"});
  schema.key("by_word", {"word", "real", "id"});
  return schema.key("by_real", {"real", "moment"});
}

Status insert_rows(Database& database, TableId table, std::int64_t first, std::int64_t end,
                   bool is_changed) {
  Result<Transaction> transaction = database.begin();
  if (!transaction.ok()) return transaction.status();
  for (std::int64_t n = first; n < end; ++n) {
    const Texts texts(n);
    const Result<RowId> row = transaction->insert(table, row_of(n, texts, is_changed));
    if (!row.ok()) return row.status();
  }
  return transaction->commit();
}

Status change_rows(Database& database, TableId table) {
  Result<Transaction> transaction = database.begin();
  if (!transaction.ok()) return transaction.status();
  for (std::int64_t n = 0; n < kRows; ++n) {
    if (!is_deleted(n) && !is_updated(n)) continue;
    const Result<Row> row =
        transaction->get({table, 0}, {Value::int32(static_cast<std::int32_t>(n))});
    if (!row.ok()) return row.status();
    const Texts texts(n);
    Status changed =
        is_deleted(n)
            ? transaction->remove(table, row->id())
            : transaction->update(table, row->id(), {{ColumnId(10), Value::string(texts.note)}})
                  .status();
    if (!changed.ok()) return changed;
  }
  return transaction->commit();
}

Status fill(Database& database, const TableSchema& schema) {
  const Result<TableId> table = database.create_table(schema);
  if (!table.ok()) return table.status();
  if (Status s = insert_rows(database, *table, 0, kMerged, false); !s.ok()) return s;
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  const Result<MergeReport> merged = database.merge(*table, options);
  if (!merged.ok()) return merged.status();
  if (Status s = database.change_type(*table, ColumnId(1), Type::kInt64); !s.ok()) return s;
  TableSchema later("later");
  later.column("later", Type::kInt32).with_default(Value::int32(-5));
  const Result<ColumnId> added = database.add_column(*table, later.columns[0]);
  if (!added.ok()) return added.status();
  if (Status s = insert_rows(database, *table, kMerged, kRows, true); !s.ok()) return s;
  return change_rows(database, *table);
}

/// Compares the rows of a key's range, in order, and looks each up by its primary key.
std::string compare_rows(const Transaction& transaction, TableId table, std::uint16_t key) {
  std::string problems;
  std::int64_t rows = 0;
  Row last;
  const Status walked = transaction.rows({table, key}, {}, {}, [&](const Row& row) {
    const std::int64_t n = row.get_unchecked<std::int32_t>(ColumnId(0));
    const Texts texts(n);
    const std::vector<Value> expected = row_of(n, texts, true);
    for (std::uint16_t i = 0; i < expected.size(); ++i) {
      const Value found = row.get_unchecked(ColumnId(i));
      if (found.to_string() != expected[i].to_string())
        problems += "row " + std::to_string(n) + ", column " + std::to_string(i) + ": expected " +
                    expected[i].to_string() + ", found " + found.to_string() + "\n";
    }
    if (key == 1 && rows > 0 &&
        last.get_unchecked<std::int64_t>(ColumnId(1)) >
            row.get_unchecked<std::int64_t>(ColumnId(1)))
      problems += "row " + std::to_string(n) + " is not behind the one before\n";
    const Result<Row> found = transaction.get({table, 0}, {expected[0]});
    if (!found.ok() || found->id() != row.id())
      problems += "row " + std::to_string(n) + " is not found\n";
    last = row;
    ++rows;
    return !is_deleted(n);
  });
  if (!walked.ok()) problems += walked.to_string() + "\n";
  if (rows != kRows - kRows / kDeleted)
    problems += "key " + std::to_string(key) + ": " + std::to_string(rows) + " rows\n";
  return problems;
}

}  // namespace

Status make_golden_pool(const std::string& path) {
  OpenOptions options;
  options.path = path;
  options.mode = OpenMode::kCreate;
  options.max_bytes = std::uint64_t{8} << 20;
  options.segment_bytes = std::uint64_t{64} << 10;
  options.tuning.grow_ahead_bytes = 0;
  options.slots_max = 4;
  options.index_place = IndexPlace::kPool;
  Result<Database> database = Database::open(options);
  if (!database.ok()) return database.status();
  if (Status s = fill(*database, schema_of("things")); !s.ok()) return s;
  if (Status s = fill(*database, schema_of("apart").in_columns()); !s.ok()) return s;
  return fill(*database, schema_of("grouped").in_column_groups(
                             {{"id", "word", "money", "note"}, {"number", "flag", "real"}}));
}

std::string compare_golden_pool(Database& database) {
  const Result<Transaction> transaction = database.begin(AccessMode::kReadOnly);
  if (!transaction.ok()) return transaction.status().to_string();
  std::string problems;
  for (const char* name : {"things", "apart", "grouped"}) {
    const Result<TableId> table = database.find_table(name);
    if (!table.ok()) return table.status().to_string();
    for (std::uint16_t key = 1; key <= 3; ++key)
      problems += compare_rows(*transaction, *table, key);
  }
  return problems;
}

}  // namespace flugs::test
