#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/function_ref.h"
#include "flugs/ids.h"
#include "flugs/status.h"
#include "mvcc/commit.h"
#include "mvcc/visibility.h"
#include "tables/catalog/foreign_keys.h"

namespace flugs::engine {

class ReadSet;
class Table;
struct StoredSchema;

/// The foreign keys of a table, and those of all tables that lead to it: which table knows which,
/// and whether the rows fulfil them. What statements do to referring rows is in Cascade.
///
/// Invariants: each foreign key of this table is in the list of referrers of its parent. A list
/// never changes; another one takes its place. A foreign key that was dropped stays in memory: a
/// statement may still follow a former list.
///
/// Thread-safety: changes under the database's ddl_mutex_; all else any thread.
class TableReferences final {
 public:
  explicit TableReferences(Table& table) noexcept : table_(table) {}
  TableReferences(const TableReferences&) = delete;
  TableReferences& operator=(const TableReferences&) = delete;

  /// The foreign key of the schema with this index leads to `parent`, and has been checked.
  void add(std::size_t index, Table& parent);
  /// A foreign key that the schema does not have yet (ForeignKey::is_pending), for `columns`. It
  /// finds its rows by the key in the place `child_key`.
  ForeignKey& begin(const ForeignKeySchema& schema, std::vector<std::uint16_t> columns,
                    std::size_t child_key, Table& parent);
  /// No statement that begins from now on knows the foreign key.
  void remove(const ForeignKey& foreign);
  /// The foreign key of that name in the schema; null: none.
  const ForeignKey* with_name(std::string_view name) const noexcept;
  /// Opening: the same for a foreign key of the pool; `find` returns null for a table that does not
  /// exist. Fails with kCorrupt.
  Status link(std::size_t index, FunctionRef<Table*(TableId id)> find);
  /// Gives the foreign keys the current names of their columns, parents and keys.
  void take_names_over();
  /// The same, also in the schema. To be called when names of parents or their keys may have
  /// changed.
  void name_parents();
  /// The table is dropped: no parent asks it any more.
  void forget_parents();

  /// Foreign keys of all tables that lead here, with those that are being added; null: none so far.
  const std::vector<const ForeignKey*>* referrers() const noexcept {
    return referrers_.load(std::memory_order_acquire);
  }
  /// Those of this table, with one that is being added. The list stays good, and its foreign keys
  /// do, as long as the table.
  std::span<ForeignKey* const> foreign_keys() const noexcept {
    const auto* list = foreign_keys_.load(std::memory_order_acquire);
    return list == nullptr ? std::span<ForeignKey* const>() : std::span<ForeignKey* const>(*list);
  }

  /// Checks that no foreign key uses a column of the table's schema: foreign keys compare values of
  /// one type. Fails with kConstraintViolated.
  Status check_column_unused(const StoredSchema& stored, std::size_t column) const;
  /// Whether foreign keys hold for a row that was written, or for rows that referred to it. The
  /// value says whether that may change until the transaction commits. Fails with
  /// kConstraintViolated, after noting in `reads` what was read; kConflict.
  Result<bool> check(const mvcc::Write& write, const mvcc::Visibility& visibility,
                     ReadSet* reads) const;
  /// Whether this row refers to a row that the snapshot sees. Fails with kConstraintViolated,
  /// kCorrupt.
  Status check_parent(const ForeignKey& foreign, std::uint32_t row,
                      const mvcc::Visibility& visibility) const;
  /// Audit. Fails with kCorrupt.
  Status verify(const mvcc::Visibility& visibility) const;
  /// The status of an audit for a row that refers to a missing row.
  Status unreferenced(const ForeignKey& foreign, std::uint32_t row) const;

 private:
  ForeignKey& add(std::unique_ptr<ForeignKey> foreign);
  void set_foreign_keys(std::vector<ForeignKey*> foreign_keys);
  void set_referrers(std::vector<const ForeignKey*> referrers);
  bool keeps_reference(const ForeignKey& foreign, std::uint32_t row,
                       const mvcc::Visibility& visibility) const noexcept;
  Result<bool> check_parents(std::uint32_t row, const mvcc::Visibility& visibility,
                             ReadSet* reads) const;
  Result<bool> check_children(std::uint32_t row, const mvcc::Visibility& visibility,
                              ReadSet* reads) const;

  Table& table_;
  std::vector<std::unique_ptr<ForeignKey>> owned_;  // with dropped ones
  std::atomic<const std::vector<ForeignKey*>*> foreign_keys_{nullptr};
  std::vector<std::unique_ptr<const std::vector<ForeignKey*>>> lists_;
  std::atomic<const std::vector<const ForeignKey*>*> referrers_{nullptr};
  std::vector<std::unique_ptr<const std::vector<const ForeignKey*>>> referrer_lists_;
};

/// The foreign key as the part of the schema that a Status names.
SchemaPart part_of(const ForeignKey& foreign);
/// The answer to a statement that needs a foreign key which is being created or dropped.
Status in_between(const ForeignKey& foreign);

}  // namespace flugs::engine
