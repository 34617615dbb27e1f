#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "flugs/database.h"

namespace flugs::bench {

/// Takes bytes of the stream, in their order. Fails as the medium behind it does.
using ByteSink = std::function<Status(std::span<const char>)>;

/// Writes columns of a table, as the transaction sees it, as a stream of batches of at most a
/// million rows each. A batch is one line of JSON,
///
///   {"table": NAME, "rows": N, "columns": [{"name": ..., "kind": KIND, "nulls": BOOL}, ...]}
///
/// and the columns one after the other, little-endian, without padding. With "nulls", N bytes come
/// first, 1 where the value is NULL; a value stands there nevertheless, any one. Then, by KIND:
///
///   bool, int32, int64, double   N values of 1, 4, 8 and 8 bytes
///   text, bytes                  N numbers of strings, 4 bytes each; the column has "strings": M
///                                and "string_bytes": B as well: M lengths of 4 bytes, then the
///                                strings, B bytes, one behind the other
///
/// A decimal, a date or a timestamp is the integer that counts its units.
/// Fails with: kNotFound (table, column), and as the sink.
Status stream_table(const Database& database, const Transaction& transaction,
                    const std::string& table, const std::vector<std::string>& columns,
                    const ByteSink& sink);

}  // namespace flugs::bench
