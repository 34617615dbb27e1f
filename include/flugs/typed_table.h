#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "flugs/database.h"
#include "flugs/reads.h"
#include "flugs/table.h"
#include "flugs/transaction.h"

/// Makes a struct the type of a table's rows: its members are the columns of the same names. Write
/// it once, in the struct's namespace. At most 80 members.
///
///     struct Order {
///       std::int64_t id = 0;
///       std::int64_t customer = 0;
///       std::optional<std::string> note{};
///     };
///     FLUGS_ROW(Order, id, customer, note)
///
///     const auto orders = database.table<Order>("orders");       // names and types checked here
///     orders->insert(transaction, {.customer = 7});              // id is an auto-increment column
///     const Result<Order> order = orders->get(transaction, 42);  // by the primary key
#define FLUGS_ROW(Struct, ...)                                                           \
  [[maybe_unused]] inline constexpr auto flugs_members(const Struct*) noexcept {         \
    return std::make_tuple(FLUGS_DETAIL_EACH(FLUGS_DETAIL_MEMBER, Struct, __VA_ARGS__)); \
  }
#define FLUGS_DETAIL_MEMBER(Struct, member) \
  ::flugs::detail::Member { #member, &Struct::member }
// Calls macro(Struct, argument) for each argument, with commas between.
#define FLUGS_DETAIL_EACH(macro, Struct, ...) \
  __VA_OPT__(FLUGS_DETAIL_EVAL(FLUGS_DETAIL_EACH_NEXT(macro, Struct, __VA_ARGS__)))
#define FLUGS_DETAIL_EACH_NEXT(macro, Struct, first, ...) \
  macro(Struct, first)                                    \
      __VA_OPT__(, FLUGS_DETAIL_EACH_AGAIN FLUGS_DETAIL_PARENS(macro, Struct, __VA_ARGS__))
#define FLUGS_DETAIL_EACH_AGAIN() FLUGS_DETAIL_EACH_NEXT
#define FLUGS_DETAIL_PARENS ()
#define FLUGS_DETAIL_EVAL(...) \
  FLUGS_DETAIL_EVAL3(FLUGS_DETAIL_EVAL3(FLUGS_DETAIL_EVAL3(FLUGS_DETAIL_EVAL3(__VA_ARGS__))))
#define FLUGS_DETAIL_EVAL3(...) \
  FLUGS_DETAIL_EVAL2(FLUGS_DETAIL_EVAL2(FLUGS_DETAIL_EVAL2(FLUGS_DETAIL_EVAL2(__VA_ARGS__))))
#define FLUGS_DETAIL_EVAL2(...) \
  FLUGS_DETAIL_EVAL1(FLUGS_DETAIL_EVAL1(FLUGS_DETAIL_EVAL1(FLUGS_DETAIL_EVAL1(__VA_ARGS__))))
#define FLUGS_DETAIL_EVAL1(...) __VA_ARGS__

namespace flugs {

namespace detail {

template <typename Struct, typename T>
struct Member {
  const char* name;
  T Struct::* pointer;
};

/// What binding a struct to a table needs to know of one member.
struct MemberFacts {
  const char* name = "";
  Wanted wanted;
};
/// The columns of the members. Fails with kInvalidArgument; see Database::table.
Result<std::vector<ColumnId>> bind_members(const Table& table,
                                           std::span<const MemberFacts> members);
/// For each member, the place of its column in the primary key, or -1; no key: -1 for all.
std::vector<int> places_in_key(const Table& table, std::span<const ColumnId> columns);
/// The position, among the members, of the auto-increment column, or -1.
int numbered_member(const Table& table, std::span<const ColumnId> columns) noexcept;
Status no_key_in_struct(const Table& table);
Status no_primary_key(const Table& table);
Status row_of_another_table(const Table& table);

}  // namespace detail

/// A struct that FLUGS_ROW has made the type of a table's rows.
template <typename T>
concept RowStruct =
    std::default_initializable<T> && requires { flugs_members(static_cast<const T*>(nullptr)); };

/// A table whose rows are structs. Columns that the struct does not have get their defaults.
///
/// Thread-safety: a plain value type; the transaction's rules hold for each call.
template <typename Struct>
class TypedTable {
  static_assert(RowStruct<Struct>, "make the struct a row by FLUGS_ROW(Struct, member, ...)");

 public:
  static constexpr auto kMembers = flugs_members(static_cast<const Struct*>(nullptr));
  static constexpr std::size_t kSize = std::tuple_size_v<decltype(kMembers)>;

  /// Fails with: kInvalidArgument (the message names the member): no column has its name; its type
  /// does not fit the column's (Readable); the column may hold NULL, and the member is no
  /// std::optional. Database::table does the same by name.
  static Result<TypedTable> bind(Table table) {
    constexpr auto kFacts = facts(std::make_index_sequence<kSize>());
    Result<std::vector<ColumnId>> columns = detail::bind_members(table, kFacts);
    if (!columns.ok()) return std::move(columns).status();
    TypedTable typed;
    std::copy(columns->begin(), columns->end(), typed.columns_.begin());
    typed.numbered_ = detail::numbered_member(table, typed.columns_);
    const std::vector<int> places = detail::places_in_key(table, typed.columns_);
    std::copy(places.begin(), places.end(), typed.places_in_key_.begin());
    if (const Result<KeyId> primary = table.primary_key(); primary.ok()) {
      typed.primary_ = *primary;
      typed.key_size_ = table.schema().keys[primary->index].columns.size();
      const auto members =
          std::count_if(places.begin(), places.end(), [](int at) { return at >= 0; });
      typed.has_whole_key_ = static_cast<std::size_t>(members) == typed.key_size_;
    }
    typed.table_ = std::move(table);
    return typed;
  }

  const Table& table() const& noexcept { return table_; }
  const Table& table() const&& = delete;
  /// The column of a member: orders.column(&Order::state).
  /// Fails with: kNotFound (FLUGS_ROW does not list the member).
  template <typename T>
  Result<ColumnId> column(T Struct::* member) const {
    Result<ColumnId> found = Status(StatusCode::kNotFound, "FLUGS_ROW does not list the member");
    each([&]<std::size_t i>() {
      const auto pointer = std::get<i>(kMembers).pointer;
      if constexpr (std::same_as<decltype(pointer), T Struct::* const>)
        if (pointer == member) found = columns_[i];
    });
    return found;
  }

  /// A row of this table as a struct. A std::string_view member is a view, valid as long as the
  /// row. Fails with: as Row::get; kInvalidArgument (the row is of another table).
  Result<Struct> get(const Row& row) const {
    if (row.table() != table_.id()) return detail::row_of_another_table(table_);
    Struct result{};
    Status failed;
    each([&]<std::size_t i>() {
      constexpr auto kMember = std::get<i>(kMembers);
      using T = std::remove_cvref_t<decltype(result.*kMember.pointer)>;
      if (!failed.ok()) return;
      Result<T> value = row.get<T>(columns_[i]);
      if (value.ok())
        result.*kMember.pointer = *std::move(value);
      else
        failed = std::move(value).status();
    });
    if (!failed.ok()) return failed;
    return result;
  }

  /// By the primary key: one value per column of it. Fails with: as Transaction::get.
  template <typename... Key>
    requires(sizeof...(Key) > 0 && (std::constructible_from<Value, const Key&> && ...))
  Result<Struct> get(const Transaction& transaction, const Key&... key) const {
    if (key_size_ == 0) return detail::no_primary_key(table_);
    const std::array<Value, sizeof...(Key)> values = {Value(key)...};
    return get(transaction, primary_, values);
  }
  Result<Struct> get(const Transaction& transaction, KeyId key,
                     std::span<const Value> values) const {
    const Result<Row> row = transaction.get(key, values);
    if (!row.ok()) return row.status();
    return get(*row);
  }
  Result<Struct> get(const Transaction& transaction, KeyId key,
                     std::initializer_list<Value> values) const {
    return get(transaction, key, std::span<const Value>(values.begin(), values.size()));
  }

  /// A 0 in an auto-increment column gets a number. Fails with: as Transaction::insert.
  Result<Inserted> insert(Transaction& transaction, const Struct& row) const {
    const std::array<ColumnValue, kSize> values = values_of(row);
    return transaction.insert(table_.id(), std::span<const ColumnValue>(values));
  }
  /// Changes the row with the same primary key: all columns of the struct outside the key get its
  /// values, but that a 0 leaves an auto-increment column as it is.
  /// Fails with: as Transaction::update by key.
  Result<RowId> update(Transaction& transaction, const Struct& row) const {
    if (key_size_ == 0 || key_size_ > kSize || !has_whole_key_)
      return detail::no_key_in_struct(table_);
    const std::array<ColumnValue, kSize> values = values_of(row);
    std::array<Value, kSize> key;
    std::array<ColumnValue, kSize> rest;
    std::size_t rest_count = 0;
    for (std::size_t i = 0; i < kSize; ++i) {
      if (places_in_key_[i] >= 0)
        key[static_cast<std::size_t>(places_in_key_[i])] = values[i].value;
      else if (numbered_ != static_cast<int>(i) || !values[i].value.is_null())
        rest[rest_count++] = values[i];
    }
    return transaction.update(primary_, std::span<const Value>(key).first(key_size_),
                              std::span<const ColumnValue>(rest).first(rest_count));
  }
  /// The rows whose primary key, which must be ordered, begins with these values: see
  /// Transaction::rows.
  template <typename... Key>
    requires(std::constructible_from<Value, const Key&> && ...)
  Rows rows(const Transaction& transaction, const Key&... prefix) const {
    const std::array<Value, sizeof...(Key)> values = {Value(prefix)...};
    return transaction.rows(primary_, std::span<const Value>(values));
  }
  /// Adds to a member of the row with that primary key, and returns the sum:
  ///     products.add(t, &Product::stock, -3, id)
  /// Fails with: as Transaction::add; kNotFound (FLUGS_ROW does not list the member).
  template <typename T, typename... Key>
    requires(sizeof...(Key) > 0 && (std::constructible_from<Value, const Key&> && ...))
  Result<Value> add(Transaction& transaction, T Struct::* member, const Value& amount,
                    const Key&... key) const {
    if (key_size_ == 0) return detail::no_primary_key(table_);
    const Result<ColumnId> of = column(member);
    if (!of.ok()) return of.status();
    const std::array<Value, sizeof...(Key)> values = {Value(key)...};
    return transaction.add(primary_, std::span<const Value>(values), *of, amount);
  }
  /// Deletes a row by the primary key. Fails with: as Transaction::remove by key.
  template <typename... Key>
    requires(sizeof...(Key) > 0 && (std::constructible_from<Value, const Key&> && ...))
  Status remove(Transaction& transaction, const Key&... key) const {
    if (key_size_ == 0) return detail::no_primary_key(table_);
    const std::array<Value, sizeof...(Key)> values = {Value(key)...};
    return transaction.remove(primary_, std::span<const Value>(values));
  }

 private:
  template <std::size_t... i>
  static constexpr std::array<detail::MemberFacts, kSize> facts(
      std::index_sequence<i...>) noexcept {
    return {detail::MemberFacts{
        std::get<i>(kMembers).name,
        detail::Wanted::of<std::remove_cvref_t<decltype(std::declval<Struct&>().*
                                                        std::get<i>(kMembers).pointer)>>()}...};
  }
  template <typename F>
  static void each(F&& call) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (call.template operator()<i>(), ...);
    }(std::make_index_sequence<kSize>());
  }
  // A 0 in the auto-increment column is NULL.
  std::array<ColumnValue, kSize> values_of(const Struct& row) const {
    std::array<ColumnValue, kSize> values;
    each([&]<std::size_t i>() {
      values[i] = {columns_[i], Value(row.*std::get<i>(kMembers).pointer)};
      const Value& value = values[i].value;
      const bool is_integer = value.type() == Type::kInt32 || value.type() == Type::kInt64;
      if (numbered_ == static_cast<int>(i) && is_integer && value.raw() == 0)
        values[i].value = Value::null();
    });
    return values;
  }
  Table table_;
  KeyId primary_;
  std::array<ColumnId, kSize> columns_{};
  std::array<int, kSize> places_in_key_{};
  std::size_t key_size_ = 0;
  bool has_whole_key_ = false;  // the struct has each column of the primary key
  int numbered_ = -1;
};

template <typename Struct>
Result<TypedTable<Struct>> Database::table(std::string_view name) const {
  Result<Table> found = table(name);
  if (!found.ok()) return std::move(found).status();
  return TypedTable<Struct>::bind(*std::move(found));
}

template <typename Struct>
Result<TypedTable<Struct>> Database::ensure_table(const TableSchema& schema) {
  Result<Table> found = ensure_table(schema);
  if (!found.ok()) return std::move(found).status();
  return TypedTable<Struct>::bind(*std::move(found));
}

}  // namespace flugs
