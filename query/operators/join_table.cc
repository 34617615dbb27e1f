#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/hash.h"
#include "query/operators/hash_join.h"
#include "query/vectors/failure.h"

namespace flugs::query {

void hash_keys(const std::vector<ColumnView>& keys, const std::vector<Form>& forms,
               std::size_t rows, std::uint64_t* hashes, std::uint8_t* is_null) {
  FLUGS_CHECK(keys.size() == forms.size());
  std::fill_n(hashes, rows, 0);
  std::fill_n(is_null, rows, 0);
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (forms[k] == Form::kText) {
      const std::string_view* texts = keys[k].texts();
      for (std::size_t i = 0; i < rows; ++i)
        hashes[i] = combine_hashes(hashes[i], hash_text(texts[i]));
    } else {
      const std::int64_t* ints = keys[k].ints();
      for (std::size_t i = 0; i < rows; ++i)
        hashes[i] = combine_hashes(hashes[i], static_cast<std::uint64_t>(ints[i]));
    }
    if (keys[k].nulls != nullptr)
      for (std::size_t i = 0; i < rows; ++i) is_null[i] |= keys[k].nulls[i];
  }
}

JoinTable::JoinTable(RunContext& context, Rows rows, const std::vector<BoundPtr>& keys,
                     std::uint32_t slot_count)
    : rows_(std::move(rows)), charge_(context.budget, "join, right side") {
  if (rows_.row_count >= kNoPosition)
    fail(StatusCode::kOutOfMemory, "join: the right side has 2^32 rows or more");
  rows_.flatten(Charge(context.budget, "join, right side"));
  FLUGS_CHECK(rows_.parts.size() == 1 && rows_.parts[0].rows == rows_.row_count);
  const std::size_t n = rows_.row_count;
  const std::size_t buckets = std::bit_ceil(std::max<std::size_t>(n * 2, 16));
  std::uint64_t bytes = n * 13 + buckets * 4;
  for (const BoundPtr& key : keys) {
    forms_.push_back(form_of(lane_of(key->type)));
    bytes += n * bytes_of(forms_.back());
  }
  charge_.add(bytes);
  mask_ = buckets - 1;
  heads_.assign(buckets, kNoPosition);
  next_.resize(n);
  hashes_.resize(n);
  keys_.resize(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k) keys_[k].reserve((n + 1) * bytes_of(forms_[k]));
  is_null_.resize(n);
  fill_keys(context, keys, slot_count);
  link(context);
}

void JoinTable::fill_keys(RunContext& context, const std::vector<BoundPtr>& keys,
                          std::uint32_t slot_count) {
  const std::size_t n = rows_.row_count;
  std::atomic<std::size_t> next{0};
  context.crew.run(n > kMorselRows ? context.threads : 1, [&](std::uint32_t) {
    Evaluator evaluator(slot_count);
    std::vector<ColumnView> views(keys.size());
    Batch batch;
    batch.columns.resize(rows_.schema.size());
    for (std::size_t first = next.fetch_add(kBatchRows); first < n;
         first = next.fetch_add(kBatchRows)) {
      context.check_stop();
      batch.rows = std::min(kBatchRows, n - first);
      for (std::size_t c = 0; c < rows_.schema.size(); ++c)
        batch.columns[c] = column(c).from(first, rows_.schema[c].form());
      for (std::size_t k = 0; k < keys.size(); ++k) {
        views[k] = evaluator.evaluate(*keys[k], batch);
        copy_column({views[k].data, nullptr}, forms_[k], batch.rows, keys_[k], first, n, false);
      }
      hash_keys(views, forms_, batch.rows, hashes_.data() + first, is_null_.data() + first);
    }
  });
}

// Chains grow at their heads by an exchange, from all workers at once.
void JoinTable::link(RunContext& context) {
  const std::size_t n = rows_.row_count;
  std::atomic<std::size_t> next{0};
  context.crew.run(n > kMorselRows ? context.threads : 1, [&](std::uint32_t) {
    for (std::size_t first = next.fetch_add(kMorselRows); first < n;
         first = next.fetch_add(kMorselRows))
      for (std::size_t row = first; row < std::min(n, first + kMorselRows); ++row)
        if (is_null_[row] == 0)
          next_[row] = std::atomic_ref(heads_[hashes_[row] & mask_])
                           .exchange(static_cast<std::uint32_t>(row), std::memory_order_relaxed);
  });
}

}  // namespace flugs::query
