#include "bench/ycsb/ycsb_reader.h"

#include <string_view>
#include <vector>

#include "flugs/try.h"

namespace flugs::bench {

Status read_ycsb(const Transaction& transaction, const YcsbTable& table, const YcsbRows& rows,
                 YcsbFindings& findings) {
  std::vector<ColumnId> columns;
  for (std::uint32_t i = 0; i <= rows.fields; ++i)
    columns.emplace_back(static_cast<std::uint16_t>(i));
  std::vector<std::string_view> fields(rows.fields);
  return transaction.scan(table.table, columns, Predicate::all(), [&](const ScanBatch& batch) {
    for (std::size_t i = 0; i < batch.row_count(); ++i) {
      for (std::size_t field = 0; field < fields.size(); ++field)
        fields[field] = batch.column_unchecked<std::string_view>(1 + field)[i];
      if (rows.keys == YcsbKeys::kInteger)
        findings.row(static_cast<std::uint64_t>(batch.column_unchecked<std::int64_t>(0)[i]),
                     fields);
      else
        findings.row(batch.column_unchecked<std::string_view>(0)[i], fields);
    }
    return true;
  });
}

Result<YcsbReport> check_ycsb(Database& database, const YcsbTable& table, const YcsbRows& rows,
                              std::uint64_t count) {
  YcsbFindings findings(rows, count);
  {
    FLUGS_ASSIGN(const Transaction transaction, database.begin(AccessMode::kReadOnly));
    FLUGS_TRY(read_ycsb(transaction, table, rows, findings));
  }
  YcsbReport report = findings.check();
  report.check(YcsbInvariant::kIndex);
  if (const Status s = database.check(); !s.ok())
    report.broken(YcsbInvariant::kIndex, s.to_string());
  return report;
}

}  // namespace flugs::bench
