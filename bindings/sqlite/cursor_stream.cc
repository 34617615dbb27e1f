#include <algorithm>
#include <utility>

#include "bindings/sqlite/cursor.h"
#include "flugs/try.h"

namespace flugs::sqlite {

namespace {

/// Tables of fewer rows are read by one thread, which begins sooner than several.
constexpr double kRowsForThreads = 200'000;
/// No column can have this name of SQL's.
constexpr const char* kIdName = "\x01rowid";

query::Expr condition(const query::Expr& column, Compare op, const Value& value) {
  const query::Expr constant = query::constant(value);
  switch (op) {
    case Compare::kEq:
      return column == constant;
    case Compare::kNe:
      return column != constant;
    case Compare::kLt:
      return column < constant;
    case Compare::kLe:
      return column <= constant;
    case Compare::kGt:
      return column > constant;
    case Compare::kGe:
      return column >= constant;
    case Compare::kIs:
      return value.is_null() ? column.is_null() : column == constant;
  }
  return {};
}

bool is_used(std::uint64_t columns_used, std::size_t column) noexcept {
  return (columns_used & column_bit(column)) != 0;
}

/// What every text begins with that a pattern of GLOB fits.
std::string_view prefix_of(sqlite3_value* pattern) noexcept {
  if (sqlite3_value_type(pattern) != SQLITE_TEXT) return {};
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(pattern));
  if (text == nullptr) return {};
  const std::string_view all(text, static_cast<std::size_t>(sqlite3_value_bytes(pattern)));
  return all.substr(0, all.find_first_of("*?["));
}

}  // namespace

/// False: no row meets it. A list with an unclear value is left to SQLite.
bool Cursor::in_list(query::Expr& condition, const Term& term, sqlite3_value* list) const {
  const Column& column = table_.shape.columns[term.column];
  std::vector<query::Expr> values;
  sqlite3_value* element = nullptr;
  for (int code = sqlite3_vtab_in_first(list, &element); code == SQLITE_OK;
       code = sqlite3_vtab_in_next(list, &element)) {
    const Comparison c = compare(column, Compare::kEq, element);
    if (c.meaning == Meaning::kUnclear) return true;
    if (c.meaning == Meaning::kExact) values.push_back(query::constant(c.value));
  }
  if (values.empty()) return false;
  condition = query::col(column.name).in(std::move(values));
  return true;
}

/// False: no row meets it.
bool Cursor::add_condition(query::Expr& where, const Term& term, sqlite3_value** arguments) const {
  const Column& column = table_.shape.columns[term.column];
  query::Expr more;
  switch (term.kind) {
    case Term::Kind::kIsNull:
      more = query::col(column.name).is_null();
      break;
    case Term::Kind::kIsNotNull:
      more = query::col(column.name).is_not_null();
      break;
    case Term::Kind::kPrefix:
      if (const std::string_view prefix = prefix_of(arguments[term.argument]); !prefix.empty())
        more = query::col(column.name).starts_with(prefix);
      break;
    case Term::Kind::kIn:
      if (!in_list(more, term, arguments[term.argument])) return false;
      break;
    case Term::Kind::kCompare: {
      const Comparison c = compare(column, term.op, arguments[term.argument], term.is_literal);
      if (c.meaning == Meaning::kNothing) return false;
      if (c.meaning == Meaning::kNotNull) more = query::col(column.name).is_not_null();
      if (c.meaning == Meaning::kExact) more = condition(query::col(column.name), c.op, c.value);
      break;
    }
  }
  if (more.is_given()) where = where.is_given() ? where && more : more;
  return true;
}

std::vector<query::Item> Cursor::outputs(const Plan& plan) {
  std::vector<query::Item> items;
  const TableShape& shape = table_.shape;
  lanes_.assign(shape.columns.size(), Lane());
  std::vector<std::uint16_t> noted;  // by note_row
  if (is_noted && shape.has_primary_key) noted = shape.keys.front().columns;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const bool is_sorted = std::any_of(plan.sort.begin(), plan.sort.end(),
                                       [&](const SortColumn& by) { return by.column == i; });
    const bool is_key = std::find(noted.begin(), noted.end(), i) != noted.end();
    lanes_[i].is_used = is_sorted || is_key || is_used(plan.columns_used, i);
    if (!lanes_[i].is_used) continue;
    lanes_[i].place = items.size();
    items.emplace_back(shape.columns[i].name);
  }
  id_place_ = items.size();
  items.emplace_back(query::row_id().as(kIdName));
  return items;
}

Status Cursor::begin_stream(const Plan& plan, sqlite3_value** arguments) {
  has_more_ = true;
  query::Expr where;
  for (const Term& term : plan.terms)
    if (!add_condition(where, term, arguments)) return {};
  query::Query query = query::Query::table(table_.shape.name);
  if (where.is_given()) query = query.where(where);
  query = query.select(outputs(plan));
  if (!plan.sort.empty()) {
    std::vector<query::SortKey> keys;
    for (const SortColumn& by : plan.sort)
      keys.emplace_back(query::col(table_.shape.columns[by.column].name), by.down);
    query = query.order_by(std::move(keys));
  }
  query::RunOptions options;
  options.threads = table_.row_count() < kRowsForThreads || plan.has_limit ? 1 : 0;
  Result<query::ResultStream> stream = query.stream(*transaction_, options);
  if (!stream.ok()) return std::move(stream).status();
  FLUGS_TRY(table_.check_names());
  stream_.emplace(*std::move(stream));
  return next_batch();
}

Status Cursor::next_batch() {
  batch_ = stream_->next();
  if (batch_ == nullptr) {
    source_ = Source::kEnd;
    Status status = stream_->status();
    stream_.reset();
    return status;
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (!lane.is_used) continue;
    const Type type = table_.shape.columns[i].type;
    if (type == Type::kString || type == Type::kBytes) {
      FLUGS_ASSIGN(lane.texts, batch_->texts(lane.place));
    } else if (type == Type::kDouble) {
      FLUGS_ASSIGN(const std::span<const double> doubles, batch_->column<double>(lane.place));
      lane.doubles = doubles.data();
    } else {
      FLUGS_ASSIGN(const std::span<const std::int64_t> integers,
                   batch_->column<std::int64_t>(lane.place));
      lane.integers = integers.data();
    }
    const std::span<const std::uint8_t> nulls = batch_->nulls(lane.place);
    lane.nulls = nulls.empty() ? nullptr : nulls.data();
  }
  FLUGS_ASSIGN(ids_, batch_->column<std::int64_t>(id_place_));
  at_ = 0;
  size_ = batch_->row_count();
  source_ = Source::kStream;
  return {};
}

}  // namespace flugs::sqlite
