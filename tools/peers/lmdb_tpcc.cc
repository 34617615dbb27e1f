#include <lmdb.h>

#include <array>
#include <utility>

#include "tools/peers/kv_tpcc.h"
#include "tools/peers/lmdb_status.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kRowsPerLoadTransaction = 200'000;
/// Addresses only; with MDB_WRITEMAP also the size of the sparse file.
constexpr std::size_t kTpccMapBytes = std::size_t{1} << 36;

using Tables = std::array<MDB_dbi, kTpccKvTables>;

MDB_val value_of(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write there
}
std::string_view text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

/// A cursor for each table that a transaction touches: a row that was found is replaced without a
/// second search, and a search begins on the page of the one before. Reading transactions are kept
/// and renewed, as LMDB's documents advise.
class LmdbTpccTransaction final : public TpccKvTransaction {
 public:
  LmdbTpccTransaction(MDB_env* environment, const Tables& tables)
      : environment_(environment), tables_(tables) {}
  LmdbTpccTransaction(const LmdbTpccTransaction&) = delete;
  LmdbTpccTransaction& operator=(const LmdbTpccTransaction&) = delete;
  ~LmdbTpccTransaction() override {
    abort();
    if (reader_ != nullptr) mdb_txn_abort(reader_);
  }

  Status begin(bool writes) override {
    int error = 0;
    if (writes)
      error = mdb_txn_begin(environment_, nullptr, 0, &current_);
    else if (reader_ == nullptr)
      error = mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader_);
    else
      error = mdb_txn_renew(reader_);
    if (error == 0 && !writes) current_ = reader_;
    return lmdb_status(error);
  }

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
    MDB_txn* const ended = std::exchange(current_, nullptr);
    if (ended != reader_) return lmdb_status(mdb_txn_commit(ended));
    mdb_txn_reset(ended);
    return {};
  }

  void abort() override {
    close_cursors();
    MDB_txn* const ended = std::exchange(current_, nullptr);
    if (ended == nullptr) return;
    if (ended == reader_)
      mdb_txn_reset(ended);
    else
      mdb_txn_abort(ended);
  }

 private:
  int cursor_of(TpccKvTable table, MDB_cursor*& cursor) {
    const auto index = static_cast<std::size_t>(table);
    int error = 0;
    if (cursors_[index] == nullptr)
      error = mdb_cursor_open(current_, tables_[index], &cursors_[index]);
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

  MDB_env* environment_;
  Tables tables_;
  MDB_txn* reader_ = nullptr;   ///< null: none yet
  MDB_txn* current_ = nullptr;  ///< null: none is begun
  std::array<MDB_cursor*, kTpccKvTables> cursors_{};
};

class LmdbTpccStore final : public TpccKvStore {
 public:
  ~LmdbTpccStore() override {
    if (loading_ != nullptr) mdb_txn_abort(loading_);
    if (environment_ != nullptr) mdb_env_close(environment_);
  }

  std::string name() const override {
    return "LMDB " + std::to_string(MDB_VERSION_MAJOR) + "." + std::to_string(MDB_VERSION_MINOR) +
           "." + std::to_string(MDB_VERSION_PATCH);
  }
  std::string setup() const override {
    return std::string(flags_ != 0 ? "MDB_NOSYNC, MDB_WRITEMAP" : "no flag that weakens commits") +
           "; a B-tree for each table and two indexes, rows as structures, a cursor for each table "
           "that a transaction touches; readers beside one writer: writers take turns";
  }
  std::string guarantee() const override {
    return flags_ != 0 ? "commit: stored in the shared mapping of the file, nothing is synced; "
                         "survives the death of the process"
                       : "commit: pages written and synced, then the meta page";
  }

  Status open(const std::string& directory, bool survives_kill_only) override {
    if (survives_kill_only) flags_ = MDB_NOSYNC | MDB_WRITEMAP;
    int error = mdb_env_create(&environment_);
    if (error == 0) error = mdb_env_set_mapsize(environment_, kTpccMapBytes);
    if (error == 0) error = mdb_env_set_maxdbs(environment_, tables_.size());
    if (error == 0) error = mdb_env_open(environment_, directory.c_str(), flags_, 0644);
    MDB_txn* transaction = nullptr;
    if (error == 0) error = mdb_txn_begin(environment_, nullptr, 0, &transaction);
    if (error != 0) return lmdb_status(error);
    for (std::size_t i = 0; i < tables_.size() && error == 0; ++i)
      error = mdb_dbi_open(transaction, kTpccKvNames[i], MDB_CREATE, &tables_[i]);
    if (error == 0) return lmdb_status(mdb_txn_commit(transaction));
    mdb_txn_abort(transaction);
    return lmdb_status(error);
  }

  Status load(TpccKvTable table, std::string_view key, std::string_view value) override {
    int error = 0;
    if (loading_ == nullptr) error = mdb_txn_begin(environment_, nullptr, 0, &loading_);
    MDB_val where = value_of(key);
    MDB_val what = value_of(value);
    const unsigned flags = table < TpccKvTable::kCustomerByName ? MDB_APPEND : 0;
    if (error == 0)
      error = mdb_put(loading_, tables_[static_cast<std::size_t>(table)], &where, &what, flags);
    if (error != 0) return lmdb_status(error);
    return ++rows_ % kRowsPerLoadTransaction == 0 ? finish_load() : Status();
  }
  Status finish_load() override {
    MDB_txn* const loading = std::exchange(loading_, nullptr);
    return loading == nullptr ? Status() : lmdb_status(mdb_txn_commit(loading));
  }

  std::unique_ptr<TpccKvTransaction> transactions() override {
    return std::make_unique<LmdbTpccTransaction>(environment_, tables_);
  }

 private:
  unsigned flags_ = 0;
  MDB_env* environment_ = nullptr;
  Tables tables_{};
  MDB_txn* loading_ = nullptr;
  std::uint64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<TpccEngine> make_tpcc_engine() {
  return make_kv_tpcc(std::make_unique<LmdbTpccStore>());
}

}  // namespace flugs::tools
