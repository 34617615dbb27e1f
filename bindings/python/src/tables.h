#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bindings/python/src/interpreter.h"
#include "bindings/python/src/values.h"
#include "flugs/database.h"

namespace flugs::python {

struct ColumnInfo {
  nb::object name;  ///< invalid: the column was dropped
  ColumnId id;
  std::uint8_t scale = 0;
};

struct KeyInfo {
  std::string name;  ///< empty: the key was dropped
  KeyId id;
  bool is_ordered = false;
  std::optional<Prepared> prepared;  ///< of a unique key
};

/// All that calls need to know of a table, found once.
///
/// Thread-safety: immutable, but for `next`.
struct TableInfo {
  TableId id;
  std::string name;
  TableSchema schema;
  std::vector<ColumnInfo> columns;  ///< dropped ones included
  std::vector<KeyInfo> keys;
  nb::dict positions;  ///< column's name -> position
  nb::dict empty_row;  ///< column's name -> None, to be copied
  bool has_numbers = false;
  bool has_dropped = false;
  const TableInfo* next = nullptr;  ///< of KnownTables

  /// Fails with: kNotFound.
  static Result<std::unique_ptr<TableInfo>> find(const Database& database, std::string_view name);

  /// None is the primary key. Throws NotFound.
  const KeyInfo& key(nb::handle name) const;
  /// The same, of a unique key.
  const KeyInfo& unique_key(nb::handle name) const;
  /// Throws NotFound.
  const ColumnInfo& column(nb::handle name) const;
};

/// The tables that were looked up, by name. A second look-up of a table writes nothing that threads
/// share. A table lives as long as this object, also when it has been forgotten: a thread may be
/// using it.
///
/// Thread-safety: any thread. It runs no code of Python.
class KnownTables {
 public:
  /// Null: it must be found in the database.
  const TableInfo* find(std::string_view name) const noexcept;
  /// The number of times that they were forgotten.
  std::uint64_t times_forgotten() const noexcept {
    return times_forgotten_.load(std::memory_order_acquire);
  }
  /// Keeps what was found after `times_forgotten` was read. Null: they have been forgotten since,
  /// and it must be found again.
  const TableInfo* keep(std::unique_ptr<TableInfo> found, std::uint64_t times_forgotten);
  /// After a change of a schema.
  void forget() noexcept;
  /// When the interpreter is gone: leaves the objects of Python alone.
  void leave() noexcept;

 private:
  static constexpr std::size_t kBuckets = 64;  // 512 bytes; few programs have more tables
  static std::size_t bucket_of(std::string_view name) noexcept {
    return std::hash<std::string_view>()(name) % kBuckets;
  }

  std::array<std::atomic<const TableInfo*>, kBuckets> heads_{};  // of chains of `next`
  std::atomic<std::uint64_t> times_forgotten_{0};
  std::mutex mutex_;  // held by threads that write
  std::vector<std::unique_ptr<TableInfo>> all_;
};

/// A row as a dict.
nb::object to_dict(const TableInfo& table, const Row& row);
/// The same of a value for each column, dropped ones included.
nb::object to_dict(const TableInfo& table, std::span<const Value> values);

/// Values for a call. An object stays what it is while the call runs, unless threads run at the
/// same time: then the texts are kept.
class RowValues {
 public:
  /// A tuple or list in the order of the columns, or any mapping from names to values.
  /// If `kept` is given, it gets what the values are views of.
  RowValues(const TableInfo& table, nb::handle row, Kept* kept = nullptr);
  bool is_whole() const noexcept { return is_whole_; }
  std::span<const Value> whole() const noexcept { return whole_; }
  std::span<const ColumnValue> given() const noexcept { return given_; }
  /// A value for each column; those that are not given have their defaults.
  std::span<const Value> complete(const TableInfo& table);

 private:
  bool is_whole_ = false;
  std::vector<Value> whole_;
  std::vector<ColumnValue> given_;
  Kept kept_;
};

/// Appends the values of a tuple or list, one per column of the table.
void append_row(const TableInfo& table, nb::handle row, std::vector<Value>& values, Kept* kept);

/// Some values on the stack, of which only those that are used are ever made: most are few.
template <std::size_t kMost>
class FewValues {
 public:
  FewValues() noexcept = default;
  explicit FewValues(std::size_t size) noexcept : size_(size) {
    std::uninitialized_value_construct_n(data(), size);
  }
  FewValues(const FewValues&) = delete;
  FewValues& operator=(const FewValues&) = delete;
  void add(const Value& value) noexcept { std::construct_at(data() + size_++, value); }
  Value* data() noexcept { return reinterpret_cast<Value*>(bytes_); }
  std::span<Value> all() noexcept { return {data(), size_}; }

 private:
  std::size_t size_ = 0;
  alignas(Value) std::byte bytes_[kMost * sizeof(Value)];
};
static_assert(std::is_trivially_destructible_v<Value>);

/// The values of a key: a tuple has one for each column, anything else is the only one.
class KeyValues {
 public:
  static constexpr std::size_t kMost = 16;
  explicit KeyValues(nb::handle values);
  operator std::span<const Value>() noexcept { return values_.all(); }  // NOLINT

 private:
  FewValues<kMost> values_;
  Kept kept_;
};

}  // namespace flugs::python
