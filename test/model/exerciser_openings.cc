// Closing and reopening, also after a crash.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stop_token>

#include "engine/database/database_access.h"
#include "flugs/opening_estimate.h"
#include "flugs/pool_check.h"
#include "test/model/exerciser.h"

namespace flugs::test {

namespace {

/// Copies a sparse file.
bool copy_pool(const std::string& from, const std::string& to) {
  const int in = ::open(from.c_str(), O_RDONLY);
  const int out = ::open(to.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  bool is_done = in >= 0 && out >= 0 && ::ftruncate(out, ::lseek(in, 0, SEEK_END)) == 0;
  std::vector<char> buffer(std::size_t{1} << 16);
  for (off_t at = 0; is_done;) {
    at = ::lseek(in, at, SEEK_DATA);
    if (at < 0) break;  // nothing more
    for (const off_t hole = ::lseek(in, at, SEEK_HOLE); is_done && at < hole;) {
      const auto bytes = std::min(buffer.size(), static_cast<std::size_t>(hole - at));
      const ssize_t got = ::pread(in, buffer.data(), bytes, at);
      is_done = got > 0 && ::pwrite(out, buffer.data(), static_cast<std::size_t>(got), at) == got;
      at += got;
    }
  }
  if (in >= 0) ::close(in);
  if (out >= 0) ::close(out);
  return is_done;
}

/// Bytes in the pool of dropped columns.
std::uint64_t bytes_of_dropped(Database& database) {
  std::uint64_t bytes = 0;
  for (const TableId id : database.tables()) {
    engine::Table& table = *engine::DatabaseAccess::core(database).table(id);
    for (std::size_t i = 0; i < table.columns().size(); ++i)
      if (table.columns()[i]->is_dropped()) bytes += table.column_reclaim().bytes_of_column(i);
  }
  return bytes;
}

}  // namespace

OpenOptions Exerciser::draw_options() {
  OpenOptions options = small_options(path_->string());
  if (figures_.openings != 0) options.max_bytes = 0;  // as it is
  options.segment_bytes = world_.segment_bytes;
  options.index_place = world_.index_place;
  options.ready = random_.chance(50) ? Ready::kFirstAnswer : Ready::kIndexesBuilt;
  options.tuning.recovery_threads = static_cast<std::uint32_t>(1 + random_.below(2));
  options.tuning.sweeps_in_background = !world_.crashes && random_.chance(60);
  options.tuning.hint_interval =
      std::chrono::milliseconds(world_.crashes || random_.chance(30) ? 0 : 10);
  options.tuning.warm_bytes_max = random_.chance(80) ? 0 : std::uint64_t{1} << 30;
  return options;
}

void Exerciser::open_database(const char* what) {
  OpenOptions options = draw_options();
  calls_.add(Call::kOpen);
  if (figures_.openings != 0 && random_.chance(20)) {
    std::stop_source source;
    options.progress = [&](const Progress& p) {
      if (p.done * 2 >= p.total) source.request_stop();
    };
    options.stop = source.get_token();
    const Status stopped = Database::open(options).status();
    if (!stopped.ok()) expect_code(StatusCode::kCancelled, stopped, "open that is stopped");
    options.progress = {};
    options.stop = {};
  }
  if (!options.tuning.sweeps_in_background) calls_.add(Call::kOpenUnswept);
  calls_.add(options.ready == Ready::kFirstAnswer ? Call::kOpenFirstAnswer
                                                  : Call::kOpenIndexesBuilt);
  if (options.max_bytes == 0 && random_.chance(10)) options.max_bytes = std::uint64_t{512} << 20;
  Result<Database> opened = Database::open(options);
  expect_code({}, opened.status(), std::string("open: ") + what);
  if (!opened.ok()) return;
  database_.emplace(*std::move(opened));
  opened_with_ = options;
  schema_changes_at_opening_ = figures_.schema_changes;
  ++figures_.openings;
  calls_.add(Call::kDatabaseIsOpen);
  calls_.add(Call::kPath);
  calls_.add(Call::kRecoveryReport);
  expect(database_->is_open() && database_->path() == path_->string(), "an open database is not");
  expect(database_->recovery_report().created == (figures_.openings == 1),
         "recovery_report: created or not");
}

void Exerciser::rest() {
  if (world_.crashes && random_.chance(50)) return crash();
  while (!open_.empty()) finish(open_.size() - 1, random_.chance(80));
  if (!complaint_.empty()) return;
  for (std::uint64_t i = random_.below(6); i > 0; --i) change_schema_alone();
  for (const auto& table : model_.tables())
    if (random_.chance(60)) merge_table(*table);
  look_at_everything();
  if (complaint_.empty() && random_.chance(60)) reopen();
}

void Exerciser::look_at_everything() {
  calls_.add(Call::kVerify);
  if (random_.chance(10)) {
    std::stop_source source;
    source.request_stop();
    expect_code(StatusCode::kCancelled, database_->check({.stop = source.get_token()}),
                "check that is stopped");
  }
  expect_code({}, database_->check(), "check");
  if (!complaint_.empty()) return;
  begin();
  if (open_.empty()) return;
  for (const auto& table : model_.tables()) {
    compare_schema(*table);
    compare_all(*open_.back(), *table);
  }
  finish(open_.size() - 1, false);
}

void Exerciser::audit() {
  if (random_.chance(20)) {
    calls_.add(Call::kEstimateOpening);
    expect_code({}, estimate_opening(opened_with_).status(), "estimate_opening");
  }
  if (!random_.chance(20)) return;
  calls_.add(Call::kCheckPool);
  const Result<PoolCheckReport> report = check_pool({path_->string(), {}});
  expect_code({}, report.status(), "check_pool");
  if (!report.ok()) return;
  for (const PoolFinding& finding : report->findings)
    if (finding.kind == PoolFinding::Kind::kDamage)
      expect(false, "check_pool: " + finding.part + ": " + finding.message);
}

// By close() if no transaction is open.
void Exerciser::close_database() {
  if (database_->statistics().transactions_open == 0) {
    calls_.add(Call::kClose);
    expect_code({}, database_->close(), "close");
  }
  database_.reset();
}

void Exerciser::reopen() {
  calls_.add(Call::kFinishOpening);
  expect_code({}, database_->finish_opening(), "finish_opening");
  const std::uint64_t used = database_->statistics().pool_used_bytes;
  const std::uint64_t dropped = bytes_of_dropped(*database_);
  const bool is_same_schema = schema_changes_at_opening_ == figures_.schema_changes;
  close_database();
  audit();
  open_database("after closing");
  if (!complaint_.empty()) return;
  // Opening gives back what columns with a new type leave behind. It also gives back what a dropped
  // column owns, however old, once a merge has removed the column's last values.
  const std::uint64_t again = database_->statistics().pool_used_bytes;
  const std::uint64_t dropped_again = bytes_of_dropped(*database_);
  if (is_same_schema)
    expect(used - dropped == again - dropped_again && dropped_again <= dropped,
           "used before: " + std::to_string(used) + " bytes, " + std::to_string(dropped) +
               " of them by dropped columns, after reopening " + std::to_string(again) + " and " +
               std::to_string(dropped_again));
  model_.note_opening();
  look_at_everything();
}

// As if the process had been killed: opens the file as it is now; all uncommitted transactions are
// gone. (Stores that were not flushed are kept, as the page cache keeps them.)
void Exerciser::crash() {
  TemporaryPath copy;
  if (!copy_pool(path_->string(), copy.string())) return expect(false, "the pool cannot be copied");
  for (const auto& open : open_) model_.abort(open->model);
  open_.clear();
  gone_.clear();
  database_.reset();
  if (::rename(copy.string().c_str(), path_->string().c_str()) != 0)
    return expect(false, "the copy of the pool cannot be renamed");
  ++figures_.crashes;
  calls_.add(Call::kOpenAfterCrash);
  audit();
  open_database("after a crash");
  if (!complaint_.empty()) return;
  model_.note_opening();
  look_at_everything();
}

void Exerciser::finish_world() {
  while (!open_.empty()) finish(open_.size() - 1, random_.chance(80));
  if (!complaint_.empty()) return;
  look_at_everything();
  if (!complaint_.empty()) return;
  close_database();
  calls_.add(Call::kCheckPool);
  const Result<PoolCheckReport> report = check_pool({path_->string(), {}});
  expect_code({}, report.status(), "check_pool");
  if (!report.ok()) return;
  for (const PoolFinding& finding : report->findings)
    if (finding.kind == PoolFinding::Kind::kDamage)
      expect(false, "check_pool: " + finding.part + ": " + finding.message);
}

}  // namespace flugs::test
