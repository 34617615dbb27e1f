#pragma once

#include <vector>

#include "flugs/arrow_abi.h"
#include "flugs/query_result.h"
#include "flugs/status.h"
#include "flugs/stream.h"

namespace flugs::query {

/// Gives the rows of a query to any library that reads Arrow. Each batch of the stream becomes an
/// Arrow array of type struct; nothing holds more than one. Columns other than bool are not copied.
/// If the stream has given rows before, those of int32, date and decimal are copied, too.
///
///     ArrowArrayStream arrow;
///     to_arrow(*std::move(stream), arrow);
///     // arrow.get_schema, get_next, and at the end arrow.release
///
/// | flugs | Arrow |
/// |---|---|
/// | bool, int32, int64, double | boolean, int32, int64, float64 |
/// | decimal of scale s | decimal128(19, s) |
/// | date, timestamp | date32, timestamp in microseconds without a time zone |
/// | string, bytes | utf8, binary |
///
/// A column with ResultStream::has_dictionary becomes a dictionary array with indices of int32, and
/// each batch brings its dictionary along.
///
/// Every field is nullable. Texts must be UTF-8: flugs does not check what is stored.
///
/// `arrow` is overwritten. Its functions give, besides 0: ECANCELED, ENOMEM, EINVAL (the
/// transaction has ended) or EIO, with the message of ResultStream::status in get_last_error.
///
/// Thread-safety: get_next: as the transaction's. `arrow.release`, and the functions of schemas and
/// arrays: any thread. Arrays stay valid when the transaction has ended and the database is closed.
void to_arrow(ResultStream stream, ArrowArrayStream& arrow);
/// The error number (`errno`) that the functions of a stream give for a status: 0 for kOk.
int arrow_error(StatusCode code) noexcept;

/// Says before the first batch that batches of the stream only go to Arrow, as `to_arrow` of the
/// stream does by itself. Then the threads of the query make columns of int32, date and decimal as
/// Arrow has them; StreamBatch::column fails for these. When the stream has given rows, the call
/// does nothing.
void prefer_arrow(ResultStream& stream) noexcept;
/// The same as `to_arrow` of a stream for one batch: an array of type struct. Columns of bool are
/// copied, and without `prefer_arrow` those of int32, date and decimal, too. `schema_to_arrow`
/// gives its schema.
void to_arrow(const StreamBatch& batch, ArrowArray& arrow);
void schema_to_arrow(const ResultStream& stream, ArrowSchema& arrow);

// As the specification of Apache Arrow lays them out where an address has 64 bits.
static_assert(sizeof(ArrowSchema) == 72);
static_assert(sizeof(ArrowArray) == 80);
static_assert(sizeof(ArrowArrayStream) == 40);

}  // namespace flugs::query
