#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace flugs::isolation {

/// What transactions did to objects, as they saw it: input for a checker that does not know what
/// executed them. Objects are lists, to which elements are appended, or registers, which are
/// overwritten; a small number, the key, names each. No value is written twice in a history, so a
/// value identifies its writer. 0 is no value: a register that was never written.

enum class OperationKind : std::uint8_t { kAppend, kReadList, kWrite, kReadRegister };

struct Operation {
  OperationKind kind = OperationKind::kAppend;
  /// The read was by a condition (a range, a scan), so what it did not find counts as well.
  bool is_predicate = false;
  std::uint32_t key = 0;
  std::uint32_t value = 0;          ///< of kAppend, kWrite, kReadRegister
  std::uint32_t first_element = 0;  ///< of kReadList: see History::elements
  std::uint32_t element_count = 0;
};

constexpr bool is_write(OperationKind kind) noexcept {
  return kind == OperationKind::kAppend || kind == OperationKind::kWrite;
}
constexpr bool is_of_list(OperationKind kind) noexcept {
  return kind == OperationKind::kAppend || kind == OperationKind::kReadList;
}

enum class Outcome : std::uint8_t {
  kCommitted,
  kAborted,
  kUnknown,  ///< it asked to commit and was killed before the answer
};

struct Transaction {
  std::uint64_t begin_ns = 0;  ///< before it began, by a clock that all processes share
  std::uint64_t end_ns = 0;    ///< after its answer; for a killed transaction, the kill
  std::uint32_t process = 0;   ///< a process has one transaction at a time
  std::uint32_t first_operation = 0;
  std::uint32_t operation_count = 0;
  Outcome outcome = Outcome::kAborted;
};

/// Transactions with their operations. Built one transaction after the other, in any order.
class History {
 public:
  /// Begins a transaction: the operations that follow belong to it.
  void begin(std::uint32_t process, std::uint64_t begin_ns);
  void append(std::uint32_t key, std::uint32_t value);
  void write(std::uint32_t key, std::uint32_t value);
  void read_list(std::uint32_t key, std::span<const std::uint32_t> elements,
                 bool is_predicate = false);
  void read_register(std::uint32_t key, std::uint32_t value, bool is_predicate = false);
  void end(Outcome outcome, std::uint64_t end_ns);

  std::span<const Transaction> transactions() const noexcept { return transactions_; }
  std::span<const Operation> operations(const Transaction& transaction) const noexcept {
    return std::span(operations_).subspan(transaction.first_operation, transaction.operation_count);
  }
  std::span<const Operation> operations() const noexcept { return operations_; }
  std::span<const std::uint32_t> elements(const Operation& operation) const noexcept {
    return std::span(elements_).subspan(operation.first_element, operation.element_count);
  }
  /// One above the greatest key, and the greatest value written.
  std::uint32_t key_limit() const noexcept { return key_limit_; }
  std::uint32_t value_limit() const noexcept { return value_limit_; }

 private:
  void add(const Operation& operation);

  std::vector<Transaction> transactions_;
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> elements_;
  std::uint32_t key_limit_ = 0;
  std::uint32_t value_limit_ = 0;
};

}  // namespace flugs::isolation
