#include "bench/support/table_stream.h"

#include <bit>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "bench/support/json.h"

namespace flugs::bench {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kRowsPerBatch = 1'000'000;

const char* kind_of(Type type) noexcept {
  switch (type) {
    case Type::kBool:
      return "bool";
    case Type::kInt32:
    case Type::kDate:
      return "int32";
    case Type::kDouble:
      return "double";
    case Type::kString:
      return "text";
    case Type::kBytes:
      return "bytes";
    default:
      return "int64";
  }
}

template <typename Number>
void append_number(std::vector<char>& bytes, Number number) {
  const std::size_t size = bytes.size();
  bytes.resize(size + sizeof number);
  std::memcpy(bytes.data() + size, &number, sizeof number);
}

/// The same for many, each made a Number of.
template <typename Number, typename Given>
void append_numbers(std::vector<char>& bytes, std::span<const Given> values) {
  std::size_t at = bytes.size();
  bytes.resize(at + values.size() * sizeof(Number));
  for (const Given value : values) {
    const auto number = static_cast<Number>(value);
    std::memcpy(bytes.data() + at, &number, sizeof number);
    at += sizeof number;
  }
}

/// One column of the batch that is being filled.
class StreamColumn {
 public:
  StreamColumn(std::string name, Type type) : name_(std::move(name)), type_(type) {}

  void append(const ScanBatch& batch, std::size_t index) {
    append_nulls(batch.nulls(index), batch.row_count());
    if (type_ == Type::kDouble)
      append_numbers<double>(values_, batch.column_unchecked<double>(index));
    else if (type_ == Type::kString || type_ == Type::kBytes)
      for (const std::string_view value : batch.column_unchecked<std::string_view>(index))
        append_string(value);
    else
      append_integers(batch.column_unchecked<std::int64_t>(index));
  }

  Json header() const {
    Json json = {{"name", name_}, {"kind", kind_of(type_)}, {"nulls", has_nulls_}};
    if (type_ == Type::kString || type_ == Type::kBytes) {
      json["strings"] = numbers_.size();
      json["string_bytes"] = strings_.size();
    }
    return json;
  }

  /// Writes what it holds, and is empty then.
  Status send(const ByteSink& sink) {
    Status status;
    if (has_nulls_) status = sink(nulls_);
    for (const std::vector<char>* part : {&values_, &lengths_, &strings_})
      if (status.ok() && !part->empty()) status = sink(*part);
    for (std::vector<char>* part : {&nulls_, &values_, &lengths_, &strings_}) part->clear();
    numbers_.clear();
    has_nulls_ = false;
    return status;
  }

 private:
  void append_nulls(std::span<const std::uint8_t> nulls, std::size_t rows) {
    has_nulls_ = has_nulls_ || !nulls.empty();
    if (nulls.empty())
      nulls_.insert(nulls_.end(), rows, 0);
    else
      nulls_.insert(nulls_.end(), nulls.begin(), nulls.end());
  }
  void append_integers(std::span<const std::int64_t> integers) {
    if (type_ == Type::kBool)
      append_numbers<std::uint8_t>(values_, integers);
    else if (type_ == Type::kInt32 || type_ == Type::kDate)
      append_numbers<std::int32_t>(values_, integers);
    else
      append_numbers<std::int64_t>(values_, integers);
  }
  /// Strings stay valid until the transaction ends, long after this batch has been sent.
  void append_string(std::string_view text) {
    const auto [found, is_new] =
        numbers_.try_emplace(text, static_cast<std::uint32_t>(numbers_.size()));
    append_number(values_, found->second);
    if (!is_new) return;
    append_number(lengths_, static_cast<std::uint32_t>(text.size()));
    strings_.insert(strings_.end(), text.begin(), text.end());
  }

  std::string name_;
  Type type_;
  bool has_nulls_ = false;
  std::vector<char> nulls_;
  std::vector<char> values_;   ///< or numbers of strings
  std::vector<char> lengths_;  ///< of strings
  std::vector<char> strings_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

/// The batch that is being filled.
class StreamBatch {
 public:
  StreamBatch(std::string table, std::vector<StreamColumn> columns, const ByteSink& sink)
      : table_(std::move(table)), columns_(std::move(columns)), sink_(sink) {}

  Status append(const ScanBatch& batch) {
    for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].append(batch, i);
    rows_ += batch.row_count();
    return rows_ + ScanBatch::kRowsMax > kRowsPerBatch ? send() : Status();
  }
  Status send() {
    if (rows_ == 0) return {};
    Json header = {{"table", table_}, {"rows", rows_}, {"columns", Json::array()}};
    for (const StreamColumn& column : columns_) header["columns"].push_back(column.header());
    const std::string line = header.dump() + "\n";
    Status status = sink_(line);
    for (StreamColumn& column : columns_)
      if (status.ok()) status = column.send(sink_);
    rows_ = 0;
    return status;
  }

 private:
  std::string table_;
  std::vector<StreamColumn> columns_;
  const ByteSink& sink_;
  std::size_t rows_ = 0;
};

}  // namespace

Status stream_table(const Database& database, const Transaction& transaction,
                    const std::string& table, const std::vector<std::string>& columns,
                    const ByteSink& sink) {
  const Result<TableId> id = database.find_table(table);
  if (!id.ok()) return id.status();
  const Result<TableSchema> schema = database.schema(*id);
  if (!schema.ok()) return schema.status();
  std::vector<ColumnId> ids;
  std::vector<StreamColumn> streams;
  for (const std::string& name : columns) {
    const Result<ColumnId> column = database.find_column(*id, name);
    if (!column.ok()) return column.status();
    ids.push_back(*column);
    streams.emplace_back(name, schema->columns[column->value()].type);
  }
  StreamBatch batch(table, std::move(streams), sink);
  Status sent;
  Status scanned = transaction.scan(*id, ids, Predicate::all(), [&](const ScanBatch& rows) {
    sent = batch.append(rows);
    return sent.ok();
  });
  if (!scanned.ok()) return scanned;
  return sent.ok() ? batch.send() : sent;
}

}  // namespace flugs::bench
