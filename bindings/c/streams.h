#pragma once

#include <memory>

#include "bindings/c/transaction.h"
#include "flugs/arrow_abi.h"
#include "flugs/stream.h"

namespace flugs::c {

/// An Arrow stream that a C program may hold for longer than its transaction and its database, and
/// in any thread. The caller is the user of the transaction.
void to_arrow(query::ResultStream stream, flugs_transaction& transaction, ArrowArrayStream& out);

}  // namespace flugs::c
