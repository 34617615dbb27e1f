#include "query/operators/row_records.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace flugs::query {

namespace {

// Keys and arguments up to this number have their NULLs in one word, which each of them has half
// of.
constexpr std::size_t kNullsOfHalf = 32;
constexpr std::uint64_t kKeyNulls = 0xFFFFFFFFu;
constexpr std::uint32_t kNoArgument = 0xFFFFFFFFu;

std::size_t words_of(const BoundAggregate& aggregate) noexcept {
  if (aggregate.kind <= AggregateKind::kCount) return 0;
  return aggregate.form() == Form::kText ? 2 : 1;
}

}  // namespace

RowRecords::RowRecords(const KeyShape& shape, const std::vector<BoundAggregate>& aggregates)
    : aggregates_(aggregates),
      key_words_(shape.words()),
      row_words_(key_words_ + KeyWords::null_words(key_words_)),
      words_(row_words_),
      argument_of_(aggregates.size(), kNoArgument) {
  for (std::size_t a = 0; a < aggregates.size(); ++a) {
    if (!aggregates[a].of || aggregates[a].is_distinct()) continue;
    if (aggregates[a].kind == AggregateKind::kCountRows) continue;
    argument_of_[a] = static_cast<std::uint32_t>(arguments_.size());
    arguments_.emplace_back().aggregate = a;
  }
  shares_null_word_ = key_words_ <= kNullsOfHalf && arguments_.size() <= kNullsOfHalf;
  if (!shares_null_word_) words_ += arguments_.size() / 64 + 1;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    Argument& argument = arguments_[i];
    argument.null_at = shares_null_word_ ? key_words_ : row_words_ + i / 64;
    argument.null_bit = static_cast<unsigned>(shares_null_word_ ? kNullsOfHalf + i : i % 64);
    argument.words = words_of(aggregates[argument.aggregate]);
    argument.at = words_;
    words_ += argument.words;
  }
}

void RowRecords::Argument::make_room() {
  if (!nulls.empty()) return;
  if (words != 0) first.resize(kBatchRows);
  if (words == 2) second.resize(kBatchRows);
  nulls.resize(kBatchRows);
}

void RowRecords::set_argument(std::size_t aggregate, ColumnView values, std::size_t rows) {
  FLUGS_CHECK(aggregate < argument_of_.size() && rows <= kBatchRows);
  if (argument_of_[aggregate] == kNoArgument) return;
  Argument& argument = arguments_[argument_of_[aggregate]];
  argument.make_room();
  argument.has_nulls = values.nulls != nullptr;
  if (argument.has_nulls) std::copy_n(values.nulls, rows, argument.nulls.data());
  if (argument.words == 1) {
    std::memcpy(argument.first.data(), values.data, rows * sizeof(std::uint64_t));
  } else if (argument.words == 2) {
    for (std::size_t i = 0; i < rows; ++i) {
      argument.first[i] = reinterpret_cast<std::uint64_t>(values.texts()[i].data());
      argument.second[i] = values.texts()[i].size();
    }
  }
}

void RowRecords::add(const KeyWords& keys, const std::uint64_t* hashes, std::size_t rows,
                     RecordParts& to) {
  FLUGS_CHECK(to.words() == words_ && keys.keys.size() == key_words_ && rows <= kBatchRows);
  std::vector<const std::uint64_t*> columns;
  columns.reserve(words_);
  for (const auto& words : keys.keys) columns.push_back(words.data());
  for (const auto& words : keys.nulls) columns.push_back(words.data());
  const std::size_t of_keys = columns.size();
  const std::size_t own_nulls = shares_null_word_ ? 0 : arguments_.size() / 64 + 1;
  for (const Argument& argument : arguments_) {
    if (argument.words != 0) columns.push_back(argument.first.data());
    if (argument.words == 2) columns.push_back(argument.second.data());
  }
  const bool any_null = std::any_of(arguments_.begin(), arguments_.end(),
                                    [](const Argument& argument) { return argument.has_nulls; });
  for (std::size_t i = 0; i < rows; ++i) {
    std::uint64_t* record = to.add(hashes[i]);
    std::uint64_t* word = record;
    for (std::size_t c = 0; c < of_keys; ++c) *word++ = columns[c][i];
    for (std::size_t n = 0; n < own_nulls; ++n) *word++ = 0;
    for (std::size_t c = of_keys; c < columns.size(); ++c) *word++ = columns[c][i];
    if (!any_null) continue;
    for (const Argument& argument : arguments_)
      if (argument.has_nulls)
        record[argument.null_at] |= std::uint64_t{argument.nulls[i]} << argument.null_bit;
  }
}

void RowRecords::open(std::uint64_t* records, std::size_t rows) {
  FLUGS_CHECK(rows <= kBatchRows);
  std::uint64_t all = 0;
  for (Argument& argument : arguments_) {
    all = 0;
    for (std::size_t i = 0; i < rows; ++i) all |= records[i * words_ + argument.null_at];
    argument.has_nulls = (all >> argument.null_bit & 1) != 0;
    if (!argument.has_nulls) continue;
    argument.make_room();
    for (std::size_t i = 0; i < rows; ++i)
      argument.nulls[i] = records[i * words_ + argument.null_at] >> argument.null_bit & 1;
  }
  if (!shares_null_word_ || all <= kKeyNulls) return;
  for (std::size_t i = 0; i < rows; ++i) records[i * words_ + key_words_] &= kKeyNulls;
}

void RowRecords::close(std::uint64_t* records, std::size_t rows) const {
  if (!shares_null_word_) return;
  for (const Argument& argument : arguments_) {
    if (!argument.has_nulls) continue;
    for (std::size_t i = 0; i < rows; ++i)
      records[i * words_ + key_words_] |= std::uint64_t{argument.nulls[i]} << argument.null_bit;
  }
}

ColumnView RowRecords::read(Argument& argument, const std::uint64_t* records,
                            std::size_t rows) const {
  const std::uint8_t* nulls = argument.has_nulls ? argument.nulls.data() : nullptr;
  const std::uint64_t* from = records + argument.at;
  if (argument.words == 2) {
    std::string_view* texts = argument.values.texts(kBatchRows);
    for (std::size_t i = 0; i < rows; ++i)
      texts[i] = {reinterpret_cast<const char*>(from[i * words_]), from[i * words_ + 1]};
  } else if (argument.words == 1) {
    auto* words = static_cast<std::byte*>(argument.values.reserve(kBatchRows * 8));
    for (std::size_t i = 0; i < rows; ++i) std::memcpy(words + i * 8, from + i * words_, 8);
  }
  return {argument.values.view(false).data, nulls};
}

void RowRecords::accumulate(const std::uint64_t* records, std::size_t rows,
                            const std::uint32_t* groups, AggregateState* states,
                            KeptMemory& memory) {
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    if (aggregates_[a].is_distinct()) continue;
    ColumnView values;
    if (argument_of_[a] != kNoArgument) values = read(arguments_[argument_of_[a]], records, rows);
    query::accumulate(aggregates_[a], values, groups, rows, false, states, aggregates_.size(), a,
                      memory);
  }
}

}  // namespace flugs::query
