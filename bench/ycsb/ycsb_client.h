#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "bench/ycsb/ycsb_rows.h"
#include "bench/ycsb/ycsb_session.h"
#include "flugs/database.h"
#include "flugs/prepared.h"

namespace flugs::bench {

/// YCSB's table in flugs: column 0 is the key, the others are the fields, as texts that lie in the
/// rows' own heap, without a dictionary.
struct YcsbTable {
  TableId table{0};
  KeyId key{};
};
/// `ordered`: the key can be walked, which scans need. Fails as Database::create_table.
Result<YcsbTable> create_ycsb_table(Database& database, const YcsbRows& rows, bool ordered);

/// Inserts the rows on several threads. `progress` is told the rows done and all of them.
/// Fails as Transaction::insert_rows and commit.
Status load_ycsb(Database& database, const YcsbTable& table, const YcsbRows& rows,
                 std::uint32_t threads,
                 const std::function<void(std::uint64_t, std::uint64_t)>& progress);

/// YCSB in flugs, as one user has it: look-ups and updates are prepared.
///
/// Thread-safety: one thread.
class YcsbClient final : public YcsbSession {
 public:
  /// Fails as Database::prepare.
  static Result<std::unique_ptr<YcsbClient>> make(Database& database, const YcsbTable& table,
                                                  const YcsbRows& rows,
                                                  Isolation isolation = Isolation::kSnapshot,
                                                  const CommitOptions& commit = {});

  Status run(const YcsbRequest& request, YcsbReceipt& receipt) override;

 private:
  YcsbClient(Database& database, const YcsbTable& table, const YcsbRows& rows, Isolation isolation,
             const CommitOptions& commit)
      : database_(database),
        table_(table),
        rows_(rows),
        isolation_(isolation),
        commit_(commit),
        values_(1 + rows.fields),
        letters_(std::size_t{rows.fields} * rows.field_bytes) {}
  Status prepare();

  Status execute(Transaction& transaction, const YcsbRequest& request, YcsbReceipt& receipt);
  Status scan(const Transaction& transaction, Value from, std::uint32_t length,
              YcsbReceipt& receipt);
  /// The text of a field with the request's version, in letters_.
  Value new_field(const YcsbRequest& request, std::uint32_t field);
  void consume_fields(YcsbReceipt& receipt) const;

  Database& database_;
  YcsbTable table_;
  YcsbRows rows_;
  Isolation isolation_;
  CommitOptions commit_;
  Prepared whole_;                                 ///< all fields
  std::array<Prepared, kYcsbFieldsMax> of_field_;  ///< each of them
  std::vector<ColumnId> columns_;                  ///< of the fields
  std::vector<Value> values_;                      ///< of a row: the key, the fields
  std::vector<char> letters_;                      ///< of new fields
};

}  // namespace flugs::bench
