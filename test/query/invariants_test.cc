// The checks of query/ fire.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flugs/arrow_export.h"

#include "query/arrow/arrow_buffers.h"
#include "query/arrow/arrow_import_array.h"
#include "query/expressions/bound_expr.h"
#include "query/operators/group_table.h"
#include "query/operators/query_node.h"
#include "query/operators/sort.h"
#include "query/plan/planner.h"
#include "query/plan/query_run.h"
#include "query/scan/pipeline.h"
#include "query/stream/batch_data.h"
#include "query/vectors/rows.h"
#include "query/vectors/run_context.h"
#include "query/vectors/text_store.h"
#include "test/support/check_fires.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

query::Schema one_column() { return {{"a", {Type::kInt64, 0}, nullptr}}; }

/// A batch with one row and one column.
std::shared_ptr<query::BatchData> one_value(Type type) {
  auto data = std::make_shared<query::BatchData>();
  data->schema = std::make_shared<const std::vector<query::ResultColumn>>(
      std::vector<query::ResultColumn>{{"a", type, 0}});
  data->columns.resize(1);
  data->rows = 1;
  std::fill_n(data->columns[0].values.ints(2), 2, 0);
  return data;
}

void to_arrow(std::shared_ptr<query::BatchData> data) {
  ArrowArray array{};
  query::to_arrow(query::StreamBatch(std::move(data)), array);
  array.release(&array);
}

/// A stage that passes nothing on.
class Dam : public query::Stage {
 public:
  void push(const query::Batch&, std::uint32_t) override {}
};

}  // namespace

TEST_CASE("the checks of a query's memory fire", "[query]") {
  using namespace query;
  MemoryBudget budget(100);
  FLUGS_CHECK_FIRES("before >= bytes", budget.give_back(1));
  FLUGS_CHECK_FIRES("used_", [] {
    MemoryBudget other(100);
    other.take(1, "a test");
  }());
  FLUGS_CHECK_FIRES("- bytes_", [&] {
    Charge charge(budget, "a test");
    charge.add(1);
    charge.add(~std::uint64_t{0});
  }());
}

TEST_CASE("the checks of batches and held rows fire", "[query]") {
  using namespace query;
  MemoryBudget budget(1000);
  Charge charge(budget, "a test");
  query::Rows rows;
  rows.schema = one_column();
  FLUGS_CHECK_FIRES("batch.columns.size() >= schema.size()", rows.append(Batch{}, charge));
  FLUGS_CHECK_FIRES("other.schema.size() == schema.size()", rows.take(query::Rows()));
  std::vector<Vec> no_room;
  Batch result;
  Batch batch;
  batch.columns.resize(1);
  FLUGS_CHECK_FIRES("out.size() >= schema.size()",
                    gather(batch, one_column(), nullptr, 0, no_room, result));
  Schema schema = one_column();
  TextStore texts;
  Binder binder(texts, schema);
  const BoundPtr expr = binder.bind(col("a"));
  Evaluator evaluator(binder.slot_count());
  batch.rows = kBatchRows + 1;
  FLUGS_CHECK_FIRES("batch.rows <= kBatchRows", evaluator.evaluate(*expr, batch));
  if (!kHasDebugChecks) return;
  FLUGS_CHECK_FIRES("exponent <= kScaleMax", power_of_ten(19));
  FLUGS_CHECK_FIRES("has_other_unit", unit_ratio({Type::kInt64, 0}, {Type::kInt32, 0}));
  Vec vec;
  FLUGS_CHECK_FIRES("at + count <= capacity", copy_column({}, Form::kInt, 2, vec, 1, 2, false));
  const std::int64_t value = 1;
  const std::uint32_t nowhere = kNoPosition;
  FLUGS_CHECK_FIRES("kNoPosition", gather({&value, nullptr}, Form::kInt, &nowhere, 1, vec));
  batch.rows = 1;
  Evaluator without_slots(0);
  batch.columns[0] = {&value, nullptr};
  const BoundPtr sum = binder.bind(col("a") + col("a"));
  FLUGS_CHECK_FIRES("expr.slot < slots_.size()", without_slots.evaluate(*sum, batch));
}

TEST_CASE("the checks of groups fire", "[query]") {
  using namespace query;
  KeyShape one;
  one.add(false);
  KeyShape two = one;
  two.add(false);
  FLUGS_CHECK_FIRES("ranges.size() == word_count_", GroupTable(two, {3}));
  GroupTable table(one, {});
  const std::uint32_t code = 3;
  std::uint32_t group = 0;
  FLUGS_CHECK_FIRES("is_array()", table.find_codes(&code, 1, &group));
  FLUGS_CHECK_FIRES("words.keys.size() == word_count_", table.find(KeyWords(2), 1, &group));
  if (!kHasDebugChecks) return;
  GroupTable by_array(one, {3});
  FLUGS_CHECK_FIRES("codes[i] < ranges_[0]", by_array.find_codes(&code, 1, &group));
  FLUGS_CHECK_FIRES("group < size()", table.hash(0));
  FLUGS_CHECK_FIRES("group != kNoGroup", DistinctSet().insert(kNoGroup, 1));
}

TEST_CASE("the checks of pipelines fire", "[query]") {
  using namespace query;
  TemporaryDatabase database;
  const Transaction t = must(database->begin());
  RunContext context(std::make_shared<QueryNode>(), t, RunOptions(), 2);
  FLUGS_CHECK_FIRES("query != nullptr", RunContext(nullptr, t, RunOptions(), 2));
  FLUGS_CHECK_FIRES("threads >= 1", RunContext(std::make_shared<QueryNode>(), t, RunOptions(), 0));
  RowsSink sink(context, one_column(), "a test");
  FLUGS_CHECK_FIRES("worker < locals_.size()", sink.push(Batch{}, 2));
  FLUGS_CHECK_FIRES("source != nullptr", Pipeline().run(context, sink));
  FLUGS_CHECK_FIRES("stage != nullptr", Pipeline().add(nullptr));
  RowsSource source(context, std::make_shared<const query::Rows>());
  FLUGS_CHECK_FIRES("morsel < morsels_.size()", source.run(0, 0, sink));
  const Schema schema = one_column();
  FLUGS_CHECK_FIRES("!keys.empty()", SortSink(context, schema, {}, std::nullopt, nullptr));
  LimitStage limit(schema, 1, 0);
  limit.set_next(sink);
  FLUGS_CHECK_FIRES("batch.columns.size() == forms_.size()", limit.push(Batch{}, 0));
  if (kHasDebugChecks) FLUGS_CHECK_FIRES("next_ != nullptr", Dam().is_satisfied());
}

TEST_CASE("the checks of batches for Arrow fire", "[query]") {
  using namespace query;
  to_arrow(one_value(Type::kInt64));
  to_arrow(one_value(Type::kString));
  std::size_t null_count = 0;
  const std::uint8_t two = 2;
  FLUGS_CHECK_FIRES("null_count <= nulls.size()", validity_of({&two, 1}, null_count));
  auto columns = one_value(Type::kInt64);
  columns->columns.resize(2);
  FLUGS_CHECK_FIRES("data->schema->size() == columns", to_arrow(columns));
  auto narrow = one_value(Type::kInt64);
  narrow->columns[0].ints = IntForm::kInt32;
  FLUGS_CHECK_FIRES("from.ints == arrow_form(type)", to_arrow(narrow));
  auto text = one_value(Type::kString);
  text->columns[0].bytes = "more than the offsets say";
  FLUGS_CHECK_FIRES("end == from.bytes.size()", to_arrow(text));
  auto coded = one_value(Type::kString);
  coded->columns[0].dictionary =
      std::make_shared<const TextDictionary>(std::vector<std::int32_t>{0, 1}, "more");
  FLUGS_CHECK_FIRES("texts->bytes().size()", to_arrow(coded));
}

TEST_CASE("the checks of arrays from Arrow fire", "[query]") {
  using namespace query;
  static_assert(!fits_change({ArrayForm::kInt32, Type::kInt64, 0, ArrowChange::kHalf}));
  const std::int64_t values[] = {6};
  const void* buffers[] = {nullptr, values};
  ArrowArray child{};
  child.length = 1;
  child.n_buffers = 2;
  child.buffers = buffers;
  ArrowArray* children[] = {&child};
  const void* no_validity[] = {nullptr};
  ArrowArray rows{};
  rows.length = rows.n_buffers = rows.n_children = 1;
  rows.buffers = no_validity;
  rows.children = children;
  ArrowField field;
  field.format = {ArrayForm::kInt64, Type::kInt64, 0, ArrowChange::kDivided, 3};
  CHECK(ArrowBatch::make(rows, {field}).ok());
  ArrowField by_nothing = field;
  by_nothing.format.factor = 0;
  FLUGS_CHECK_FIRES("fits_change(format)", ArrowBatch::make(rows, {by_nothing}));
  field.entries = ArrowFormat{ArrayForm::kText32, Type::kString};
  FLUGS_CHECK_FIRES("ArrowChange::kNone", ArrowBatch::make(rows, {field}));
}

TEST_CASE("the checks of the planner fire", "[query]") {
  using namespace query;
  TemporaryDatabase database;
  const Transaction t = must(database->begin());
  RunContext context(std::make_shared<QueryNode>(), t, RunOptions(), 1);
  const Planner planner(context);
  QueryNode node;
  node.step = QueryNode::Step::kRename;
  FLUGS_CHECK_FIRES("node.input != nullptr", planner.names(node));
  node.step = QueryNode::Step::kJoin;
  node.input = std::make_shared<QueryNode>();
  FLUGS_CHECK_FIRES("node.right != nullptr", planner.names(node));
  node.step = QueryNode::Step::kLimit;
  node.input = nullptr;
  FLUGS_CHECK_FIRES("node.input != nullptr", planner.names(node));
  RunOptions options;
  options.threads = Crew::kWorkersMax + 1;
  if (kHasDebugChecks) FLUGS_CHECK_FIRES("Crew::kWorkersMax", thread_count(options));
}

}  // namespace flugs::test
