#pragma once

#include <cstdint>

#include "flugs/arrow_abi.h"
#include "flugs/ids.h"
#include "flugs/progress.h"
#include "flugs/status.h"
#include "flugs/transaction.h"

namespace flugs::query {

/// Inserts all rows that an Arrow stream gives, column by column, and returns their number. All
/// rows are added, or none.
///
/// A field of the stream goes to the column of its name. A column without a field gets its default,
/// its number, or NULL. For each column any Arrow type is taken whose values fit it exactly, as
/// they are or as the rule for Value says (flugs/value.h); a value that does not fit is refused:
///
/// | Arrow | stands for |
/// |---|---|
/// | null | NULL |
/// | boolean | bool |
/// | int8 to int64, uint8 to uint64 | an integer |
/// | float16, float32, float64 | a double |
/// | decimal32, decimal64, decimal128 of scale 0 to 18 | a decimal |
/// | date32; date64 of whole days | a date |
/// | timestamp, in whole microseconds; without a time zone it is taken as UTC | a timestamp |
/// | utf8, large_utf8, utf8_view | a string |
/// | binary, large_binary, binary_view, fixed_size_binary | bytes |
/// | dictionary of these, with indices of any width | its value |
///
/// The stream is consumed: it is released before the call returns, also when it fails, and so is
/// all that it gave. What it gives is checked, as far as the interface says how much memory there
/// is: a wrong length, count, offset or index is an error.
///
/// Durable when: the transaction's commit returns ok.
/// Fails with: as Transaction::insert_columns, and kInvalidArgument (a field that the table has
/// not, a type that is not taken, the stream is damaged, or it has failed: the message has its
/// words). The message names the batch of the stream, and the row in it.
Result<std::uint64_t> insert_arrow(Transaction& transaction, TableId table,
                                   ArrowArrayStream* stream, const CallOptions& options = {});

/// The same for one array of type struct; it and its schema are consumed.
Result<std::uint64_t> insert_arrow(Transaction& transaction, TableId table, ArrowSchema* schema,
                                   ArrowArray* array, const CallOptions& options = {});

}  // namespace flugs::query
