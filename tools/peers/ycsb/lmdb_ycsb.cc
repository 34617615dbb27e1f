#include <lmdb.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "flugs/try.h"
#include "tools/peers/engines/lmdb_store.h"
#include "tools/peers/ycsb/kv_ycsb.h"
#include "tools/peers/ycsb/ycsb_engine.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kYcsbRowsPerLoad = 100'000;
/// Addresses only; with MDB_WRITEMAP also the size of the sparse file.
constexpr std::size_t kYcsbMapBytes = std::size_t{1} << 38;
constexpr std::array<const char*, 1> kYcsbTreeNames = {"usertable"};

using YcsbTree = LmdbTables<1>;

class LmdbYcsbSession final : public bench::YcsbSession {
 public:
  LmdbYcsbSession(const YcsbTree& tree, const bench::YcsbRows& rows)
      : tree_(tree), rows_(rows), values_(rows), transactions_(tree.environment()) {}

  Status run(const bench::YcsbRequest& request, bench::YcsbReceipt& receipt) override {
    FLUGS_TRY(transactions_.begin(writes(request.type)));
    MDB_cursor* cursor = nullptr;
    int error = mdb_cursor_open(transactions_.current(), tree_.handles()[0], &cursor);
    if (error == 0) error = execute(cursor, request, receipt);
    if (cursor != nullptr) mdb_cursor_close(cursor);
    if (error == 0) return transactions_.commit();
    transactions_.abort();
    return lmdb_status(error);
  }

 private:
  int execute(MDB_cursor* cursor, const bench::YcsbRequest& request, bench::YcsbReceipt& receipt) {
    const KvYcsbKey bytes(rows_.keys, request.number);
    MDB_val key = value_of(bytes.bytes());
    MDB_val value{};
    if (request.type == bench::YcsbType::kInsert) {
      values_.set_all(request.number, request.version, value_);
      value = value_of(value_);
      return mdb_cursor_put(cursor, &key, &value, MDB_NOOVERWRITE);
    }
    if (request.type == bench::YcsbType::kScan) return scan(cursor, key, request.length, receipt);
    int error = mdb_cursor_get(cursor, &key, &value, MDB_SET);
    if (error != 0) return error;
    if (request.type != bench::YcsbType::kUpdate) values_.consume(text_of(value), receipt);
    if (request.type == bench::YcsbType::kRead) return 0;
    value_ = text_of(value);
    values_.set_field(request.number, request.field, request.version, value_);
    value = value_of(value_);
    return mdb_cursor_put(cursor, &key, &value, MDB_CURRENT);
  }

  int scan(MDB_cursor* cursor, MDB_val key, std::uint32_t length, bench::YcsbReceipt& receipt) {
    KvYcsbScan scan(values_, length, receipt);
    MDB_val value{};
    int error = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (error == 0 && scan.take(text_of(key), text_of(value)))
      error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    if (!scan.rises()) return MDB_CORRUPTED;
    return error == MDB_NOTFOUND ? 0 : error;
  }

  const YcsbTree& tree_;
  bench::YcsbRows rows_;
  KvYcsbValues values_;
  LmdbTransactions transactions_;
  std::string value_;  ///< of the row that is written
};

class LmdbYcsb final : public YcsbEngine {
 public:
  std::string name() const override { return lmdb_version(); }
  std::string setup() const override {
    return lmdb_setup(flags_) +
           "; one B-tree, loaded in key order, a row's fields side by side in its value; readers "
           "beside one writer: writers take turns";
  }
  std::string guarantee() const override { return lmdb_guarantee(flags_); }

  Status open(const std::string& directory, bool survives_kill_only) override {
    if (survives_kill_only) flags_ = kLmdbWithoutSync;
    return tree_.open(directory, kYcsbTreeNames, kYcsbMapBytes, flags_, true);
  }

  Status load(const bench::YcsbRows& rows) override {
    rows_ = rows;
    FLUGS_TRY(load_kv_ycsb(rows, [this](std::string_view key, std::string_view value) {
      return tree_.load(0, key, value, MDB_APPEND);
    }));
    return tree_.finish_load();
  }

  Result<std::unique_ptr<bench::YcsbSession>> session() override {
    return std::unique_ptr<bench::YcsbSession>(std::make_unique<LmdbYcsbSession>(tree_, rows_));
  }

  Status read_all(bench::YcsbFindings& findings) override {
    LmdbTransactions transactions(tree_.environment());
    FLUGS_TRY(transactions.begin(false));
    MDB_cursor* cursor = nullptr;
    int error = mdb_cursor_open(transactions.current(), tree_.handles()[0], &cursor);
    MDB_val key{};
    MDB_val value{};
    const KvYcsbValues values(rows_);
    if (error == 0) error = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; error == 0; error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
      values.note(text_of(key), text_of(value), findings);
    if (cursor != nullptr) mdb_cursor_close(cursor);
    return error == MDB_NOTFOUND ? Status() : lmdb_status(error);
  }

 private:
  unsigned flags_ = 0;
  bench::YcsbRows rows_;
  YcsbTree tree_{kYcsbRowsPerLoad};
};

}  // namespace

std::unique_ptr<YcsbEngine> make_ycsb_engine() { return std::make_unique<LmdbYcsb>(); }

}  // namespace flugs::tools
