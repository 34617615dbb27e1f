// Texts that rows leave behind are used again, without a merge (decision 0038).
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kNoteText{1};
constexpr ColumnId kNoteCount{2};

std::string note_text(std::uint64_t number, std::size_t bytes) {
  std::string text = std::to_string(number) + "/";
  while (text.size() < bytes) text += static_cast<char>('a' + (text.size() * 7 + number) % 26);
  text.resize(bytes);
  return text;
}

/// `notes`: a text that is held directly, and a number beside it.
class Notes {
 public:
  Notes() {
    TableSchema schema("notes");
    schema.column("id", Type::kInt64).column("text", Type::kString).direct();
    schema.column("count", Type::kInt64).direct().primary_key({"id"});
    table = must(database->create_table(schema));
    id = KeyId(table, 0);
  }
  Transaction begin() { return must(database->begin()); }
  void insert(Transaction& t, std::int64_t number, const std::string& text) {
    must(t.insert(table, {Value::int64(number), Value::string(text), Value::int64(0)}));
  }
  RowId find(Transaction& t, std::int64_t number) {
    return must(t.get(id, {Value::int64(number)})).id();
  }
  void change(Transaction& t, std::int64_t number, const std::string& text) {
    must(t.update(table, find(t, number), {{kNoteText, Value::string(text)}}));
  }
  std::string text(const Transaction& t, std::int64_t number) {
    const Row row = must(t.get(id, {Value::int64(number)}));
    return std::string(must(row.get<std::string_view>(kNoteText)));
  }
  void load(const std::vector<std::string>& texts) {
    Transaction t = begin();
    for (std::size_t i = 0; i < texts.size(); ++i)
      insert(t, static_cast<std::int64_t>(i), texts[i]);
    must(t.commit());
  }
  std::uint64_t pool_bytes() { return database->statistics().pool_used_bytes; }
  std::uint64_t text_bytes() {
    return must(database->table_statistics(table)).columns[1].dictionary_bytes;
  }
  std::uint64_t reusable() {
    return must(database->table_statistics(table)).columns[1].text_bytes_reusable;
  }
  std::size_t wrong(const std::vector<std::string>& texts) {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::size_t found = 0;
    for (std::size_t i = 0; i < texts.size(); ++i)
      found += text(t, static_cast<std::int64_t>(i)) == texts[i] ? 0 : 1;
    return found;
  }

  TemporaryDatabase database;
  TableId table;
  KeyId id;
};

// Updates until each text has changed many times; the last texts of the rows.
std::vector<std::string> update_notes(Notes& notes, std::size_t rows, std::size_t updates,
                                      std::size_t bytes_min, std::size_t bytes_max) {
  Random random(5);
  std::vector<std::string> texts;
  const auto draw = [&](std::size_t number) {
    return note_text(number, bytes_min + random.below(bytes_max - bytes_min + 1));
  };
  for (std::size_t i = 0; i < rows; ++i) texts.push_back(draw(i));
  notes.load(texts);
  for (std::size_t i = 0; i < updates; ++i) {
    const std::size_t at = random.below(rows);
    texts[at] = draw(rows + i);
    Transaction t = notes.begin();
    notes.change(t, static_cast<std::int64_t>(at), texts[at]);
    must(t.commit());
  }
  return texts;
}

void check_growth(std::size_t bytes_min, std::size_t bytes_max) {
  constexpr std::size_t kRows = test::rounds_of(50'000, 15'000);
  Notes updated;
  const std::vector<std::string> texts =
      update_notes(updated, kRows, 6 * kRows, bytes_min, bytes_max);
  Notes fresh;
  fresh.load(texts);
  INFO(updated.pool_bytes() << " bytes, fresh " << fresh.pool_bytes());
  CHECK(updated.pool_bytes() * 10 <= fresh.pool_bytes() * 13);
  CHECK(updated.wrong(texts) == 0);
  must(updated.database->check());
  updated.database.reopen();
  CHECK(updated.wrong(texts) == 0);
}

}  // namespace

TEST_CASE("many updates of texts of 100 bytes take no more space than their rows", "[engine]") {
  check_growth(100, 100);
}

TEST_CASE("many updates of texts of varying length take no more space", "[engine]") {
  check_growth(16, 300);
}

TEST_CASE("a snapshot keeps the texts that it sees", "[engine]") {
  Notes notes;
  constexpr std::size_t kRows = 50;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < kRows; ++i) texts.push_back(note_text(i, 60));
  notes.load(texts);
  Random random(3);
  struct Reader {
    Transaction transaction;
    std::vector<std::string> texts;
    std::vector<std::string_view> seen;
  };
  std::vector<Reader> readers;
  std::size_t wrong = 0;
  const auto end_one = [&](std::size_t at) {
    Reader& reader = readers[at];
    for (std::size_t i = 0; i < kRows; ++i) {
      wrong +=
          notes.text(reader.transaction, static_cast<std::int64_t>(i)) == reader.texts[i] ? 0 : 1;
      wrong += reader.seen[i] == reader.texts[i] ? 0 : 1;
    }
    readers.erase(readers.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (int i = 0; i < 60000; ++i) {
    if (i % 500 == 0) {
      Reader reader{must(notes.database->begin(AccessMode::kReadOnly)), texts, {}};
      for (std::size_t at = 0; at < kRows; ++at) {
        const Row row =
            must(reader.transaction.get(notes.id, {Value::int64(static_cast<std::int64_t>(at))}));
        reader.seen.push_back(must(row.get<std::string_view>(kNoteText)));
      }
      readers.push_back(std::move(reader));
      if (readers.size() > 6) end_one(random.below(readers.size()));
    }
    const std::size_t at = random.below(kRows);
    texts[at] = note_text(kRows + static_cast<std::size_t>(i), 16 + random.below(100));
    Transaction t = notes.begin();
    notes.change(t, static_cast<std::int64_t>(at), texts[at]);
    must(t.commit());
  }
  while (!readers.empty()) end_one(0);
  CHECK(wrong == 0);
  CHECK(notes.wrong(texts) == 0);
}

TEST_CASE("texts of transactions, parts and statements that are undone are used again",
          "[engine]") {
  Notes notes;
  notes.load({note_text(0, 1000), note_text(1, 1000)});
  const std::uint64_t before = notes.text_bytes();
  for (std::size_t i = 0; i < 500; ++i) {
    Transaction aborted = notes.begin();
    notes.change(aborted, 0, note_text(i, 900));
    notes.insert(aborted, 10, note_text(i, 950));
    aborted.abort();

    Transaction part = notes.begin();
    const Savepoint savepoint = must(part.savepoint());
    notes.change(part, 0, note_text(i, 1000));
    notes.change(part, 0, note_text(i, 1010));
    must(part.rollback_to(savepoint));
    must(part.update(notes.table, notes.find(part, 0), {{kNoteCount, Value::int64(1)}}));
    must(part.commit());

    Transaction holder = notes.begin();
    notes.change(holder, 0, note_text(0, 1000));
    Transaction refused = notes.begin();
    const std::string other = note_text(i, 970);
    CHECK(refused.update(notes.table, notes.find(refused, 0), {{kNoteText, Value::string(other)}})
              .code() == StatusCode::kConflict);
    must(refused.update(notes.table, notes.find(refused, 1), {{kNoteCount, Value::int64(2)}}));
    must(refused.commit());
    holder.abort();
  }
  CHECK(notes.text_bytes() <= before + (std::uint64_t{64} << 10));
  CHECK(notes.wrong({note_text(0, 1000), note_text(1, 1000)}) == 0);
}

TEST_CASE("texts of deleted rows are used again", "[engine]") {
  Notes notes;
  for (std::size_t i = 0; i < 20000; ++i) {
    Transaction t = notes.begin();
    const auto number = static_cast<std::int64_t>(i);
    notes.insert(t, number, note_text(i, 200));
    if (i >= 100) must(t.remove(notes.table, notes.find(t, number - 100)));
    must(t.commit());
  }
  // Between two looks at the oldest snapshot are some 2000 transactions.
  CHECK(notes.text_bytes() <= std::uint64_t{200} * 6000);
  CHECK(notes.reusable() <= notes.text_bytes());
  CHECK(notes.reusable() > 0);
}

namespace {

/// Random transactions on few rows with texts, checked against a map. Texts are never the same, so
/// that one in another's place is found.
class TextModel {
 public:
  explicit TextModel(std::uint64_t seed) : random_(seed) {}

  void step() {
    if (random_.chance(2)) merge();
    if (random_.chance(10)) look_back();
    Transaction t = notes_.begin();
    Rows mine = rows_;
    const std::size_t calls = 1 + random_.below(4);
    for (std::size_t i = 0; i < calls; ++i) call(t, mine);
    if (random_.chance(25)) {
      const Savepoint savepoint = must(t.savepoint());
      Rows undone = mine;
      for (std::size_t i = 0; i < calls; ++i) call(t, undone);
      if (random_.chance(50)) {
        must(t.rollback_to(savepoint));
      } else {
        mine = undone;
      }
      if (random_.chance(50)) call(t, mine);
    }
    compare(t, mine);
    if (random_.chance(20)) {
      t.abort();
      return;
    }
    must(t.commit());
    rows_ = std::move(mine);
  }
  void finish() {
    views_.clear();
    must(notes_.database->check());
    notes_.database.reopen();
    notes_.table = must(notes_.database->find_table("notes"));
    notes_.id = KeyId(notes_.table, 0);
    compare(notes_.begin(), rows_);
  }
  /// Lets the oldest snapshot be looked for.
  void pass_time() {
    for (int i = 0; i < 2100; ++i) {
      Transaction t = notes_.begin();
      must(t.update(notes_.table, notes_.find(t, rows_.begin()->first),
                    {{kNoteCount, Value::int64(i)}}));
      must(t.commit());
    }
  }
  std::size_t wrong() const { return wrong_; }
  bool has_rows() const { return !rows_.empty(); }

 private:
  using Rows = std::map<std::int64_t, std::string>;
  static constexpr std::uint64_t kIds = 60;

  std::string draw() {
    static constexpr std::size_t kLengths[] = {10, 16, 24, 40, 100, 104, 300, 1500};
    return note_text(next_++, kLengths[random_.below(8)]);
  }
  void call(Transaction& t, Rows& rows) {
    const auto id = static_cast<std::int64_t>(random_.below(kIds));
    const auto found = rows.find(id);
    if (found == rows.end()) {
      rows[id] = draw();
      return notes_.insert(t, id, rows[id]);
    }
    const RowId row = notes_.find(t, id);
    switch (random_.below(8)) {
      case 0:
        must(t.remove(notes_.table, row));
        rows.erase(found);
        return;
      case 1:
      case 2:
        must(t.update(notes_.table, row,
                      {{kNoteCount, Value::int64(static_cast<std::int64_t>(random_.below(9)))}}));
        return;
      case 3: {  // a column twice: the last value counts
        const std::string first = draw();
        found->second = draw();
        must(t.update(
            notes_.table, row,
            {{kNoteText, Value::string(first)}, {kNoteText, Value::string(found->second)}}));
        return;
      }
      default:
        found->second = draw();
        must(t.update(notes_.table, row, {{kNoteText, Value::string(found->second)}}));
    }
  }
  void compare(const Transaction& t, const Rows& rows) {
    for (std::uint64_t i = 0; i < kIds; ++i) {
      const auto id = static_cast<std::int64_t>(i);
      const auto expected = rows.find(id);
      const Result<Row> row = t.get(notes_.id, {Value::int64(id)});
      const bool is_right =
          expected == rows.end()
              ? row.code() == StatusCode::kNotFound
              : row.ok() && must(row->get<std::string_view>(kNoteText)) == expected->second;
      wrong_ += is_right ? 0 : 1;
    }
  }
  void look_back() {
    if (views_.size() < 3) {
      views_.emplace_back(must(notes_.database->begin(AccessMode::kReadOnly)), rows_);
      return;
    }
    const std::size_t at = random_.below(views_.size());
    compare(views_[at].first, views_[at].second);
    views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void merge() {
    if (random_.chance(70)) views_.clear();
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.dead_percent = 1;
    options.patience = std::chrono::milliseconds(0);
    if (random_.chance(20)) options.waste_bytes = 1;
    const Status merged = notes_.database->merge(notes_.table, options).status();
    CHECK((merged.ok() || merged.code() == StatusCode::kBusy));
  }

  Notes notes_;
  Random random_;
  Rows rows_;
  std::vector<std::pair<Transaction, Rows>> views_;
  std::uint64_t next_ = 0;
  std::size_t wrong_ = 0;
};

}  // namespace

TEST_CASE("random transactions find their own texts, across merges", "[engine]") {
  for (int seed = 1; seed <= test::rounds_of(3, 1); ++seed) {
    TextModel model(static_cast<std::uint64_t>(seed));
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 1500; ++i) model.step();
      if (model.has_rows()) model.pass_time();
    }
    INFO("seed " << seed);
    CHECK(model.wrong() == 0);
    model.finish();
    CHECK(model.wrong() == 0);
  }
}

}  // namespace flugs::test
