#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include "bench/tatp/tatp_schema.h"
#include "tools/peers/restart/sql_store.h"

namespace flugs::tools {

using bench::TatpOutcome;
using bench::TatpRequest;

namespace {

constexpr std::uint64_t kRowsBetweenReports = 4096;
/// Numbers that the audit looks up; the tables themselves it reads whole.
constexpr std::uint32_t kNumbersLookedUp = 500;

enum Query : std::size_t {
  kGetSubscriber,
  kGetDestination,
  kGetAccess,
  kSetBit,
  kSetDataA,
  kSetLocation,
  kFindNumber,
  kGetTypes,
  kFindFacility,
  kInsertForwarding,
  kDeleteForwarding,
  kQueries
};
constexpr std::array<const char*, kQueries> kSql = {
    "SELECT * FROM subscriber WHERE s_id = ?",
    "SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf WHERE sf.s_id = ? AND "
    "sf.sf_type = ? AND sf.is_active = 1 AND cf.s_id = ? AND cf.sf_type = ? AND cf.start_time <= ? "
    "AND ? < cf.end_time",
    "SELECT data1, data2, data3, data4 FROM access_info WHERE s_id = ? AND ai_type = ?",
    "UPDATE subscriber SET bit_1 = ? WHERE s_id = ?",
    "UPDATE special_facility SET data_a = ? WHERE s_id = ? AND sf_type = ?",
    "UPDATE subscriber SET vlr_location = ? WHERE sub_nbr = ?",
    "SELECT s_id FROM subscriber WHERE sub_nbr = ?",
    "SELECT sf_type FROM special_facility WHERE s_id = ?",
    "SELECT sf_type FROM special_facility WHERE s_id = ? AND sf_type = ?",
    "INSERT INTO call_forwarding VALUES (?, ?, ?, ?, ?)",
    "DELETE FROM call_forwarding WHERE s_id = ? AND sf_type = ? AND start_time = ?"};

constexpr const char* name_of(TatpTable table) {
  switch (table) {
    case TatpTable::kSubscriber:
      return "subscriber";
    case TatpTable::kAccessInfo:
      return "access_info";
    case TatpTable::kSpecialFacility:
      return "special_facility";
    case TatpTable::kCallForwarding:
      return "call_forwarding";
  }
  return "";
}

/// Types as flugs has them.
std::string definition_of(TatpTable table, const char* after_table) {
  std::string sql = std::string("CREATE TABLE ") + name_of(table) + " (";
  const auto numbered = [&](const char* name) {
    for (int i = 1; i <= 10; ++i)
      sql += std::string(name) + "_" + std::to_string(i) + " INTEGER NOT NULL, ";
  };
  switch (table) {
    case TatpTable::kSubscriber:
      sql += "s_id INTEGER PRIMARY KEY, sub_nbr VARCHAR(15) NOT NULL UNIQUE, ";
      for (const char* name : {"bit", "hex", "byte2"}) numbered(name);
      return sql + "msc_location BIGINT NOT NULL, vlr_location BIGINT NOT NULL)";
    case TatpTable::kAccessInfo:
      sql +=
          "s_id INTEGER NOT NULL, ai_type INTEGER NOT NULL, data1 INTEGER NOT NULL, data2 "
          "INTEGER NOT NULL, data3 CHAR(3) NOT NULL, data4 CHAR(5) NOT NULL, "
          "PRIMARY KEY (s_id, ai_type))";
      break;
    case TatpTable::kSpecialFacility:
      sql +=
          "s_id INTEGER NOT NULL, sf_type INTEGER NOT NULL, is_active INTEGER NOT NULL, "
          "error_cntrl INTEGER NOT NULL, data_a INTEGER NOT NULL, data_b CHAR(5) NOT NULL, "
          "PRIMARY KEY (s_id, sf_type))";
      break;
    case TatpTable::kCallForwarding:
      sql +=
          "s_id INTEGER NOT NULL, sf_type INTEGER NOT NULL, start_time INTEGER NOT NULL, "
          "end_time INTEGER NOT NULL, numberx VARCHAR(15) NOT NULL, "
          "PRIMARY KEY (s_id, sf_type, start_time))";
      break;
  }
  return sql + after_table;
}

std::int64_t integer(std::uint32_t number) { return number; }

template <std::size_t size>
std::string_view text_of(const std::array<char, size>& letters) {
  return {letters.data(), letters.size()};
}

class SqlTatpSession : public TatpSession {
 public:
  SqlTatpSession(SqlStore& store, std::unique_ptr<SqlSession> session, CommitStamps& stamps)
      : store_(store), session_(std::move(session)), stamps_(stamps) {}

  Result<TatpOutcome> run(const TatpRequest& request) override {
    const Status status = bench::writes(request.type) ? write(request) : read(request);
    if (status.ok()) return TatpOutcome::kDone;
    if (status.code() == StatusCode::kNotFound) return TatpOutcome::kNotFound;
    if (status.code() == StatusCode::kAlreadyExists) return TatpOutcome::kExists;
    return status;
  }

  std::uint64_t stamp() const override { return stamp_; }

 private:
  /// One statement each, a transaction of its own.
  Status read(const TatpRequest& request) {
    const SqlValue s_id = integer(request.s_id);
    const SqlValue type = integer(request.sub_type);
    if (request.type == bench::TatpType::kGetSubscriberData)
      return ask(kGetSubscriber, {s_id}, [this](const SqlRow& row) {
        for (std::size_t i = 0; i < bench::TatpColumns::kSubscriberColumns; ++i)
          i == 1 ? consume(row.text(i)) : consume(row.integer(i));
      });
    if (request.type == bench::TatpType::kGetNewDestination)
      return ask(kGetDestination,
                 {s_id, type, s_id, type, integer(request.start_time), integer(request.end_time)},
                 [this](const SqlRow& row) { consume(row.text(0)); });
    return ask(kGetAccess, {s_id, type}, [this](const SqlRow& row) {
      for (std::size_t i = 0; i < 2; ++i) consume(row.integer(i));
      for (std::size_t i = 2; i < 4; ++i) consume(row.text(i));
    });
  }

  Status write(const TatpRequest& request) {
    std::unique_lock<std::mutex> lock;
    if (store_.one_writer() != nullptr) lock = std::unique_lock(*store_.one_writer());
    Status status = session_->execute(store_.begin_writing());
    if (!status.ok()) return status;
    status = change(request);
    if (status.ok()) {
      stamp_ = stamps_.draw();
      status = session_->execute("COMMIT");
    }
    if (status.ok()) return status;
    // After some failures there is nothing left to roll back; then this one fails, too.
    const Status rolled_back = session_->execute("ROLLBACK");
    static_cast<void>(rolled_back);
    return status;
  }

  Status change(const TatpRequest& request) {
    switch (request.type) {
      case bench::TatpType::kUpdateSubscriberData:
        return update_subscriber_data(request);
      case bench::TatpType::kUpdateLocation:
        return ask(kSetLocation,
                   {integer(request.vlr_location), bench::SubNbr(request.s_id).text()});
      case bench::TatpType::kInsertCallForwarding:
        return insert_call_forwarding(request);
      default:
        return delete_call_forwarding(request);
    }
  }

  Status update_subscriber_data(const TatpRequest& request) {
    const SqlValue s_id = integer(request.s_id);
    Status status = ask(kSetBit, {integer(request.bit), s_id});
    if (!status.ok()) return status;
    return ask(kSetDataA, {integer(request.data_a), s_id, integer(request.sub_type)});
  }

  Status insert_call_forwarding(const TatpRequest& request) {
    const bench::SubNbr number(request.s_id);
    const bench::SubNbr numberx(request.numberx);
    std::int64_t s_id = 0;
    Status status = find_number(number, s_id);
    // Every subscriber has a facility.
    if (status.ok())
      status = ask(kGetTypes, {s_id}, [this](const SqlRow& row) { consume(row.integer(0)); });
    // The foreign key: what was just read is ignored, the parent of this very row is looked up.
    if (status.ok()) status = ask(kFindFacility, {s_id, integer(request.sub_type)});
    if (!status.ok()) return status;
    return ask(kInsertForwarding, {s_id, integer(request.sub_type), integer(request.start_time),
                                   integer(request.end_time), numberx.text()});
  }

  Status delete_call_forwarding(const TatpRequest& request) {
    std::int64_t s_id = 0;
    Status status = find_number(bench::SubNbr(request.s_id), s_id);
    if (!status.ok()) return status;
    return ask(kDeleteForwarding, {s_id, integer(request.sub_type), integer(request.start_time)});
  }

  Status find_number(const bench::SubNbr& number, std::int64_t& s_id) {
    return ask(kFindNumber, {number.text()}, [&](const SqlRow& row) { s_id = row.integer(0); });
  }

  /// Fails with kNotFound when it gave, or changed, no row; else as SqlStatement::run.
  Status ask(
      Query query, std::initializer_list<SqlValue> parameters,
      const SqlStatement::Take& take = [](const SqlRow&) {}) {
    std::unique_ptr<SqlStatement>& statement = statements_[query];
    if (statement == nullptr) {
      Result<std::unique_ptr<SqlStatement>> prepared = session_->prepare(kSql[query]);
      if (!prepared.ok()) return std::move(prepared).status();
      statement = *std::move(prepared);
    }
    const Result<std::uint64_t> rows =
        statement->run(std::span(parameters.begin(), parameters.size()), take);
    if (!rows.ok()) return rows.status();
    return *rows == 0 ? Status(StatusCode::kNotFound) : Status();
  }

  /// Depends on everything that was read, so that reading cannot be left out.
  void consume(std::int64_t value) {
    checksum_ += static_cast<std::uint64_t>(value);
    asm volatile("" : : "r"(checksum_));
  }
  void consume(std::string_view text) {
    if (!text.empty()) consume(std::int64_t{text.back()});
  }

  SqlStore& store_;
  std::unique_ptr<SqlSession> session_;  // outlives the statements below
  std::array<std::unique_ptr<SqlStatement>, kQueries> statements_;
  CommitStamps& stamps_;
  std::uint64_t stamp_ = 0;
  std::uint64_t checksum_ = 0;
};

class SqlTatp : public TatpEngine {
 public:
  explicit SqlTatp(std::unique_ptr<SqlStore> store) : store_(std::move(store)) {}

  std::string setup() const override { return store_->setup(); }
  std::string guarantee() const override { return store_->guarantee(); }

  Status open(const std::string& directory, bool create) override {
    Status status = store_->open(directory);
    if (!status.ok() || !create) return status;
    Result<std::unique_ptr<SqlSession>> session = store_->connect();
    if (!session.ok()) return std::move(session).status();
    for (const TatpTable table : kTatpTables)
      if (status.ok())
        status = (*session)->execute(definition_of(table, store_->after_table()).c_str());
    return status;
  }

  Status load(const bench::Population& population, const Progress& progress) override {
    constexpr std::size_t kColumns[] = {bench::TatpColumns::kSubscriberColumns, 6, 6, 5};
    std::uint64_t rows = 0;
    for (const TatpTable table : kTatpTables) {
      Result<std::unique_ptr<SqlAppender>> appender =
          store_->append_to(name_of(table), kColumns[static_cast<std::size_t>(table)]);
      if (!appender.ok()) return std::move(appender).status();
      Status status = for_each_row(
          population, table, [&](const bench::SubscriberRecord& record, const TatpRowId& row) {
            if (++rows % kRowsBetweenReports == 0) progress(rows);
            return append(**appender, table, record, row);
          });
      if (status.ok()) status = (*appender)->finish();
      if (!status.ok()) return status;
    }
    progress(rows);
    return store_->finish_load();
  }

  Result<std::unique_ptr<TatpSession>> session(CommitStamps& stamps) override {
    Result<std::unique_ptr<SqlSession>> session = store_->connect();
    if (!session.ok()) return std::move(session).status();
    return std::unique_ptr<TatpSession>(new SqlTatpSession(*store_, *std::move(session), stamps));
  }

  Status read_all(bench::TatpFindings& findings) override {
    Result<std::unique_ptr<SqlSession>> session = store_->connect();
    if (!session.ok()) return std::move(session).status();
    for (const TatpTable table : kTatpTables) {
      const std::string sql = std::string("SELECT * FROM ") + name_of(table);
      Result<std::unique_ptr<SqlStatement>> statement = (*session)->prepare(sql.c_str());
      if (!statement.ok()) return std::move(statement).status();
      const Result<std::uint64_t> rows =
          (*statement)->run({}, [&](const SqlRow& row) { add(findings, table, row); });
      if (!rows.ok()) return rows.status();
    }
    return look_up_numbers(**session, findings);
  }

 private:
  static Status append(SqlAppender& appender, TatpTable table,
                       const bench::SubscriberRecord& record, const TatpRowId& id) {
    const SqlValue s_id = integer(record.s_id);
    const SqlValue type = integer(id.type);
    if (table == TatpTable::kSubscriber) return append_subscriber(appender, record);
    if (table == TatpTable::kAccessInfo) {
      const bench::AccessInfoRecord& access = record.access[id.type - 1];
      return appender.append(std::array<SqlValue, 6>{s_id, type, integer(access.data1),
                                                     integer(access.data2), text_of(access.data3),
                                                     text_of(access.data4)});
    }
    const bench::FacilityRecord& facility = record.facilities[id.type - 1];
    if (table == TatpTable::kSpecialFacility)
      return appender.append(std::array<SqlValue, 6>{
          s_id, type, integer(facility.is_active ? 1 : 0), integer(facility.error_control),
          integer(facility.data_a), text_of(facility.data_b)});
    const bench::ForwardingRecord& forwarding = facility.forwarding[id.slot];
    const bench::SubNbr numberx(forwarding.numberx);
    return appender.append(std::array<SqlValue, 5>{s_id, type, integer(bench::kStartTimes[id.slot]),
                                                   integer(forwarding.end_time), numberx.text()});
  }

  static Status append_subscriber(SqlAppender& appender, const bench::SubscriberRecord& record) {
    const bench::SubNbr number(record.s_id);
    std::array<SqlValue, bench::TatpColumns::kSubscriberColumns> row;
    row[0] = integer(record.s_id);
    row[1] = number.text();
    for (std::size_t i = 0; i < record.small.size(); ++i) row[2 + i] = integer(record.small[i]);
    row[32] = integer(record.msc_location);
    row[33] = integer(record.vlr_location);
    return appender.append(row);
  }

  static void add(bench::TatpFindings& findings, TatpTable table, const SqlRow& row) {
    const std::int64_t s_id = row.integer(0);
    switch (table) {
      case TatpTable::kSubscriber: {
        std::array<std::int64_t, 30> small{};
        for (std::size_t i = 0; i < small.size(); ++i) small[i] = row.integer(2 + i);
        findings.add_subscriber(s_id, row.text(1), small, row.integer(32), row.integer(33));
        break;
      }
      case TatpTable::kAccessInfo:
        findings.add_access(s_id, row.integer(1), row.integer(2), row.integer(3), row.text(4),
                            row.text(5));
        break;
      case TatpTable::kSpecialFacility:
        findings.add_facility(s_id, row.integer(1),
                              std::array{row.integer(2), row.integer(3), row.integer(4)},
                              row.text(5));
        break;
      case TatpTable::kCallForwarding:
        findings.add_forwarding(s_id, row.integer(1), row.integer(2), row.integer(3), row.text(4));
        break;
    }
  }

  static Status look_up_numbers(SqlSession& session, bench::TatpFindings& findings) {
    Result<std::unique_ptr<SqlStatement>> statement = session.prepare(kSql[kFindNumber]);
    if (!statement.ok()) return std::move(statement).status();
    const std::uint32_t subscribers = findings.population().subscribers();
    const std::uint32_t step = subscribers / kNumbersLookedUp + 1;
    for (std::uint32_t s_id = 1; s_id <= subscribers; s_id += step) {
      const bench::SubNbr number(s_id);
      std::int64_t found = 0;
      const Result<std::uint64_t> rows =
          (*statement)->run(std::array<SqlValue, 1>{number.text()}, [&](const SqlRow& row) {
            found = row.integer(0);
          });
      if (!rows.ok()) return rows.status();
      findings.add_number(number.text(), found);
    }
    return {};
  }

  std::unique_ptr<SqlStore> store_;
};

}  // namespace

std::unique_ptr<TatpEngine> make_sql_tatp(std::unique_ptr<SqlStore> store) {
  return std::make_unique<SqlTatp>(std::move(store));
}

}  // namespace flugs::tools
