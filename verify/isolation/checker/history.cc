#include "verify/isolation/checker/history.h"

#include <algorithm>

namespace flugs::isolation {

void History::begin(std::uint32_t process, std::uint64_t begin_ns) {
  Transaction transaction;
  transaction.process = process;
  transaction.begin_ns = begin_ns;
  transaction.first_operation = static_cast<std::uint32_t>(operations_.size());
  transactions_.push_back(transaction);
}

void History::add(const Operation& operation) {
  operations_.push_back(operation);
  key_limit_ = std::max(key_limit_, operation.key + 1);
  if (is_write(operation.kind)) value_limit_ = std::max(value_limit_, operation.value + 1);
  ++transactions_.back().operation_count;
}

void History::append(std::uint32_t key, std::uint32_t value) {
  add({.kind = OperationKind::kAppend, .key = key, .value = value});
}

void History::write(std::uint32_t key, std::uint32_t value) {
  add({.kind = OperationKind::kWrite, .key = key, .value = value});
}

void History::read_list(std::uint32_t key, std::span<const std::uint32_t> elements,
                        bool is_predicate) {
  const auto first = static_cast<std::uint32_t>(elements_.size());
  elements_.insert(elements_.end(), elements.begin(), elements.end());
  add({.kind = OperationKind::kReadList,
       .is_predicate = is_predicate,
       .key = key,
       .first_element = first,
       .element_count = static_cast<std::uint32_t>(elements.size())});
}

void History::read_register(std::uint32_t key, std::uint32_t value, bool is_predicate) {
  add({.kind = OperationKind::kReadRegister,
       .is_predicate = is_predicate,
       .key = key,
       .value = value});
}

void History::end(Outcome outcome, std::uint64_t end_ns) {
  transactions_.back().outcome = outcome;
  transactions_.back().end_ns = end_ns;
}

}  // namespace flugs::isolation
