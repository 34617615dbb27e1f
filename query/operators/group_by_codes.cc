#include <algorithm>

#include "base/check.h"
#include "query/operators/group_by.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

using columns::MainColumn;

// Bits for count distinct: always up to 1 MB per worker, else up to a byte per row, 128 MB at most.
constexpr std::uint64_t kBitsAnyway = 1u << 23;
constexpr std::uint64_t kBitsPerRow = 8;
constexpr std::uint64_t kBitsMax = 1u << 30;
// With fewer rows, columns are read one by one.
constexpr std::size_t kSparseForGroups = 64;

}  // namespace

std::vector<std::uint32_t> GroupBySink::columns_of_keys() const {
  std::vector<std::uint32_t> columns;
  columns.reserve(keys_.size());
  for (const Key& key : keys_) {
    FLUGS_CHECK(key.expr->op == Op::kColumn);
    columns.push_back(key.expr->column);
  }
  return columns;
}

void GroupBySink::choose_bits() {
  bit_domains_.resize(aggregates_.size());
  if (!keys_.empty()) return;
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    if (!aggregates_[a].is_distinct() || aggregates_[a].form() != Form::kCode) continue;
    const std::uint32_t count = aggregates_[a].of->result_domain->count();
    if (fits_bits(count, count)) bit_domains_[a].count = count;
  }
}

bool GroupBySink::fits_bits(std::uint64_t count, std::uint64_t rows) const noexcept {
  return count != 0 && count <= std::max(kBitsAnyway, rows * kBitsPerRow) && count <= kBitsMax &&
         count / 8 * (context_.threads + 1) <= context_.budget.bytes_max() / 4;
}

void GroupBySink::expect(const Source& source) {
  // A worker's bits are made with its first row.
  FLUGS_CHECK(
      std::none_of(locals_.begin(), locals_.end(), [](const auto& l) { return l != nullptr; }));
  if (!keys_.empty()) return;
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    const BoundAggregate& aggregate = aggregates_[a];
    if (!aggregate.is_distinct() || aggregate.of->op != Op::kColumn) continue;
    if (aggregate.form() != Form::kInt) continue;
    const std::optional<PayloadRange> range = source.likely_range(aggregate.of->column);
    if (!range) continue;
    const std::uint64_t count =
        static_cast<std::uint64_t>(range->greatest) - static_cast<std::uint64_t>(range->least) + 1;
    if (fits_bits(count, range->rows)) bit_domains_[a] = {count, range->least};
  }
}

void GroupBySink::note_distinct(std::size_t a, std::uint32_t group, Distinct value,
                                Local& local) const {
  const BitDomain& domain = bit_domains_[a];
  const std::uint64_t bit = value.word - static_cast<std::uint64_t>(domain.low);
  FLUGS_DCHECK(domain.count == 0 ||
               (group == 0 && local.groups.bits[a].size() * 64 > domain.count));
  if (bit < domain.count) {
    local.groups.bits[a][bit / 64] |= std::uint64_t{1} << (bit % 64);
    return;
  }
  local.groups.distinct[a].insert(group, value.word, value.mark);
}

std::uint64_t GroupBySink::bytes_of(const Local& local) noexcept {
  std::uint64_t sum = local.groups.bytes();
  if (local.codes) sum += local.codes->bytes();
  for (const CodeMarks& marks : local.marks) sum += marks.bytes();
  return sum;
}

bool GroupBySink::push_masked(const ScanUnit& unit, const std::vector<std::uint32_t>& columns,
                              std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                              std::size_t selected, std::uint32_t worker) {
  FLUGS_DCHECK(selected != 0 && selected <= count);
  const bool is_sparse = selected * kSparseForGroups < count;
  if (is_by_codes_)
    return !is_sparse &&
           push_by_codes(unit, columns, first, count, mask, selected, local_of(worker));
  if (!is_of_columns_) return false;
  Local& local = local_of(worker);
  std::vector<AggregateState> states(aggregates_.size());
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    const BoundExpr* of = aggregates_[a].of.get();
    const std::uint32_t column = of == nullptr ? 0 : columns[of->column];
    // Marks may stay if the rows come again, in batches.
    const bool done =
        aggregates_[a].is_distinct()
            ? !is_sparse && mark_distinct(a, unit, column, first, count, mask, local)
            : state_of(aggregates_[a], unit, column, first, count, mask, selected, states[a]);
    if (!done) return false;
  }
  local.groups.table.find(local.words, 1, local.group_of.data());
  local.groups.grow_states(aggregates_.size());
  for (std::size_t a = 0; a < aggregates_.size(); ++a)
    merge(aggregates_[a], states[a], local.groups.states[a], local.kept);
  local.groups.charge.set(bytes_of(local));
  return true;
}

bool GroupBySink::push_by_codes(const ScanUnit& unit, const std::vector<std::uint32_t>& columns,
                                std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                                std::size_t selected, Local& local) const {
  FLUGS_CHECK(local.codes.has_value());
  CodeGroups::Fit fit = local.codes->enter(unit, columns);
  if (fit == CodeGroups::Fit::kAfterHandOver) {
    hand_over_codes(local);
    fit = local.codes->enter(unit, columns);
    FLUGS_CHECK(fit != CodeGroups::Fit::kAfterHandOver);
  }
  if (fit != CodeGroups::Fit::kYes) return false;
  local.codes->take(first, count, mask);
  local.rows_by_codes += selected;
  local.groups.charge.set(bytes_of(local));
  return true;
}

void GroupBySink::put_entry(std::size_t k, const ScanUnit& unit, const CodeGroups::Key& of,
                            std::uint64_t code, std::size_t row, KeyWords& words) const {
  const MainColumn& column = *of.column;
  const Key& key = keys_[k];
  const bool is_null = column.entry_is_null(code);
  words.note_null(key.word, row, is_null);
  std::uint64_t& word = words.keys[key.word][row];
  if (is_null) {
    word = 0;
    if (key.is_text()) words.keys[key.word + 1][row] = 0;
  } else if (key.is_text()) {
    words.put_text(key.word, row, column.entry_text(code));
  } else if (key.expr->form == Form::kCode) {
    word = unit.domain_code(of.table_column, code);
  } else {
    word = static_cast<std::uint64_t>(column.entry_integer(code));
    if (key.expr->type.type == Type::kBool) word = word != 0 ? 1 : 0;
  }
}

void GroupBySink::hand_over_codes(Local& local) const {
  CodeGroups& codes = *local.codes;
  if (codes.is_empty()) return;
  codes.finish();
  ++local.hand_overs;
  std::vector<std::uint32_t> found;
  for (std::uint32_t group = 0; group < codes.size(); ++group)
    if (codes.rows(group) != 0) found.push_back(group);
  const std::size_t stride = aggregates_.size();
  for (std::size_t first = 0; first < found.size(); first += kBatchRows) {
    const std::size_t n = std::min(kBatchRows, found.size() - first);
    local.words.clear_nulls(n);
    for (std::size_t k = 0; k < keys_.size(); ++k)
      for (std::size_t i = 0; i < n; ++i)
        put_entry(k, codes.unit(), codes.key(k), codes.code(found[first + i], k), i, local.words);
    local.groups.table.find(local.words, n, local.group_of.data());
    local.groups.grow_states(stride);
    FLUGS_CHECK(local.groups.states.size() >= local.groups.table.size() * stride);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t a = 0; a < stride; ++a)
        merge(aggregates_[a], codes.state(found[first + i], a),
              local.groups.states[local.group_of[i] * stride + a], local.kept);
    local.table_past.taken += n;
    empty_if_full(local);
  }
  codes.clear();
}

bool GroupBySink::mark_distinct(std::size_t a, const ScanUnit& unit, std::uint32_t column,
                                std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                                Local& local) const {
  FLUGS_DCHECK(keys_.empty() && aggregates_[a].is_distinct());
  const MainColumn* packed = unit.packed(column);
  if (packed == nullptr) return false;
  const BitDomain& domain = bit_domains_[a];
  if (domain.count != 0 && aggregates_[a].form() == Form::kInt && !packed->has_entries())
    return mark_payloads(*packed, first, count, mask, domain.low, local.groups.bits[a]);
  if (!CodeMarks::fits(*packed)) return false;
  if (!local.marks[a].continues(*packed)) hand_over_marks(a, local);
  local.marks[a].take(unit, column, first, count, mask);
  return true;
}

void GroupBySink::hand_over_marks(std::size_t a, Local& local) const {
  if (!keys_.empty()) return;  // no marks
  const BoundAggregate& aggregate = aggregates_[a];
  local.groups.table.find(local.words, 1, local.group_of.data());
  local.groups.grow_states(aggregates_.size());
  const DistinctSet& set = local.groups.distinct[a];
  local.marks[a].hand_over([&](const ScanUnit& unit, std::uint32_t table_column,
                               const MainColumn& column, std::uint64_t code) {
    Distinct value;
    if (aggregate.form() == Form::kText) {
      const std::string_view text = column.entry_text(code);
      value = {reinterpret_cast<std::uint64_t>(text.data()), text_mark(text)};
    } else if (aggregate.form() == Form::kCode) {
      value.word = unit.domain_code(table_column, code);
    } else {
      value.word = static_cast<std::uint64_t>(column.entry_integer(code));
    }
    note_distinct(a, 0, value, local);
    if (set.size() != 0 && set.size() % kBatchRows == 0) empty_if_full(local);
  });
}

void GroupBySink::hand_over(Local& local) const {
  if (local.codes) hand_over_codes(local);
  for (std::size_t a = 0; a < aggregates_.size(); ++a) hand_over_marks(a, local);
  local.groups.charge.set(bytes_of(local));
}

}  // namespace flugs::query
