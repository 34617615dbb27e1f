#pragma once

#include <cstdint>
#include <string_view>

#include "flugs/database.h"

namespace flugs::bench {

/// How a batch of rows is given to the database.
enum class BatchForm : std::uint8_t {
  kRows,     ///< Transaction::insert_rows
  kColumns,  ///< Transaction::insert_columns
  kCoded,    ///< the same; the text as codes and a dictionary
};
inline constexpr BatchForm kBatchForms[] = {BatchForm::kRows, BatchForm::kColumns,
                                            BatchForm::kCoded};
std::string_view to_string(BatchForm form) noexcept;

struct BatchLoad {
  std::uint64_t rows = 4'000'000;
  std::uint64_t batch_rows = 65'536;
  std::uint32_t texts = 1000;  ///< different values of the text column
};

/// Nanoseconds for all rows. Making the batches is not counted.
struct BatchLoadTime {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t thread_ns = 0;   ///< processor time of the thread that inserts
  std::uint64_t process_ns = 0;  ///< of all threads: those that make space ready ahead, too
};

/// Makes a table of a key (int64), int32, double and text, and inserts rows, one transaction for
/// each batch. Keys ascend; numbers are new in each row; texts come in random order. Fails as
/// create_table, the calls of the forms, and commit.
Result<BatchLoadTime> load_batches(Database& database, const BatchLoad& load, BatchForm form);

}  // namespace flugs::bench
