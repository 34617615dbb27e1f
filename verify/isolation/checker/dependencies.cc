#include "verify/isolation/checker/dependencies.h"

#include <fmt/format.h>

#include "verify/isolation/checker/inference.h"

namespace flugs::isolation {

namespace {

constexpr std::uint64_t kValuesPerOperationMax = 64;

Status refused(std::string words) {
  return Status(StatusCode::kInvalidArgument, "not a history: " + std::move(words));
}

}  // namespace

Status Inference::index_write(std::uint32_t transaction, std::uint32_t position) {
  const Operation& write = history_.operations()[position];
  Writers& writers = out_.writers;
  if (write.value == 0) return refused("0 is written, but 0 means no value");
  if (writers.transaction[write.value] != kNobody)
    return refused(fmt::format("value {} is written twice", write.value));
  writers.transaction[write.value] = transaction;
  writers.operation[write.value] = position;
  const Transaction& owner = history_.transactions()[transaction];
  for (std::uint32_t i = owner.first_operation; i < position; ++i) {
    const Operation& earlier = history_.operations()[i];
    if (is_write(earlier.kind) && earlier.key == write.key)
      writers.is_intermediate[earlier.value] = 1;
  }
  return {};
}

Status Inference::index_writers() {
  const auto operations = history_.operations();
  const std::uint64_t values = history_.value_limit();
  if (values > (operations.size() + 1) * kValuesPerOperationMax)
    return refused("values are not numbered without gaps");
  out_.writers.transaction.assign(values, kNobody);
  out_.writers.operation.assign(values, 0);
  out_.writers.is_intermediate.assign(values, 0);
  constexpr std::uint8_t kList = 1;
  constexpr std::uint8_t kRegister = 2;
  std::vector<std::uint8_t> kinds(history_.key_limit(), 0);
  const auto transactions = history_.transactions();
  for (std::uint32_t t = 0; t < transactions.size(); ++t) {
    const Transaction& transaction = transactions[t];
    for (std::uint32_t i = 0; i < transaction.operation_count; ++i) {
      const std::uint32_t position = transaction.first_operation + i;
      const Operation& operation = operations[position];
      std::uint8_t& kind = kinds[operation.key];
      kind |= is_of_list(operation.kind) ? kList : kRegister;
      if (kind == (kList | kRegister))
        return refused(fmt::format("key {} is a list and a register", operation.key));
      if (is_write(operation.kind))
        if (Status s = index_write(t, position); !s.ok()) return s;
    }
  }
  return {};
}

void Inference::note_seen(std::uint32_t value, std::vector<std::uint32_t>& found) {
  const std::uint32_t writer = out_.writers.of(value);
  if (writer == kNobody || out_.happened[writer] != 0) return;
  if (history_.transactions()[writer].outcome != Outcome::kUnknown) return;
  out_.happened[writer] = 1;
  ++out_.unknown_happened;
  found.push_back(writer);
}

void Inference::resolve_unknown() {
  const auto transactions = history_.transactions();
  out_.happened.assign(transactions.size(), 0);
  std::vector<std::uint32_t> next;
  bool has_unknown = false;
  for (std::uint32_t t = 0; t < transactions.size(); ++t) {
    has_unknown |= transactions[t].outcome == Outcome::kUnknown;
    if (transactions[t].outcome != Outcome::kCommitted) continue;
    out_.happened[t] = 1;
    next.push_back(t);
  }
  if (!has_unknown) return;
  while (!next.empty()) {
    const Transaction& reader = transactions[next.back()];
    next.pop_back();
    for (const Operation& operation : history_.operations(reader)) {
      if (operation.kind == OperationKind::kReadRegister) note_seen(operation.value, next);
      if (operation.kind == OperationKind::kReadList)
        for (const std::uint32_t element : history_.elements(operation)) note_seen(element, next);
    }
  }
}

// Judges a value that a transaction that happened has seen; false: the value must not have been
// there.
bool Inference::judge_value(std::uint32_t reader, std::uint32_t key, std::uint32_t value) {
  const std::uint32_t writer = out_.writers.of(value);
  if (writer == kNobody || history_.operations()[out_.writers.operation[value]].key != key) {
    out_.findings.push_back({Anomaly::kGarbage, reader, kNobody, key, value});
    return false;
  }
  if (writer != reader && out_.happened[writer] == 0) {
    out_.findings.push_back({Anomaly::kG1a, reader, writer, key, value});
    return false;
  }
  return true;
}

void Inference::add_edge(Edge edge, std::uint32_t from, std::uint32_t to, std::uint32_t key,
                         std::uint32_t before, std::uint32_t value, bool is_predicate) {
  if (from == to || !has_happened(from) || !has_happened(to)) return;
  out_.edges.push_back({from, to, key, before, value, edge, is_predicate});
}

/// The value that the transaction itself had last written to the key before the read; 0: none.
std::uint32_t Inference::own_before(const Read& read) const {
  const Transaction& transaction = history_.transactions()[read.transaction];
  std::uint32_t own = 0;
  for (const Operation& operation : history_.operations(transaction)) {
    if (&operation == read.operation) break;
    if (is_write(operation.kind) && operation.key == read.operation->key) own = operation.value;
  }
  return own;
}

Result<Dependencies> infer(const History& history) {
  Dependencies dependencies;
  Inference inference(history, dependencies);
  if (Status s = inference.index_writers(); !s.ok()) return s;
  inference.resolve_unknown();
  inference.infer_lists();
  inference.infer_registers();
  return dependencies;
}

}  // namespace flugs::isolation
