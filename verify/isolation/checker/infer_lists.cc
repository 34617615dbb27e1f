#include <algorithm>

#include "verify/isolation/checker/inference.h"

namespace flugs::isolation {

void Inference::find_longest_reads() {
  lists_.assign(history_.key_limit(), {});
  const auto transactions = history_.transactions();
  for (std::uint32_t t = 0; t < transactions.size(); ++t) {
    if (!has_happened(t)) continue;
    for (const Operation& operation : history_.operations(transactions[t])) {
      if (operation.kind != OperationKind::kReadList) continue;
      ListOrder& list = lists_[operation.key];
      if (list.longest == nullptr || operation.element_count > list.longest->element_count) {
        list.longest = &operation;
        list.reader = t;
      }
      if (list.latest_reader == kNobody || transactions[t].begin_ns > list.latest_read_ns) {
        list.latest_read_ns = transactions[t].begin_ns;
        list.latest_reader = t;
      }
    }
  }
}

// Judges each element of the longest read once: then reads that agree with it need no close look.
void Inference::judge_order(std::uint32_t key) {
  const ListOrder& list = lists_[key];
  if (list.longest == nullptr) return;
  std::uint32_t before = 0;
  for (const std::uint32_t element : history_.elements(*list.longest)) {
    if (element < is_in_order_.size() && is_in_order_[element] != 0) {
      out_.findings.push_back({Anomaly::kDuplicate, list.reader, kNobody, key, element});
      continue;
    }
    if (judge_value(list.reader, key, element)) {
      is_in_order_[element] = 1;
      if (before != 0)
        add_edge(Edge::kWw, out_.writers.of(before), out_.writers.of(element), key, before,
                 element);
      before = element;
    }
  }
}

// The read is not the beginning of the longest read. If one of its elements must not have been
// there, that is the reason; otherwise the two reads contradict each other.
void Inference::judge_contradiction(const Read& read) {
  const std::uint32_t key = read.operation->key;
  bool is_good = true;
  for (const std::uint32_t element : history_.elements(*read.operation))
    is_good = judge_value(read.transaction, key, element) && is_good;
  if (is_good)
    out_.findings.push_back(
        {Anomaly::kIncompatibleOrder, read.transaction, lists_[key].reader, key, 0});
}

void Inference::judge_list_read(const Read& read) {
  const std::uint32_t key = read.operation->key;
  const auto elements = history_.elements(*read.operation);
  const auto longest = history_.elements(*lists_[key].longest);
  // The reader's own appends are at the end.
  std::uint32_t own = 0;
  const auto& transaction = history_.transactions()[read.transaction];
  for (const Operation& operation : history_.operations(transaction)) {
    if (&operation == read.operation) break;
    own += operation.kind == OperationKind::kAppend && operation.key == key ? 1 : 0;
  }
  std::size_t at = elements.size() - std::min<std::size_t>(own, elements.size());
  const std::size_t seen = at;
  for (const Operation& operation : history_.operations(transaction)) {
    if (&operation == read.operation) break;
    if (operation.kind != OperationKind::kAppend || operation.key != key) continue;
    if (at >= elements.size() || elements[at] != operation.value) {
      out_.findings.push_back(
          {Anomaly::kInternal, read.transaction, read.transaction, key, operation.value});
      return;
    }
    ++at;
  }
  const bool agrees = std::equal(elements.begin(), elements.end(), longest.begin());
  if (!agrees) judge_contradiction(read);
  const std::uint32_t last = seen == 0 ? 0 : elements[seen - 1];
  const std::uint32_t writer = out_.writers.of(last);
  if (last != 0 && writer != kNobody && writer != read.transaction) {
    if (out_.writers.is_intermediate[last] != 0 && has_happened(writer))
      out_.findings.push_back({Anomaly::kG1b, read.transaction, writer, key, last});
    add_edge(Edge::kWr, writer, read.transaction, key, 0, last, read.operation->is_predicate);
  }
  if (agrees && own == 0 && elements.size() < longest.size()) {
    const std::uint32_t next = longest[elements.size()];
    add_edge(Edge::kRw, read.transaction, out_.writers.of(next), key, last, next,
             read.operation->is_predicate);
  }
}

// Finds elements that no read saw, although a read of the list began after their append had been
// acknowledged.
void Inference::find_lost_appends() {
  const auto transactions = history_.transactions();
  for (std::uint32_t t = 0; t < transactions.size(); ++t) {
    if (!has_happened(t)) continue;
    for (const Operation& operation : history_.operations(transactions[t])) {
      if (operation.kind != OperationKind::kAppend || is_in_order_[operation.value] != 0) continue;
      const ListOrder& list = lists_[operation.key];
      if (list.latest_reader == kNobody || list.latest_read_ns <= transactions[t].end_ns) continue;
      out_.findings.push_back(
          {Anomaly::kLost, list.latest_reader, t, operation.key, operation.value});
    }
  }
}

void Inference::infer_lists() {
  find_longest_reads();
  is_in_order_.assign(history_.value_limit(), 0);
  for (std::uint32_t key = 0; key < lists_.size(); ++key) judge_order(key);
  const auto transactions = history_.transactions();
  for (std::uint32_t t = 0; t < transactions.size(); ++t) {
    if (!has_happened(t)) continue;
    for (const Operation& operation : history_.operations(transactions[t]))
      if (operation.kind == OperationKind::kReadList) judge_list_read({t, &operation});
  }
  find_lost_appends();
}

}  // namespace flugs::isolation
