#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "flugs/try.h"
#include "tools/peers/engines/rocksdb_options.h"

namespace flugs::tools {

/// How a RocksdbDatabase is set up, for the report.
inline std::string rocksdb_setup() {
  return "TransactionDB: locks on rows, as many writers as users; " + std::string(kRocksdbOptions);
}

/// A database with transactions that lock rows, and how pairs are loaded into it.
class RocksdbDatabase {
 public:
  rocksdb_transactiondb_t* get() const noexcept { return database_.get(); }

  Status open(const std::string& directory, bool create) {
    directory_ = directory;
    const Rocksdb<rocksdb_transactiondb_options_t, rocksdb_transactiondb_options_destroy> locks(
        rocksdb_transactiondb_options_create());
    RocksdbError error;
    database_.reset(rocksdb_transactiondb_open(rocksdb_options(create).get(), locks.get(),
                                               (directory + "/db").c_str(), error));
    return error.status();
  }

  /// By ascending key, until finish_load.
  Status load(std::string_view key, std::string_view value) {
    if (file_ == nullptr) {
      file_ = std::make_unique<RocksdbFile>();
      FLUGS_TRY(file_->open(load_path()));
    }
    return file_->put(key, value);
  }
  Status finish_load() {
    if (file_ == nullptr) return {};
    Status s = file_->finish();
    file_.reset();
    if (!s.ok()) return s;
    rocksdb_t* base = rocksdb_transactiondb_get_base_db(database_.get());
    s = rocksdb_ingest(base, {load_path()});
    rocksdb_transactiondb_close_base_db(base);
    return s;
  }

 private:
  std::string load_path() const { return directory_ + "/load.sst"; }

  std::string directory_;
  Rocksdb<rocksdb_transactiondb_t, rocksdb_transactiondb_close> database_;
  std::unique_ptr<RocksdbFile> file_;
};

/// The writing transactions of one user, one after the other: the object of the one before is used
/// again.
class RocksdbWriter {
 public:
  RocksdbWriter(rocksdb_transactiondb_t* database, bool synced)
      : database_(database), options_(rocksdb_writes(synced)) {}

  rocksdb_transaction_t* current() const noexcept { return transaction_.get(); }
  void begin() {
    transaction_.reset(
        rocksdb_transaction_begin(database_, options_.get(), own_.get(), transaction_.release()));
  }
  Status commit() {
    RocksdbError error;
    rocksdb_transaction_commit(transaction_.get(), error);
    return error.status();
  }
  void abort() {
    RocksdbError error;
    rocksdb_transaction_rollback(transaction_.get(), error);
  }

 private:
  rocksdb_transactiondb_t* database_;
  RocksdbWrites options_;
  Rocksdb<rocksdb_transaction_options_t, rocksdb_transaction_options_destroy> own_{
      rocksdb_transaction_options_create()};
  Rocksdb<rocksdb_transaction_t, rocksdb_transaction_destroy> transaction_;
};

}  // namespace flugs::tools
