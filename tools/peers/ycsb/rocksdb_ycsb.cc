#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "flugs/try.h"
#include "tools/peers/engines/rocksdb_store.h"
#include "tools/peers/ycsb/kv_ycsb.h"
#include "tools/peers/ycsb/ycsb_engine.h"

namespace flugs::tools {

namespace {

using RocksdbCursor = Rocksdb<rocksdb_iterator_t, rocksdb_iter_destroy>;

std::string_view key_at(const RocksdbCursor& cursor) {
  std::size_t bytes = 0;
  const char* text = rocksdb_iter_key(cursor.get(), &bytes);
  return {text, bytes};
}
std::string_view value_at(const RocksdbCursor& cursor) {
  std::size_t bytes = 0;
  const char* text = rocksdb_iter_value(cursor.get(), &bytes);
  return {text, bytes};
}
Status status_of(const RocksdbCursor& cursor) {
  RocksdbError error;
  rocksdb_iter_get_error(cursor.get(), error);
  return error.status();
}

/// Reads see what is committed when they begin; a write locks its row first.
class RocksdbYcsbSession final : public bench::YcsbSession {
 public:
  RocksdbYcsbSession(rocksdb_transactiondb_t* database, const bench::YcsbRows& rows, bool synced)
      : database_(database), rows_(rows), values_(rows), writer_(database, synced) {}

  Status run(const bench::YcsbRequest& request, bench::YcsbReceipt& receipt) override {
    const KvYcsbKey key(rows_.keys, request.number);
    if (request.type == bench::YcsbType::kRead) return read(key.bytes(), receipt);
    if (request.type == bench::YcsbType::kScan) return scan(key.bytes(), request.length, receipt);
    writer_.begin();
    const Status written = write(key.bytes(), request, receipt);
    if (written.ok()) return writer_.commit();
    writer_.abort();
    return written;
  }

 private:
  Status read(std::string_view key, bench::YcsbReceipt& receipt) {
    RocksdbError error;
    const RocksdbValue value(
        rocksdb_transactiondb_get_pinned(database_, reads_.get(), key.data(), key.size(), error));
    FLUGS_TRY(error.status());
    if (value == nullptr) return Status(StatusCode::kNotFound);
    values_.consume(rocksdb_text(value), receipt);
    return {};
  }

  Status scan(std::string_view key, std::uint32_t length, bench::YcsbReceipt& receipt) {
    const RocksdbCursor cursor(rocksdb_transactiondb_create_iterator(database_, reads_.get()));
    KvYcsbScan scan(values_, length, receipt);
    rocksdb_iter_seek(cursor.get(), key.data(), key.size());
    while (rocksdb_iter_valid(cursor.get()) != 0 && scan.take(key_at(cursor), value_at(cursor)))
      rocksdb_iter_next(cursor.get());
    if (!scan.rises()) return Status(StatusCode::kCorrupt, "RocksDB: keys of a scan do not rise");
    return status_of(cursor);
  }

  Status write(std::string_view key, const bench::YcsbRequest& request,
               bench::YcsbReceipt& receipt) {
    RocksdbError error;
    const RocksdbValue found(rocksdb_transaction_get_pinned_for_update(
        writer_.current(), reads_.get(), key.data(), key.size(), true, error));
    FLUGS_TRY(error.status());
    if (request.type == bench::YcsbType::kInsert) {
      if (found != nullptr) return Status(StatusCode::kAlreadyExists);
      values_.set_all(request.number, request.version, value_);
      return put(key);
    }
    if (found == nullptr) return Status(StatusCode::kNotFound);
    value_ = rocksdb_text(found);
    if (request.type == bench::YcsbType::kReadModifyWrite) values_.consume(value_, receipt);
    values_.set_field(request.number, request.field, request.version, value_);
    return put(key);
  }

  Status put(std::string_view key) {
    RocksdbError error;
    rocksdb_transaction_put(writer_.current(), key.data(), key.size(), value_.data(), value_.size(),
                            error);
    return error.status();
  }

  rocksdb_transactiondb_t* database_;
  bench::YcsbRows rows_;
  KvYcsbValues values_;
  RocksdbWriter writer_;
  RocksdbReads reads_{rocksdb_readoptions_create()};
  std::string value_;  ///< of the row that is written
};

class RocksdbYcsb final : public YcsbEngine {
 public:
  std::string name() const override { return "RocksDB " + rocksdb::GetRocksVersionAsString(true); }
  std::string setup() const override {
    return rocksdb_setup() + " in key order; a row's fields side by side in its value";
  }
  std::string guarantee() const override {
    return synced_ ? "commit: writes in the log, which is synced"
                   : "commit: writes in the log, which is handed to the kernel; survives the "
                     "death of the process";
  }

  Status open(const std::string& directory, bool survives_kill_only) override {
    synced_ = !survives_kill_only;
    return database_.open(directory, true);
  }

  Status load(const bench::YcsbRows& rows) override {
    rows_ = rows;
    FLUGS_TRY(load_kv_ycsb(rows, [this](std::string_view key, std::string_view value) {
      return database_.load(key, value);
    }));
    return database_.finish_load();
  }

  Result<std::unique_ptr<bench::YcsbSession>> session() override {
    return std::unique_ptr<bench::YcsbSession>(
        std::make_unique<RocksdbYcsbSession>(database_.get(), rows_, synced_));
  }

  Status read_all(bench::YcsbFindings& findings) override {
    const KvYcsbValues values(rows_);
    const RocksdbReads reads(rocksdb_readoptions_create());
    const RocksdbCursor cursor(rocksdb_transactiondb_create_iterator(database_.get(), reads.get()));
    for (rocksdb_iter_seek(cursor.get(), "", 0); rocksdb_iter_valid(cursor.get()) != 0;
         rocksdb_iter_next(cursor.get()))
      values.note(key_at(cursor), value_at(cursor), findings);
    return status_of(cursor);
  }

 private:
  bool synced_ = true;
  bench::YcsbRows rows_;
  RocksdbDatabase database_;
};

}  // namespace

std::unique_ptr<YcsbEngine> make_ycsb_engine() { return std::make_unique<RocksdbYcsb>(); }

}  // namespace flugs::tools
