#include "flugs/database.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/names.h"
#include "engine/database/database_core.h"
#include "engine/database/durable_tokens.h"
#include "flugs/version.h"
#include "pmem/pool/pool_format.h"
#include "tables/catalog/schema_difference.h"

namespace flugs {

namespace {

bool is_usable(const std::unique_ptr<engine::DatabaseCore>& core) noexcept {
  return core != nullptr && !core->is_forked();
}

bool is_writable(const std::unique_ptr<engine::DatabaseCore>& core) noexcept {
  return is_usable(core) && !core->is_read_only();
}

// Why a call is refused that needs a database that is open, or one that may be written.
Status unusable(const std::unique_ptr<engine::DatabaseCore>& core) {
  if (core == nullptr) return Status(StatusCode::kInvalidArgument, "the database is not open");
  if (core->is_forked()) return engine::forked();
  return Status(StatusCode::kReadOnly,
                fmt::format("{}: opened with OpenMode::kReadOnly", core->pool().path()));
}

// The answer of a call that may need space, as the user gets it.
template <typename Answer>
Answer explained(const std::unique_ptr<engine::DatabaseCore>& core, Answer answer) {
  core->explain(answer);
  return answer;
}

}  // namespace

Database::Database() noexcept = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&& other) noexcept {
  if (this != &other) {
    const Database closing(std::move(*this));
    core_ = std::move(other.core_);
  }
  return *this;
}
Database::~Database() {
  if (core_ == nullptr) return;
  if (core_->is_forked()) {
    // A forked child has no threads to join, and the pool is its parent's.
    [[maybe_unused]] const engine::DatabaseCore* left = core_.release();
  } else if (core_->has_open_transactions()) {
    engine::DatabaseCore::leave_to_transactions(std::move(core_));
  }
}

Status Database::close() {
  if (!is_usable(core_)) return unusable(core_);
  if (Status s = core_->no_open_transactions("closing"); !s.ok()) return s;
  core_.reset();
  return {};
}

Result<Database> Database::open(const OpenOptions& options) {
  Result<std::unique_ptr<engine::DatabaseCore>> core = engine::DatabaseCore::open(options);
  if (!core.ok()) return std::move(core).status();
  Database database;
  database.core_ = std::move(*core);
  return database;
}

Result<TableId> Database::create_table(const TableSchema& schema) {
  return is_writable(core_) ? explained(core_, core_->create_table(schema))
                            : Result<TableId>(unusable(core_));
}

Result<std::vector<TableId>> Database::create_tables(std::span<const TableSchema> schemas) {
  if (!is_writable(core_)) return unusable(core_);
  return explained(core_, core_->create_tables(schemas));
}

Result<Table> Database::ensure_table(const TableSchema& wanted) {
  Result<std::vector<Table>> tables = ensure_tables(std::span(&wanted, 1));
  if (!tables.ok()) return std::move(tables).status();
  return std::move(tables->front());
}

Result<std::vector<Table>> Database::ensure_tables(std::span<const TableSchema> wanted) {
  for (;;) {
    std::vector<Table> tables;
    std::vector<TableSchema> missing;
    for (const TableSchema& one : wanted) {
      Result<Table> found = table(one.name);
      if (found.ok()) {
        if (Status s = engine::check_has(found->schema(), one); !s.ok()) return s;
        tables.push_back(*std::move(found));
      } else if (found.code() == StatusCode::kNotFound) {
        missing.push_back(one);
      } else {
        return std::move(found).status();
      }
    }
    if (missing.empty()) return tables;
    const Result<std::vector<TableId>> made = create_tables(missing);
    // Another thread may have made one of them since the look, or may be dropping it.
    if (!made.ok() && made.code() != StatusCode::kAlreadyExists) return made.status();
    if (!made.ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Result<Prepared> Database::prepare(KeyId key, std::span<const ColumnId> columns) const {
  return is_usable(core_) ? core_->prepare(key, columns) : Result<Prepared>(unusable(core_));
}

Result<Table> Database::table(std::string_view name) const {
  const Result<TableId> id = find_table(name);
  if (!id.ok()) return id.status();
  Result<TableSchema> found = schema(*id);
  if (!found.ok()) return std::move(found).status();
  return Table(*id, *std::move(found));
}

Status Database::drop_table(TableId table) {
  return is_writable(core_) ? core_->drop_table(table) : unusable(core_);
}

Status Database::rename_table(TableId table, std::string_view name) {
  return is_writable(core_) ? explained(core_, core_->rename_table(table, std::string(name)))
                            : unusable(core_);
}

Status Database::rename_column(TableId table, ColumnId column, std::string_view name) {
  return is_writable(core_)
             ? explained(core_, core_->rename_column(table, column, std::string(name)))
             : unusable(core_);
}

Result<ColumnId> Database::add_column(TableId table, const ColumnSchema& column) {
  return is_writable(core_) ? explained(core_, core_->add_column(table, column))
                            : Result<ColumnId>(unusable(core_));
}

Status Database::change_type(TableId table, ColumnId column, Type type) {
  return is_writable(core_) ? explained(core_, core_->change_type(table, column, type))
                            : unusable(core_);
}

Status Database::set_delta_layout(TableId table, DeltaLayout layout,
                                  std::vector<std::vector<std::string>> column_groups) {
  return is_writable(core_)
             ? explained(core_, core_->set_delta_layout(table, layout, std::move(column_groups)))
             : unusable(core_);
}

Status Database::drop_column(TableId table, ColumnId column) {
  return is_writable(core_) ? explained(core_, core_->drop_column(table, column)) : unusable(core_);
}

Status Database::rename_key(KeyId key, std::string_view name) {
  return is_writable(core_) ? explained(core_, core_->rename_key(key, std::string(name)))
                            : unusable(core_);
}

Result<KeyId> Database::add_key(TableId table, const KeySchema& key, const CallOptions& options) {
  return is_writable(core_) ? explained(core_, core_->add_key(table, key, options))
                            : Result<KeyId>(unusable(core_));
}

Status Database::drop_key(KeyId key) {
  return is_writable(core_) ? explained(core_, core_->drop_key(key)) : unusable(core_);
}

Status Database::add_check(TableId table, const CheckSchema& check, const CallOptions& options) {
  return is_writable(core_) ? explained(core_, core_->add_check(table, check, options))
                            : unusable(core_);
}

Status Database::drop_check(TableId table, std::string_view name) {
  return is_writable(core_) ? core_->drop_check(table, name) : unusable(core_);
}

Status Database::set_not_null(TableId table, ColumnId column, bool not_null,
                              const CallOptions& options) {
  return is_writable(core_)
             ? explained(core_, core_->set_not_null(table, column, not_null, options))
             : unusable(core_);
}

Status Database::set_default(TableId table, ColumnId column, const std::optional<Value>& value) {
  return is_writable(core_) ? explained(core_, core_->set_default(table, column, value))
                            : unusable(core_);
}

Status Database::add_foreign_key(TableId table, const ForeignKeySchema& foreign_key,
                                 const CallOptions& options) {
  return is_writable(core_) ? explained(core_, core_->add_foreign_key(table, foreign_key, options))
                            : unusable(core_);
}

Status Database::drop_foreign_key(TableId table, std::string_view name) {
  return is_writable(core_) ? core_->drop_foreign_key(table, name) : unusable(core_);
}

void Database::prefetch(KeyId key, std::span<const Value> values) const noexcept {
  if (core_ != nullptr) core_->prefetch(key, values);
}

Result<TableId> Database::find_table(std::string_view name) const {
  return is_usable(core_) ? core_->find_table(name) : Result<TableId>(unusable(core_));
}

Result<TableSchema> Database::schema(TableId table) const {
  if (!is_usable(core_)) return unusable(core_);
  const engine::Table* found = core_->table(table);
  if (found == nullptr) return engine::no_table();
  return found->schema();
}

Status Database::skip_numbers(TableId table, std::int64_t last) {
  if (!is_writable(core_)) return unusable(core_);
  return core_->skip_numbers(table, last);
}

Result<ColumnId> Database::find_column(TableId table, std::string_view name) const {
  if (!is_usable(core_)) return unusable(core_);
  const engine::Table* found = core_->table(table);
  if (found == nullptr) return engine::no_table();
  const auto& columns = found->schema().columns;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == name && !columns[i].dropped)
      return ColumnId(static_cast<std::uint16_t>(i));
  return Status(StatusCode::kNotFound, SchemaPart::of(found->name()),
                fmt::format("no column '{}', it has {}", name, names_of(columns)));
}

Result<KeyId> Database::find_key(TableId table, std::string_view name) const {
  if (!is_usable(core_)) return unusable(core_);
  const engine::Table* found = core_->table(table);
  if (found == nullptr) return engine::no_table();
  const auto& keys = found->schema().keys;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!keys[i].dropped && keys[i].name == name)
      return KeyId{table, static_cast<std::uint16_t>(i)};
  return Status(StatusCode::kNotFound, SchemaPart::of(found->name()),
                fmt::format("no key '{}', it has {}", name, names_of(keys)));
}

std::vector<TableId> Database::tables() const {
  return is_usable(core_) ? core_->tables() : std::vector<TableId>();
}

Result<Transaction> Database::begin(AccessMode mode, Isolation isolation) {
  const bool is_open = mode != AccessMode::kReadWrite ? is_usable(core_) : is_writable(core_);
  return is_open ? core_->begin(mode, isolation) : Result<Transaction>(unusable(core_));
}

Status Database::run(FunctionRef<Status(Transaction&)> work, const RetryOptions& options,
                     RetryReport* report) {
  return is_writable(core_) ? core_->run(work, options, report) : unusable(core_);
}

std::vector<TransactionInfo> Database::transactions() const {
  return is_usable(core_) ? core_->transactions() : std::vector<TransactionInfo>();
}

Status Database::cancel(TransactionId transaction) noexcept {
  return is_usable(core_) ? core_->cancel(transaction) : unusable(core_);
}

Status Database::end_abandoned(TransactionId transaction, std::chrono::milliseconds idle) {
  return is_usable(core_) ? core_->end_abandoned(transaction, idle) : unusable(core_);
}

DurableToken Database::durable_token() const noexcept {
  return is_usable(core_) ? core_->durable_tokens().now() : DurableToken();
}

bool Database::is_durable(const DurableToken& token) const noexcept {
  return is_usable(core_) && core_->durable_tokens().is_durable(token);
}

Status Database::wait_durable(const DurableToken& token) {
  return is_usable(core_) ? core_->durable_tokens().wait(token) : unusable(core_);
}

void Database::when_durable(const DurableToken& token,
                            std::function<void(const Status&)> callback) {
  if (!is_usable(core_)) return callback(unusable(core_));
  core_->durable_tokens().when_durable(token, std::move(callback));
}

Status Database::finish_opening() {
  return is_usable(core_) ? core_->finish_opening() : unusable(core_);
}

const RecoveryReport& Database::recovery_report() const noexcept {
  static const RecoveryReport empty;
  return core_ == nullptr ? empty : core_->report();
}

Statistics Database::statistics() const {
  return is_usable(core_) ? core_->statistics() : Statistics();
}

Result<TableStatistics> Database::table_statistics(TableId table) const {
  if (!is_usable(core_)) return unusable(core_);
  return core_->statistics(table);
}

Result<MergeReport> Database::merge(TableId table, const MergeOptions& options) {
  if (!is_writable(core_)) return unusable(core_);
  return explained(core_, core_->merge(table, options));
}

Status Database::grow(std::uint64_t max_bytes) {
  return is_writable(core_) ? core_->pool().grow(max_bytes) : unusable(core_);
}

Status Database::set_merge_policy(TableId table, const MergePolicy& policy) {
  return is_writable(core_) ? core_->set_merge_policy(table, policy) : unusable(core_);
}

Result<MergePolicy> Database::merge_policy(TableId table) const {
  if (!is_usable(core_)) return unusable(core_);
  engine::Table* found = core_->table(table);
  if (found == nullptr) return engine::no_table();
  return found->merge_record().policy();
}

Result<MergeStatus> Database::merge_status(TableId table) const {
  if (!is_usable(core_)) return unusable(core_);
  return core_->merge_status(table);
}

Result<MergeEstimate> Database::estimate_merge(TableId table) const {
  if (!is_usable(core_)) return unusable(core_);
  return core_->estimate_merge(table);
}

Status Database::check(const CallOptions& options) {
  return is_usable(core_) ? core_->verify(options) : unusable(core_);
}

const std::string& Database::path() const noexcept {
  static const std::string none;
  return core_ == nullptr ? none : core_->pool().path();
}

Version library_version() noexcept { return {}; }
std::uint32_t pool_format_version() noexcept { return pmem::kFormatVersion; }

}  // namespace flugs
