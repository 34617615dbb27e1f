#include <lmdb.h>

#include <algorithm>
#include <utility>

#include "tools/peers/engines/lmdb_status.h"
#include "tools/peers/restart/engine.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kRowsPerLoadTransaction = 1'000'000;

MDB_val key_of(const PeerRow& row) {
  return {sizeof row.id, const_cast<std::int64_t*>(&row.id)};  // LMDB does not write there
}
MDB_val value_of(const PeerRow& row) {
  return {sizeof row.values, const_cast<std::int32_t*>(row.values.data())};
}

int put(MDB_txn* transaction, MDB_dbi table, const PeerRow& row, unsigned flags) {
  MDB_val key = key_of(row);
  MDB_val value = value_of(row);
  return mdb_put(transaction, table, &key, &value, flags);
}

class LmdbSession : public PeerSession {
 public:
  LmdbSession(MDB_env* environment, MDB_dbi table) : environment_(environment), table_(table) {}

  Status find(PeerRow& row) override {
    MDB_txn* transaction = nullptr;
    int error = mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &transaction);
    if (error != 0) return lmdb_status(error);
    MDB_val key = key_of(row);
    MDB_val value{};
    error = mdb_get(transaction, table_, &key, &value);
    if (error == 0 && value.mv_size == sizeof row.values) {
      const auto* values = static_cast<const std::int32_t*>(value.mv_data);
      std::copy(values, values + row.values.size(), row.values.begin());
    }
    mdb_txn_abort(transaction);
    return lmdb_status(error);
  }

  Status write(std::span<const PeerRow> inserted, const PeerRow* changed) override {
    MDB_txn* transaction = nullptr;
    int error = mdb_txn_begin(environment_, nullptr, 0, &transaction);
    if (error != 0) return lmdb_status(error);
    for (std::size_t i = 0; i < inserted.size() && error == 0; ++i)
      error = put(transaction, table_, inserted[i], MDB_NOOVERWRITE);
    if (error == 0 && changed != nullptr) error = put(transaction, table_, *changed, 0);
    if (error == 0) return lmdb_status(mdb_txn_commit(transaction));
    mdb_txn_abort(transaction);
    return lmdb_status(error);
  }

 private:
  MDB_env* environment_;
  MDB_dbi table_;
};

class LmdbEngine : public PeerEngine {
 public:
  ~LmdbEngine() override {
    if (environment_ != nullptr) mdb_env_close(environment_);
  }

  std::string setup() const override {
    return "MDB_INTEGERKEY, values of 16 bytes, no flag that weakens commits; bulk load by "
           "MDB_APPEND; writers take turns";
  }
  std::string guarantee() const override {
    return "commit: pages written and synced, then the meta page";
  }

  Status open(const std::string& directory, bool create) override {
    int error = mdb_env_create(&environment_);
    if (error == 0) error = mdb_env_set_mapsize(environment_, kLmdbMapBytes);
    if (error == 0) error = mdb_env_open(environment_, directory.c_str(), 0, 0644);
    MDB_txn* transaction = nullptr;
    if (error == 0)
      error = mdb_txn_begin(environment_, nullptr, create ? 0 : MDB_RDONLY, &transaction);
    if (error != 0) return lmdb_status(error);
    error = mdb_dbi_open(transaction, nullptr, MDB_INTEGERKEY | (create ? MDB_CREATE : 0), &table_);
    if (error == 0) return lmdb_status(mdb_txn_commit(transaction));
    mdb_txn_abort(transaction);
    return lmdb_status(error);
  }

  Status load(std::uint64_t rows, const NextRow& next) override {
    for (std::uint64_t begin = 0; begin < rows; begin += kRowsPerLoadTransaction) {
      MDB_txn* transaction = nullptr;
      int error = mdb_txn_begin(environment_, nullptr, 0, &transaction);
      if (error != 0) return lmdb_status(error);
      const std::uint64_t end = std::min(rows, begin + kRowsPerLoadTransaction);
      for (std::uint64_t i = begin; i < end && error == 0; ++i)
        error = put(transaction, table_, next(), MDB_APPEND);
      if (error != 0) mdb_txn_abort(transaction);
      if (error == 0) error = mdb_txn_commit(transaction);
      if (error != 0) return lmdb_status(error);
    }
    return {};
  }

  Result<std::unique_ptr<PeerSession>> session() override {
    return std::unique_ptr<PeerSession>(new LmdbSession(environment_, table_));
  }

 private:
  MDB_env* environment_ = nullptr;
  MDB_dbi table_ = 0;
};

}  // namespace

std::string peer_engine_name() { return lmdb_version(); }

std::unique_ptr<PeerEngine> make_peer_engine() { return std::make_unique<LmdbEngine>(); }

}  // namespace flugs::tools
