#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>

#include <memory>
#include <utility>
#include <vector>

#include "tools/peers/kv_store.h"
#include "tools/peers/rocksdb_options.h"

namespace flugs::tools {

namespace {

std::string_view text_of(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }
rocksdb::Slice slice_of(std::string_view text) { return {text.data(), text.size()}; }

/// A table is the keys that begin with its number; ends before those of the next one.
void put_key(KvTable table, std::string_view key, std::string& out) {
  out.assign(1, static_cast<char>(table));
  out += key;
}

/// The first key behind all that begin with `prefix`, which does not end with bytes of 255 only.
std::string behind(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) ++prefix.back();
  return prefix;
}

class RocksdbTransaction : public KvTransaction {
 public:
  explicit RocksdbTransaction(rocksdb::TransactionDB* database) : database_(database) {
    synced_.sync = true;
  }

  Status begin(bool writes) override {
    writes_ = writes;
    // The object of the transaction before is used again.
    if (writes)
      transaction_.reset(database_->BeginTransaction(synced_, {}, transaction_.release()));
    return {};
  }

  Result<std::string_view> get(KvTable table, std::string_view key, bool locks) override {
    put_key(table, key, key_);
    value_.Reset();
    auto* const family = database_->DefaultColumnFamily();
    rocksdb::Status status;
    if (locks) {
      status = transaction_->GetForUpdate({}, family, key_, &value_);
    } else {
      status = writes_ ? transaction_->Get({}, family, key_, &value_)
                       : database_->Get({}, family, key_, &value_);
    }
    if (!status.ok()) return rocksdb_status(status);
    return text_of(value_);
  }

  Status scan(KvTable table, std::string_view prefix, const Take& take) override {
    put_key(table, prefix, key_);
    const std::string end = behind(key_);
    const rocksdb::Slice end_slice = end;
    rocksdb::ReadOptions options;
    options.iterate_upper_bound = &end_slice;
    // No transaction looks for what it has written itself.
    const std::unique_ptr<rocksdb::Iterator> iterator(database_->NewIterator(options));
    iterator->Seek(key_);
    while (iterator->Valid() &&
           take(text_of(iterator->key()).substr(1), text_of(iterator->value())))
      iterator->Next();
    return rocksdb_status(iterator->status());
  }

  Status put(KvTable table, std::string_view key, std::string_view value) override {
    put_key(table, key, key_);
    return rocksdb_status(transaction_->Put(key_, slice_of(value)));
  }

  Status erase(KvTable table, std::string_view key) override {
    put_key(table, key, key_);
    return rocksdb_status(transaction_->Delete(key_));
  }

  Status commit() override {
    writes_ = false;
    return rocksdb_status(transaction_->Commit());
  }

  void abort() override {
    if (std::exchange(writes_, false)) transaction_->Rollback().PermitUncheckedError();
  }

 private:
  rocksdb::TransactionDB* database_;
  rocksdb::WriteOptions synced_;
  std::unique_ptr<rocksdb::Transaction> transaction_;
  bool writes_ = false;  ///< a writing transaction is under way
  std::string key_;
  rocksdb::PinnableSlice value_;
};

class RocksdbStore : public KvStore {
 public:
  std::string setup() const override {
    return "one key space, a byte for the table before the key; TransactionDB: locks on rows, as "
           "many writers as users; options as they come, but for: no compression, "
           "allow_mmap_reads, Bloom filters of 10 bits, skip_stats_update_on_db_open; bulk load "
           "by ingested SST files; reads see what is committed";
  }
  std::string guarantee() const override { return "commit: writes in the log, which is synced"; }

  Status open(const std::string& directory, bool create) override {
    directory_ = directory;
    rocksdb::TransactionDB* database = nullptr;
    const rocksdb::Status status = rocksdb::TransactionDB::Open(
        rocksdb_options(create), rocksdb::TransactionDBOptions(), directory + "/db", &database);
    database_.reset(database);
    return rocksdb_status(status);
  }

  Status load(KvTable table, std::string_view key, std::string_view value) override {
    rocksdb::Status status;
    if (writer_ == nullptr) {
      writer_ =
          std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), rocksdb_options(true));
      status = writer_->Open(load_path());
    }
    put_key(table, key, key_);
    if (status.ok()) status = writer_->Put(key_, slice_of(value));
    return rocksdb_status(status);
  }

  Status finish_load() override {
    if (writer_ == nullptr) return {};
    rocksdb::Status status = writer_->Finish();
    writer_.reset();
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    if (status.ok()) status = database_->IngestExternalFile({load_path()}, ingest);
    return rocksdb_status(status);
  }

  std::unique_ptr<KvTransaction> transactions() override {
    return std::make_unique<RocksdbTransaction>(database_.get());
  }

 private:
  std::string load_path() const { return directory_ + "/load.sst"; }

  std::string directory_;
  std::unique_ptr<rocksdb::TransactionDB> database_;
  std::unique_ptr<rocksdb::SstFileWriter> writer_;
  std::string key_;
};

}  // namespace

std::unique_ptr<TatpEngine> make_tatp_engine() {
  return make_kv_tatp(std::make_unique<RocksdbStore>());
}

}  // namespace flugs::tools
