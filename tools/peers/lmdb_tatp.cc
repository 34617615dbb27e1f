#include <lmdb.h>

#include <array>
#include <utility>

#include "tools/peers/kv_store.h"
#include "tools/peers/lmdb_status.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kRowsPerLoadTransaction = 1'000'000;

using Tables = std::array<MDB_dbi, std::size(kKvTables)>;

MDB_val value_of(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write there
}
std::string_view text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

/// Reading transactions are kept and renewed, as LMDB's documents advise.
class LmdbTransaction : public KvTransaction {
 public:
  LmdbTransaction(MDB_env* environment, const Tables& tables)
      : environment_(environment), tables_(tables) {}
  LmdbTransaction(const LmdbTransaction&) = delete;
  LmdbTransaction& operator=(const LmdbTransaction&) = delete;
  ~LmdbTransaction() override {
    abort();
    if (reader_ != nullptr) mdb_txn_abort(reader_);
  }

  Status begin(bool writes) override {
    int error = 0;
    if (writes) {
      error = mdb_txn_begin(environment_, nullptr, 0, &current_);
    } else if (reader_ == nullptr) {
      error = mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader_);
    } else {
      error = mdb_txn_renew(reader_);
    }
    if (error == 0 && !writes) current_ = reader_;
    return lmdb_status(error);
  }

  Result<std::string_view> get(KvTable table, std::string_view key, bool) override {
    MDB_val wanted = value_of(key);
    MDB_val value{};
    const int error = mdb_get(current_, handle(table), &wanted, &value);
    if (error != 0) return lmdb_status(error);
    return text_of(value);
  }

  Status scan(KvTable table, std::string_view prefix, const Take& take) override {
    MDB_cursor* cursor = nullptr;
    int error = mdb_cursor_open(current_, handle(table), &cursor);
    if (error != 0) return lmdb_status(error);
    MDB_val key = value_of(prefix);
    MDB_val value{};
    error = mdb_cursor_get(cursor, &key, &value, prefix.empty() ? MDB_FIRST : MDB_SET_RANGE);
    while (error == 0 && text_of(key).starts_with(prefix) && take(text_of(key), text_of(value)))
      error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    mdb_cursor_close(cursor);
    return error == MDB_NOTFOUND ? Status() : lmdb_status(error);
  }

  Status put(KvTable table, std::string_view key, std::string_view value) override {
    MDB_val where = value_of(key);
    MDB_val what = value_of(value);
    return lmdb_status(mdb_put(current_, handle(table), &where, &what, 0));
  }

  Status erase(KvTable table, std::string_view key) override {
    MDB_val where = value_of(key);
    return lmdb_status(mdb_del(current_, handle(table), &where, nullptr));
  }

  Status commit() override { return lmdb_status(mdb_txn_commit(std::exchange(current_, nullptr))); }

  void abort() override {
    MDB_txn* const ended = std::exchange(current_, nullptr);
    if (ended == nullptr) return;
    if (ended == reader_)
      mdb_txn_reset(ended);
    else
      mdb_txn_abort(ended);
  }

 private:
  MDB_dbi handle(KvTable table) const { return tables_[static_cast<std::size_t>(table)]; }

  MDB_env* environment_;
  Tables tables_;
  MDB_txn* reader_ = nullptr;   ///< null: none yet
  MDB_txn* current_ = nullptr;  ///< null: none is begun
};

class LmdbStore : public KvStore {
 public:
  ~LmdbStore() override {
    if (loading_ != nullptr) mdb_txn_abort(loading_);
    if (environment_ != nullptr) mdb_env_close(environment_);
  }

  std::string setup() const override {
    return std::string(
               "a B-tree for each table and one for the numbers; no flag that weakens "
               "commits; bulk load by MDB_APPEND; readers beside one writer: writers take "
               "turns") +
           (flags_ == MDB_NORDAHEAD ? "; MDB_NORDAHEAD" : "");
  }
  std::string guarantee() const override {
    return "commit: pages written and synced, then the meta page";
  }

  void expect_little_memory() override { flags_ = MDB_NORDAHEAD; }

  Status open(const std::string& directory, bool create) override {
    int error = mdb_env_create(&environment_);
    if (error == 0) error = mdb_env_set_mapsize(environment_, kLmdbMapBytes);
    if (error == 0) error = mdb_env_set_maxdbs(environment_, tables_.size());
    if (error == 0) error = mdb_env_open(environment_, directory.c_str(), flags_, 0644);
    MDB_txn* transaction = nullptr;
    if (error == 0)
      error = mdb_txn_begin(environment_, nullptr, create ? 0 : MDB_RDONLY, &transaction);
    if (error != 0) return lmdb_status(error);
    constexpr const char* kNames[] = {"subscriber", "number", "access_info", "special_facility",
                                      "call_forwarding"};
    for (std::size_t i = 0; i < tables_.size() && error == 0; ++i)
      error = mdb_dbi_open(transaction, kNames[i], create ? MDB_CREATE : 0, &tables_[i]);
    if (error == 0) return lmdb_status(mdb_txn_commit(transaction));
    mdb_txn_abort(transaction);
    return lmdb_status(error);
  }

  Status load(KvTable table, std::string_view key, std::string_view value) override {
    int error = 0;
    if (loading_ == nullptr) error = mdb_txn_begin(environment_, nullptr, 0, &loading_);
    MDB_val where = value_of(key);
    MDB_val what = value_of(value);
    if (error == 0)
      error =
          mdb_put(loading_, tables_[static_cast<std::size_t>(table)], &where, &what, MDB_APPEND);
    if (error != 0) return lmdb_status(error);
    return ++rows_ % kRowsPerLoadTransaction == 0 ? finish_load() : Status();
  }
  Status finish_load() override {
    MDB_txn* const loading = std::exchange(loading_, nullptr);
    return loading == nullptr ? Status() : lmdb_status(mdb_txn_commit(loading));
  }

  std::unique_ptr<KvTransaction> transactions() override {
    return std::make_unique<LmdbTransaction>(environment_, tables_);
  }

 private:
  unsigned flags_ = 0;
  MDB_env* environment_ = nullptr;
  Tables tables_{};
  MDB_txn* loading_ = nullptr;
  std::uint64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<TatpEngine> make_tatp_engine() {
  return make_kv_tatp(std::make_unique<LmdbStore>());
}

}  // namespace flugs::tools
