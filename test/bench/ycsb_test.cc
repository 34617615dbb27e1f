#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/ycsb/ycsb_client.h"
#include "bench/ycsb/ycsb_driver.h"
#include "bench/ycsb/ycsb_reader.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

using bench::YcsbInvariant;
using bench::YcsbKeys;
using bench::YcsbType;
using bench::YcsbWorkload;

/// A small table of a workload. Main thread only.
struct TinyYcsb {
  explicit TinyYcsb(YcsbWorkload workload, YcsbKeys keys = YcsbKeys::kHashed) {
    options.rows = bench::ycsb_rows(workload, 500);
    options.rows.field_bytes = 20;
    if (workload != YcsbWorkload::kSilor) options.rows.keys = keys;
    options.mix = bench::ycsb_mix(workload);
    table = must(bench::create_ycsb_table(*database, options.rows, workload == YcsbWorkload::kE));
    must(bench::load_ycsb(*database, table, options.rows, 2, {}));
  }

  /// Runs until each user has executed some hundred operations.
  bench::YcsbRunResult run(std::uint32_t users) {
    options.users = users;
    options.loop.seconds = 100;
    std::atomic<std::uint64_t> executed{0};
    options.loop.progress = [&](double, double) { return executed.load() < 300 * users; };
    return must(bench::run_ycsb(
        [&](std::uint32_t) -> Result<std::unique_ptr<bench::YcsbSession>> {
          Result<std::unique_ptr<bench::YcsbClient>> client =
              bench::YcsbClient::make(*database, table, options.rows);
          if (!client.ok()) return std::move(client).status();
          return std::unique_ptr<bench::YcsbSession>(
              std::make_unique<Counted>(*std::move(client), executed));
        },
        options));
  }

  bench::YcsbReport check(std::uint64_t inserted) {
    return must(bench::check_ycsb(*database, table, options.rows, options.rows.records + inserted));
  }

  TemporaryDatabase database;
  bench::YcsbRunOptions options;
  bench::YcsbTable table;

 private:
  class Counted final : public bench::YcsbSession {
   public:
    Counted(std::unique_ptr<bench::YcsbClient> client, std::atomic<std::uint64_t>& executed)
        : client_(std::move(client)), executed_(executed) {}
    Status run(const bench::YcsbRequest& request, bench::YcsbReceipt& receipt) override {
      Status status = client_->run(request, receipt);
      executed_.fetch_add(1, std::memory_order_relaxed);
      return status;
    }

   private:
    std::unique_ptr<bench::YcsbClient> client_;
    std::atomic<std::uint64_t>& executed_;
  };
};

std::string field_text(std::uint64_t number, std::uint32_t field, std::uint64_t version) {
  std::string text(20, '\0');
  bench::ycsb_field(number, field, version, text);
  return text;
}

/// Shares of the numbers that were drawn most, hottest first.
std::vector<double> head_of(bench::YcsbDistribution distribution, std::uint64_t records) {
  constexpr int kDraws = 200'000;
  bench::YcsbNumbers numbers(distribution, records, records);
  bench::Random random(7);
  std::map<std::uint64_t, int> drawn;
  for (int i = 0; i < kDraws; ++i) ++drawn[numbers.next(random, records)];
  std::vector<double> shares;
  for (const auto& [number, count] : drawn) shares.push_back(static_cast<double>(count) / kDraws);
  std::sort(shares.rbegin(), shares.rend());
  return shares;
}

double sum_of(const std::vector<double>& shares, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += shares[i];
  return sum;
}

}  // namespace

TEST_CASE("YCSB's keys are those of its own program", "[ycsb]") {
  CHECK(bench::YcsbKeyText(YcsbKeys::kHashed, 0).text() == "user6284781860667377211");
  CHECK(bench::YcsbKeyText(YcsbKeys::kHashed, 1).text() == "user8517097267634966620");
  CHECK(bench::YcsbKeyText(YcsbKeys::kOrdered, 42).text() == "user0000000042");
}

TEST_CASE("a field tells its version, and no other text passes for one", "[ycsb]") {
  const std::string text = field_text(17, 3, 123'456'789);
  CHECK(bench::ycsb_version(17, 3, text) == 123'456'789u);
  CHECK_FALSE(bench::ycsb_version(18, 3, text));
  CHECK_FALSE(bench::ycsb_version(17, 4, text));
  const std::string other = field_text(17, 3, 123'456'790);
  for (std::size_t cut = 1; cut < text.size(); ++cut) {
    INFO("torn after " << cut << " bytes");
    const std::string torn = text.substr(0, cut) + other.substr(cut);
    if (torn != text && torn != other) CHECK_FALSE(bench::ycsb_version(17, 3, torn));
  }
}

TEST_CASE("YCSB's distributions have the heads that they should", "[ycsb]") {
  const std::vector<double> scrambled = head_of(bench::YcsbDistribution::kScrambled, 1'000'000);
  CHECK(scrambled[0] == Approx(0.0378).margin(0.002));
  // Zipf itself has 0.112 there; the generator's formula for ranks from 2 on gives a little more.
  CHECK(sum_of(scrambled, 10) == Approx(0.1177).margin(0.003));
  const std::vector<double> plain = head_of(bench::YcsbDistribution::kPlain, 100'000);
  CHECK(plain[0] == Approx(0.0783).margin(0.003));  // 1 / zeta(100,000)
  const std::vector<double> uniform = head_of(bench::YcsbDistribution::kUniform, 100);
  CHECK(uniform.size() == 100);
  CHECK(uniform[0] < 0.012);
}

TEST_CASE("the distribution latest prefers the rows that were inserted last", "[ycsb]") {
  bench::YcsbNumbers numbers(bench::YcsbDistribution::kLatest, 1000, 1000);
  bench::Random random(7);
  int newest = 0;
  for (std::uint64_t there = 1000; there < 2000; ++there)
    newest += numbers.next(random, there) == there - 1 ? 1 : 0;
  CHECK(newest > 80);  // 1 / zeta(1500) is 0.12
  CHECK(newest < 170);
}

TEST_CASE("a row counts as there when all before it are acknowledged", "[ycsb]") {
  bench::YcsbInserts inserts(10);
  const std::array<std::uint64_t, 3> taken = {inserts.take(), inserts.take(), inserts.take()};
  CHECK(taken == std::array<std::uint64_t, 3>{10, 11, 12});
  inserts.acknowledge(12);
  inserts.acknowledge(11);
  CHECK(inserts.there() == 10);
  inserts.acknowledge(10);
  CHECK(inserts.there() == 13);
}

TEST_CASE("every workload of YCSB keeps its invariants", "[ycsb]") {
  for (std::size_t i = 0; i < bench::kYcsbWorkloadNames.size(); ++i) {
    INFO("workload " << bench::kYcsbWorkloadNames[i]);
    TinyYcsb ycsb(static_cast<YcsbWorkload>(i));
    const bench::YcsbRunResult result = ycsb.run(3);
    const bench::YcsbReport report = ycsb.check(result.inserted);
    CHECK(report.problems() == std::vector<std::string>());
    for (std::size_t k = 0; k < bench::kYcsbInvariantNames.size(); ++k)
      CHECK(report.state(static_cast<YcsbInvariant>(k)) == bench::Check::kHeld);
    for (std::size_t type = 0; type < bench::kYcsbTypes; ++type)
      CHECK((result.types[type].executed > 0) == (ycsb.options.mix.percent[type] > 0));
  }
}

TEST_CASE("a scan of YCSB reads whole rows from its key on", "[ycsb]") {
  TinyYcsb ycsb(YcsbWorkload::kE, YcsbKeys::kOrdered);
  const std::unique_ptr<bench::YcsbClient> client =
      must(bench::YcsbClient::make(*ycsb.database, ycsb.table, ycsb.options.rows));
  bench::YcsbReceipt receipt;
  must(client->run({.type = YcsbType::kScan, .number = 400, .length = 60}, receipt));
  CHECK(receipt.rows == 60);
  receipt = {};
  must(client->run({.type = YcsbType::kScan, .number = 490, .length = 60}, receipt));
  CHECK(receipt.rows == 10);
}

TEST_CASE("the check of YCSB's rows sees what is wrong", "[ycsb]") {
  struct Damage {
    std::string what;
    YcsbInvariant breaks;
    std::function<void(Transaction&, const bench::YcsbTable&)> make;
  };
  const bench::YcsbKeyText key(YcsbKeys::kHashed, 5);
  const std::string foreign = field_text(6, 3, 0);
  const auto other_row = [](const std::string& name, std::uint64_t number) {
    return [name, number](Transaction& t, const bench::YcsbTable& table) {
      std::vector<std::string> texts = {name};
      for (std::uint32_t field = 0; field < bench::kYcsbFieldsMax; ++field)
        texts.push_back(field_text(number, field, 0));
      std::vector<Value> values;
      for (const std::string& text : texts) values.push_back(Value::string(text));
      must(t.insert(table.table, std::span<const Value>(values)));
    };
  };
  const std::vector<Damage> damages = {
      {"a row is gone", YcsbInvariant::kKeys,
       [&](Transaction& t, const bench::YcsbTable& table) {
         must(t.remove(table.key, {Value::string(key.text())}));
       }},
      {"a row too many", YcsbInvariant::kKeys,
       other_row(std::string(bench::YcsbKeyText(YcsbKeys::kHashed, 500).text()), 500)},
      {"the same number in another text", YcsbInvariant::kKeys,
       other_row("user0" + std::string(key.text().substr(4)), 5)},
      {"a field of another row", YcsbInvariant::kFields,
       [&](Transaction& t, const bench::YcsbTable& table) {
         must(t.update(table.key, {Value::string(key.text())},
                       {{ColumnId(4), Value::string(foreign)}}));
       }},
      {"a field that is too long", YcsbInvariant::kFields,
       [&](Transaction& t, const bench::YcsbTable& table) {
         std::string text(21, '\0');
         bench::ycsb_field(5, 3, 0, text);
         must(t.update(table.key, {Value::string(key.text())},
                       {{ColumnId(4), Value::string(text)}}));
       }}};
  for (const Damage& damage : damages) {
    INFO(damage.what);
    TinyYcsb ycsb(YcsbWorkload::kA);
    CHECK(ycsb.check(0).all_held());
    Transaction t = must(ycsb.database->begin());
    damage.make(t, ycsb.table);
    must(t.commit());
    const bench::YcsbReport report = ycsb.check(0);
    CHECK(report.state(damage.breaks) == bench::Check::kBroken);
    CHECK_FALSE(report.problems().empty());
    const YcsbInvariant other =
        damage.breaks == YcsbInvariant::kKeys ? YcsbInvariant::kFields : YcsbInvariant::kKeys;
    CHECK(report.state(other) == bench::Check::kHeld);
  }
}

}  // namespace flugs::test
