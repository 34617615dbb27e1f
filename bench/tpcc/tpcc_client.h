#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/tpcc/tpcc_mark.h"
#include "bench/tpcc/tpcc_schema.h"
#include "bench/tpcc/tpcc_session.h"
#include "flugs/database.h"
#include "flugs/prepared.h"
#include "flugs/try.h"

namespace flugs::bench {

/// TPC-C in flugs, as one user has it: look-ups are prepared, columns are read by their types, an
/// order's lines are inserted in one call. Snapshot isolation is serializable for these five
/// transactions (Fekete et al., TODS 2005).
///
/// Thread-safety: one thread.
class TpccClient final : public TpccSession {
 public:
  /// Fails as Database::prepare.
  static Result<std::unique_ptr<TpccClient>> make(Database& database, const TpccTables& tables,
                                                  Isolation isolation = Isolation::kSnapshot,
                                                  const CommitOptions& commit = {});

  Result<TpccOutcome> run(const TpccRequest& request, TpccReceipt& receipt) override {
    return execute(request, receipt);
  }
  /// From the next transaction on. `mark` outlives the client; null: none.
  void set_mark(TpccMark* mark) noexcept { mark_ = mark; }

 private:
  TpccClient(Database& database, const TpccTables& tables, Isolation isolation,
             const CommitOptions& commit)
      : database_(database), tables_(tables), isolation_(isolation), commit_(commit) {}
  Status prepare();
  /// The end of each transaction that writes.
  Status commit_marked(Transaction& transaction) {
    if (mark_ == nullptr) return transaction.commit(commit_);
    FLUGS_TRY(mark_->before_commit(transaction));
    FLUGS_TRY(transaction.commit(commit_));
    mark_->after_commit();
    return {};
  }

  // Not inline, so that tools/instructions can tell what each of them executes.
  [[gnu::noinline]] Result<TpccOutcome> new_order(const TpccRequest& request,
                                                  TpccReceipt& receipt) override;
  [[gnu::noinline]] Result<TpccOutcome> payment(const TpccRequest& request,
                                                TpccReceipt& receipt) override;
  [[gnu::noinline]] Result<TpccOutcome> order_status(const TpccRequest& request,
                                                     TpccReceipt& receipt) override;
  [[gnu::noinline]] Result<TpccOutcome> delivery(const TpccRequest& request,
                                                 TpccReceipt& receipt) override;
  [[gnu::noinline]] Result<TpccOutcome> stock_level(const TpccRequest& request,
                                                    TpccReceipt& receipt) override;

  Result<std::int64_t> enter_order(Transaction& transaction, const TpccRequest& request,
                                   TpccReceipt& receipt);
  Result<std::int64_t> take_line(Transaction& transaction, const TpccRequest& request,
                                 std::size_t index, TpccReceipt& receipt);
  /// Changes the stock, and copies the district's text for line `index`.
  Status take_stock(Transaction& transaction, const TpccRequest& request, std::size_t index,
                    bool item_is_original, TpccReceipt& receipt);
  Status insert_lines(Transaction& transaction, const TpccRequest& request, std::uint32_t order,
                      std::size_t count);

  Status book(Transaction& transaction, const TpccRequest& request, TpccReceipt& receipt,
              std::array<char, 24>& data, std::size_t& size);
  Status charge_customer(Transaction& transaction, const TpccRequest& request, const Row& customer);
  /// By name: the middle one of the customers with that name, ordered by first name.
  Result<Row> find_customer(const Transaction& transaction, const TpccRequest& request);

  Status deliver(Transaction& transaction, const TpccRequest& request, std::uint32_t d,
                 TpccReceipt& receipt);
  Status deliver_lines(Transaction& transaction, std::span<const Value> order, Value time,
                       std::int64_t& amount);
  Status collect_items(const Transaction& transaction, const TpccRequest& request,
                       std::uint32_t next);

  Database& database_;
  TpccTables tables_;
  Isolation isolation_;
  CommitOptions commit_;
  TpccMark* mark_ = nullptr;

  Prepared warehouse_;      ///< whole rows, by key
  Prepared warehouse_tax_;  ///< these columns of a row
  Prepared district_;
  Prepared next_order_;
  Prepared customer_;
  Prepared credit_;  ///< c_discount, c_last, c_credit
  Prepared orders_;
  Prepared stock_;
  Prepared quantity_;
  Prepared item_;  ///< i_price, i_name, i_data

  // What a transaction collects; kept for its space.
  struct LineText {
    std::array<char, kDistrictInfoBytes> letters{};
    std::size_t size = 0;
  };
  static constexpr std::size_t kLineColumns = 10;
  std::array<LineText, kOrderLinesMax> info_;
  std::array<std::int64_t, kOrderLinesMax> amounts_{};
  std::array<Value, kOrderLinesMax * kLineColumns> line_values_;
  std::array<char, kCustomerDataMax + 100> customer_data_{};
  std::vector<Row> rows_;
  std::vector<RowId> row_ids_;
  std::vector<std::int32_t> items_;
};

}  // namespace flugs::bench
