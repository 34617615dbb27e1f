#include <memory>
#include <utility>

#include "bindings/c/schema.h"
#include "bindings/c/transaction.h"
#include "bindings/c/values.h"
#include "flugs/rows.h"

namespace flugs::c {

class RowsChild final : public Child {
 public:
  RowsChild(std::shared_ptr<flugs_transaction> of, Rows walked)
      : Child(std::move(of)), rows(std::make_unique<Rows>(std::move(walked))) {
    add_child(*this);
  }
  ~RowsChild() override { remove_child(*this); }
  void end() noexcept override { rows.reset(); }
  void abandon() noexcept override { [[maybe_unused]] const Rows* left = rows.release(); }

  std::unique_ptr<Rows> rows;  // null: the transaction has ended
};

}  // namespace flugs::c

struct flugs_walk : flugs::c::Handle<flugs::c::Kind::kWalk> {
  std::unique_ptr<flugs::c::RowsChild> child;
  std::vector<flugs::ColumnId> columns;
  flugs::KeyId key;
};

namespace flugs::c {

namespace {

constexpr std::uint32_t kRangeFlags =
    FLUGS_RANGE_LOWER_OPEN | FLUGS_RANGE_UPPER_OPEN | FLUGS_RANGE_REVERSE;

Status walk_of(flugs_transaction& t, KeyId key, const flugs_range& range, Rows& out) {
  if ((range.flags & ~kRangeFlags) != 0 || range.reserved != 0)
    return Status(StatusCode::kInvalidArgument, "range: unknown flags, or reserved is not 0");
  ValueBuffer lower_values;
  ValueBuffer upper_values;
  KeyBound lower;
  KeyBound upper;
  if (Status s = lower_values.take(range.lower, range.lower_count, lower.values); !s.ok()) return s;
  if (Status s = upper_values.take(range.upper, range.upper_count, upper.values); !s.ok()) return s;
  lower.inclusive = (range.flags & FLUGS_RANGE_LOWER_OPEN) == 0;
  upper.inclusive = (range.flags & FLUGS_RANGE_UPPER_OPEN) == 0;
  out = t.core.rows(key, lower, upper);
  if ((range.flags & FLUGS_RANGE_REVERSE) != 0) out = std::move(out).reverse();
  if (range.limit != 0) out = std::move(out).limit(range.limit);
  return out.status();
}

flugs_error* walk(flugs_transaction& t, TableId table, const char* key_name,
                  const flugs_range& range, const std::vector<std::string>& names,
                  flugs_walk** out) {
  const Database& core = t.database->core;
  const Result<KeyId> key = core.find_key(table, key_name);
  if (!key.ok()) return failed(t, key.status(), table);
  std::vector<ColumnId> columns;
  for (const std::string& name : names) {
    const Result<ColumnId> column = core.find_column(table, name);
    if (!column.ok()) return failed(t, column.status(), table);
    columns.push_back(*column);
  }
  Rows rows = t.core.rows(*key, std::span<const Value>());
  if (Status s = walk_of(t, *key, range, rows); !s.ok()) return to_c(s, about(core, *key));
  auto made = std::make_unique<flugs_walk>();
  made->columns = std::move(columns);
  made->key = *key;
  made->child = std::make_unique<RowsChild>(t.self, std::move(rows));
  *out = made.release();
  return nullptr;
}

Status read_rows(flugs_walk& walk, flugs_value* values, std::size_t capacity, std::size_t& out) {
  for (; out < capacity; ++out) {
    const Row* row = walk.child->rows->next();
    if (row == nullptr) break;
    for (const ColumnId column : walk.columns) {
      const Result<Value> value = row->get(column);
      if (!value.ok()) return value.status();
      *values++ = to_c(*value);
    }
  }
  return walk.child->rows->status();
}

}  // namespace

}  // namespace flugs::c

using flugs::c::is_handle;
using flugs::c::no_pointer;

extern "C" {

flugs_error* flugs_walk_create(flugs_transaction* transaction, uint32_t table, const char* key,
                               const flugs_range* range, const char* const* columns,
                               size_t column_count, flugs_walk** out) {
  if (out != nullptr) *out = nullptr;
  return flugs::c::with_transaction(transaction, [&](flugs_transaction& t) -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    std::vector<std::string> names;
    if (flugs_error* error = flugs::c::names_from_c(columns, column_count, names)) return error;
    return flugs::c::walk(t, flugs::TableId(table), key == nullptr ? "primary" : key,
                          range == nullptr ? flugs_range{} : *range, names, out);
  });
}

flugs_error* flugs_walk_next(flugs_walk* walk, flugs_value* values, size_t row_capacity,
                             size_t* out) {
  if (out != nullptr) *out = 0;
  return flugs::c::guarded([&]() -> flugs_error* {
    if (!is_handle(walk)) return flugs::c::no_handle("walk");
    if (out == nullptr) return no_pointer("out");
    if (values == nullptr && !walk->columns.empty() && row_capacity > 0)
      return no_pointer("values");
    return flugs::c::while_open(*walk->child->owner, [&](flugs_transaction& t) -> flugs_error* {
      std::size_t rows = 0;
      const flugs::Status status = flugs::c::read_rows(*walk, values, row_capacity, rows);
      if (!status.ok()) return flugs::c::failed(t, status, walk->key.table);
      *out = rows;
      return nullptr;
    });
  });
}

void flugs_walk_free(flugs_walk* walk) {
  if (is_handle(walk)) delete walk;
}
}
