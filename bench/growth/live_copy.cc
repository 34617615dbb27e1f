#include "bench/growth/live_copy.h"

#include <algorithm>
#include <vector>

namespace flugs::bench {

namespace {

constexpr std::size_t kRowsPerCopy = 1000;

Status copy_table(Database& from, TableId table, Database& to) {
  Result<TableSchema> schema = from.schema(table);
  if (!schema.ok()) return schema.status();
  const Result<TableId> made = to.create_table(*schema);
  if (!made.ok()) return made.status();
  const Result<Transaction> reader = from.begin(AccessMode::kReadOnly);
  if (!reader.ok()) return reader.status();
  std::vector<ColumnId> columns;
  columns.reserve(schema->columns.size());
  for (std::uint16_t i = 0; i < schema->columns.size(); ++i) columns.emplace_back(i);
  Status inserted;
  std::vector<Value> row(columns.size());
  const auto insert_batch = [&](const ScanBatch& batch) {
    for (std::size_t first = 0; first < batch.row_count(); first += kRowsPerCopy) {
      Result<Transaction> writer = to.begin();
      if (!writer.ok()) return writer.status();
      const std::size_t end = std::min(batch.row_count(), first + kRowsPerCopy);
      for (std::size_t r = first; r < end; ++r) {
        for (std::size_t i = 0; i < columns.size(); ++i) row[i] = batch.get_unchecked(i, r);
        if (Result<RowId> id = writer->insert(*made, row); !id.ok()) return id.status();
      }
      if (Status s = writer->commit(); !s.ok()) return s;
    }
    return Status();
  };
  const Status scanned =
      reader->scan(table, columns, Predicate::all(), [&](const ScanBatch& batch) {
        inserted = insert_batch(batch);
        return inserted.ok();
      });
  return inserted.ok() ? scanned : inserted;
}

}  // namespace

Status copy_live_rows(Database& from, Database& to) {
  for (const TableId table : from.tables())
    if (Status s = copy_table(from, table, to); !s.ok()) return s;
  return {};
}

}  // namespace flugs::bench
