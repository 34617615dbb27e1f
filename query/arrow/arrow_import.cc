#include "flugs/arrow_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/database/database_core.h"
#include "engine/database/transaction_access.h"
#include "query/arrow/arrow_import_array.h"
#include "query/arrow/arrow_import_format.h"
#include "tables/data/table_data.h"

namespace flugs::query {

namespace {

constexpr std::int64_t kFieldsMax = 1024;

/// A struct of the Arrow C interfaces that was moved here, and is released at the end.
template <typename T>
class Taken {
 public:
  Taken() = default;
  explicit Taken(T* from) noexcept {
    if (from == nullptr) return;
    object_ = *from;
    from->release = nullptr;  // moved, as the specification says
  }
  ~Taken() { release(); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  T* get() noexcept { return &object_; }
  T* operator->() noexcept { return &object_; }
  const T& operator*() const noexcept { return object_; }
  bool is_there() const noexcept { return object_.release != nullptr; }
  void release() noexcept {
    if (is_there()) object_.release(&object_);
    object_ = T{};
  }

 private:
  T object_ = {};
};

Status bad_stream(std::string_view what) {
  return Status(StatusCode::kInvalidArgument, fmt::format("Arrow stream: {}", what));
}

/// What the stream says of its failure with this number.
Status stream_failed(ArrowArrayStream& stream, std::string_view call, int error) {
  const char* const said =
      stream.get_last_error != nullptr ? stream.get_last_error(&stream) : nullptr;
  return Status(error == ECANCELED ? StatusCode::kCancelled : StatusCode::kInvalidArgument,
                fmt::format("Arrow stream: {} failed with error {}{}{}", call, error,
                            said == nullptr ? "" : ": ", said == nullptr ? "" : said));
}

std::string names_of_columns(const TableSchema& schema) {
  std::string names;
  for (const ColumnSchema& column : schema.columns)
    if (!column.dropped) names += (names.empty() ? "" : ", ") + column.name;
  return names;
}

/// Finds the column of each field.
Result<std::vector<ArrowField>> fields_of(const ArrowSchema& schema, const TableSchema& table) {
  if (schema.format == nullptr || std::string_view(schema.format) != "+s")
    return bad_stream("the schema is no struct of columns");
  if (schema.n_children < 0 || schema.n_children > kFieldsMax ||
      (schema.n_children != 0 && schema.children == nullptr))
    return bad_stream(fmt::format("the schema has {} fields", schema.n_children));
  std::vector<ArrowField> fields;
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    if (schema.children[i] == nullptr) return bad_stream("the schema lacks a field");
    Result<ArrowField> field = read_arrow_field(*schema.children[i]);
    const std::string name = schema.children[i]->name == nullptr ? "" : schema.children[i]->name;
    const auto column =
        std::find_if(table.columns.begin(), table.columns.end(),
                     [&](const ColumnSchema& of) { return !of.dropped && of.name == name; });
    if (column == table.columns.end())
      return bad_stream(fmt::format("table {} has no column {}; it has {}", table.name, name,
                                    names_of_columns(table)));
    if (!field.ok()) return field.status();
    field->column = ColumnId(static_cast<std::uint16_t>(column - table.columns.begin()));
    const bool is_twice = std::any_of(fields.begin(), fields.end(), [&](const ArrowField& other) {
      return other.column == field->column;
    });
    if (is_twice) return bad_stream(fmt::format("two fields with the name {}", name));
    fields.push_back(*std::move(field));
  }
  return fields;
}

/// The fields of the schema, for the table as it is now.
Result<std::vector<ArrowField>> fields_for(const Transaction& transaction, TableId table,
                                           const ArrowSchema& schema) {
  const engine::Call call(engine::TransactionAccess::context(transaction));
  if (Status s = engine::TransactionAccess::check(transaction); !s.ok()) return s;
  const engine::TableData* const found =
      engine::TransactionAccess::core(transaction).table_data(table);
  if (found == nullptr) return engine::no_table();
  return fields_of(schema, found->schema());
}

Result<std::uint64_t> insert_array(Transaction& transaction, TableId table,
                                   const std::vector<ArrowField>& fields, const ArrowArray& array,
                                   const CallOptions& options) {
  const Result<ArrowBatch> batch = ArrowBatch::make(array, fields);
  if (!batch.ok()) return batch.status();
  if (Status s = transaction.insert_columns(table, batch->batch(), {}, options); !s.ok()) return s;
  return std::uint64_t{batch->batch().rows};
}

Result<std::uint64_t> insert_stream(Transaction& transaction, TableId table,
                                    ArrowArrayStream& stream, const CallOptions& options) {
  if (stream.get_schema == nullptr || stream.get_next == nullptr)
    return bad_stream("it lacks a function");
  Taken<ArrowSchema> schema;
  if (const int error = stream.get_schema(&stream, schema.get()); error != 0)
    return stream_failed(stream, "get_schema", error);
  if (!schema.is_there()) return bad_stream("it has no schema");
  const Result<std::vector<ArrowField>> fields = fields_for(transaction, table, *schema);
  if (!fields.ok()) return fields.status();
  std::uint64_t rows = 0;
  for (std::uint64_t number = 0;; ++number) {
    Taken<ArrowArray> array;
    if (const int error = stream.get_next(&stream, array.get()); error != 0)
      return stream_failed(stream, "get_next", error);
    if (!array.is_there()) return rows;
    const Result<std::uint64_t> inserted =
        insert_array(transaction, table, *fields, *array, options);
    if (!inserted.ok())
      return inserted.status().with_message(
          fmt::format("batch {} of the stream: {}", number, inserted.status().message()));
    rows += *inserted;
  }
}

/// Takes back what a transaction has written since then, unless it is told to keep it.
class UndoneUnlessKept {
 public:
  UndoneUnlessKept(Transaction& transaction, Savepoint before) noexcept
      : transaction_(transaction), before_(before) {}
  UndoneUnlessKept(const UndoneUnlessKept&) = delete;
  UndoneUnlessKept& operator=(const UndoneUnlessKept&) = delete;
  // An open transaction that is not within a visitor has the savepoint, as the newest one.
  ~UndoneUnlessKept() {
    if (!transaction_.is_open()) return;
    if (!is_kept_) static_cast<void>(transaction_.rollback_to(before_));
    static_cast<void>(transaction_.release(before_));
  }
  void keep() noexcept { is_kept_ = true; }

 private:
  Transaction& transaction_;
  const Savepoint before_;
  bool is_kept_ = false;
};

Status no_memory() {
  return Status(StatusCode::kOutOfMemory, "an Arrow array needs more memory than there is");
}

}  // namespace

Result<std::uint64_t> insert_arrow(Transaction& transaction, TableId table,
                                   ArrowArrayStream* stream, const CallOptions& options) {
  Taken<ArrowArrayStream> taken(stream);
  if (!taken.is_there()) return bad_stream("it has been released");
  const engine::TransactionContext* context = engine::TransactionAccess::context(transaction);
  if (context != nullptr && context->ending.is_visited())
    return Status(StatusCode::kInvalidArgument,
                  "insert_arrow of a stream within a visitor: a part of it could not be undone");
  const Result<Savepoint> before = transaction.savepoint();
  if (!before.ok()) return before.status();
  UndoneUnlessKept undone(transaction, *before);
  try {
    Result<std::uint64_t> rows = insert_stream(transaction, table, *taken.get(), options);
    if (rows.ok()) undone.keep();
    return rows;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<std::uint64_t> insert_arrow(Transaction& transaction, TableId table, ArrowSchema* schema,
                                   ArrowArray* array, const CallOptions& options) {
  Taken<ArrowSchema> taken_schema(schema);
  Taken<ArrowArray> taken(array);
  if (!taken_schema.is_there() || !taken.is_there()) return bad_stream("it has been released");
  const Result<std::vector<ArrowField>> fields = fields_for(transaction, table, *taken_schema);
  if (!fields.ok()) return fields.status();
  try {
    return insert_array(transaction, table, *fields, *taken, options);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace flugs::query
