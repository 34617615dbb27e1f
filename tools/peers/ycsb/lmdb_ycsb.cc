#include <lmdb.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flugs/try.h"
#include "tools/peers/engines/lmdb_store.h"
#include "tools/peers/ycsb/ycsb_engine.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kYcsbRowsPerLoad = 100'000;
/// Addresses only; with MDB_WRITEMAP also the size of the sparse file.
constexpr std::size_t kYcsbMapBytes = std::size_t{1} << 38;
constexpr std::array<const char*, 1> kYcsbTreeNames = {"usertable"};

using YcsbTree = LmdbTables<1>;

/// The key of a row as LMDB orders it: a number is written with its high byte first.
class LmdbYcsbKey {
 public:
  LmdbYcsbKey(bench::YcsbKeys keys, std::uint64_t number) noexcept
      : keys_(keys), text_(keys, number) {
    for (std::size_t i = bytes_.size(); i-- > 0; number >>= 8)
      bytes_[i] = static_cast<char>(number & 0xff);
  }
  std::string_view bytes() const noexcept {
    if (keys_ == bench::YcsbKeys::kInteger) return {bytes_.data(), bytes_.size()};
    return text_.text();
  }

 private:
  bench::YcsbKeys keys_;
  bench::YcsbKeyText text_;
  std::array<char, 8> bytes_;
};

std::uint64_t number_of(std::string_view bytes) noexcept {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

/// A row's value is its fields, one behind the other.
class LmdbYcsbSession final : public bench::YcsbSession {
 public:
  LmdbYcsbSession(const YcsbTree& tree, const bench::YcsbRows& rows)
      : tree_(tree),
        rows_(rows),
        transactions_(tree.environment()),
        value_(std::size_t{rows.fields} * rows.field_bytes, '\0') {}

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
    const LmdbYcsbKey bytes(rows_.keys, request.number);
    MDB_val key = value_of(bytes.bytes());
    MDB_val value{};
    if (request.type == bench::YcsbType::kInsert) {
      for (std::uint32_t field = 0; field < rows_.fields; ++field) set_field(request, field);
      value = value_of(value_);
      return mdb_cursor_put(cursor, &key, &value, MDB_NOOVERWRITE);
    }
    if (request.type == bench::YcsbType::kScan) return scan(cursor, key, request.length, receipt);
    int error = mdb_cursor_get(cursor, &key, &value, MDB_SET);
    if (error != 0) return error;
    if (request.type != bench::YcsbType::kUpdate) consume(value, receipt);
    if (request.type == bench::YcsbType::kRead) return 0;
    value_ = text_of(value);
    set_field(request, request.field);
    value = value_of(value_);
    return mdb_cursor_put(cursor, &key, &value, MDB_CURRENT);
  }

  int scan(MDB_cursor* cursor, MDB_val key, std::uint32_t length, bench::YcsbReceipt& receipt) {
    MDB_val value{};
    int error = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (error == 0) {
      consume(value, receipt);
      if (receipt.rows == length) break;
      error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    return error == MDB_NOTFOUND ? 0 : error;
  }

  void set_field(const bench::YcsbRequest& request, std::uint32_t field) {
    bench::ycsb_field(
        request.number, field, request.version,
        std::span(value_).subspan(std::size_t{field} * rows_.field_bytes, rows_.field_bytes));
  }
  void consume(const MDB_val& value, bench::YcsbReceipt& receipt) const {
    const std::string_view text = text_of(value);
    for (std::uint32_t field = 0; field < rows_.fields; ++field)
      receipt.consume(text.substr(std::size_t{field} * rows_.field_bytes, rows_.field_bytes));
    ++receipt.rows;
  }

  const YcsbTree& tree_;
  bench::YcsbRows rows_;
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
    std::vector<std::pair<std::string, std::uint64_t>> keys;
    keys.reserve(rows.records);
    for (std::uint64_t number = 0; number < rows.records; ++number)
      keys.emplace_back(LmdbYcsbKey(rows.keys, number).bytes(), number);
    std::sort(keys.begin(), keys.end());
    std::string value(std::size_t{rows.fields} * rows.field_bytes, '\0');
    for (const auto& [key, number] : keys) {
      for (std::uint32_t field = 0; field < rows.fields; ++field)
        bench::ycsb_field(
            number, field, 0,
            std::span(value).subspan(std::size_t{field} * rows.field_bytes, rows.field_bytes));
      FLUGS_TRY(tree_.load(0, key, value, MDB_APPEND));
    }
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
    std::vector<std::string_view> fields(rows_.fields);
    if (error == 0) error = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; error == 0; error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
      for (std::size_t field = 0; field < fields.size(); ++field)
        fields[field] = text_of(value).substr(field * rows_.field_bytes, rows_.field_bytes);
      if (rows_.keys == bench::YcsbKeys::kInteger)
        findings.row(number_of(text_of(key)), fields);
      else
        findings.row(text_of(key), fields);
    }
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
