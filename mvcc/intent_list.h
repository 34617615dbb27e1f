#pragma once

#include <span>
#include <vector>

#include "flugs/function_ref.h"
#include "mvcc/transaction_slots_layout.h"
#include "mvcc/write.h"

namespace flugs::mvcc {

/// The intents of these writes, as a block of a slot holds them. A transaction of up to 64
/// writes has one word for each. A larger one has two words for all of its writes among 64 rows
/// that stand side by side: so it can delete all rows of a nearly full pool, because its intents
/// take a hundredth of the rows' space at most.
std::vector<Intent> intents_of(std::span<const Write> writes);

/// Calls `visit` with each write that the words name, as the intent of one row. Words of a damaged
/// pool name other rows, or none.
void for_each_intent(std::span<const Intent> words, FunctionRef<void(Intent)> visit);

}  // namespace flugs::mvcc
