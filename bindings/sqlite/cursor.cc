#include "bindings/sqlite/cursor.h"

#include <algorithm>
#include <new>
#include <utility>

#include "flugs/try.h"

namespace flugs::sqlite {

Status Cursor::filter(const Plan& plan, sqlite3_value** arguments) {
  drop_rows();
  FLUGS_TRY(table_.check());
  plan_ = &plan;
  switch (plan.way) {
    case Plan::Way::kGet:
    case Plan::Way::kWalk:
      return find_by_key(plan, arguments);
    case Plan::Way::kRowId:
      FLUGS_TRY(enter());
      return find_row(plan, arguments);
    case Plan::Way::kScan:
      break;
  }
  FLUGS_TRY(enter());
  return begin_stream(plan, arguments);
}

Status Cursor::enter() {
  if (reads != Reads::kNothing) return {};
  if (Transaction* main = table_.session.enter_main(*this); main != nullptr) {
    transaction_ = main;
    return {};
  }
  Result<Transaction*> entered = table_.session.enter(*this);
  if (!entered.ok()) return std::move(entered).status();
  transaction_ = *entered;
  return {};
}

Status Cursor::find_row(const Plan& plan, sqlite3_value** arguments) {
  static const Column kId{"rowid", ColumnId(), Type::kInt64, 0, false, {}};
  const Comparison wanted = compare(kId, Compare::kEq, arguments[plan.terms.front().argument]);
  if (wanted.meaning != Meaning::kExact || wanted.value.raw() < 0 ||
      wanted.value.raw() > INT64_C(0xFFFFFFFF))
    return {};
  Result<Row> row =
      transaction_->get(table_.shape.id, RowId(static_cast<std::uint32_t>(wanted.value.raw())));
  if (row.code() == StatusCode::kNotFound) return {};
  if (!row.ok()) return std::move(row).status();
  found_ = *row;
  row_ = &found_;
  source_ = Source::kFound;
  return {};
}

/// A value whose text the cursor owns.
Value Cursor::kept(const Value& value) {
  if (value.is_null() || (value.type() != Type::kString && value.type() != Type::kBytes))
    return value;
  texts_.emplace_back(value.as_string());
  return Value::from_bytes(value.type(), texts_.back());
}

/// False: only SQLite can tell what is in the list.
bool Cursor::read_list(const Term& term, sqlite3_value* list) {
  const Column& column = table_.shape.columns[term.column];
  sqlite3_value* element = nullptr;
  for (int code = sqlite3_vtab_in_first(list, &element); code == SQLITE_OK;
       code = sqlite3_vtab_in_next(list, &element)) {
    const Comparison c = compare(column, Compare::kEq, element);
    if (c.meaning == Meaning::kUnclear) return false;
    if (c.meaning == Meaning::kExact) list_.push_back(kept(c.value));
  }
  // Values of different types may mean the same.
  const auto less = [](const Value& a, const Value& b) {
    return a.raw() != b.raw() ? a.raw() < b.raw() : a.as_string() < b.as_string();
  };
  std::sort(list_.begin(), list_.end(), less);
  list_.erase(std::unique(list_.begin(), list_.end()), list_.end());
  return true;
}

/// Reads the terms that fix leading columns of the key.
Meaning Cursor::read_key(const Plan& plan, sqlite3_value** arguments) {
  bool has_list = false;
  for (std::size_t i = 0; i < plan.equal; ++i) {
    const Term& term = plan.terms[i];
    if (term.kind == Term::Kind::kIsNull) {
      key_[i] = Value::null();
      continue;
    }
    if (term.kind == Term::Kind::kIn) {
      has_more_ = true;
      if (!read_list(term, arguments[term.argument])) return Meaning::kUnclear;
      if (list_.empty()) return Meaning::kNothing;
      has_list = true;
      list_place_ = i;
      continue;
    }
    const Column& column = table_.shape.columns[term.column];
    sqlite3_value* const wanted = arguments[term.argument];
    if (column.type == Type::kInt64 && sqlite3_value_type(wanted) == SQLITE_INTEGER) {
      key_[i] = Value::int64(sqlite3_value_int64(wanted));  // the usual key; the term is = or IS
      continue;
    }
    const Comparison c = compare(column, term.op, wanted, term.is_literal);
    if (c.meaning != Meaning::kExact) return c.meaning;
    key_[i] = c.value;
  }
  key_size_ = plan.equal;
  if (has_list)  // the arguments are gone when the list's second value is looked for
    for (std::size_t i = 0; i < key_size_; ++i)
      if (i != list_place_) key_[i] = kept(key_[i]);
  return Meaning::kExact;
}

Status Cursor::find_by_key(const Plan& plan, sqlite3_value** arguments) {
  const Meaning meaning = read_key(plan, arguments);
  if (meaning == Meaning::kExact && plan.way == Plan::Way::kGet && !table_.session.has_main())
    table_.session.prefetch(table_.shape.keys[plan.key].id, {key_.data(), key_size_});
  FLUGS_TRY(enter());
  if (meaning == Meaning::kNothing) return {};
  if (meaning != Meaning::kExact) return begin_stream(plan, arguments);
  if (!list_.empty()) return find_next_of_list();
  if (plan.way == Plan::Way::kWalk) return begin_walk(plan, arguments);
  return get(plan);
}

Status Cursor::get(const Plan& plan) {
  const Key& key = table_.shape.keys[plan.key];
  Result<Row> row = transaction_->get(key.id, std::span<const Value>(key_.data(), key_size_));
  if (row.ok()) {
    found_ = *row;
    row_ = &found_;
    source_ = Source::kFound;
    return {};
  }
  if (row.code() == StatusCode::kNotFound && row.status().message().empty()) return {};
  return std::move(row).status();
}

Status Cursor::find_next_of_list() {
  const Key& key = table_.shape.keys[plan_->key];
  while (list_at_ < list_.size()) {
    key_[list_place_] = list_[list_at_++];
    const std::span<const Value> values(key_.data(), key_size_);
    if (plan_->way == Plan::Way::kWalk) {
      walk_.emplace(transaction_->rows(key.id, values));
      FLUGS_TRY(next_of_walk());
      if (source_ == Source::kWalk) return {};
      continue;
    }
    Result<Row> row = transaction_->get(key.id, values);
    if (row.ok()) {
      found_ = *row;
      row_ = &found_;
      source_ = Source::kFound;
      return {};
    }
    if (row.code() != StatusCode::kNotFound) return std::move(row).status();
  }
  source_ = Source::kEnd;
  return {};
}

Meaning Cursor::read_bound(const Plan& plan, std::uint16_t term, sqlite3_value** arguments,
                           Comparison& bound) const {
  if (term == Plan::kNone) return Meaning::kNotNull;
  const Term& of = plan.terms[term];
  bound = compare(table_.shape.columns[of.column], of.op, arguments[of.argument], of.is_literal);
  return bound.meaning;
}

Status Cursor::begin_walk(const Plan& plan, sqlite3_value** arguments) {
  has_more_ = true;
  const Key& key = table_.shape.keys[plan.key];
  const std::span<const Value> prefix(key_.data(), key_size_);
  if (plan.lower == Plan::kNone && plan.upper == Plan::kNone) {
    walk_.emplace(transaction_->rows(key.id, prefix));
  } else {
    Comparison lower;
    Comparison upper;
    const Meaning below = read_bound(plan, plan.lower, arguments, lower);
    const Meaning above = read_bound(plan, plan.upper, arguments, upper);
    if (below == Meaning::kNothing || above == Meaning::kNothing) return {};
    if (below == Meaning::kUnclear || above == Meaning::kUnclear)
      return begin_stream(plan, arguments);
    std::array<Value, 17> to = key_;
    // A bound leaves NULL out, which comes first.
    key_[key_size_] = below == Meaning::kExact ? lower.value : Value::null();
    to[key_size_] = upper.value;
    const bool has_upper = above == Meaning::kExact;
    walk_.emplace(transaction_->rows(
        key.id,
        KeyBound{std::span<const Value>(key_.data(), key_size_ + 1),
                 below == Meaning::kExact && lower.op == Compare::kGe},
        KeyBound{std::span<const Value>(to.data(), key_size_ + (has_upper ? 1 : 0)),
                 !has_upper || upper.op == Compare::kLe}));
  }
  if (plan.down) walk_.emplace(std::move(*walk_).reverse());
  return next_of_walk();
}

Status Cursor::next_of_walk() {
  row_ = walk_->next();
  if (row_ != nullptr) {
    source_ = Source::kWalk;
    return {};
  }
  source_ = Source::kEnd;
  Status status = walk_->status();
  walk_.reset();
  return status;
}

Status Cursor::next() {
  switch (source_) {
    case Source::kFound:
      if (!list_.empty()) return find_next_of_list();
      source_ = Source::kEnd;
      return {};
    case Source::kWalk:
      FLUGS_TRY(next_of_walk());
      if (source_ == Source::kEnd && !list_.empty()) return find_next_of_list();
      return {};
    case Source::kStream:
      if (++at_ < size_) return {};
      return next_batch();
    case Source::kOwn:
      if (++at_ == own_->ids.size()) source_ = Source::kEnd;
      return {};
    case Source::kGone:
      return Status(StatusCode::kCancelled,
                    "the transaction in which this statement reads was rolled back");
    case Source::kEnd:
      break;
  }
  return {};
}

std::int64_t Cursor::row_id() const noexcept {
  switch (source_) {
    case Source::kFound:
    case Source::kWalk:
      return row_->id().value();
    case Source::kStream:
      return ids_[at_];
    case Source::kOwn:
      return own_->ids[at_];
    default:
      return 0;
  }
}

void Cursor::note_row() {
  const TableShape& shape = table_.shape;
  if (!shape.has_primary_key) return;
  std::vector<Value> key;
  for (const std::uint16_t column : shape.keys.front().columns) key.push_back(value(column));
  table_.rows_read.note_row(row_id(), key);
}

Value Cursor::value(std::size_t column) const {
  const Column& of = table_.shape.columns[column];
  switch (source_) {
    case Source::kFound:
    case Source::kWalk:
      return row_->get_unchecked<Value>(of.id);
    case Source::kOwn:
      return own_->cells[at_ * table_.shape.columns.size() + column];
    case Source::kStream: {
      const Lane& lane = lanes_[column];
      if (!lane.is_used || (lane.nulls != nullptr && lane.nulls[at_] != 0)) return {};
      if (lane.integers != nullptr) return Value::from_raw(of.type, lane.integers[at_]);
      if (lane.doubles != nullptr) return Value::real(lane.doubles[at_]);
      return Value::from_bytes(of.type, lane.texts[at_]);
    }
    default:
      return {};
  }
}

void Cursor::give_column(sqlite3_context* context, std::size_t column) const {
  const Column& of = table_.shape.columns[column];
  if (source_ == Source::kFound)
    give(context, table_.session.texts(), of, found_.get_unchecked<Value>(of.id));
  else
    give(context, table_.session.texts(), of, value(column));
}

void Cursor::copy_row(Own& own) const {
  own.ids.push_back(row_id());
  for (std::size_t i = 0; i < table_.shape.columns.size(); ++i) {
    Value cell = value(i);
    if (!cell.is_null() && (cell.type() == Type::kString || cell.type() == Type::kBytes)) {
      own.texts.emplace_back(cell.as_string());
      cell = Value::from_bytes(cell.type(), own.texts.back());
    }
    own.cells.push_back(cell);
  }
}

void Cursor::outlive(bool keeps_rows) noexcept {
  if (source_ == Source::kEnd || source_ == Source::kOwn) return;
  bool is_copied = keeps_rows && source_ != Source::kGone;
  std::unique_ptr<Own> own;
  if (is_copied) {
    try {
      own = std::make_unique<Own>();
      while (source_ != Source::kEnd) {
        copy_row(*own);
        if (!next().ok()) {
          is_copied = false;
          break;
        }
      }
    } catch (const std::exception&) {
      is_copied = false;
    }
  }
  drop_rows();
  source_ = is_copied ? Source::kOwn : Source::kGone;
  own_ = std::move(own);
  has_more_ = true;
  at_ = 0;
}

void Cursor::drop_rows() noexcept {
  source_ = Source::kEnd;
  if (!has_more_) return;
  has_more_ = false;
  if (walk_) walk_.reset();
  if (stream_) {
    stream_.reset();
    batch_ = nullptr;
  }
  if (!list_.empty()) list_.clear();
  if (!texts_.empty()) texts_.clear();
  own_.reset();
  list_at_ = 0;
}

void Cursor::close() noexcept {
  drop_rows();
  if (reads != Reads::kNothing) table_.session.exit(*this);
}

}  // namespace flugs::sqlite
