#include "bench/tpcc/tpcc_reader.h"

#include <initializer_list>

#include "flugs/try.h"

namespace flugs::bench {

namespace {

using Columns = TpccColumns;

/// Integers of a row of a batch.
class BatchRow {
 public:
  BatchRow(const ScanBatch& batch, std::size_t row) : batch_(batch), row_(row) {}

  std::int64_t integer(std::size_t column) const {
    return batch_.column_unchecked<std::int64_t>(column)[row_];
  }
  std::uint32_t id(std::size_t column) const { return static_cast<std::uint32_t>(integer(column)); }
  TpccOrderId order() const { return {id(0), id(1), id(2)}; }
  bool is_null(std::size_t column) const {
    const std::span<const std::uint8_t> nulls = batch_.nulls(column);
    return !nulls.empty() && nulls[row_] != 0;
  }

 private:
  const ScanBatch& batch_;
  std::size_t row_;
};

/// All rows of a table, columns by their positions.
Status each_row(const Transaction& transaction, TableId table,
                std::initializer_list<ColumnId> columns, FunctionRef<void(const BatchRow&)> take) {
  return transaction.scan(table, std::span<const ColumnId>(columns.begin(), columns.size()),
                          Predicate::all(), [&take](const ScanBatch& batch) {
                            for (std::size_t i = 0; i < batch.row_count(); ++i)
                              take(BatchRow(batch, i));
                            return true;
                          });
}

constexpr ColumnId kColumn0{0};
constexpr ColumnId kColumn1{1};
constexpr ColumnId kColumn2{2};
constexpr ColumnId kColumn3{3};
constexpr ColumnId kColumn4{4};

Status read_population(const Transaction& transaction, const TpccTables& tables,
                       TpccFindings& findings) {
  FLUGS_TRY(each_row(transaction, tables.item, {kColumn0, Columns::kPrice},
                     [&](const BatchRow& row) { findings.item(row.id(0), row.integer(1)); }));
  FLUGS_TRY(each_row(transaction, tables.warehouse, {kColumn0, Columns::kWarehouseYtd},
                     [&](const BatchRow& row) { findings.warehouse(row.id(0), row.integer(1)); }));
  FLUGS_TRY(each_row(transaction, tables.district,
                     {kColumn0, kColumn1, Columns::kDistrictYtd, Columns::kNextOrder},
                     [&](const BatchRow& row) {
                       findings.district(row.id(0), row.id(1), row.integer(2), row.integer(3));
                     }));
  FLUGS_TRY(each_row(transaction, tables.stock,
                     {kColumn0, kColumn1, Columns::kStockQuantity, Columns::kStockYtd,
                      Columns::kOrderCount, Columns::kRemoteCount},
                     [&](const BatchRow& row) {
                       findings.stock({row.id(0), row.id(1), row.integer(2), row.integer(3),
                                       row.integer(4), row.integer(5)});
                     }));
  return each_row(transaction, tables.customer,
                  {kColumn0, kColumn1, kColumn2, Columns::kBalance, Columns::kYtdPayment,
                   Columns::kPaymentCount, Columns::kDeliveryCount},
                  [&](const BatchRow& row) {
                    findings.customer({row.id(0), row.id(1), row.id(2), row.integer(3),
                                       row.integer(4), row.integer(5), row.integer(6)});
                  });
}

Status read_orders(const Transaction& transaction, const TpccTables& tables,
                   TpccFindings& findings) {
  FLUGS_TRY(each_row(transaction, tables.orders,
                     {kColumn0, kColumn1, kColumn2, Columns::kOrderCustomer, Columns::kEntry,
                      Columns::kCarrier, Columns::kLineCount, Columns::kAllLocal},
                     [&](const BatchRow& row) {
                       findings.order({row.order(), row.id(3), row.integer(4),
                                       row.is_null(5) ? 0 : row.id(5), row.id(6),
                                       row.integer(7) != 0});
                     }));
  FLUGS_TRY(each_row(transaction, tables.new_order, {kColumn0, kColumn1, kColumn2},
                     [&](const BatchRow& row) { findings.new_order(row.order()); }));
  return each_row(
      transaction, tables.order_line,
      {kColumn0, kColumn1, kColumn2, kColumn3, Columns::kLineItem, Columns::kSupplyWarehouse,
       Columns::kDelivery, Columns::kQuantity, Columns::kAmount},
      [&](const BatchRow& row) {
        findings.order_line({row.order(), row.id(3), row.id(4), row.id(5), !row.is_null(6),
                             row.integer(6), row.integer(7), row.integer(8)});
      });
}

}  // namespace

Status read_tpcc(const Transaction& transaction, const TpccTables& tables, TpccFindings& findings) {
  FLUGS_TRY(read_population(transaction, tables, findings));
  FLUGS_TRY(each_row(transaction, tables.history,
                     {kColumn0, kColumn1, kColumn2, kColumn3, kColumn4, Columns::kHistoryDate,
                      Columns::kHistoryAmount},
                     [&](const BatchRow& row) {
                       findings.history({row.id(0), row.id(1), row.id(2), row.id(3), row.id(4),
                                         row.integer(5), row.integer(6)});
                     }));
  return read_orders(transaction, tables, findings);
}

Result<TpccReport> check_tpcc(Database& database, const TpccTables& tables,
                              const TpccOptions& population) {
  TpccFindings findings(population);
  {
    FLUGS_ASSIGN(const Transaction transaction, database.begin(AccessMode::kReadOnly));
    FLUGS_TRY(read_tpcc(transaction, tables, findings));
  }
  TpccReport report = findings.check();
  report.check(TpccCondition::kE10);
  if (const Status s = database.check(); !s.ok()) report.broken(TpccCondition::kE10, s.to_string());
  return report;
}

}  // namespace flugs::bench
