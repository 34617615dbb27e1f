#include "query/operators/sort.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "base/parallel_sort.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {
// Rows that a worker collects before it drops those that cannot be among the first.
constexpr std::size_t kSlackRows = kBatchRows;
constexpr std::size_t kParallelSortRows = 50'000;
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

// The first eight bytes, as a number that is in their order.
std::uint64_t prefix_of(std::string_view text) noexcept {
  std::uint64_t bytes = 0;
  if (!text.empty()) std::memcpy(&bytes, text.data(), std::min(text.size(), sizeof bytes));
  return __builtin_bswap64(bytes);
}
// NaN above all numbers, and both zeros alike.
std::uint64_t prefix_of(double real) noexcept {
  if (real != real) return ~std::uint64_t{0};
  const auto bits = std::bit_cast<std::uint64_t>(real + 0.0);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

}  // namespace

struct SortSink::Prefixed {
  std::uint64_t prefix;
  std::uint32_t row;
};

/// Compares rows of one part by the key columns, which follow the others.
struct SortSink::Order {
  Order(const SortSink& sink, const Rows& rows) {
    FLUGS_CHECK(rows.parts.size() == 1);
    FLUGS_CHECK(rows.schema.size() == sink.schema_.size() + sink.keys_.size());
    for (std::size_t k = 0; k < sink.keys_.size(); ++k)
      keys.push_back({rows.parts[0].view(sink.schema_.size() + k),
                      form_of(lane_of(sink.keys_[k].expr->type)), sink.keys_[k].descending});
  }

  bool operator()(std::uint32_t a, std::uint32_t b) const noexcept {
    for (const Column& key : keys) {
      const int order = compare(key, a, b);
      if (order != 0) return key.descending ? order > 0 : order < 0;
    }
    return a < b;  // one order for equal rows, so no row is picked twice
  }

  void set_prefixes(std::vector<Prefixed>& entries) const;

  struct Column {
    ColumnView view;
    Form form;
    bool descending;
  };
  static int compare(const Column& key, std::uint32_t a, std::uint32_t b) noexcept {
    if (key.view.nulls != nullptr && (key.view.nulls[a] != 0 || key.view.nulls[b] != 0))
      return key.view.nulls[b] - key.view.nulls[a];
    switch (key.form) {
      case Form::kText: {
        const int order = key.view.texts()[a].compare(key.view.texts()[b]);
        return order;
      }
      case Form::kReal:
        return compare_reals(key.view.reals()[a], key.view.reals()[b]);
      default:
        return compare_ints(key.view.ints()[a], key.view.ints()[b]);
    }
  }
  std::vector<Column> keys;
};

// A row with a lesser prefix comes first; equal prefixes say nothing. NULL has the prefix of the
// least value.
void SortSink::Order::set_prefixes(std::vector<Prefixed>& entries) const {
  const Column& key = keys[0];
  for (std::uint32_t row = 0; row < entries.size(); ++row) {
    std::uint64_t prefix = 0;
    if (key.view.nulls == nullptr || key.view.nulls[row] == 0) switch (key.form) {
        case Form::kText:
          prefix = prefix_of(key.view.texts()[row]);
          break;
        case Form::kReal:
          prefix = prefix_of(key.view.reals()[row]);
          break;
        default:
          prefix = static_cast<std::uint64_t>(key.view.ints()[row]) ^ kSign;
      }
    entries[row] = {key.descending ? ~prefix : prefix, row};
  }
}

SortSink::Local::Local(const SortSink& sink)
    : evaluator(sink.binder_.slot_count()),
      charge(sink.context_.budget, "order by"),
      chosen(kBatchRows),
      chosen_columns(sink.extended_.size()) {
  rows.schema = sink.extended_;
}

SortSink::SortSink(RunContext& context, const Schema& input, const std::vector<SortKey>& keys,
                   std::optional<std::uint64_t> rows_max, ExplainPtr explain)
    : context_(context),
      schema_(input),
      extended_(input),
      codec_(extended_),
      binder_(context.texts, schema_),
      rows_max_(rows_max),
      explain_(std::move(explain)) {
  FLUGS_CHECK(!keys.empty());
  for (const SortKey& key : keys) {
    keys_.push_back({binder_.bind(key.item.expr()), key.descending});
    extended_.push_back({"", keys_.back().expr->type, nullptr});
  }
  codec_ = RowCodec(extended_);
  locals_.resize(context.threads);
  bound_ = keys_.front().descending ? std::numeric_limits<std::int64_t>::min()
                                    : std::numeric_limits<std::int64_t>::max();
}

bool SortSink::is_beyond(const Local& local, ColumnView key, std::size_t i) const noexcept {
  const bool null = key.nulls != nullptr && key.nulls[i] != 0;
  int order = 0;  // of this row against the worst kept one
  if (null || local.bound_is_null)
    order = (local.bound_is_null ? 1 : 0) - (null ? 1 : 0);
  else
    order = compare_ints(key.ints()[i], local.bound);
  // Without another key, any of the equal rows will do: enough of them are kept.
  if (order == 0) return keys_.size() == 1;
  return keys_[0].descending ? order < 0 : order > 0;
}

std::optional<FirstRows> SortSink::first_rows() const {
  const BoundExpr& key = *keys_[0].expr;
  if (!rows_max_ || key.op != Op::kColumn || lane_of(key.type) != Lane::kInt) return std::nullopt;
  return FirstRows{key.column, keys_[0].descending};
}

std::optional<LastWanted> SortSink::last_wanted() const noexcept {
  if (!has_bound_.load(std::memory_order_acquire)) return std::nullopt;
  return LastWanted{bound_.load(std::memory_order_relaxed), keys_.size() == 1};
}

void SortSink::publish_bound(std::int64_t bound) noexcept {
  FLUGS_DCHECK(rows_max_.has_value());  // else every row is wanted
  const bool down = keys_[0].descending;
  std::int64_t known = bound_.load(std::memory_order_relaxed);
  while ((down ? bound > known : bound < known) &&
         !bound_.compare_exchange_weak(known, bound, std::memory_order_relaxed)) {
  }
  has_bound_.store(true, std::memory_order_release);
}

const Batch& SortSink::admitted(Local& local) const {
  if (!local.has_bound) return local.batch;
  const ColumnView key = local.batch.columns[schema_.size()];
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < local.batch.rows; ++i) {
    local.chosen[chosen] = static_cast<std::uint32_t>(i);
    chosen += is_beyond(local, key, i) ? 0 : 1;
  }
  if (chosen == local.batch.rows) return local.batch;
  gather(local.batch, extended_, local.chosen.data(), chosen, local.chosen_columns,
         local.chosen_batch);
  return local.chosen_batch;
}

void SortSink::push(const Batch& batch, std::uint32_t worker) {
  FLUGS_CHECK(worker < locals_.size());
  FLUGS_CHECK(batch.columns.size() >= schema_.size());
  if (!locals_[worker]) locals_[worker] = std::make_unique<Local>(*this);
  Local& local = *locals_[worker];
  local.batch.rows = batch.rows;
  local.batch.columns.assign(batch.columns.begin(),
                             batch.columns.begin() + static_cast<std::ptrdiff_t>(schema_.size()));
  for (const Key& key : keys_)
    local.batch.columns.push_back(local.evaluator.evaluate(*key.expr, batch));
  local.rows.append(admitted(local), local.charge);
  if (rows_max_ && local.rows.row_count > *rows_max_ * 2 + kSlackRows) prune(local);
  limit_memory(local);
}

void SortSink::prune(Local& local) {
  recount(local);
  const std::vector<std::uint32_t> order = sorted(local.rows, static_cast<std::size_t>(*rows_max_));
  Charge charge(context_.budget, "order by");
  Rows kept = picked(local.rows, order, charge, extended_.size());
  kept.schema = extended_;
  if (lane_of(keys_[0].expr->type) == Lane::kInt && !order.empty()) {
    const ColumnView key = local.rows.parts[0].view(schema_.size());
    local.has_bound = true;
    local.bound = key.ints()[order.back()];
    local.bound_is_null = key.nulls != nullptr && key.nulls[order.back()] != 0;
    if (!local.bound_is_null) publish_bound(local.bound);
  }
  local.rows = std::move(kept);
  local.charge = std::move(charge);
}

// Sorts pairs of a prefix and a position, which are side by side: only rows with equal prefixes are
// looked at.
std::vector<std::uint32_t> SortSink::sorted(Rows& rows, std::size_t wanted) const {
  if (rows.row_count >= kNoPosition) fail(StatusCode::kOutOfMemory, "order by: 2^32 rows or more");
  rows.flatten(Charge(context_.budget, "order by"));
  Charge charge(context_.budget, "order by");
  charge.set(rows.row_count * sizeof(Prefixed));
  const Order before(*this, rows);
  std::vector<Prefixed> entries(rows.row_count);
  before.set_prefixes(entries);
  const auto is_before = [&](const Prefixed& a, const Prefixed& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : before(a.row, b.row);
  };
  if (wanted < entries.size()) {
    std::nth_element(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(wanted),
                     entries.end(), is_before);
    entries.resize(wanted);
  }
  if (entries.size() < kParallelSortRows || context_.threads == 1) {
    std::sort(entries.begin(), entries.end(), is_before);
  } else {
    parallel_sort(context_.crew, context_.threads, entries, is_before);
  }
  std::vector<std::uint32_t> order(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = entries[i].row;
  return order;
}

Rows SortSink::picked(const Rows& rows, const std::vector<std::uint32_t>& order, Charge& charge,
                      std::size_t columns) const {
  FLUGS_CHECK(columns <= extended_.size());
  FLUGS_DCHECK(std::all_of(order.begin(), order.end(),
                           [&](std::uint32_t row) { return row < rows.row_count; }));
  Rows out;
  out.schema.assign(extended_.begin(), extended_.begin() + static_cast<std::ptrdiff_t>(columns));
  std::vector<Vec> scratch(columns);
  Batch from;
  for (std::size_t c = 0; c < columns; ++c) from.columns.push_back(rows.parts[0].view(c));
  Batch batch;
  for (std::size_t first = 0; first < order.size(); first += kBatchRows) {
    context_.check_stop();
    gather(from, out.schema, order.data() + first, std::min(kBatchRows, order.size() - first),
           scratch, batch);
    out.append(batch, charge);
  }
  return out;
}

Rows SortSink::sort_held() {
  Rows all;
  all.schema = extended_;
  for (auto& local : locals_) {
    if (!local) continue;
    local->rows.charges.push_back(std::move(local->charge));
    all.take(std::move(local->rows));
  }
  locals_.clear();
  const std::size_t found = all.row_count;
  const std::size_t wanted =
      rows_max_ ? static_cast<std::size_t>(std::min<std::uint64_t>(*rows_max_, found)) : found;
  const std::vector<std::uint32_t> order = sorted(all, wanted);
  Charge charge(context_.budget, "order by");
  Rows out = picked(all, order, charge, schema_.size());
  out.charges.push_back(std::move(charge));
  out.is_ordered = true;
  explain_->details.push_back(rows_max_ ? fmt::format("{} of {} rows kept", out.row_count, found)
                                        : fmt::format("{} rows sorted", found));
  return out;
}

LimitStage::LimitStage(const Schema& schema, std::uint64_t limit, std::uint64_t offset)
    : offset_(offset), end_(offset + limit < offset ? ~std::uint64_t{0} : offset + limit) {
  for (const ColumnInfo& column : schema) forms_.push_back(column.form());
}

void LimitStage::push(const Batch& batch, std::uint32_t worker) {
  FLUGS_CHECK(batch.columns.size() == forms_.size());
  const std::uint64_t at = taken_.fetch_add(batch.rows, std::memory_order_relaxed);
  const std::uint64_t first = std::max(at, offset_);
  const std::uint64_t end = std::min(at + batch.rows, end_);
  if (first >= end) return;
  Batch part;
  part.rows = static_cast<std::size_t>(end - first);
  FLUGS_DCHECK(part.rows <= batch.rows && first >= at);
  for (std::size_t c = 0; c < batch.columns.size(); ++c)
    part.columns.push_back(batch.columns[c].from(static_cast<std::size_t>(first - at), forms_[c]));
  next().push(part, worker);
}

}  // namespace flugs::query
