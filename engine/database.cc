#include "flugs/database.h"

#include <fmt/format.h>

#include "engine/database_core.h"

namespace flugs {

Database::Database() noexcept = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(const OpenOptions& options) {
  Result<std::unique_ptr<engine::DatabaseCore>> core = engine::DatabaseCore::open(options);
  if (!core.ok()) return std::move(core).status();
  Database database;
  database.core_ = std::move(*core);
  return database;
}

namespace {

Status closed() { return Status(StatusCode::kInvalidArgument, "the database is not open"); }

}  // namespace

Result<TableId> Database::create_table(const TableSchema& schema) {
  return core_ == nullptr ? Result<TableId>(closed()) : core_->create_table(schema);
}

Status Database::drop_table(TableId table) {
  return core_ == nullptr ? closed() : core_->drop_table(table);
}

Status Database::rename_table(TableId table, std::string_view name) {
  return core_ == nullptr ? closed() : core_->rename_table(table, std::string(name));
}

Status Database::rename_column(TableId table, ColumnId column, std::string_view name) {
  return core_ == nullptr ? closed() : core_->rename_column(table, column, std::string(name));
}

Result<ColumnId> Database::add_column(TableId table, const ColumnSchema& column) {
  return core_ == nullptr ? Result<ColumnId>(closed()) : core_->add_column(table, column);
}

Status Database::change_type(TableId table, ColumnId column, Type type) {
  return core_ == nullptr ? closed() : core_->change_type(table, column, type);
}

Status Database::drop_column(TableId table, ColumnId column) {
  return core_ == nullptr ? closed() : core_->drop_column(table, column);
}

Status Database::rename_key(KeyId key, std::string_view name) {
  return core_ == nullptr ? closed() : core_->rename_key(key, std::string(name));
}

Result<KeyId> Database::add_key(TableId table, const KeySchema& key) {
  return core_ == nullptr ? Result<KeyId>(closed()) : core_->add_key(table, key);
}

Status Database::drop_key(KeyId key) { return core_ == nullptr ? closed() : core_->drop_key(key); }

void Database::prefetch(KeyId key, std::span<const Value> values) const noexcept {
  if (core_ != nullptr) core_->prefetch(key, values);
}

Result<TableId> Database::find_table(std::string_view name) const {
  return core_ == nullptr ? Result<TableId>(closed()) : core_->find_table(name);
}

Result<TableSchema> Database::schema(TableId table) const {
  if (core_ == nullptr) return closed();
  const engine::Table* found = core_->table(table);
  if (found == nullptr) return engine::no_table();
  return found->schema();
}

Status Database::skip_numbers(TableId table, std::int64_t last) {
  if (core_ == nullptr) return closed();
  return core_->skip_numbers(table, last);
}

Result<ColumnId> Database::find_column(TableId table, std::string_view name) const {
  if (core_ == nullptr) return closed();
  const engine::Table* found = core_->table(table);
  if (found == nullptr) return engine::no_table();
  const auto& columns = found->schema().columns;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == name && !columns[i].dropped)
      return ColumnId(static_cast<std::uint16_t>(i));
  return Status(StatusCode::kNotFound,
                fmt::format("table {}: no column '{}'", found->name(), name));
}

Result<KeyId> Database::find_key(TableId table, std::string_view name) const {
  if (core_ == nullptr) return closed();
  const engine::Table* found = core_->table(table);
  if (found == nullptr) return engine::no_table();
  const auto& keys = found->schema().keys;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!keys[i].dropped && keys[i].name == name)
      return KeyId{table, static_cast<std::uint16_t>(i)};
  return Status(StatusCode::kNotFound, fmt::format("table {}: no key '{}'", found->name(), name));
}

std::vector<TableId> Database::tables() const {
  return core_ == nullptr ? std::vector<TableId>() : core_->tables();
}

Result<Transaction> Database::begin(AccessMode mode, Isolation isolation) {
  return core_ == nullptr ? Result<Transaction>(closed()) : core_->begin(mode, isolation);
}

Status Database::run(FunctionRef<Status(Transaction&)> work, const RetryOptions& options,
                     RetryReport* report) {
  return core_ == nullptr ? closed() : core_->run(work, options, report);
}

std::vector<TransactionInfo> Database::transactions() const {
  return core_ == nullptr ? std::vector<TransactionInfo>() : core_->transactions();
}

Status Database::cancel(TransactionId transaction) noexcept {
  return core_ == nullptr ? closed() : core_->cancel(transaction);
}

Status Database::end_abandoned(TransactionId transaction, std::chrono::milliseconds idle) {
  return core_ == nullptr ? closed() : core_->end_abandoned(transaction, idle);
}

Status Database::finish_opening() { return core_ == nullptr ? closed() : core_->finish_opening(); }

const RecoveryReport& Database::recovery_report() const noexcept {
  static const RecoveryReport empty;
  return core_ == nullptr ? empty : core_->report();
}

Statistics Database::statistics() const {
  return core_ == nullptr ? Statistics() : core_->statistics();
}

Result<TableStatistics> Database::table_statistics(TableId table) const {
  if (core_ == nullptr) return closed();
  return core_->statistics(table);
}

Result<MergeReport> Database::merge(TableId table, const MergeOptions& options) {
  if (core_ == nullptr) return closed();
  return core_->merge(table, options);
}

Status Database::set_merge_policy(TableId table, const MergePolicy& policy) {
  return core_ == nullptr ? closed() : core_->set_merge_policy(table, policy);
}

Result<MergePolicy> Database::merge_policy(TableId table) const {
  if (core_ == nullptr) return closed();
  engine::Table* found = core_->table(table);
  if (found == nullptr) return engine::no_table();
  return found->merge_record().policy();
}

Result<MergeStatus> Database::merge_status(TableId table) const {
  if (core_ == nullptr) return closed();
  return core_->merge_status(table);
}

Status Database::verify(const std::function<void(const Progress&)>& progress) {
  return core_ == nullptr ? closed() : core_->verify(progress);
}

const std::string& Database::path() const noexcept {
  static const std::string none;
  return core_ == nullptr ? none : core_->pool().path();
}

}  // namespace flugs
