// Query::share: several threads pull the rows of a query, and streams of one transaction together.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <latch>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "flugs/query.h"
#include "flugs/stream.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

/// `parts`: id from 0 on, `name` with 50 texts, `note`, held directly; the first half in main.
class Parts {
 public:
  explicit Parts(std::int64_t rows) {
    TableSchema schema("parts");
    schema.column("id", Type::kInt64).column("name", Type::kString);
    schema.column("note", Type::kString).direct();
    table = must(database->create_table(schema));
    load(0, rows / 2);
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    static_cast<void>(must(database->merge(table, everything)));
    load(rows / 2, rows);
  }

  // Called by threads as well: Catch2 is for one thread, so nothing is asserted here.
  void load(std::int64_t first, std::int64_t last) {
    Transaction writer = database->begin().value();
    bool is_right = true;
    for (std::int64_t id = first; id < last; ++id) is_right = insert(writer, id).ok() && is_right;
    if (!writer.commit().ok() || !is_right) std::abort();
  }
  Status insert(Transaction& writer, std::int64_t id) {
    const std::string name = "name " + std::to_string(id % 50);
    const std::string note = "note " + std::to_string(id);
    return writer
        .insert(table, {Value::int64(id), id % 9 == 0 ? Value::null() : Value::string(name),
                        Value::string(note)})
        .status();
  }

  test::TemporaryDatabase database;
  TableId table;
};

Query all_parts() { return Query::table("parts").select({"id", "name", "note"}); }

RunOptions for_threads(std::uint32_t threads) {
  RunOptions options;
  options.threads = threads;
  return options;
}

bool is_right(const StreamBatch& batch) {
  const auto ids = batch.column<std::int64_t>(0).value();
  const TextColumn names = batch.texts(1).value();
  const TextColumn notes = batch.texts(2).value();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool is_null = ids[i] % 9 == 0;
    if (is_null != (!batch.nulls(1).empty() && batch.nulls(1)[i] != 0)) return false;
    if (!is_null && names[i] != "name " + std::to_string(ids[i] % 50)) return false;
    if (notes[i] != "note " + std::to_string(ids[i])) return false;
  }
  return true;
}

/// What threads have pulled.
struct Pulled {
  std::atomic<std::int64_t> rows{0};
  std::atomic<std::int64_t> sum{0};  // of ids
  std::atomic<bool> is_right{true};
};

void pull(SharedStream& stream, std::uint32_t thread, Pulled& pulled, bool keep) {
  std::vector<StreamBatch> kept;
  for (;;) {
    Result<const StreamBatch*> batch = stream.next(thread);
    if (!batch.ok()) pulled.is_right = false;
    if (!batch.ok() || *batch == nullptr) break;
    if (!is_right(**batch)) pulled.is_right = false;
    pulled.rows += std::int64_t((*batch)->row_count());
    for (const std::int64_t id : (*batch)->column<std::int64_t>(0).value()) pulled.sum += id;
    if (keep) kept.push_back(**batch);
  }
  // What is kept is not written again.
  for (const StreamBatch& batch : kept)
    if (!is_right(batch)) pulled.is_right = false;
}

}  // namespace

TEST_CASE("a batch of few rows takes little memory") {
  Parts parts(25);
  const Transaction reader = must(parts.database->begin(AccessMode::kReadOnly));
  RunOptions options = for_threads(2);
  options.memory_bytes_max = std::uint64_t{64} << 10;
  SharedStream stream = must(all_parts().share(reader, options));
  std::size_t rows = 0;
  while (const StreamBatch* batch = must(stream.next(0))) {
    CHECK(is_right(*batch));
    rows += batch->row_count();
  }
  CHECK(rows == 25);
}

TEST_CASE("threads that share a stream get every row once") {
  const std::int64_t rows = 120'000;
  Parts parts(rows);
  for (const bool keep : {false, true}) {
    for (const std::uint32_t threads : {1u, 3u}) {
      Transaction t = must(parts.database->begin(AccessMode::kReadOnly));
      Pulled pulled;
      {
        SharedStream stream = must(all_parts().share(t, for_threads(threads)));
        CHECK(stream.columns().size() == 3);
        CHECK(stream.has_dictionary(1));
        CHECK_FALSE(stream.has_dictionary(2));
        std::vector<std::jthread> pullers;
        for (std::uint32_t n = 0; n < threads; ++n)
          pullers.emplace_back([&, n] { pull(stream, n, pulled, keep); });
        pullers.clear();
        CHECK(must(stream.next(0)) == nullptr);
      }
      CHECK(pulled.is_right);
      CHECK(pulled.rows == rows);
      CHECK(pulled.sum == rows * (rows - 1) / 2);
    }
  }
}

TEST_CASE("shared streams of a transaction are pulled at the same time, and see one state") {
  const std::int64_t rows = 60'000;
  Parts parts(rows);
  Transaction t = must(parts.database->begin(AccessMode::kReadOnly));
  std::atomic<bool> stop{false};
  std::jthread writer([&] {
    for (std::int64_t id = rows; !stop; ++id) parts.load(id, id + 1);
  });
  {
    SharedStream first = must(all_parts().share(t, for_threads(2)));
    Pulled of_first;
    Pulled of_second;
    std::jthread puller([&] { pull(first, 1, of_first, false); });
    SharedStream second = must(Query::table("parts")
                                   .where(col("id") >= 30'000)
                                   .select({"id", "name", "note"})
                                   .share(t, for_threads(2)));
    std::jthread other([&] { pull(second, 0, of_second, false); });
    pull(second, 1, of_second, false);
    puller.join();
    other.join();
    CHECK(of_first.is_right);
    CHECK(of_second.is_right);
    CHECK(of_first.rows == rows);
    CHECK(of_second.rows == rows - 30'000);
  }
  stop = true;
}

namespace {

// A row of `numbers`, by its id: a column for each way in which main keeps numbers.
std::vector<Value> numbers_of(std::int64_t id) {
  const bool is_null = id % 7 == 3;
  return {Value::int64(id),
          Value::int32(static_cast<std::int32_t>(id * 7919 % 1000) - 500),
          is_null ? Value::null() : Value::int64(id * 7919 % 100'003),
          id % 5 == 1 ? Value::null() : Value::real(static_cast<double>(id) / 16 - 300),
          Value::boolean(id % 3 == 0),
          Value::int64(42),
          Value::int64(id / 1000 * 1'000'000'007),
          id / 3000 % 2 == 0 ? Value::null() : Value::decimal(-id, 2)};
}

bool are_right_numbers(const StreamBatch& batch) {
  const auto ids = batch.column<std::int64_t>(0).value();
  for (std::size_t c = 0; c < 8; ++c) {
    const std::span<const std::uint8_t> nulls = batch.nulls(c);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Value wanted = numbers_of(ids[i])[c];
      const bool is_null = !nulls.empty() && nulls[i] != 0;
      if (is_null != wanted.is_null()) return false;
      if (c == 3 ? batch.column<double>(c).value()[i] != (is_null ? 0 : wanted.as_double())
                 : batch.column<std::int64_t>(c).value()[i] != (is_null ? 0 : wanted.raw()))
        return false;
    }
  }
  return true;
}

}  // namespace

// Whole blocks are unpacked into batches; blocks with dead rows, and rows of the delta, are copied.
TEST_CASE("a shared stream has the numbers of packed columns, next to those of the delta") {
  test::TemporaryDatabase database;
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).column("small", Type::kInt32).column("gaps", Type::kInt64);
  schema.column("real", Type::kDouble).column("flag", Type::kBool).column("same", Type::kInt64);
  schema.column("runs", Type::kInt64).column("price", Type::kDecimal, {.scale = 2});
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  const std::int64_t merged = 21'000;
  const std::int64_t rows = 22'000;
  const auto load = [&](std::int64_t first, std::int64_t last) {
    Transaction writer = must(database->begin());
    bool is_right = true;
    for (std::int64_t id = first; id < last; ++id)
      is_right = writer.insert(table, numbers_of(id)).ok() && is_right;
    REQUIRE(is_right);
    must(std::move(writer).commit());
  };
  load(0, merged);
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  static_cast<void>(must(database->merge(table, everything)));
  load(merged, rows);
  const Query all = Query::table("numbers").select(
      {"id", "small", "gaps", "real", "flag", "same", "runs", "price"});
  std::int64_t dead = 0;
  const auto check = [&] {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    SharedStream stream = must(all.share(t, for_threads(2)));
    std::int64_t count = 0;
    std::int64_t sum = 0;
    for (std::uint32_t thread = 0; const StreamBatch* batch = must(stream.next(thread % 2));
         ++thread) {
      CHECK(are_right_numbers(*batch));
      count += static_cast<std::int64_t>(batch->row_count());
      for (const std::int64_t id : must(batch->column<std::int64_t>(0))) sum += id;
    }
    CHECK(count == rows - (dead != 0));
    CHECK(sum == rows * (rows - 1) / 2 - dead);
  };
  check();
  dead = 9'000;
  Transaction writer = must(database->begin());
  must(writer.remove(KeyId{table, 0}, {Value::int64(dead)}));
  must(std::move(writer).commit());
  check();
}

TEST_CASE("an ordered stream gives all its rows to thread 0") {
  Parts parts(5'000);
  Transaction t = must(parts.database->begin(AccessMode::kReadOnly));
  SharedStream stream = must(all_parts().order_by({desc("id")}).share(t, for_threads(4)));
  CHECK(must(stream.next(3)) == nullptr);
  std::int64_t next = 4'999;
  bool in_order = true;
  while (const StreamBatch* batch = must(stream.next(0)))
    for (const std::int64_t id : must(batch->column<std::int64_t>(0)))
      in_order = in_order && id == next--;
  CHECK(in_order);
  CHECK(next == -1);
}

TEST_CASE("a shared stream says what is wrong") {
  Parts parts(200'000);
  Transaction t = must(parts.database->begin());
  CHECK(Query::table("nothing").share(t).code() == StatusCode::kNotFound);
  SharedStream stream = must(all_parts().share(t, for_threads(2)));
  CHECK(stream.next(2).status().to_string() ==
        "invalid argument: the stream has 2 threads, and this is 2");
  // The failure of one thread ends all.
  SharedStream wrong = must(Query::table("parts")
                                .select({(col("id") * 9'000'000'000'000'000'000).as("id")})
                                .share(t, for_threads(2)));
  CHECK(wrong.next(1).code() == StatusCode::kOverflow);
  CHECK(wrong.next(0).code() == StatusCode::kOverflow);
  std::stop_source source;
  RunOptions options = for_threads(2);
  options.stop = source.get_token();
  SharedStream stopped = must(all_parts().share(t, options));
  CHECK(must(stopped.next(0)) != nullptr);
  source.request_stop();
  CHECK(stopped.next(0).code() == StatusCode::kCancelled);
  CHECK(stopped.next(1).code() == StatusCode::kCancelled);
  must(parts.insert(t, 1'000'000));
  CHECK(all_parts().share(t).status().to_string() ==
        "invalid argument: a transaction that has written cannot share a stream among threads");
  t.abort();
  CHECK(stream.next(0).status().to_string() ==
        "invalid argument: the transaction of this stream has ended");
}

TEST_CASE("a cancelled transaction ends its shared streams, and a thread in one is in a call") {
  Parts parts(100'000);
  Transaction t = must(parts.database->begin(AccessMode::kReadOnly));
  SharedStream stream = must(all_parts().share(t, for_threads(2)));
  CHECK(must(stream.next(0)) != nullptr);
  CHECK_FALSE(parts.database->transactions().at(0).is_in_call);
  must(parts.database->cancel(t.id()));
  CHECK(stream.next(1).code() == StatusCode::kCancelled);
  CHECK(stream.next(0).code() == StatusCode::kCancelled);
}

namespace {

/// A thread that stays within `next` of a shared stream from `begin` until `let_go`.
class HeldPuller {
 public:
  explicit HeldPuller(const Transaction& t) {
    RunOptions options = for_threads(2);
    options.progress = [this](const Progress&) {
      if (!holds_ || has_held_.exchange(true)) return;
      is_within_.count_down();
      may_go_on_.wait();
    };
    // No row is right, and only reading all of them shows it.
    const Query none = all_parts().where(col("id") + col("id") == 1);
    stream_.emplace(none.share(t, options).value());
  }
  ~HeldPuller() {
    if (thread_.joinable()) static_cast<void>(let_go());
  }
  HeldPuller(const HeldPuller&) = delete;
  HeldPuller& operator=(const HeldPuller&) = delete;

  void begin() {
    holds_ = true;
    thread_ = std::jthread([this] { status_ = stream_->next(0).status(); });
    is_within_.wait();
  }
  Status let_go() {
    may_go_on_.count_down();
    thread_.join();
    return status_;
  }
  SharedStream& stream() { return *stream_; }

 private:
  std::atomic<bool> holds_{false};
  std::atomic<bool> has_held_{false};
  std::latch is_within_{1};
  std::latch may_go_on_{1};
  std::optional<SharedStream> stream_;
  Status status_;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("share does not end a cancelled transaction while a thread is in next") {
  Parts parts(200'000);
  Transaction t = must(parts.database->begin(AccessMode::kReadOnly));
  {
    HeldPuller puller(t);
    puller.begin();
    must(parts.database->cancel(t.id()));
    CHECK(all_parts().share(t).code() == StatusCode::kCancelled);
    CHECK(Query::table("parts").share(t).code() == StatusCode::kCancelled);
    const TransactionInfo info = parts.database->transactions().at(0);
    CHECK(info.is_in_call);
    CHECK(info.is_asked_to_end);
    CHECK_FALSE(info.is_ended);
    // Nor does a thread that comes now read a row.
    CHECK(puller.stream().next(1).code() == StatusCode::kCancelled);
    CHECK(puller.let_go().to_string() == "cancelled: the transaction was ended: it was cancelled");
  }
  CHECK_FALSE(parts.database->transactions().at(0).is_ended);
  CHECK(all_parts().share(t).code() == StatusCode::kCancelled);
  CHECK(parts.database->transactions().at(0).is_ended);
  CHECK(parts.database->statistics().transactions_ended == 1);
}

TEST_CASE("a merge that ends old transactions waits for a thread in next") {
  Parts parts(200'000);
  Transaction t = must(parts.database->begin(AccessMode::kReadOnly));
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.ends_old_transactions = true;
  options.patience = std::chrono::seconds(3);
  std::atomic<bool> is_merged{false};
  std::jthread merger;
  {
    HeldPuller puller(t);
    puller.begin();
    merger = std::jthread([&] { is_merged = parts.database->merge(parts.table, options).ok(); });
    while (!parts.database->transactions().at(0).is_asked_to_end) std::this_thread::yield();
    CHECK(all_parts().share(t).code() == StatusCode::kCancelled);
    CHECK_FALSE(parts.database->transactions().at(0).is_ended);
    CHECK(puller.let_go().code() == StatusCode::kCancelled);
  }
  CHECK_FALSE(is_merged);
  t.abort();  // no request is lost: the merge goes on
  merger.join();
  CHECK(is_merged);
}
