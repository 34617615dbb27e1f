// A workload for the crash-state explorer: accounts, and transfers between them with a journal.
//
//   flugs prove crashtest ./libexample_crash_workload.so
//
// The invariant: no power cut makes or destroys money. The journal has every acknowledged transfer
// and at most one more, and then that one is booked as well.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "flugs/crashtest.h"

namespace {

using flugs::Status;
using flugs::Value;

constexpr std::int32_t kAccounts = 4;
constexpr std::int64_t kMoney = 1000;  // on each account, at first

struct Transfer {
  std::int32_t from;
  std::int32_t to;
  std::int64_t amount;
};

Status wrong(std::string what) { return Status(flugs::StatusCode::kCorrupt, std::move(what)); }

class Bank final : public flugs::CrashWorkload {
 public:
  explicit Bank(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 12; ++i) {
      const auto from = static_cast<std::int32_t>(random() % kAccounts);
      const auto to = static_cast<std::int32_t>(
          (static_cast<std::uint64_t>(from) + 1 + random() % (kAccounts - 1)) % kAccounts);
      transfers_.push_back({from, to, static_cast<std::int64_t>(random() % 100)});
    }
  }

  std::uint64_t steps() const override { return transfers_.size(); }

  Status set_up(flugs::Database& database) override {
    flugs::TableSchema accounts("accounts");
    accounts.column("id", flugs::Type::kInt32)
        .column("money", flugs::Type::kInt64)
        .primary_key({"id"});
    flugs::TableSchema journal("journal");
    journal.column("number", flugs::Type::kInt64)
        .column("amount", flugs::Type::kInt64)
        .column("text", flugs::Type::kString)
        .primary_key({"number"});
    auto account_table = database.create_table(accounts);
    if (!account_table.ok()) return account_table.status();
    if (auto table = database.create_table(journal); !table.ok()) return table.status();
    auto transaction = database.begin();
    if (!transaction.ok()) return transaction.status();
    for (std::int32_t id = 0; id < kAccounts; ++id) {
      auto row = transaction->insert(*account_table, {Value::int32(id), Value::int64(kMoney)});
      if (!row.ok()) return row.status();
    }
    return transaction->commit();
  }

  Status step(flugs::Database& database, std::uint64_t number) override {
    const Transfer& transfer = transfers_[number];
    auto transaction = database.begin();
    if (!transaction.ok()) return transaction.status();
    if (Status s = add(database, *transaction, transfer.from, -transfer.amount); !s.ok()) return s;
    if (Status s = add(database, *transaction, transfer.to, transfer.amount); !s.ok()) return s;
    const std::string text = "transfer of " + std::to_string(transfer.amount) + " to account " +
                             std::to_string(transfer.to);
    auto row = transaction->insert(*database.find_table("journal"),
                                   {Value::int64(static_cast<std::int64_t>(number)),
                                    Value::int64(transfer.amount), Value::string(text)});
    if (!row.ok()) return row.status();
    return transaction->commit();
  }

  Status check(flugs::Database& recovered, const flugs::CrashMoment& moment) override {
    std::vector<std::int64_t> money(kAccounts, 0);
    std::uint64_t booked = 0;
    if (Status s = read(recovered, money, booked); !s.ok()) return s;
    const std::uint64_t booked_max = moment.acknowledged + (moment.is_in_step ? 1 : 0);
    if (booked < moment.acknowledged || booked > booked_max)
      return wrong(std::to_string(booked) + " transfers in the journal, " +
                   std::to_string(moment.acknowledged) + " acknowledged");
    std::vector<std::int64_t> expected(kAccounts, kMoney);
    for (std::uint64_t i = 0; i < booked; ++i) {
      expected[static_cast<std::size_t>(transfers_[i].from)] -= transfers_[i].amount;
      expected[static_cast<std::size_t>(transfers_[i].to)] += transfers_[i].amount;
    }
    if (money != expected) return wrong("accounts and journal do not agree");
    // The workload can continue: the next transfer is booked on what was recovered.
    return booked < transfers_.size() ? step(recovered, booked) : Status();
  }

 private:
  static Status add(flugs::Database& database, flugs::Transaction& transaction, std::int32_t id,
                    std::int64_t amount) {
    const flugs::TableId accounts = *database.find_table("accounts");
    const flugs::ColumnId money = *database.find_column(accounts, "money");
    auto row = transaction.get(*database.find_key(accounts, "primary"), {Value::int32(id)});
    if (!row.ok()) return row.status();
    return transaction
        .update(accounts, row->id(),
                {{money, Value::int64(row->get_unchecked<std::int64_t>(money) + amount)}})
        .status();
  }

  static Status read(flugs::Database& database, std::vector<std::int64_t>& money,
                     std::uint64_t& booked) {
    auto transaction = database.begin(flugs::AccessMode::kReadOnly);
    if (!transaction.ok()) return transaction.status();
    const flugs::TableId accounts = *database.find_table("accounts");
    const std::vector<flugs::ColumnId> columns = {*database.find_column(accounts, "id"),
                                                  *database.find_column(accounts, "money")};
    Status scanned = transaction->scan(
        accounts, columns, flugs::Predicate::all(), [&](const flugs::ScanBatch& batch) {
          for (std::size_t row = 0; row < batch.row_count(); ++row)
            money.at(static_cast<std::size_t>(batch.get_unchecked(0, row).as_int32())) +=
                batch.get_unchecked(1, row).as_int64();
          return true;
        });
    if (!scanned.ok()) return scanned;
    return transaction->scan(*database.find_table("journal"), {}, flugs::Predicate::all(),
                             [&](const flugs::ScanBatch& batch) {
                               booked += batch.row_count();
                               return true;
                             });
  }

  std::vector<Transfer> transfers_;
};

}  // namespace

extern "C" flugs::CrashWorkload* flugs_crash_workload(std::uint64_t seed) { return new Bank(seed); }
