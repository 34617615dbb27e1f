#include "bindings/sqlite/plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace flugs::sqlite {

namespace {

/// A constraint that can be used, as far as it concerns a column.
struct Usable {
  int number = 0;  // of the constraint
  Term term;
  bool is_in = false;
};

struct Found {
  std::vector<Usable> usable;
  bool has_limit = false;
  bool all_usable = true;  ///< SQLite tells of no condition that is not here
};

struct Candidate {
  Plan plan;
  std::vector<Usable> terms;  ///< in the order of plan.terms
  double cost = 0;
  double rows = 0;
  bool sorts = false;
  bool is_one = false;
};

bool is_binary(sqlite3_index_info* info, int constraint) noexcept {
  const char* collation = sqlite3_vtab_collation(info, constraint);
  return collation == nullptr || std::strcmp(collation, "BINARY") == 0;
}

bool term_of(unsigned char op, Term& term) noexcept {
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
      term.op = Compare::kEq;
      return true;
    case SQLITE_INDEX_CONSTRAINT_GT:
      term.op = Compare::kGt;
      return true;
    case SQLITE_INDEX_CONSTRAINT_GE:
      term.op = Compare::kGe;
      return true;
    case SQLITE_INDEX_CONSTRAINT_LT:
      term.op = Compare::kLt;
      return true;
    case SQLITE_INDEX_CONSTRAINT_LE:
      term.op = Compare::kLe;
      return true;
    case SQLITE_INDEX_CONSTRAINT_NE:
      term.op = Compare::kNe;
      return true;
    case SQLITE_INDEX_CONSTRAINT_IS:
      term.op = Compare::kIs;
      return true;
    case SQLITE_INDEX_CONSTRAINT_ISNULL:
      term.kind = Term::Kind::kIsNull;
      return true;
    case SQLITE_INDEX_CONSTRAINT_ISNOTNULL:
      term.kind = Term::Kind::kIsNotNull;
      return true;
    case SQLITE_INDEX_CONSTRAINT_GLOB:
      term.kind = Term::Kind::kPrefix;
      return true;
    default:
      return false;
  }
}

Found find_usable(const TableShape& shape, sqlite3_index_info* info) {
  Found found;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& c = info->aConstraint[i];
    if (c.op == SQLITE_INDEX_CONSTRAINT_LIMIT || c.op == SQLITE_INDEX_CONSTRAINT_OFFSET) {
      found.has_limit = true;
      continue;
    }
    Usable usable{i, {}, false};
    const bool is_column = c.iColumn >= 0 && c.iColumn < static_cast<int>(shape.columns.size());
    if (c.usable == 0 || !term_of(c.op, usable.term) || !is_binary(info, i) ||
        (!is_column && (c.iColumn != -1 || usable.term.op != Compare::kEq ||
                        usable.term.kind != Term::Kind::kCompare))) {
      found.all_usable = false;
      continue;
    }
    const Type type =
        is_column ? shape.columns[static_cast<std::size_t>(c.iColumn)].type : Type::kInt64;
    // SQLite takes NaN for NULL; a pattern is one of a text.
    if ((usable.term.kind == Term::Kind::kIsNull && type == Type::kDouble) ||
        (usable.term.op == Compare::kIs && type == Type::kDouble) ||
        (usable.term.kind == Term::Kind::kPrefix && type != Type::kString)) {
      found.all_usable = false;
      continue;
    }
    sqlite3_value* literal = nullptr;
    usable.term.is_literal =
        type == Type::kString && sqlite3_vtab_rhs_value(info, i, &literal) == SQLITE_OK;
    usable.term.column = is_column ? static_cast<std::uint16_t>(c.iColumn) : kRowIdColumn;
    usable.is_in = usable.term.kind == Term::Kind::kCompare && usable.term.op == Compare::kEq &&
                   is_column && sqlite3_vtab_in(info, i, -1) != 0;
    found.usable.push_back(usable);
  }
  return found;
}

bool fixes(const Usable& usable) noexcept {
  return usable.term.kind == Term::Kind::kIsNull ||
         (usable.term.kind == Term::Kind::kCompare &&
          (usable.term.op == Compare::kEq || usable.term.op == Compare::kIs));
}

bool bounds(const Usable& usable, bool below) noexcept {
  if (usable.term.kind != Term::Kind::kCompare) return false;
  const Compare op = usable.term.op;
  return below ? op == Compare::kGt || op == Compare::kGe
               : op == Compare::kLt || op == Compare::kLe;
}

template <typename Wanted>
const Usable* find(const Found& found, std::uint16_t column, Wanted&& wanted) {
  for (const Usable& u : found.usable)
    if (u.term.column == column && wanted(u)) return &u;
  return nullptr;
}

std::uint16_t add_term(Candidate& candidate, const Usable& usable) {
  candidate.terms.push_back(usable);
  candidate.plan.terms.push_back(usable.term);
  return static_cast<std::uint16_t>(candidate.terms.size() - 1);
}

/// Whether rows of the key, behind its first `equal` columns, come in the order asked for.
bool sorts(const TableShape& shape, const Key& key, std::size_t equal, sqlite3_index_info* info,
           Candidate& candidate) {
  if (info->nOrderBy == 0) return false;
  std::vector<SortColumn> sort;
  std::size_t at = equal;
  for (int i = 0; i < info->nOrderBy; ++i) {
    const auto& by = info->aOrderBy[i];
    if (by.iColumn < 0) return false;
    const auto column = static_cast<std::uint16_t>(by.iColumn);
    // SQLite takes NaN for NULL, which it puts first.
    if (shape.columns[column].type == Type::kDouble) return false;
    const auto end = key.columns.begin() + static_cast<std::ptrdiff_t>(equal);
    const bool is_fixed = std::find(key.columns.begin(), end, column) != end;
    sort.push_back({column, by.desc != 0});
    if (is_fixed) continue;
    if (at == key.columns.size() || key.columns[at] != column) return false;
    if (at > equal && (by.desc != 0) != candidate.plan.down) return false;
    candidate.plan.down = by.desc != 0;
    ++at;
  }
  candidate.plan.sort = std::move(sort);
  return true;
}

double rows_of_prefix(const Key& key, std::size_t equal, double rows) {
  if (key.unique && equal == key.columns.size()) return 1;
  const double part = static_cast<double>(equal) / static_cast<double>(key.columns.size());
  return std::max(1.0, std::pow(rows, 1 - 0.6 * part));
}

bool try_key(const TableShape& shape, const Found& found, std::uint16_t number, double rows,
             sqlite3_index_info* info, Candidate& candidate) {
  const Key& key = shape.keys[number];
  candidate.plan.key = number;
  bool has_in = false;
  bool is_clear = true;
  bool has_null = false;
  for (const std::uint16_t column : key.columns) {
    const Usable* usable = find(found, column, fixes);
    if (usable == nullptr) break;
    Usable term = *usable;
    // One list is taken as a whole; SQLite goes through others itself.
    if (term.is_in && !has_in)
      term.term.kind = Term::Kind::kIn, has_in = true;
    else
      term.is_in = false;
    has_null |= term.term.kind == Term::Kind::kIsNull || term.term.op == Compare::kIs;
    is_clear &= is_always_clear(shape.columns[column].type);
    add_term(candidate, term);
  }
  const std::size_t equal = candidate.terms.size();
  candidate.plan.equal = static_cast<std::uint16_t>(equal);
  if (!key.ordered && (equal < key.hashed || has_null)) return false;
  candidate.rows = rows_of_prefix(key, equal, rows);
  if (has_in) candidate.rows *= 5;
  if (key.unique && equal == key.columns.size() && !has_null) {
    candidate.plan.way = Plan::Way::kGet;
    candidate.is_one = is_clear && !has_in;
    candidate.cost = candidate.rows * 3;
    return true;
  }
  candidate.plan.way = Plan::Way::kWalk;
  bool has_range = false;
  if (key.ordered && !has_in && equal < key.columns.size()) {
    const std::uint16_t column = key.columns[equal];
    if (const Usable* u = find(found, column, [](const Usable& c) { return bounds(c, true); })) {
      candidate.plan.lower = add_term(candidate, *u);
      candidate.rows = std::max(1.0, candidate.rows / 4);
      has_range = true;
    }
    if (const Usable* u = find(found, column, [](const Usable& c) { return bounds(c, false); })) {
      candidate.plan.upper = add_term(candidate, *u);
      candidate.rows = std::max(1.0, candidate.rows / 4);
      has_range = true;
    }
  }
  candidate.sorts = key.ordered && !has_in && sorts(shape, key, equal, info, candidate);
  if (equal == 0 && !has_range && !candidate.sorts) return false;
  candidate.cost = 5 + candidate.rows * 2;
  return true;
}

Candidate scan(const Found& found, double rows) {
  Candidate candidate;
  candidate.rows = rows;
  for (const Usable& usable : found.usable) {
    if (usable.term.column == kRowIdColumn) continue;
    Usable term = usable;
    if (term.is_in) term.term.kind = Term::Kind::kIn;
    add_term(candidate, term);
    candidate.rows *= fixes(usable) ? 0.1 : 0.4;
  }
  candidate.rows = std::max(1.0, candidate.rows);
  candidate.cost = 200 + rows;
  return candidate;
}

Candidate best_of(const TableShape& shape, const Found& found, double rows,
                  sqlite3_index_info* info) {
  for (const Usable& usable : found.usable)
    if (usable.term.column == kRowIdColumn) {
      Candidate by_id;
      by_id.plan.way = Plan::Way::kRowId;
      by_id.rows = 1;
      by_id.cost = 1;
      by_id.is_one = true;
      add_term(by_id, usable);
      return by_id;
    }
  Candidate best = scan(found, rows);
  // What sorting the rows of a scan costs SQLite.
  const double sorting = info->nOrderBy != 0 ? best.rows * (1 + std::log2(best.rows)) : 0;
  double least = best.cost + sorting;
  for (std::size_t i = 0; i < shape.keys.size(); ++i) {
    Candidate candidate;
    if (!try_key(shape, found, static_cast<std::uint16_t>(i), rows, info, candidate)) continue;
    const double cost = candidate.cost + (info->nOrderBy != 0 && !candidate.sorts
                                              ? candidate.rows * (1 + std::log2(candidate.rows + 1))
                                              : 0);
    if (cost < least) {
      least = cost;
      best = std::move(candidate);
    }
  }
  return best;
}

}  // namespace

Plan choose_plan(const TableShape& shape, double rows, sqlite3_index_info* info) {
  const Found found = find_usable(shape, info);
  Candidate best = best_of(shape, found, rows, info);
  int argument = 0;
  bool all_exact = found.all_usable && best.terms.size() == found.usable.size();
  for (std::size_t i = 0; i < best.terms.size(); ++i) {
    const Usable& usable = best.terms[i];
    Term& term = best.plan.terms[i];
    auto& usage = info->aConstraintUsage[usable.number];
    const bool is_clear =
        term.column == kRowIdColumn ||
        (is_always_clear(shape.columns[term.column].type) && term.kind != Term::Kind::kPrefix);
    usage.omit = is_clear ? 1 : 0;
    all_exact &= is_clear;
    if (usable.is_in) {
      sqlite3_vtab_in(info, usable.number, term.kind == Term::Kind::kIn ? 1 : 0);
    }
    term.argument = static_cast<std::uint16_t>(argument);
    usage.argvIndex = ++argument;
  }
  // The number itself is of no use: SQLite may leave rows out by conditions that are not here, as
  // those between two columns of a table.
  best.plan.has_limit = all_exact && (info->nOrderBy == 0 || best.sorts) && found.has_limit;
  best.plan.columns_used = info->colUsed;
  info->estimatedCost = best.cost;
  info->estimatedRows = static_cast<sqlite3_int64>(best.rows);
  info->orderByConsumed = best.sorts ? 1 : 0;
  if (best.is_one) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
  return best.plan;
}

std::string describe(const TableShape& shape, const Plan& plan) {
  std::string text = plan.way == Plan::Way::kScan    ? "scan"
                     : plan.way == Plan::Way::kRowId ? "row id"
                                                     : shape.keys[plan.key].name;
  if (plan.terms.empty()) return text;
  static constexpr const char* kOps[] = {"=", "<>", "<", "<=", ">", ">=", " is "};
  text += " (";
  for (std::size_t i = 0; i < plan.terms.size(); ++i) {
    const Term& term = plan.terms[i];
    if (i != 0) text += " and ";
    text += term.column == kRowIdColumn ? "rowid" : shape.columns[term.column].name;
    switch (term.kind) {
      case Term::Kind::kCompare:
        text += std::string(kOps[static_cast<std::size_t>(term.op)]) + "?";
        break;
      case Term::Kind::kIn:
        text += " in ?";
        break;
      case Term::Kind::kIsNull:
        text += " is null";
        break;
      case Term::Kind::kIsNotNull:
        text += " is not null";
        break;
      case Term::Kind::kPrefix:
        text += " glob ?";
        break;
    }
  }
  return text + ")";
}

}  // namespace flugs::sqlite
