// Queries whose results the model knows.
#include <algorithm>
#include <map>

#include "query/operators/query_node.h"
#include "test/model/exerciser.h"

namespace flugs::test {

namespace {

using query::col;
using query::Query;
using query::QueryResult;

bool is_less(const ModelValue& a, const ModelValue& b) { return compare(a, b) < 0; }

/// Whether a comparison selects the value; NULL equals nothing.
bool is_equal(const ModelValue& a, const ModelValue& b) {
  return !a.null && !b.null && compare(a, b) == 0;
}

__extension__ using Int128 = __int128;

struct Totals {
  std::int64_t rows = 0;
  std::int64_t values = 0;
  Int128 sum = 0;
  std::optional<ModelValue> least;
  std::optional<ModelValue> greatest;

  void add(const ModelValue& value) {
    ++rows;
    if (value.null) return;
    ++values;
    sum += value.raw;
    if (!least || is_less(value, *least)) least = value;
    if (!greatest || is_less(*greatest, value)) greatest = value;
  }
};

void add_text(std::string& row, bool is_null, const std::string& value) {
  row += is_null ? "NULL | " : value + " | ";
}

/// The rows of a result, and those that a stream has left, as sorted texts.
std::vector<std::string> texts_of(const QueryResult& result) {
  std::vector<std::string> rows(result.row_count());
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t c = 0; c < result.columns().size(); ++c) {
      const Value value = result.get_unchecked(row, c);
      const Lane lane = lane_of(result.columns()[c].type);
      add_text(rows[row], value.is_null(),
               lane == Lane::kText   ? std::string(value.as_string())
               : lane == Lane::kReal ? std::to_string(value.as_double())
                                     : std::to_string(value.raw()));
    }
  std::sort(rows.begin(), rows.end());
  return rows;
}

void add_texts(const std::vector<query::ResultColumn>& columns, const query::StreamBatch& batch,
               std::vector<std::string>& rows) {
  const std::size_t first = rows.size();
  rows.resize(first + batch.row_count());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const Lane lane = lane_of(columns[c].type);
    for (std::size_t row = 0; row < batch.row_count(); ++row)
      add_text(rows[first + row], !batch.nulls(c).empty() && batch.nulls(c)[row] != 0,
               lane == Lane::kText   ? std::string(batch.texts(c).value()[row])
               : lane == Lane::kReal ? std::to_string(batch.column<double>(c).value()[row])
                                     : std::to_string(batch.column<std::int64_t>(c).value()[row]));
  }
}

std::vector<std::string> texts_of(query::ResultStream& stream) {
  std::vector<std::string> rows;
  for (const query::StreamBatch& batch : stream) add_texts(stream.columns(), batch, rows);
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// Pulled by the numbers of two threads in turn.
std::vector<std::string> texts_of(query::SharedStream& stream) {
  std::vector<std::string> rows;
  for (bool is_left = true; is_left;) {
    is_left = false;
    for (const std::uint32_t thread : {1u, 0u}) {
      const Result<const query::StreamBatch*> batch = stream.next(thread);
      if (!batch.ok() || *batch == nullptr) continue;
      add_texts(stream.columns(), **batch, rows);
      is_left = true;
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

std::optional<QueryResult> Exerciser::ask(Open& open, const Query& query, Outcomes expected,
                                          const std::string& what) {
  calls_.add(Call::kQueryRun);
  query::RunOptions options;
  options.threads = random_.chance(90) ? 1 : 2;
  Result<QueryResult> result = query.run(*open.real, options);
  expect_code(expected, result.status(), what);
  if (!result.ok()) return {};
  if (random_.chance(30) && query.node()->step != query::QueryNode::Step::kLimit) {
    calls_.add(Call::kQueryStream);
    Result<query::ResultStream> stream = query.stream(*open.real, options);
    expect_code({StatusCode::kOk}, stream.status(), "stream of " + what);
    if (stream.ok()) {
      expect(texts_of(*stream) == texts_of(*result), "rows of the stream of " + what);
      expect_code({StatusCode::kOk}, stream->status(), "end of the stream of " + what);
    }
  }
  if (random_.chance(20) && query.node()->step != query::QueryNode::Step::kLimit) {
    calls_.add(Call::kQueryShare);
    options.threads = 2;
    Result<query::SharedStream> stream = query.share(*open.real, options);
    // Not for a transaction that has tried to write, which the model does not know.
    expect_code(Outcomes() | StatusCode::kInvalidArgument, stream.status(),
                "shared stream of " + what);
    if (stream.ok())
      expect(texts_of(*stream) == texts_of(*result), "rows of the shared stream of " + what);
  }
  return *std::move(result);
}

void Exerciser::query(Open& open, ModelTable& table) {
  model_.note_read(*open.model, table);
  calls_.add(Call::kQueryTable);
  switch (random_.below(4)) {
    case 0:
      return query_totals(open, table);
    case 1:
      return query_groups(open, table);
    case 2:
      return query_order(open, table);
    default:
      return query_joins(open, table);
  }
}

// Count, sum, least and greatest value of a column, filtered by another one.
void Exerciser::query_totals(Open& open, ModelTable& table) {
  const auto filter = pick_column(table);
  const auto of = pick_column(table);
  if (!filter || !of) return;
  const ColumnSchema& filtered = table.schema.columns[*filter];
  const ColumnSchema& summed = table.schema.columns[*of];
  const auto some = pick(open, table);
  const ModelValue wanted = some ? (*some->row)[*filter] : random_cell(open, table, *filter);
  const bool is_less_wanted = random_.chance(50);
  Totals totals;
  for (const SeenRow& row : model_.see_all(*open.model, table)) {
    const ModelValue& value = (*row.row)[*filter];
    const bool is_selected = is_less_wanted ? !value.null && !wanted.null && is_less(value, wanted)
                                            : is_equal(value, wanted);
    if (is_selected) totals.add((*row.row)[*of]);
  }
  const query::Expr constant = query::constant(wanted.view().with_scale(filtered.scale));
  const Query where =
      Query::table(table.schema.name)
          .where(is_less_wanted ? col(filtered.name) < constant : col(filtered.name) == constant);
  std::vector<query::Aggregate> aggregates = {
      query::count().as("rows"), query::count(col(summed.name)).as("values"),
      query::min(col(summed.name)).as("least"), query::max(col(summed.name)).as("greatest")};
  Outcomes expected;
  if (is_number(summed.type)) {
    aggregates.push_back(query::sum(col(summed.name)).as("sum"));
    if (totals.sum != static_cast<std::int64_t>(totals.sum)) expected = StatusCode::kOverflow;
  }
  calls_.add(Call::kQueryWhere);
  calls_.add(Call::kQueryGroupBy);
  const auto result = ask(open, where.group_by({}, aggregates), expected, "query of totals");
  if (!result) return;
  const auto value_of = [](const std::optional<ModelValue>& value) {
    return value ? value->view() : Value::null();
  };
  bool is_same = result->row_count() == 1 && result->get_unchecked(0, 0).raw() == totals.rows &&
                 result->get_unchecked(0, 1).raw() == totals.values &&
                 result->get_unchecked(0, 2) == value_of(totals.least) &&
                 result->get_unchecked(0, 3) == value_of(totals.greatest);
  if (is_number(summed.type))
    is_same &= totals.values == 0 ? result->get_unchecked(0, 4).is_null()
                                  : result->get_unchecked(0, 4).raw() == totals.sum;
  if (!is_same) expect(false, "query of totals: another answer");
}

// Rows for each value of a column, with at least two of them; the values are distinct.
void Exerciser::query_groups(Open& open, ModelTable& table) {
  const auto by = pick_column(table);
  if (!by) return;
  const std::string& name = table.schema.columns[*by].name;
  std::map<ModelValue, std::int64_t, bool (*)(const ModelValue&, const ModelValue&)> groups(
      is_less);
  for (const SeenRow& row : model_.see_all(*open.model, table)) ++groups[(*row.row)[*by]];
  calls_.add(Call::kQueryGroupBy);
  calls_.add(Call::kQueryHaving);
  const auto counted = ask(open,
                           Query::table(table.schema.name)
                               .group_by({col(name).as("g")}, {query::count().as("n")})
                               .having(col("n") >= 2),
                           {}, "query of groups");
  calls_.add(Call::kQuerySelect);
  calls_.add(Call::kQueryDistinct);
  const auto distinct =
      ask(open, Query::table(table.schema.name).select({col(name).as("g")}).distinct(), {},
          "query of distinct values");
  if (!counted || !distinct) return;
  expect(distinct->row_count() == groups.size(), "query of distinct values: another number");
  const auto wanted = std::count_if(groups.begin(), groups.end(),
                                    [](const auto& group) { return group.second >= 2; });
  expect(counted->row_count() == static_cast<std::size_t>(wanted),
         "query of groups: another number");
  const Type type = table.schema.columns[*by].type;
  for (std::size_t i = 0; i < counted->row_count(); ++i) {
    const auto group = groups.find(ModelValue::of(type, counted->get_unchecked(i, 0)));
    expect(group != groups.end() && group->second == counted->get_unchecked(i, 1).raw(),
           "query of groups: another count");
  }
}

// Some of a column's values in order; once more from the result.
void Exerciser::query_order(Open& open, ModelTable& table) {
  const auto by = pick_column(table);
  if (!by) return;
  const std::string& name = table.schema.columns[*by].name;
  std::vector<ModelValue> values;
  for (const SeenRow& row : model_.see_all(*open.model, table)) values.push_back((*row.row)[*by]);
  std::stable_sort(values.begin(), values.end(), is_less);
  const bool descends = random_.chance(50);
  if (descends) std::reverse(values.begin(), values.end());
  const std::size_t offset = random_.below(4);
  const std::size_t rows = random_.below(20);
  calls_.add(Call::kQueryOrderBy);
  calls_.add(Call::kQueryLimit);
  const auto result = ask(open,
                          Query::table(table.schema.name)
                              .select({col(name).as("v")})
                              .order_by({descends ? query::desc("v") : query::asc("v")})
                              .limit(rows, offset),
                          {}, "query in order");
  if (!result) return;
  values.erase(values.begin(),
               values.begin() + static_cast<std::ptrdiff_t>(std::min(offset, values.size())));
  values.resize(std::min(rows, values.size()));
  expect(result->row_count() == values.size(), "query in order: another number of rows");
  for (std::size_t i = 0; i < std::min(values.size(), result->row_count()); ++i)
    expect(result->get_unchecked(i, 0) == values[i].view(), "query in order: another value");
  calls_.add(Call::kQueryOf);
  const auto again =
      ask(open, Query::of(*result).group_by({}, {query::count().as("n")}), {}, "query of a result");
  if (again)
    expect(again->get_unchecked(0, 0).raw() == static_cast<std::int64_t>(values.size()),
           "query of a result: another number of rows");
}

// Joins a table with itself by one column.
void Exerciser::query_joins(Open& open, ModelTable& table) {
  const auto by = pick_column(table);
  if (!by) return;
  const std::string& name = table.schema.columns[*by].name;
  std::map<ModelValue, std::int64_t, bool (*)(const ModelValue&, const ModelValue&)> groups(
      is_less);
  std::int64_t nulls = 0;
  for (const SeenRow& row : model_.see_all(*open.model, table)) {
    const ModelValue& value = (*row.row)[*by];
    if (value.null)
      ++nulls;
    else
      ++groups[value];
  }
  std::int64_t pairs = 0;
  std::int64_t partners = 0;
  for (const auto& [value, count] : groups) {
    pairs += count * count;
    partners += count;
  }
  calls_.add(Call::kQueryAs);
  const Query left = Query::table(table.schema.name).select({col(name).as("k")}).as("a");
  const Query right = Query::table(table.schema.name).select({col(name).as("k")}).as("b");
  const std::vector<query::JoinKey> on = {{"a.k", "b.k"}};
  Query joined = left;
  std::int64_t expected = 0;
  switch (random_.below(4)) {
    case 0:
      calls_.add(Call::kQueryJoin);
      joined = left.join(right, on);
      expected = pairs;
      break;
    case 1:
      calls_.add(Call::kQueryLeftJoin);
      joined = left.left_join(right, on);
      expected = pairs + nulls;
      break;
    case 2:
      calls_.add(Call::kQuerySemiJoin);
      joined = left.semi_join(right, on);
      expected = partners;
      break;
    default:
      calls_.add(Call::kQueryAntiJoin);
      joined = left.anti_join(right, on);
      expected = nulls;
  }
  const auto result = ask(open, joined.group_by({}, {query::count().as("n")}), {}, "join");
  if (result && result->get_unchecked(0, 0).raw() != expected)
    expect(false, "join of " + table.schema.name + " by " + name + ": expected " +
                      std::to_string(expected) + " rows, found " +
                      std::to_string(result->get_unchecked(0, 0).raw()));
}

}  // namespace flugs::test
