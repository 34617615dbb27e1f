#include "verify/isolation/sessions/history_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace flugs::sessions {

namespace {

// A dozen keys in sequence form a group: registers in a group are read together.
constexpr std::uint32_t kKeysPerGroup = 12;

constexpr ColumnId kElementValue{2};
constexpr ColumnId kBytesElements{1};
constexpr ColumnId kRegisterId{0};
constexpr ColumnId kRegisterGroup{1};
constexpr ColumnId kRegisterValue{2};
constexpr std::uint16_t kByGroup = 1;  // key of a table of registers

std::string history_table_name(const char* kind, std::uint32_t number) {
  return fmt::format("{}_{}", kind, number);
}

Value number_of(std::uint32_t number) { return Value::int64(number); }

// Tables of one kind differ in how they are indexed and encoded.
TableSchema rows_schema(std::uint32_t number) {
  TableSchema schema(history_table_name("rows", number));
  schema.column("list", Type::kInt64).column("position", Type::kInt64);
  schema.column("value", Type::kInt64);
  if (number % 2 == 1) schema.direct();
  schema.primary_key({"list", "position"}).ordered();
  if (number % 2 == 1) schema.hash_prefix(1);
  return schema;
}

TableSchema bytes_schema(std::uint32_t number) {
  TableSchema schema(history_table_name("bytes", number));
  schema.column("list", Type::kInt64).column("elements", Type::kBytes);
  if (number % 2 == 1) schema.direct();
  schema.primary_key({"list"});
  return schema;
}

TableSchema register_schema(std::uint32_t number) {
  TableSchema schema(history_table_name("registers", number));
  schema.column("id", Type::kInt64).column("group", Type::kInt64).column("value", Type::kInt64);
  if (number % 2 == 1) schema.direct();
  schema.primary_key({"id"});
  // Each write moves its row within the group.
  schema.key("by_group", {"group", "value"});
  return schema;
}

std::string bytes_of(std::uint32_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

Status HistoryTables::create(Database& database, const HistoryPlan& plan) {
  for (std::uint32_t i = 0; i < plan.tables; ++i)
    for (const TableSchema& schema : {rows_schema(i), bytes_schema(i), register_schema(i)})
      if (Result<TableId> made = database.create_table(schema); !made.ok())
        return std::move(made).status();
  return {};
}

Result<HistoryTables> HistoryTables::find(Database& database, const HistoryPlan& plan) {
  HistoryTables tables;
  tables.workload_ = plan.workload;
  for (std::uint32_t i = 0; i < plan.tables; ++i) {
    const Result<TableId> rows = database.find_table(history_table_name("rows", i));
    const Result<TableId> bytes = database.find_table(history_table_name("bytes", i));
    const Result<TableId> registers = database.find_table(history_table_name("registers", i));
    for (const Result<TableId>* found : {&rows, &bytes, &registers})
      if (!found->ok()) return found->status();
    tables.places_.push_back({*rows, *bytes, *registers});
  }
  return tables;
}

HistoryTables::Kind HistoryTables::kind_of(std::uint32_t key) const noexcept {
  switch (workload_) {
    case HistoryWorkload::kListAppend:
      return key % 2 == 0 ? Kind::kRows : Kind::kBytes;
    case HistoryWorkload::kRegister:
      return Kind::kRegister;
    case HistoryWorkload::kMixed:
      break;
  }
  return key % 3 == 0 ? Kind::kRows : key % 3 == 1 ? Kind::kBytes : Kind::kRegister;
}

std::vector<TableId> HistoryTables::tables() const {
  std::vector<TableId> all;
  for (const Place& place : places_)
    all.insert(all.end(), {place.rows, place.bytes, place.registers});
  return all;
}

const HistoryTables::Place& HistoryTables::place_of(std::uint32_t key) const noexcept {
  return places_[key / 3 % places_.size()];
}

Status HistoryTables::read_rows(const Transaction& transaction, std::uint32_t key, Way way,
                                std::vector<std::uint32_t>& elements) const {
  const KeyId primary{place_of(key).rows, 0};
  const auto take = [&](const Row& row) {
    elements.push_back(static_cast<std::uint32_t>(row.get_unchecked<std::int64_t>(kElementValue)));
    return true;
  };
  const std::array<Value, 1> list = {number_of(key)};
  if (way == Way::kScan) return transaction.rows(primary, list, take);
  if (way == Way::kRange) return transaction.rows(primary, {list, true}, {list, true}, take);
  for (std::int64_t position = 0;; ++position) {
    const Result<Row> row = transaction.get(primary, {list[0], Value::int64(position)});
    if (row.code() == StatusCode::kNotFound) return {};
    if (!row.ok()) return row.status();
    take(*row);
  }
}

Status HistoryTables::read_list(const Transaction& transaction, std::uint32_t key, Way way,
                                std::vector<std::uint32_t>& elements, bool& is_predicate) const {
  elements.clear();
  is_predicate = kind_of(key) == Kind::kRows && way != Way::kPoint;
  if (kind_of(key) == Kind::kRows) return read_rows(transaction, key, way, elements);
  const Result<Row> row = transaction.get({place_of(key).bytes, 0}, {number_of(key)});
  if (row.code() == StatusCode::kNotFound) return {};
  if (!row.ok()) return row.status();
  const std::string_view bytes = row->get_unchecked<std::string_view>(kBytesElements);
  elements.resize(bytes.size() / sizeof(std::uint32_t));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), elements.size() * 4);
  return {};
}

Status HistoryTables::append(Transaction& transaction, std::uint32_t key,
                             std::uint32_t value) const {
  const Place& place = place_of(key);
  if (kind_of(key) == Kind::kRows) {
    std::vector<std::uint32_t> elements;
    if (Status s = read_rows(transaction, key, Way::kRange, elements); !s.ok()) return s;
    return transaction
        .insert(place.rows,
                {number_of(key), Value::int64(static_cast<std::int64_t>(elements.size())),
                 number_of(value)})
        .status();
  }
  const Result<Row> row = transaction.get({place.bytes, 0}, {number_of(key)});
  std::string elements;
  if (row.ok()) {
    elements = std::string(row->get_unchecked<std::string_view>(kBytesElements)) + bytes_of(value);
    return transaction.update(place.bytes, row->id(), {{kBytesElements, Value::bytes(elements)}})
        .status();
  }
  if (row.code() != StatusCode::kNotFound) return row.status();
  elements = bytes_of(value);
  return transaction.insert(place.bytes, {number_of(key), Value::bytes(elements)}).status();
}

Status HistoryTables::read_register(const Transaction& transaction, std::uint32_t key,
                                    std::uint32_t& value) const {
  value = 0;
  const Result<Row> row = transaction.get({place_of(key).registers, 0}, {number_of(key)});
  if (row.code() == StatusCode::kNotFound) return {};
  if (!row.ok()) return row.status();
  value = static_cast<std::uint32_t>(row->get_unchecked<std::int64_t>(kRegisterValue));
  return {};
}

Status HistoryTables::read_group(const Transaction& transaction, std::uint32_t key,
                                 std::uint32_t key_limit, Way way,
                                 std::vector<Register>& registers) const {
  registers.clear();
  const std::uint32_t group = key / kKeysPerGroup;
  const TableId table = place_of(key).registers;
  const std::uint32_t end = std::min(key_limit, (group + 1) * kKeysPerGroup);
  for (std::uint32_t k = group * kKeysPerGroup; k < end; ++k)
    if (kind_of(k) == Kind::kRegister && place_of(k).registers == table)
      registers.push_back({k, 0});
  Status unexpected;
  const auto take = [&](std::int64_t id, std::int64_t value) {
    const auto found = std::find_if(registers.begin(), registers.end(),
                                    [&](const Register& r) { return r.key == id; });
    // A register that was not begun when the limit was read may be there by now.
    if (found == registers.end()) return true;
    if (found->value != 0)
      unexpected = Status(StatusCode::kCorrupt, fmt::format("register {} is there twice", id));
    found->value = static_cast<std::uint32_t>(value);
    return unexpected.ok();
  };
  Status done;
  if (way == Way::kScan) {
    done = transaction.scan(table, std::array{kRegisterId, kRegisterValue},
                            Predicate::equal(kRegisterGroup, number_of(group)),
                            [&](const ScanBatch& batch) {
                              for (std::size_t i = 0; i < batch.row_count(); ++i)
                                if (!take(batch.column_unchecked<std::int64_t>(0)[i],
                                          batch.column_unchecked<std::int64_t>(1)[i]))
                                  return false;
                              return true;
                            });
  } else {
    done = transaction.rows({table, kByGroup}, {number_of(group)}, [&](const Row& row) {
      return take(row.get_unchecked<std::int64_t>(kRegisterId),
                  row.get_unchecked<std::int64_t>(kRegisterValue));
    });
  }
  return done.ok() ? unexpected : done;
}

Status HistoryTables::write_register(Transaction& transaction, std::uint32_t key,
                                     std::uint32_t value) const {
  const TableId table = place_of(key).registers;
  const Result<Row> row = transaction.get({table, 0}, {number_of(key)});
  if (row.ok())
    return transaction.update(table, row->id(), {{kRegisterValue, number_of(value)}}).status();
  if (row.code() != StatusCode::kNotFound) return row.status();
  return transaction
      .insert(table, {number_of(key), number_of(key / kKeysPerGroup), number_of(value)})
      .status();
}

}  // namespace flugs::sessions
