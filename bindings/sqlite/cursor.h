#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings/sqlite/plan.h"
#include "bindings/sqlite/sqlite_api.h"
#include "bindings/sqlite/table.h"
#include "flugs/query.h"
#include "flugs/row.h"
#include "flugs/rows.h"
#include "flugs/stream.h"
#include "flugs/transaction.h"

namespace flugs::sqlite {

/// Goes through rows of a table, as a plan says.
///
/// Thread-safety: that of the connection.
class Cursor : public sqlite3_vtab_cursor {
 public:
  /// Which transaction it reads in; Session says and clears it.
  enum class Reads : std::uint8_t { kNothing, kReader, kMain };

  explicit Cursor(VirtualTable& table) : sqlite3_vtab_cursor(), table_(table) {}
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  ~Cursor() { close(); }

  Status filter(const Plan& plan, sqlite3_value** arguments);
  Status next();
  bool is_at_end() const noexcept { return source_ == Source::kEnd; }
  void give_column(sqlite3_context* context, std::size_t column) const;
  std::int64_t row_id() const noexcept;
  /// Notes the row in RowsRead, with its primary key.
  void note_row();
  /// Lets go of all rows, and of the transaction.
  void close() noexcept;
  /// The transaction is about to end, or to undo writes. The cursor copies what is left of its
  /// rows, or fails from then on.
  void outlive(bool keeps_rows) noexcept;

  Reads reads = Reads::kNothing;
  bool is_noted = false;     ///< in RowsRead: a statement may write to the rows that it reads
  Reader* reader = nullptr;  ///< with kReader

 private:
  enum class Source : std::uint8_t {
    kEnd,
    kFound,   // found_ is the row; those of list_ may follow
    kWalk,    // row_ is that of walk_
    kStream,  // row at_ of batch_
    kOwn,     // row at_ of own_
    kGone,    // the transaction was rolled back
  };
  /// A column of a batch.
  struct Lane {
    const std::int64_t* integers = nullptr;
    const double* doubles = nullptr;
    query::TextColumn texts;
    const std::uint8_t* nulls = nullptr;
    std::size_t place = 0;  // in the batch
    bool is_used = false;
  };
  /// Rows that were copied, row by row.
  struct Own {
    std::vector<Value> cells;
    std::vector<std::int64_t> ids;
    std::deque<std::string> texts;
  };

  Status enter();
  Status find_row(const Plan& plan, sqlite3_value** arguments);
  Status find_by_key(const Plan& plan, sqlite3_value** arguments);
  Status get(const Plan& plan);
  Meaning read_key(const Plan& plan, sqlite3_value** arguments);
  bool read_list(const Term& term, sqlite3_value* list);
  Status find_next_of_list();
  Status begin_walk(const Plan& plan, sqlite3_value** arguments);
  Meaning read_bound(const Plan& plan, std::uint16_t term, sqlite3_value** arguments,
                     Comparison& bound) const;
  Status next_of_walk();
  Status begin_stream(const Plan& plan, sqlite3_value** arguments);
  Status next_batch();
  bool add_condition(query::Expr& where, const Term& term, sqlite3_value** arguments) const;
  bool in_list(query::Expr& condition, const Term& term, sqlite3_value* list) const;
  std::vector<query::Item> outputs(const Plan& plan);
  Value value(std::size_t column) const;
  void copy_row(Own& own) const;
  void drop_rows() noexcept;
  Value kept(const Value& value);

  VirtualTable& table_;
  Transaction* transaction_ = nullptr;
  Source source_ = Source::kEnd;
  const Plan* plan_ = nullptr;
  bool has_more_ = false;  // than found_: a walk, a list, a stream or copied rows to be let go of
  std::array<Value, 17> key_;
  std::size_t key_size_ = 0;
  Row found_;
  const Row* row_ = nullptr;
  std::optional<Rows> walk_;
  // The values of a list, of which each takes the place `list_place_` in the key.
  std::vector<Value> list_;
  std::size_t list_at_ = 0;
  std::size_t list_place_ = 0;
  std::deque<std::string> texts_;  // of key_ and list_
  std::optional<query::ResultStream> stream_;
  const query::StreamBatch* batch_ = nullptr;
  std::vector<Lane> lanes_;
  std::span<const std::int64_t> ids_;
  std::size_t id_place_ = 0;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::unique_ptr<Own> own_;
};

}  // namespace flugs::sqlite
