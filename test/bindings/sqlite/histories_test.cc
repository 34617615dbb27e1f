// Random transactions in SQL, on several connections at once: the checker of histories says whether
// each connection saw what its isolation level promises (docs/sql.md, Transactions).
#include <atomic>
#include <catch2/catch.hpp>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "test/bindings/sqlite/logic_script.h"
#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_pool.h"
#include "verify/isolation/checker/checker.h"
#include "verify/isolation/checker/history.h"

namespace flugs::test {

namespace {

using isolation::Anomaly;
using isolation::History;
using isolation::Level;
using isolation::Outcome;
using isolation::Report;

/// A rule that a connection breaks on purpose, for the checker to find.
enum class Broken : std::uint8_t {
  kNone,
  kOldSnapshot,     ///< the transaction's snapshot is older than its beginning
  kMovingSnapshot,  ///< each read has a snapshot of its own
  kUndoneCommit,    ///< now and then ROLLBACK is taken for COMMIT
};

struct Plan {
  Level level = Level::kStrongSnapshot;
  Broken broken = Broken::kNone;
  std::uint32_t connections = 3;     ///< a thread each
  std::uint32_t transactions = 400;  ///< of each connection
};

/// What all connections share.
struct World {
  const Plan& plan;
  std::string open;  ///< the statement that opens the pool
  std::atomic<std::uint32_t> next_value{1};
  std::atomic<std::uint32_t> transactions{0};
  std::atomic<int> wrong{0};  ///< answers that a level does not excuse
};

/// Objects are in use for a while, a dozen at a time. Registers are rows of one table. A list is
/// rows of a table, or a text.
constexpr std::uint32_t kKeysInUse = 9;
constexpr std::uint32_t kTransactionsPerKey = 40;
enum class Kind : std::uint8_t { kRegister, kRows, kText };
Kind kind_of(std::uint32_t key) { return static_cast<Kind>(key % 3); }

constexpr const char* kTables =
    "CREATE VIRTUAL TABLE temp.register USING flugs(id INTEGER PRIMARY KEY, part INTEGER NOT NULL, "
    "value INTEGER NOT NULL, INDEX by_part(part, value));"
    "CREATE VIRTUAL TABLE temp.element USING flugs(list INTEGER NOT NULL, place INTEGER NOT NULL, "
    "value INTEGER NOT NULL, PRIMARY KEY(list, place) ORDERED);"
    "CREATE VIRTUAL TABLE temp.list USING flugs(id INTEGER PRIMARY KEY, elements TEXT NOT NULL)";

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

std::uint32_t number_of(std::string_view text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// A transaction, to be added to the history when its thread has ended.
using Note = std::function<void(History&)>;

/// A connection that runs random transactions, and notes what it did and saw.
class User {
 public:
  User(World& world, std::uint32_t number)
      : world_(world), number_(number), random_(number + 1), own_(), other_() {
    for (Connection* connection : {&own_, &other_})
      if (connection->run(world.open) != SQLITE_OK) ++world.wrong;
  }

  void run() {
    for (std::uint32_t i = 0; i < world_.plan.transactions; ++i) {
      const std::uint32_t round = world_.transactions.fetch_add(1);
      first_key_ = round / kTransactionsPerKey;
      if (number_ == 0 && random_.chance(2)) must(own_.run("SELECT flugs_merge()"));
      if (random_.chance(25))
        statement_alone();
      else
        transaction();
    }
  }
  void write_down(History& history) const {
    for (const Note& note : notes_) note(history);
  }

 private:
  bool is_ok(int code) {
    if (code == SQLITE_OK) return true;
    if ((code & 0xFF) != SQLITE_BUSY) fail(own_.message());
    return false;
  }
  void must(int code) {
    if (code != SQLITE_OK) fail(own_.message());
  }
  void fail(const std::string& why) {
    if (world_.wrong++ < 10) std::fprintf(stderr, "%s\n", why.c_str());
  }
  std::uint32_t draw_key() {
    return first_key_ + static_cast<std::uint32_t>(random_.below(kKeysInUse));
  }

  /// Begins a transaction of the history.
  void begin(std::uint64_t time_ns) {
    doing_.clear();
    begin_ns_ = time_ns;
  }
  void end(bool is_committed, bool is_part = false) {
    const std::uint32_t process = is_part ? number_ + world_.plan.connections : number_;
    const std::uint64_t end_ns = now_ns();
    const std::uint64_t begin_ns = is_part ? end_ns : begin_ns_;
    notes_.emplace_back([process, begin_ns, end_ns, is_committed,
                         doing = std::exchange(doing_, {})](History& history) {
      history.begin(process, begin_ns);
      for (const Note& note : doing) note(history);
      history.end(is_committed ? Outcome::kCommitted : Outcome::kAborted, end_ns);
    });
  }

  /// A statement outside of BEGIN.
  void statement_alone() {
    begin(now_ns());
    const std::uint32_t key = draw_key();
    const bool is_done = random_.chance(50) ? read(key) : write_blindly(key);
    end(is_done);
  }

  void transaction() {
    const bool is_old = world_.plan.broken == Broken::kOldSnapshot && random_.chance(30);
    must(own_.run("BEGIN"));
    if (is_old) {
      // The first read chooses the snapshot.
      static_cast<void>(own_.value("SELECT count(*) FROM register"));
      const std::uint32_t until = world_.transactions.load() + 10;
      for (int i = 0; i < 20 && world_.transactions.load() < until; ++i)
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    begin(now_ns());
    bool goes_on = true;
    const std::uint64_t steps = 1 + random_.below(6);
    for (std::uint64_t i = 0; goes_on && i < steps; ++i) goes_on = step();
    if (!goes_on || random_.chance(5)) {
      must(own_.run("ROLLBACK"));
      end(false);
      return;
    }
    if (world_.plan.broken == Broken::kUndoneCommit && random_.chance(10)) {
      must(own_.run("ROLLBACK"));
      end(true);
      return;
    }
    const bool is_committed = is_ok(own_.run("COMMIT"));
    if (!is_committed && sqlite3_get_autocommit(own_.db()) == 0) must(own_.run("ROLLBACK"));
    end(is_committed);
  }

  bool step() {
    const std::uint32_t key = draw_key();
    if (random_.chance(10)) return savepoint(key);
    if (random_.chance(15)) return read_part(key);
    if (random_.chance(50)) return read(key);
    return write(key);
  }

  /// Writes behind a savepoint that are undone: nobody may ever see them.
  bool savepoint(std::uint32_t key) {
    if (random_.chance(50)) {
      if (!is_ok(own_.run("SAVEPOINT a")) || !write(key)) return false;
      return is_ok(own_.run("RELEASE a"));
    }
    must(own_.run("SAVEPOINT a"));
    std::vector<Note> outside = std::exchange(doing_, {});
    const bool goes_on = write_blindly(key) && write_blindly(draw_key());
    end(false, true);
    doing_ = std::move(outside);
    if (goes_on) must(own_.run("ROLLBACK TO a; RELEASE a"));
    return goes_on;
  }

  /// The connection for a read.
  Connection& reader() { return world_.plan.broken == Broken::kMovingSnapshot ? other_ : own_; }
  /// Rows of a query; false if it failed.
  bool ask(const std::string& sql, std::vector<std::string>& rows) {
    rows = reader().rows(sql);
    if (rows.size() != 1 || !rows[0].starts_with("error")) return true;
    if (rows[0].find("conflict") == std::string::npos) fail(rows[0]);
    return false;
  }

  bool read(std::uint32_t key) {
    std::vector<std::string> rows;
    const std::string id = std::to_string(key);
    if (kind_of(key) == Kind::kRegister) {
      if (!ask("SELECT value FROM register WHERE id = " + id, rows)) return false;
      const std::uint32_t value = rows.empty() ? 0 : number_of(rows[0]);
      doing_.emplace_back([=](History& history) { history.read_register(key, value); });
      return true;
    }
    const bool is_rows = kind_of(key) == Kind::kRows;
    // By the ordered key, or by a scan.
    static constexpr const char* kWays[] = {"SELECT value FROM element WHERE list = ",
                                            "SELECT value FROM element WHERE +list = "};
    const std::string sql =
        is_rows ? kWays[random_.below(2)] + id + " ORDER BY place"
                : "SELECT value FROM list, json_each('[' || elements || ']') WHERE list.id = " + id;
    if (!ask(sql, rows)) return false;
    std::vector<std::uint32_t> elements;
    elements.reserve(rows.size());
    for (const std::string& row : rows) elements.push_back(number_of(row));
    doing_.emplace_back([=, elements = std::move(elements)](History& history) {
      history.read_list(key, elements, is_rows);
    });
    return true;
  }

  /// Registers of a part of the table, found by a condition: also those that are not there.
  bool read_part(std::uint32_t key) {
    const std::uint32_t part = key / kKeysInUse;
    std::vector<std::string> rows;
    static constexpr const char* kWays[] = {"SELECT id, value FROM register WHERE part = ",
                                            "SELECT id, value FROM register WHERE +part = "};
    if (!ask(kWays[random_.below(2)] + std::to_string(part), rows)) return false;
    std::vector<std::uint32_t> values(kKeysInUse, 0);
    for (std::size_t i = 0; i + 1 < rows.size(); i += 2)
      values.at(number_of(rows[i]) - part * kKeysInUse) = number_of(rows[i + 1]);
    doing_.emplace_back([=, values = std::move(values)](History& history) {
      for (std::uint32_t i = 0; i < kKeysInUse; ++i)
        if (const std::uint32_t id = part * kKeysInUse + i; kind_of(id) == Kind::kRegister)
          history.read_register(id, values[i], true);
    });
    return true;
  }

  /// A write, of a register most often behind a read.
  bool write(std::uint32_t key) {
    if (kind_of(key) == Kind::kRegister && random_.chance(80) && !read(key)) return false;
    return write_blindly(key);
  }

  bool write_blindly(std::uint32_t key) {
    const std::uint32_t value = world_.next_value.fetch_add(1);
    doing_.emplace_back([=, kind = kind_of(key)](History& history) {
      if (kind == Kind::kRegister)
        history.write(key, value);
      else
        history.append(key, value);
    });
    const std::string id = std::to_string(key);
    const std::string text = std::to_string(value);
    switch (kind_of(key)) {
      case Kind::kRegister:
        return is_ok(own_.run("INSERT OR REPLACE INTO register VALUES(" + id + ", " +
                              std::to_string(key / kKeysInUse) + ", " + text + ")"));
      case Kind::kRows:
        return is_ok(own_.run("INSERT INTO element SELECT " + id +
                              ", coalesce(max(place), 0) + 1, " + text +
                              " FROM element WHERE list = " + id));
      case Kind::kText:
        break;
    }
    if (!is_ok(own_.run("UPDATE list SET elements = elements || '," + text + "' WHERE id = " + id)))
      return false;
    if (sqlite3_changes(own_.db()) != 0) return true;
    if (sqlite3_get_autocommit(own_.db()) != 0) {
      doing_.pop_back();  // outside of BEGIN a list must be there
      return true;
    }
    return is_ok(own_.run("INSERT INTO list VALUES(" + id + ", '" + text + "')"));
  }

  World& world_;
  const std::uint32_t number_;
  Random random_;
  Connection own_;
  Connection other_;
  std::uint32_t first_key_ = 0;
  std::uint64_t begin_ns_ = 0;
  std::vector<Note> doing_;
  std::vector<Note> notes_;
};

Report run_and_check(const Plan& plan) {
  const TemporaryPath path;
  World world{plan, "SELECT flugs_open('" + path.string() + "', 'isolation=" +
                        (plan.level == Level::kStrictSerializable ? "serializable" : "snapshot") +
                        "')"};
  Connection maker;
  REQUIRE(maker.run(world.open) == SQLITE_OK);
  REQUIRE(maker.run(kTables) == SQLITE_OK);
  std::vector<std::unique_ptr<User>> users;
  for (std::uint32_t i = 0; i < plan.connections; ++i)
    users.push_back(std::make_unique<User>(world, i));
  std::vector<std::thread> threads;
  for (const auto& user : users) threads.emplace_back([&] { user->run(); });
  for (std::thread& thread : threads) thread.join();
  CHECK(world.wrong == 0);
  CHECK(maker.value("SELECT value FROM flugs_statistics WHERE name = 'transactions_open'") == "0");
  History history;
  for (const auto& user : users) user->write_down(history);
  Result<Report> report = isolation::check(history, {.level = plan.level, .reports_allowed = true});
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  return *std::move(report);
}

std::uint64_t found(const Report& report, std::initializer_list<Anomaly> anomalies) {
  std::uint64_t sum = 0;
  for (const Anomaly anomaly : anomalies)
    sum += report.by_kind[static_cast<std::size_t>(anomaly)].forbidden;
  return sum;
}

void expect_level(Level level) {
  INFO(isolation::to_string(level));
  Plan plan;
  plan.level = level;
  plan.transactions = static_cast<std::uint32_t>(rounds_of(1200, 300));
  const Report report = run_and_check(plan);
  for (const std::string& words : report.words) UNSCOPED_INFO(words);
  CHECK(report.forbidden == 0);
  CHECK(report.committed > report.transactions / 3);
  CHECK(report.aborted > 0);
  CHECK(report.dependencies > report.transactions / 2);
}

}  // namespace

TEST_CASE("connections that write at once see snapshots, in the order of time") {
  expect_level(Level::kStrongSnapshot);
}

TEST_CASE("connections that ask for it are serializable, in the order of time") {
  expect_level(Level::kStrictSerializable);
}

TEST_CASE("the checker finds what connections do wrong on purpose") {
  const auto broken = [](Broken rule) {
    Plan plan;
    plan.broken = rule;
    return run_and_check(plan);
  };
  CHECK(broken(Broken::kOldSnapshot).forbidden > 0);
  CHECK(found(broken(Broken::kMovingSnapshot),
              {Anomaly::kInternal, Anomaly::kGSingle, Anomaly::kOtv, Anomaly::kPmp}) > 0);
  CHECK(found(broken(Broken::kUndoneCommit), {Anomaly::kLost, Anomaly::kGSingle, Anomaly::kPmp}) >
        0);
}

}  // namespace flugs::test
