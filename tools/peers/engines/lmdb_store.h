#pragma once

#include <lmdb.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tools/peers/engines/lmdb_status.h"

namespace flugs::tools {

inline MDB_val value_of(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write there
}
inline std::string_view text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

/// The transactions of one user, one after the other. Reading ones are kept and renewed, as LMDB's
/// documents advise.
class LmdbTransactions {
 public:
  explicit LmdbTransactions(MDB_env* environment) : environment_(environment) {}
  LmdbTransactions(const LmdbTransactions&) = delete;
  LmdbTransactions& operator=(const LmdbTransactions&) = delete;
  ~LmdbTransactions() {
    abort();
    if (reader_ != nullptr) mdb_txn_abort(reader_);
  }

  MDB_txn* current() const noexcept { return current_; }

  Status begin(bool writes) {
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

  Status commit() {
    MDB_txn* const ended = std::exchange(current_, nullptr);
    if (ended != reader_) return lmdb_status(mdb_txn_commit(ended));
    mdb_txn_reset(ended);
    return {};
  }

  void abort() {
    MDB_txn* const ended = std::exchange(current_, nullptr);
    if (ended == nullptr) return;
    if (ended == reader_)
      mdb_txn_reset(ended);
    else
      mdb_txn_abort(ended);
  }

 private:
  MDB_env* environment_;
  MDB_txn* reader_ = nullptr;   ///< null: none yet
  MDB_txn* current_ = nullptr;  ///< null: none is begun
};

/// An environment with a B-tree for each of `kTables` tables, and how rows are loaded into it.
template <std::size_t kTables>
class LmdbTables {
 public:
  using Handles = std::array<MDB_dbi, kTables>;

  /// `load` commits after every `rows_per_load` rows.
  explicit LmdbTables(std::uint64_t rows_per_load) : rows_per_load_(rows_per_load) {}
  LmdbTables(const LmdbTables&) = delete;
  LmdbTables& operator=(const LmdbTables&) = delete;
  ~LmdbTables() {
    if (loading_ != nullptr) mdb_txn_abort(loading_);
    if (environment_ != nullptr) mdb_env_close(environment_);
  }

  MDB_env* environment() const noexcept { return environment_; }
  const Handles& handles() const noexcept { return handles_; }

  Status open(const std::string& directory, const std::array<const char*, kTables>& names,
              std::size_t map_bytes, unsigned flags, bool create) {
    int error = mdb_env_create(&environment_);
    if (error == 0) error = mdb_env_set_mapsize(environment_, map_bytes);
    if (error == 0) error = mdb_env_set_maxdbs(environment_, kTables);
    if (error == 0) error = mdb_env_open(environment_, directory.c_str(), flags, 0644);
    MDB_txn* transaction = nullptr;
    if (error == 0)
      error = mdb_txn_begin(environment_, nullptr, create ? 0 : MDB_RDONLY, &transaction);
    if (error != 0) return lmdb_status(error);
    for (std::size_t i = 0; i < kTables && error == 0; ++i)
      error = mdb_dbi_open(transaction, names[i], create ? MDB_CREATE : 0, &handles_[i]);
    if (error == 0) return lmdb_status(mdb_txn_commit(transaction));
    mdb_txn_abort(transaction);
    return lmdb_status(error);
  }

  Status load(std::size_t table, std::string_view key, std::string_view value, unsigned flags) {
    int error = 0;
    if (loading_ == nullptr) error = mdb_txn_begin(environment_, nullptr, 0, &loading_);
    MDB_val where = value_of(key);
    MDB_val what = value_of(value);
    if (error == 0) error = mdb_put(loading_, handles_[table], &where, &what, flags);
    if (error != 0) return lmdb_status(error);
    return ++rows_ % rows_per_load_ == 0 ? finish_load() : Status();
  }
  Status finish_load() {
    MDB_txn* const loading = std::exchange(loading_, nullptr);
    return loading == nullptr ? Status() : lmdb_status(mdb_txn_commit(loading));
  }

 private:
  std::uint64_t rows_per_load_;
  MDB_env* environment_ = nullptr;
  Handles handles_{};
  MDB_txn* loading_ = nullptr;
  std::uint64_t rows_ = 0;
};

}  // namespace flugs::tools
