#include <lmdb.h>

#include <array>
#include <utility>

#include "tools/peers/engines/lmdb_store.h"
#include "tools/peers/tpcc/kv_tpcc.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kRowsPerLoadTransaction = 200'000;
/// Addresses only; with MDB_WRITEMAP also the size of the sparse file.
constexpr std::size_t kTpccMapBytes = std::size_t{1} << 36;

using Tables = LmdbTables<kTpccKvTables>;

/// A cursor for each table that a transaction touches: a row that was found is replaced without a
/// second search, and a search begins on the page of the one before.
class LmdbTpccTransaction final : public TpccKvTransaction {
 public:
  explicit LmdbTpccTransaction(const Tables& tables)
      : tables_(tables), transactions_(tables.environment()) {}
  LmdbTpccTransaction(const LmdbTpccTransaction&) = delete;
  LmdbTpccTransaction& operator=(const LmdbTpccTransaction&) = delete;
  ~LmdbTpccTransaction() override { close_cursors(); }

  Status begin(bool writes) override { return transactions_.begin(writes); }

  Result<std::string_view> get(TpccKvTable table, std::string_view key, bool) override {
    MDB_cursor* cursor = nullptr;
    int error = cursor_of(table, cursor);
    MDB_val wanted = value_of(key);
    MDB_val value{};
    if (error == 0) error = mdb_cursor_get(cursor, &wanted, &value, MDB_SET);
    if (error != 0) return lmdb_status(error);
    return text_of(value);
  }

  Status replace(TpccKvTable table, std::string_view key, std::string_view value) override {
    return put(table, key, value, MDB_CURRENT);
  }
  Status insert(TpccKvTable table, std::string_view key, std::string_view value) override {
    return put(table, key, value, MDB_NOOVERWRITE);
  }

  Status erase(TpccKvTable table, std::string_view key) override {
    MDB_cursor* cursor = nullptr;
    int error = cursor_of(table, cursor);
    MDB_val wanted = value_of(key);
    MDB_val value{};
    if (error == 0) error = mdb_cursor_get(cursor, &wanted, &value, MDB_SET);
    if (error == 0) error = mdb_cursor_del(cursor, 0);
    return lmdb_status(error);
  }

  Status scan(TpccKvTable table, std::string_view from, Take take) override {
    MDB_cursor* cursor = nullptr;
    int error = cursor_of(table, cursor);
    if (error != 0) return lmdb_status(error);
    MDB_val key = value_of(from);
    MDB_val value{};
    error = mdb_cursor_get(cursor, &key, &value, from.empty() ? MDB_FIRST : MDB_SET_RANGE);
    while (error == 0 && take(text_of(key), text_of(value)))
      error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    return error == MDB_NOTFOUND ? Status() : lmdb_status(error);
  }

  Status commit() override {
    close_cursors();
    return transactions_.commit();
  }
  void abort() override {
    close_cursors();
    transactions_.abort();
  }

 private:
  int cursor_of(TpccKvTable table, MDB_cursor*& cursor) {
    const auto index = static_cast<std::size_t>(table);
    int error = 0;
    if (cursors_[index] == nullptr)
      error = mdb_cursor_open(transactions_.current(), tables_.handles()[index], &cursors_[index]);
    cursor = cursors_[index];
    return error;
  }
  void close_cursors() {
    for (MDB_cursor*& cursor : cursors_)
      if (cursor != nullptr) mdb_cursor_close(std::exchange(cursor, nullptr));
  }
  Status put(TpccKvTable table, std::string_view key, std::string_view value, unsigned flags) {
    MDB_cursor* cursor = nullptr;
    int error = cursor_of(table, cursor);
    MDB_val where = value_of(key);
    MDB_val what = value_of(value);
    if (error == 0) error = mdb_cursor_put(cursor, &where, &what, flags);
    return lmdb_status(error);
  }

  const Tables& tables_;
  LmdbTransactions transactions_;
  std::array<MDB_cursor*, kTpccKvTables> cursors_{};
};

class LmdbTpccStore final : public TpccKvStore {
 public:
  std::string name() const override { return lmdb_version(); }
  std::string setup() const override {
    return lmdb_setup(flags_) +
           "; a B-tree for each table and two indexes, rows as structures, a cursor for each table "
           "that a transaction touches; readers beside one writer: writers take turns";
  }
  std::string guarantee() const override { return lmdb_guarantee(flags_); }

  Status open(const std::string& directory, bool survives_kill_only) override {
    if (survives_kill_only) flags_ = kLmdbWithoutSync;
    return tables_.open(directory, kTpccKvNames, kTpccMapBytes, flags_, true);
  }

  Status load(TpccKvTable table, std::string_view key, std::string_view value) override {
    return tables_.load(static_cast<std::size_t>(table), key, value,
                        table < TpccKvTable::kCustomerByName ? MDB_APPEND : 0);
  }
  Status finish_load() override { return tables_.finish_load(); }

  std::unique_ptr<TpccKvTransaction> transactions() override {
    return std::make_unique<LmdbTpccTransaction>(tables_);
  }

 private:
  unsigned flags_ = 0;
  Tables tables_{kRowsPerLoadTransaction};
};

}  // namespace

std::unique_ptr<TpccEngine> make_tpcc_engine() {
  return make_kv_tpcc(std::make_unique<LmdbTpccStore>());
}

}  // namespace flugs::tools
