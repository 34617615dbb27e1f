#include <memory>
#include <utility>
#include <vector>

#include "tools/peers/engines/rocksdb_store.h"
#include "tools/peers/restart/kv_store.h"

namespace flugs::tools {

namespace {

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
  explicit RocksdbTransaction(rocksdb_transactiondb_t* database)
      : database_(database), writer_(database, true) {}

  Status begin(bool writes) override {
    writes_ = writes;
    if (writes) writer_.begin();
    return {};
  }

  Result<std::string_view> get(KvTable table, std::string_view key, bool locks) override {
    put_key(table, key, key_);
    RocksdbError error;
    rocksdb_pinnableslice_t* found = nullptr;
    if (locks) {
      found = rocksdb_transaction_get_pinned_for_update(writer_.current(), reads_.get(),
                                                        key_.data(), key_.size(), true, error);
    } else if (writes_) {
      found = rocksdb_transaction_get_pinned(writer_.current(), reads_.get(), key_.data(),
                                             key_.size(), error);
    } else {
      found = rocksdb_transactiondb_get_pinned(database_, reads_.get(), key_.data(), key_.size(),
                                               error);
    }
    value_.reset(found);
    if (Status s = error.status(); !s.ok()) return s;
    if (value_ == nullptr) return Status(StatusCode::kNotFound);
    return rocksdb_text(value_);
  }

  Status scan(KvTable table, std::string_view prefix, const Take& take) override {
    put_key(table, prefix, key_);
    const std::string end = behind(key_);
    const RocksdbReads options(rocksdb_readoptions_create());
    rocksdb_readoptions_set_iterate_upper_bound(options.get(), end.data(), end.size());
    // No transaction looks for what it has written itself.
    const Rocksdb<rocksdb_iterator_t, rocksdb_iter_destroy> iterator(
        rocksdb_transactiondb_create_iterator(database_, options.get()));
    rocksdb_iter_seek(iterator.get(), key_.data(), key_.size());
    while (rocksdb_iter_valid(iterator.get()) != 0 && take_pair(*iterator, take))
      rocksdb_iter_next(iterator.get());
    RocksdbError error;
    rocksdb_iter_get_error(iterator.get(), error);
    return error.status();
  }

  Status put(KvTable table, std::string_view key, std::string_view value) override {
    put_key(table, key, key_);
    RocksdbError error;
    rocksdb_transaction_put(writer_.current(), key_.data(), key_.size(), value.data(), value.size(),
                            error);
    return error.status();
  }

  Status erase(KvTable table, std::string_view key) override {
    put_key(table, key, key_);
    RocksdbError error;
    rocksdb_transaction_delete(writer_.current(), key_.data(), key_.size(), error);
    return error.status();
  }

  Status commit() override { return std::exchange(writes_, false) ? writer_.commit() : Status(); }

  void abort() override {
    if (std::exchange(writes_, false)) writer_.abort();
  }

 private:
  static bool take_pair(const rocksdb_iterator_t& iterator, const Take& take) {
    std::size_t key_bytes = 0;
    const char* key = rocksdb_iter_key(&iterator, &key_bytes);
    std::size_t value_bytes = 0;
    const char* value = rocksdb_iter_value(&iterator, &value_bytes);
    return take(std::string_view(key, key_bytes).substr(1), {value, value_bytes});
  }

  rocksdb_transactiondb_t* database_;
  RocksdbReads reads_{rocksdb_readoptions_create()};
  RocksdbWriter writer_;
  bool writes_ = false;  ///< a writing transaction is under way
  std::string key_;
  RocksdbValue value_;
};

class RocksdbStore : public KvStore {
 public:
  std::string setup() const override {
    return "one key space, a byte for the table before the key; " + rocksdb_setup() +
           "; reads see what is committed";
  }
  std::string guarantee() const override { return "commit: writes in the log, which is synced"; }

  Status open(const std::string& directory, bool create) override {
    return database_.open(directory, create);
  }

  Status load(KvTable table, std::string_view key, std::string_view value) override {
    put_key(table, key, key_);
    return database_.load(key_, value);
  }
  Status finish_load() override { return database_.finish_load(); }

  std::unique_ptr<KvTransaction> transactions() override {
    return std::make_unique<RocksdbTransaction>(database_.get());
  }

 private:
  RocksdbDatabase database_;
  std::string key_;
};

}  // namespace

std::unique_ptr<TatpEngine> make_tatp_engine() {
  return make_kv_tatp(std::make_unique<RocksdbStore>());
}

}  // namespace flugs::tools
