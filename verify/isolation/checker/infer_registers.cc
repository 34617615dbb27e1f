#include "verify/isolation/checker/inference.h"

namespace flugs::isolation {

// `before` was the newest version that the writer knew; 0: the register had never been written.
void Inference::place_version(std::uint32_t transaction, std::uint32_t key, std::uint32_t before,
                              std::uint32_t value) {
  std::uint32_t& next = before == 0 ? next_of_nothing_[key] : next_[before];
  if (next == 0) {
    next = value;
  } else {
    forks_.emplace(fork_of(key, before), value);
    const std::uint32_t first = out_.writers.of(next);
    if (first != transaction)
      out_.findings.push_back({Anomaly::kLostUpdate, transaction, first, key, before});
  }
  if (before != 0) add_edge(Edge::kWw, out_.writers.of(before), transaction, key, before, value);
}

void Inference::place_register_versions(std::uint32_t transaction) {
  const auto operations = history_.operations(history_.transactions()[transaction]);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& write = operations[i];
    if (write.kind != OperationKind::kWrite) continue;
    for (std::size_t j = i; j-- > 0;) {
      const Operation& earlier = operations[j];
      if (earlier.key != write.key) continue;
      // A value without a writer is reported where it was read.
      if (earlier.value == 0 || out_.writers.of(earlier.value) != kNobody)
        place_version(transaction, write.key, earlier.value, write.value);
      break;
    }
  }
}

void Inference::add_overwriter(const Read& read, std::uint32_t next) {
  add_edge(Edge::kRw, read.transaction, out_.writers.of(next), read.operation->key,
           read.operation->value, next, read.operation->is_predicate);
}

void Inference::judge_register_read(const Read& read) {
  const std::uint32_t key = read.operation->key;
  const std::uint32_t value = read.operation->value;
  const std::uint32_t own = own_before(read);
  if (own != 0) {
    if (value != own)
      out_.findings.push_back({Anomaly::kInternal, read.transaction, read.transaction, key, own});
    return;
  }
  if (value != 0) {
    if (!judge_value(read.transaction, key, value)) return;
    const std::uint32_t writer = out_.writers.of(value);
    if (writer == read.transaction) {  // read before it was written
      out_.findings.push_back({Anomaly::kGarbage, read.transaction, writer, key, value});
      return;
    }
    if (out_.writers.is_intermediate[value] != 0)
      out_.findings.push_back({Anomaly::kG1b, read.transaction, writer, key, value});
    add_edge(Edge::kWr, writer, read.transaction, key, 0, value, read.operation->is_predicate);
  }
  const std::uint32_t next = value == 0 ? next_of_nothing_[key] : next_[value];
  if (next == 0) return;
  add_overwriter(read, next);
  const auto [first, last] = forks_.equal_range(fork_of(key, value));
  for (auto fork = first; fork != last; ++fork) add_overwriter(read, fork->second);
}

void Inference::infer_registers() {
  next_.assign(history_.value_limit(), 0);
  next_of_nothing_.assign(history_.key_limit(), 0);
  const auto transactions = history_.transactions();
  for (std::uint32_t t = 0; t < transactions.size(); ++t)
    if (has_happened(t)) place_register_versions(t);
  for (std::uint32_t t = 0; t < transactions.size(); ++t) {
    if (!has_happened(t)) continue;
    for (const Operation& operation : history_.operations(transactions[t]))
      if (operation.kind == OperationKind::kReadRegister) judge_register_read({t, &operation});
  }
}

}  // namespace flugs::isolation
