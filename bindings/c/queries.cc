#include <utility>

#include "bindings/c/expressions.h"
#include "bindings/c/options.h"
#include "bindings/c/schema.h"
#include "bindings/c/streams.h"
#include "flugs/query.h"

struct flugs_query : flugs::c::Handle<flugs::c::Kind::kQuery> {
  explicit flugs_query(flugs::query::Query query) : core(std::move(query)) {}
  flugs::query::Query core;
};

namespace flugs::c {

namespace {

using query::AggregateKind;
using query::Item;
using query::Query;

static_assert(static_cast<int>(AggregateKind::kCountRows) == FLUGS_COUNT_ROWS);
static_assert(static_cast<int>(AggregateKind::kCount) == FLUGS_COUNT);
static_assert(static_cast<int>(AggregateKind::kCountDistinct) == FLUGS_COUNT_DISTINCT);
static_assert(static_cast<int>(AggregateKind::kSum) == FLUGS_SUM);
static_assert(static_cast<int>(AggregateKind::kMin) == FLUGS_MIN);
static_assert(static_cast<int>(AggregateKind::kMax) == FLUGS_MAX);
static_assert(static_cast<int>(AggregateKind::kAvg) == FLUGS_AVG);
static_assert(static_cast<int>(AggregateKind::kVariance) == FLUGS_VARIANCE);
static_assert(static_cast<int>(AggregateKind::kStddev) == FLUGS_STDDEV);
static_assert(static_cast<int>(AggregateKind::kQuantile) == FLUGS_QUANTILE);
static_assert(static_cast<int>(AggregateKind::kMedian) == FLUGS_MEDIAN);
static_assert(static_cast<int>(AggregateKind::kApproxCountDistinct) == FLUGS_APPROX_COUNT_DISTINCT);

template <typename Work>
flugs_error* with_query(flugs_query* query, Work&& work) noexcept {
  return guarded([&]() -> flugs_error* {
    if (!is_handle(query)) return no_handle("query");
    return std::forward<Work>(work)(query->core);
  });
}

/// Adds a step that is made of `taken`: query = step(query).
template <typename Step>
flugs_error* add_step(flugs_query* query, const TakenExpressions& taken, Step&& step) noexcept {
  return with_query(query, [&](Query& q) -> flugs_error* {
    if (flugs_error* error = taken.error()) return error;
    q = std::forward<Step>(step)(q);
    return nullptr;
  });
}

Query joined(const Query& left, flugs_join kind, const Query& right, std::vector<query::JoinKey> on,
             const query::Expr& also) {
  switch (kind) {
    case FLUGS_JOIN_LEFT:
      return left.left_join(right, std::move(on), also);
    case FLUGS_JOIN_SEMI:
      return left.semi_join(right, std::move(on), also);
    case FLUGS_JOIN_ANTI:
      return left.anti_join(right, std::move(on), also);
    default:
      return left.join(right, std::move(on), also);
  }
}

/// Reads kinds and names, and takes the expressions over, also when it fails.
flugs_error* aggregates_from_c(const flugs_aggregate* given, std::size_t count,
                               TakenExpressions& taken, std::vector<query::Aggregate>& out) {
  if (given == nullptr && count > 0) return no_pointer("aggregates");
  for (std::size_t i = 0; i < count; ++i)
    if (given[i].of != nullptr) taken.add(&given[i].of, 1);
  if (flugs_error* error = taken.error()) return error;
  std::size_t next = taken.size();
  for (std::size_t i = 0; i < count; ++i) next -= given[i].of != nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const flugs_aggregate& aggregate = given[i];
    if (aggregate.kind < FLUGS_COUNT_ROWS || aggregate.kind > FLUGS_APPROX_COUNT_DISTINCT)
      return misuse("aggregates: no kind has the number " + std::to_string(aggregate.kind));
    if ((aggregate.of == nullptr) != (aggregate.kind == FLUGS_COUNT_ROWS))
      return misuse("aggregates: FLUGS_COUNT_ROWS has no argument, and the others have one");
    out.push_back({static_cast<AggregateKind>(aggregate.kind),
                   aggregate.of != nullptr ? taken.expression(next++) : query::Expr(),
                   aggregate.name != nullptr ? aggregate.name : "",
                   aggregate.kind == FLUGS_QUANTILE ? aggregate.reserved / 1e6 : 0});
  }
  return nullptr;
}

Status read_run_options(const flugs_options* given, query::RunOptions& out) {
  if (given == nullptr) return {};
  OptionReader reader(given);
  reader.number("threads", out.threads);
  reader.number("memory_bytes_max", out.memory_bytes_max);
  reader.text("temporary_folder", out.temporary_folder);
  return reader.finish();
}

/// `work(transaction, options)` of a query that runs.
template <typename Work>
flugs_error* run(const flugs_query* query, flugs_transaction* transaction,
                 const flugs_options* options, Work&& work) noexcept {
  return with_transaction(transaction, [&](flugs_transaction& t) -> flugs_error* {
    if (!is_handle(query)) return no_handle("query");
    query::RunOptions how;
    if (flugs_error* error = to_c(read_run_options(options, how))) return error;
    return std::forward<Work>(work)(t, how);
  });
}

}  // namespace

}  // namespace flugs::c

using flugs::c::add_step;
using flugs::c::guarded;
using flugs::c::no_pointer;
using flugs::c::TakenExpressions;
using flugs::query::Query;

extern "C" {

flugs_error* flugs_query_table(const char* table, flugs_query** out) {
  return guarded([&]() -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    *out = nullptr;
    if (table == nullptr) return no_pointer("table");
    *out = new flugs_query(Query::table(table));
    return nullptr;
  });
}

flugs_error* flugs_query_copy(const flugs_query* query, flugs_query** out) {
  return guarded([&]() -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    *out = nullptr;
    if (!flugs::c::is_handle(query)) return flugs::c::no_handle("query");
    *out = new flugs_query(query->core);
    return nullptr;
  });
}

flugs_error* flugs_query_where(flugs_query* query, flugs_expr* condition) {
  return guarded([&] {
    const TakenExpressions taken(&condition, 1);
    return add_step(query, taken, [&](const Query& q) { return q.where(taken.expression(0)); });
  });
}

flugs_error* flugs_query_select(flugs_query* query, flugs_expr* const* outputs,
                                size_t output_count) {
  return guarded([&] {
    const TakenExpressions taken(outputs, output_count);
    return add_step(query, taken, [&](const Query& q) {
      return q.select(taken.as<flugs::query::Item>(0, output_count));
    });
  });
}

flugs_error* flugs_query_select_columns(flugs_query* query, const char* const* columns,
                                        size_t column_count) {
  return flugs::c::with_query(query, [&](Query& q) -> flugs_error* {
    std::vector<std::string> names;
    if (flugs_error* error = flugs::c::names_from_c(columns, column_count, names)) return error;
    q = q.select({names.begin(), names.end()});
    return nullptr;
  });
}

flugs_error* flugs_query_as(flugs_query* query, const char* prefix) {
  return flugs::c::with_query(query, [&](Query& q) -> flugs_error* {
    if (prefix == nullptr) return no_pointer("prefix");
    q = q.as(prefix);
    return nullptr;
  });
}

flugs_error* flugs_query_join(flugs_query* query, flugs_join kind, const flugs_query* right,
                              flugs_expr* const* left_keys, flugs_expr* const* right_keys,
                              size_t key_count, flugs_expr* also) {
  return guarded([&]() -> flugs_error* {
    TakenExpressions taken(left_keys, key_count);
    taken.add(right_keys, key_count);
    if (also != nullptr) taken.add(&also, 1);
    if (kind < FLUGS_JOIN_INNER || kind > FLUGS_JOIN_ANTI)
      return flugs::c::misuse("kind: no such number");
    if (!flugs::c::is_handle(right)) return flugs::c::no_handle("right");
    return add_step(query, taken, [&](const Query& q) {
      std::vector<flugs::query::JoinKey> on;
      for (std::size_t i = 0; i < key_count; ++i)
        on.emplace_back(taken.expression(i), taken.expression(key_count + i));
      return flugs::c::joined(
          q, kind, right->core, std::move(on),
          also != nullptr ? taken.expression(2 * key_count) : flugs::query::Expr());
    });
  });
}

flugs_error* flugs_query_group_by(flugs_query* query, flugs_expr* const* keys, size_t key_count,
                                  const flugs_aggregate* aggregates, size_t aggregate_count) {
  return guarded([&]() -> flugs_error* {
    TakenExpressions taken(keys, key_count);
    std::vector<flugs::query::Aggregate> figures;
    if (flugs_error* error =
            flugs::c::aggregates_from_c(aggregates, aggregate_count, taken, figures))
      return error;
    return add_step(query, taken, [&](const Query& q) {
      return q.group_by(taken.as<flugs::query::Item>(0, key_count), std::move(figures));
    });
  });
}

flugs_error* flugs_query_distinct(flugs_query* query) {
  return add_step(query, {}, [](const Query& q) { return q.distinct(); });
}

flugs_error* flugs_query_order_by(flugs_query* query, flugs_expr* const* keys,
                                  const uint8_t* descending, size_t key_count) {
  return guarded([&] {
    const TakenExpressions taken(keys, key_count);
    return add_step(query, taken, [&](const Query& q) {
      std::vector<flugs::query::SortKey> sort;
      for (std::size_t i = 0; i < key_count; ++i)
        sort.emplace_back(flugs::query::Item(taken.expression(i)),
                          descending != nullptr && descending[i] != 0);
      return q.order_by(std::move(sort));
    });
  });
}

flugs_error* flugs_query_limit(flugs_query* query, uint64_t rows, uint64_t offset) {
  return add_step(query, {}, [&](const Query& q) { return q.limit(rows, offset); });
}

flugs_error* flugs_query_stream(const flugs_query* query, flugs_transaction* transaction,
                                const flugs_options* options, struct ArrowArrayStream* out) {
  if (out != nullptr) *out = {};
  return flugs::c::run(
      query, transaction, options,
      [&](flugs_transaction& t, const flugs::query::RunOptions& how) -> flugs_error* {
        if (out == nullptr) return no_pointer("out");
        flugs::Result<flugs::query::ResultStream> stream = query->core.stream(t.core, how);
        if (!stream.ok()) return flugs::c::to_c(stream.status());
        flugs::c::to_arrow(*std::move(stream), t, *out);
        return nullptr;
      });
}

flugs_error* flugs_query_explain(const flugs_query* query, flugs_transaction* transaction,
                                 const flugs_options* options, char** out) {
  if (out != nullptr) *out = nullptr;
  return flugs::c::run(
      query, transaction, options,
      [&](flugs_transaction& t, const flugs::query::RunOptions& how) -> flugs_error* {
        if (out == nullptr) return no_pointer("out");
        const flugs::Result<std::string> plan = query->core.explain(t.core, how);
        if (!plan.ok()) return flugs::c::to_c(plan.status());
        *out = flugs::c::copy_of(*plan);
        return nullptr;
      });
}

void flugs_query_free(flugs_query* query) {
  if (flugs::c::is_handle(query)) delete query;
}
}
