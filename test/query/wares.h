#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flugs/column_batch.h"
#include "flugs/query.h"
#include "flugs/stream.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

/// Ids of rows that were seen, none of them negative.
class SeenIds {
 public:
  /// Whether `id` is new.
  bool insert(std::int64_t id) {
    const auto at = static_cast<std::size_t>(id);
    if (at >= seen_.size()) seen_.resize(at + at / 2 + 1);
    if (seen_[at] != 0) return false;
    seen_[at] = 1;
    ++size_;
    return true;
  }
  bool contains(std::int64_t id) const {
    return static_cast<std::size_t>(id) < seen_.size() && seen_[static_cast<std::size_t>(id)] != 0;
  }
  std::size_t size() const { return size_; }

 private:
  std::vector<std::uint8_t> seen_;
  std::size_t size_ = 0;
};

/// `wares`: id, `kind` with seven texts, `name`, held directly, and `size`, which may be NULL.
class Wares {
 public:
  explicit Wares(std::int64_t rows, std::int64_t kinds = 7) : kinds_(kinds) {
    TableSchema schema("wares");
    schema.column("id", Type::kInt64).column("kind", Type::kString);
    schema.column("name", Type::kString).direct();
    schema.column("size", Type::kDouble);
    table = must(database->create_table(schema.primary_key({"id"})));
    load(rows);
  }

  void insert(Transaction& writer, std::int64_t id) const {
    const std::string of_kind = kind(id);
    const std::string of_name = name(id);
    must(writer.insert(
        table, {Value::int64(id), id % 11 == 0 ? Value::null() : Value::string(of_kind),
                Value::string(of_name), id % 3 == 0 ? Value::null() : Value::real(double(id))}));
  }
  void merge() {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    static_cast<void>(must(database->merge(table, everything)));
  }
  std::string kind(std::int64_t id) const { return "kind " + std::to_string(id % kinds_); }
  static std::string name(std::int64_t id) { return "the name of " + std::to_string(id); }
  KeyId key() const { return {table, 0}; }

  /// Whether a batch of id, kind, name, size has what `insert` gave; adds the ids.
  bool is_right(const query::StreamBatch& batch, SeenIds& ids) const {
    const auto id = must(batch.column<std::int64_t>(0));
    const query::TextColumn kinds = must(batch.texts(1));
    const query::TextColumn names = must(batch.texts(2));
    const auto sizes = must(batch.column<double>(3));
    bool right = kinds.size() == batch.row_count() && names.size() == batch.row_count();
    for (std::size_t i = 0; i < batch.row_count(); ++i) {
      const bool no_kind = !batch.nulls(1).empty() && batch.nulls(1)[i] != 0;
      const bool no_size = !batch.nulls(3).empty() && batch.nulls(3)[i] != 0;
      right = right && ids.insert(id[i]) && names[i] == name(id[i]) &&
              no_kind == (id[i] % 11 == 0) && no_size == (id[i] % 3 == 0) &&
              (no_kind || kinds[i] == kind(id[i])) && sizes[i] == (no_size ? 0 : double(id[i]));
    }
    return right;
  }

  TemporaryDatabase database;
  TableId table;

 private:
  /// Rows 0 to `rows`, column by column: row by row it takes the thread sanitizer seconds.
  void load(std::int64_t rows) {
    std::vector<std::int64_t> ids;
    std::vector<double> sizes;
    Texts kinds;
    Texts names;
    std::vector<std::uint8_t> has_kind(std::size_t(rows) / 8 + 1);
    std::vector<std::uint8_t> has_size = has_kind;
    for (std::int64_t id = 0; id < rows; ++id) {
      const auto bit = std::uint8_t(1 << id % 8);
      ids.push_back(id);
      kinds.add(kind(id));
      names.add(name(id));
      sizes.push_back(double(id));
      if (id % 11 != 0) has_kind[std::size_t(id) / 8] |= bit;
      if (id % 3 != 0) has_size[std::size_t(id) / 8] |= bit;
    }
    const std::vector<BatchColumn> columns = {
        {column("id"), array(ArrayForm::kInt64, Type::kInt64, ids)},
        {column("kind"), array(kinds, has_kind.data())},
        {column("name"), array(names, nullptr)},
        {column("size"), array(ArrayForm::kDouble, Type::kDouble, sizes, has_size.data())}};
    Transaction writer = must(database->begin());
    must(writer.insert_columns(table, {ids.size(), columns}));
    must(writer.commit());
  }

  struct Texts {
    void add(const std::string& text) {
      bytes += text;
      ends.push_back(static_cast<std::int64_t>(bytes.size()));
    }
    std::string bytes;
    std::vector<std::int64_t> ends{0};
  };
  ColumnId column(const char* name) { return must(database->find_column(table, name)); }
  template <typename T>
  static ValueArray array(ArrayForm form, Type type, const std::vector<T>& values,
                          const std::uint8_t* validity = nullptr) {
    ValueArray result;
    result.form = form;
    result.type = type;
    result.size = values.size();
    result.values = values.data();
    result.validity = validity;
    return result;
  }
  static ValueArray array(const Texts& texts, const std::uint8_t* validity) {
    ValueArray result = array(ArrayForm::kText64, Type::kString, texts.ends, validity);
    result.size = texts.ends.size() - 1;
    result.values = texts.bytes.data();
    result.offsets = texts.ends.data();
    result.text_bytes = texts.bytes.size();
    return result;
  }

  std::int64_t kinds_;
};

inline query::Query wares_all() {
  return query::Query::table("wares").select({"id", "kind", "name", "size"});
}

inline query::RunOptions with_threads(std::uint32_t count) {
  query::RunOptions options;
  options.threads = count;
  return options;
}

inline std::uint64_t rows_of(query::ResultStream& stream) {
  std::uint64_t rows = 0;
  for (const query::StreamBatch& batch : stream) rows += batch.row_count();
  return rows;
}

}  // namespace flugs::test
