// Columns that a row group does not store in their present form: those added to the table later,
// and those that got another type or were rewritten (decisions 0023, 0025, 0026).

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "columns/main/main_column_builder.h"
#include "tables/rows/row_group.h"

namespace flugs::engine {

// Makes the column as a merge would. In a group without rows, which damaged indexes may lead to, it
// is NULL.
columns::MainColumnLayout RowGroup::constant_layout(const columns::Column& column) const {
  const bool has_constant = column.has_constant() && layout_.stored_rows != 0;
  columns::Cell cell = columns::text_cell::make_inline({});
  if (has_constant) cell = column.constant();
  const Value value = has_constant ? column.constant_value() : Value::null();
  const std::uint8_t null = value.is_null() ? 1 : 0;
  columns::MainColumnLayout layout;
  if (column.is_text()) {
    columns::Cell text = column.is_dictionary() ? column.cell_of_stored(value.as_string()) : cell;
    text.is_null = value.is_null();
    layout = columns::MainColumnBuilder::of_texts(column.type(), {&text, 1}, text_memory_).layout();
  } else {
    const std::int64_t payload = value.is_null() ? 0 : value.raw();
    layout =
        columns::MainColumnBuilder::of_integers(column.type(), {&payload, 1}, {&null, 1}).layout();
  }
  FLUGS_CHECK(layout.encoding == static_cast<std::uint8_t>(columns::MainEncoding::kConstant));
  layout.row_count = std::max(layout_.stored_rows, 1u);
  layout.null_count = value.is_null() ? layout.row_count : 0;
  return layout;
}

// Payloads and texts are the same in both types, and so is their layout in the parts.
columns::MainColumnLayout RowGroup::relabelled_layout(std::size_t i, Type type) const noexcept {
  FLUGS_DCHECK(i < columns_.size());
  columns::MainColumnLayout layout = column_layouts()[i];
  layout.type = static_cast<std::uint8_t>(type);
  return layout;
}

// The column in the table's present edition, which may be later than the editions made so far.
const columns::MainColumn& RowGroup::other_column(std::size_t i) const noexcept {
  FLUGS_DCHECK(i < table_columns_.size());
  const columns::Column& wanted = *table_columns_[i];
  const std::uint16_t edition = wanted.edition();
  if (i < columns_.size() && !is_of_other_type(i)) return columns_[i];
  const auto find = [&](std::memory_order order) -> const Made* {
    const MadeColumns* list = made_.load(order);
    const Made* found = list == nullptr || i >= list->size() ? nullptr : (*list)[i];
    return found == nullptr || found->edition != edition ? nullptr : found;
  };
  if (const Made* found = find(std::memory_order_acquire); found != nullptr) return found->column;
  const std::lock_guard guard(made_mutex_);
  if (const Made* found = find(std::memory_order_relaxed); found != nullptr) return found->column;
  const columns::MainColumnLayout layout =
      i < columns_.size() ? relabelled_layout(i, wanted.type()) : constant_layout(wanted);
  const std::byte* parts = extent().data();
  columns::ReadTexts* const texts = i < columns_.size() ? read_texts_[i].get() : nullptr;
  auto made = std::make_unique<Made>(
      Made{layout, columns::MainColumn(layout, parts, text_memory_, texts), edition});
  made->column = columns::MainColumn(made->layout, parts, text_memory_, texts);
  const MadeColumns* before = made_.load(std::memory_order_relaxed);
  auto list =
      before == nullptr ? std::make_unique<MadeColumns>() : std::make_unique<MadeColumns>(*before);
  if (list->size() <= i) list->resize(i + 1);
  (*list)[i] = made.get();
  made_.store(list.get(), std::memory_order_release);
  made_lists_.push_back(std::move(list));
  made_columns_.push_back(std::move(made));
  return made_columns_.back()->column;
}

bool RowGroup::is_of_former_edition(std::size_t i) const noexcept {
  return column_layouts()[i].edition != table_columns_[i]->edition();
}

bool RowGroup::is_of_other_type(std::size_t i) const noexcept {
  return column_layouts()[i].type != static_cast<std::uint8_t>(table_columns_[i]->type());
}

// Edition numbers are reused (decision 0026): a column made for one edition must not be found for a
// later edition of the same number. A reader that got the column before its change may still add
// such an entry. That reader has ended before the number is reused, and the next change removes its
// entry.
void RowGroup::forget_made() {
  const std::lock_guard guard(made_mutex_);
  const MadeColumns* before = made_.load(std::memory_order_relaxed);
  if (before == nullptr) return;
  const auto is_former = [&](std::size_t i) {
    return (*before)[i] != nullptr && (*before)[i]->edition != table_columns_[i]->edition();
  };
  auto list = std::make_unique<MadeColumns>(*before);
  bool has_former = false;
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (!is_former(i)) continue;
    (*list)[i] = nullptr;
    has_former = true;
  }
  if (!has_former) return;
  made_.store(list.get(), std::memory_order_release);
  made_lists_.push_back(std::move(list));
}

void RowGroup::release_former() {
  const std::lock_guard guard(made_mutex_);
  const MadeColumns* now = made_.load(std::memory_order_relaxed);
  if (now == nullptr) return;
  std::erase_if(made_columns_, [&](const auto& made) {
    return std::find(now->begin(), now->end(), made.get()) == now->end();
  });
  std::erase_if(made_lists_, [&](const auto& list) { return list.get() != now; });
}

// A column that has kept its type reads the same in any edition.
void RowGroup::note_change() {
  forget_made();
  bool is_changed = false;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    is_changed |= is_of_other_type(i) && !table_columns_[i]->is_dropped();
  own_end_.store(is_changed ? 0 : columns_.size(), std::memory_order_release);
}

bool RowGroup::is_up_to_date() const noexcept {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const columns::Column& column = *table_columns_[i];
    if (!is_of_former_edition(i) || column.is_dropped()) continue;
    if (is_of_other_type(i) || (column.is_text() && !columns_[i].owns_texts())) return false;
  }
  return true;
}

}  // namespace flugs::engine
