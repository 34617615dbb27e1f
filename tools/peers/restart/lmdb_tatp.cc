#include <lmdb.h>

#include <array>
#include <utility>

#include "tools/peers/engines/lmdb_store.h"
#include "tools/peers/restart/kv_store.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kRowsPerLoadTransaction = 1'000'000;

using Tables = LmdbTables<std::size(kKvTables)>;

class LmdbTransaction : public KvTransaction {
 public:
  explicit LmdbTransaction(const Tables& tables)
      : tables_(tables), transactions_(tables.environment()) {}

  Status begin(bool writes) override { return transactions_.begin(writes); }

  Result<std::string_view> get(KvTable table, std::string_view key, bool) override {
    MDB_val wanted = value_of(key);
    MDB_val value{};
    const int error = mdb_get(transactions_.current(), handle(table), &wanted, &value);
    if (error != 0) return lmdb_status(error);
    return text_of(value);
  }

  Status scan(KvTable table, std::string_view prefix, const Take& take) override {
    MDB_cursor* cursor = nullptr;
    int error = mdb_cursor_open(transactions_.current(), handle(table), &cursor);
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
    return lmdb_status(mdb_put(transactions_.current(), handle(table), &where, &what, 0));
  }

  Status erase(KvTable table, std::string_view key) override {
    MDB_val where = value_of(key);
    return lmdb_status(mdb_del(transactions_.current(), handle(table), &where, nullptr));
  }

  Status commit() override { return transactions_.commit(); }
  void abort() override { transactions_.abort(); }

 private:
  MDB_dbi handle(KvTable table) const { return tables_.handles()[static_cast<std::size_t>(table)]; }

  const Tables& tables_;
  LmdbTransactions transactions_;
};

class LmdbStore : public KvStore {
 public:
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
    return tables_.open(
        directory, {"subscriber", "number", "access_info", "special_facility", "call_forwarding"},
        kLmdbMapBytes, flags_, create);
  }

  Status load(KvTable table, std::string_view key, std::string_view value) override {
    return tables_.load(static_cast<std::size_t>(table), key, value, MDB_APPEND);
  }
  Status finish_load() override { return tables_.finish_load(); }

  std::unique_ptr<KvTransaction> transactions() override {
    return std::make_unique<LmdbTransaction>(tables_);
  }

 private:
  unsigned flags_ = 0;
  Tables tables_{kRowsPerLoadTransaction};
};

}  // namespace

std::unique_ptr<TatpEngine> make_tatp_engine() {
  return make_kv_tatp(std::make_unique<LmdbStore>());
}

}  // namespace flugs::tools
