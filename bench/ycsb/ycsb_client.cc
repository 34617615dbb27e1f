#include "bench/ycsb/ycsb_client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "bench/support/bulk_load.h"
#include "flugs/try.h"

namespace flugs::bench {

namespace {

constexpr std::size_t kYcsbRowsPerCall = 100;

ColumnId ycsb_column(std::uint32_t field) noexcept {
  return ColumnId(static_cast<std::uint16_t>(1 + field));
}

/// The key of a row, valid as long as this.
class YcsbKeyValue {
 public:
  YcsbKeyValue(YcsbKeys keys, std::uint64_t number) noexcept
      : keys_(keys), number_(number), text_(keys, number) {}
  Value value() const noexcept {
    return keys_ == YcsbKeys::kInteger ? Value::int64(static_cast<std::int64_t>(number_))
                                       : Value::string(text_.text());
  }

 private:
  YcsbKeys keys_;
  std::uint64_t number_;
  YcsbKeyText text_;
};

/// Rows [begin, end) in one call.
Status insert_loaded(Transaction& transaction, const YcsbTable& table, const YcsbRows& rows,
                     std::uint64_t begin, std::uint64_t end) {
  std::vector<YcsbKeyValue> keys;
  std::vector<char> letters((end - begin) * rows.fields * rows.field_bytes);
  std::vector<Value> values;
  keys.reserve(end - begin);
  std::span<char> left(letters);
  for (std::uint64_t number = begin; number < end; ++number) {
    keys.emplace_back(rows.keys, number);
    values.push_back(keys.back().value());
    for (std::uint32_t field = 0; field < rows.fields; ++field) {
      const std::span<char> text = left.first(rows.field_bytes);
      left = left.subspan(rows.field_bytes);
      ycsb_field(number, field, 0, text);
      values.push_back(Value::string({text.data(), text.size()}));
    }
  }
  return transaction.insert_rows(table.table, values);
}

/// Whether the keys of a walk come in order, each once.
bool comes_after(const Value& before, const Value& key, YcsbKeys keys) noexcept {
  return keys == YcsbKeys::kInteger ? before.as_int64() < key.as_int64()
                                    : before.as_string() < key.as_string();
}

}  // namespace

Result<YcsbTable> create_ycsb_table(Database& database, const YcsbRows& rows, bool ordered) {
  TableSchema schema("usertable");
  schema.column("ycsb_key", rows.keys == YcsbKeys::kInteger ? Type::kInt64 : Type::kString);
  schema.direct();
  for (std::uint32_t field = 0; field < rows.fields; ++field)
    schema.column("field" + std::to_string(field), Type::kString).not_null().direct();
  schema.primary_key({"ycsb_key"}, {.ordered = ordered});
  FLUGS_ASSIGN(const TableId table, database.create_table(schema));
  return YcsbTable{table, {table, 0}};
}

Status load_ycsb(Database& database, const YcsbTable& table, const YcsbRows& rows,
                 std::uint32_t threads,
                 const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  BulkLoad load;
  load.end = rows.records;
  load.threads = threads;
  load.progress = progress;
  load.load_range = [&](std::uint64_t begin, std::uint64_t end, std::uint32_t) -> Status {
    FLUGS_ASSIGN(Transaction transaction, database.begin());
    for (; begin < end; begin += std::min(kYcsbRowsPerCall, end - begin))
      FLUGS_TRY(insert_loaded(transaction, table, rows, begin,
                              begin + std::min(kYcsbRowsPerCall, end - begin)));
    return transaction.commit();
  };
  return load_in_parallel(load);
}

Result<std::unique_ptr<YcsbClient>> YcsbClient::make(Database& database, const YcsbTable& table,
                                                     const YcsbRows& rows, Isolation isolation,
                                                     const CommitOptions& commit) {
  std::unique_ptr<YcsbClient> client(new YcsbClient(database, table, rows, isolation, commit));
  FLUGS_TRY(client->prepare());
  return client;
}

Status YcsbClient::prepare() {
  for (std::uint32_t field = 0; field < rows_.fields; ++field) {
    columns_.push_back(ycsb_column(field));
    FLUGS_ASSIGN(of_field_[field], database_.prepare(table_.key, {ycsb_column(field)}));
  }
  FLUGS_ASSIGN(whole_, database_.prepare(table_.key, columns_));
  return {};
}

Status YcsbClient::run(const YcsbRequest& request, YcsbReceipt& receipt) {
  const AccessMode mode = writes(request.type) ? AccessMode::kReadWrite : AccessMode::kReadOnly;
  FLUGS_ASSIGN(Transaction transaction, database_.begin(mode, isolation_));
  FLUGS_TRY(execute(transaction, request, receipt));
  return transaction.commit(commit_);
}

Status YcsbClient::execute(Transaction& transaction, const YcsbRequest& request,
                           YcsbReceipt& receipt) {
  const YcsbKeyValue key(rows_.keys, request.number);
  const std::span<Value> fields = std::span(values_).subspan(1);
  switch (request.type) {
    case YcsbType::kRead:
      FLUGS_TRY(whole_.read(transaction, {key.value()}, fields));
      consume_fields(receipt);
      return {};
    case YcsbType::kUpdate:
      return of_field_[request.field]
          .update(transaction, {key.value()}, {new_field(request, request.field)})
          .status();
    case YcsbType::kReadModifyWrite: {
      FLUGS_ASSIGN(const Row row, whole_.get(transaction, {key.value()}));
      row.get_unchecked(columns_, fields);
      consume_fields(receipt);
      return transaction.update(row, {{columns_[request.field], new_field(request, request.field)}})
          .status();
    }
    case YcsbType::kInsert:
      values_[0] = key.value();
      for (std::uint32_t field = 0; field < rows_.fields; ++field)
        fields[field] = new_field(request, field);
      return transaction.insert(table_.table, std::span<const Value>(values_)).status();
    case YcsbType::kScan:
      break;
  }
  return scan(transaction, key.value(), request.length, receipt);
}

Status YcsbClient::scan(const Transaction& transaction, Value from, std::uint32_t length,
                        YcsbReceipt& receipt) {
  Rows rows = transaction.rows(table_.key, KeyBound{{&from, 1}, true}, KeyBound{}).limit(length);
  // The text of a key is valid until the next row: it is compared before.
  std::string before;
  Value last = from;
  while (const Row* const row = rows.next()) {
    const Value key = row->get_unchecked(ColumnId(0));
    if (receipt.rows > 0 && !comes_after(last, key, rows_.keys))
      return Status(StatusCode::kCorrupt, "a scan gave a row that does not come after the former");
    if (rows_.keys == YcsbKeys::kInteger) {
      last = key;
    } else {
      before = key.as_string();
      last = Value::string(before);
    }
    row->get_unchecked(columns_, std::span(values_).subspan(1));
    consume_fields(receipt);
  }
  return rows.status();
}

Value YcsbClient::new_field(const YcsbRequest& request, std::uint32_t field) {
  const std::span<char> text =
      std::span(letters_).subspan(std::size_t{field} * rows_.field_bytes, rows_.field_bytes);
  ycsb_field(request.number, field, request.version, text);
  return Value::string({text.data(), text.size()});
}

void YcsbClient::consume_fields(YcsbReceipt& receipt) const {
  for (const Value& value : std::span(values_).subspan(1)) receipt.consume(value.as_string());
  ++receipt.rows;
}

}  // namespace flugs::bench
