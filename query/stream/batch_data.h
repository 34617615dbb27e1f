#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flugs/query_result.h"
#include "flugs/stream.h"
#include "query/stream/int_form.h"
#include "query/vectors/run_context.h"
#include "query/vectors/vec.h"

namespace flugs::query {

/// A column of a batch. `values` holds integers in the form `ints`, or double, or for texts: codes
/// of `dictionary` (uint32) or, without one, where each text begins in `bytes` (int32, one more
/// than rows).
struct BatchValues {
  Vec values;
  IntForm ints = IntForm::kInt64;
  bool has_nulls = false;
  std::shared_ptr<const TextDictionary> dictionary;
  std::string bytes;

  std::span<const std::uint8_t> nulls(std::size_t rows) const noexcept {
    const std::uint8_t* nulls = values.view(has_nulls).nulls;
    return nulls == nullptr ? std::span<const std::uint8_t>() : std::span(nulls, rows);
  }
};

/// The content of a StreamBatch.
struct BatchData {
  std::shared_ptr<const std::vector<ResultColumn>> schema;
  std::vector<BatchValues> columns;
  std::size_t rows = 0;

  /// `column` is one of texts.
  TextColumn texts(std::size_t column) const noexcept;
};

/// A batch that waits for its user, and the memory that it takes from the query's budget.
struct ReadyBatch {
  std::shared_ptr<BatchData> data;
  Charge charge;
};

}  // namespace flugs::query
