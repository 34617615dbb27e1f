#pragma once

#include <unordered_map>

#include "verify/isolation/checker/dependencies.h"

namespace flugs::isolation {

/// The parts of `infer`. Each adds to `out` what reads and writes of one kind of object show.
class Inference {
 public:
  Inference(const History& history, Dependencies& out) : history_(history), out_(out) {}

  Status index_writers();
  /// An unanswered transaction that another transaction saw has happened.
  void resolve_unknown();
  void infer_lists();
  void infer_registers();

 private:
  struct ListOrder {
    const Operation* longest = nullptr;
    std::uint32_t reader = kNobody;
    std::uint64_t latest_read_ns = 0;  ///< begin of the last transaction that read it
    std::uint32_t latest_reader = kNobody;
  };
  struct Read {
    std::uint32_t transaction;
    const Operation* operation;
  };

  static std::uint64_t fork_of(std::uint32_t key, std::uint32_t before) noexcept {
    return std::uint64_t{key} << 32 | before;
  }
  bool has_happened(std::uint32_t transaction) const noexcept {
    return transaction != kNobody && out_.happened[transaction] != 0;
  }
  Status index_write(std::uint32_t transaction, std::uint32_t position);
  void note_seen(std::uint32_t value, std::vector<std::uint32_t>& found);
  void find_longest_reads();
  void judge_order(std::uint32_t key);
  void judge_list_read(const Read& read);
  void judge_contradiction(const Read& read);
  void find_lost_appends();
  bool judge_value(std::uint32_t reader, std::uint32_t key, std::uint32_t value);
  void place_register_versions(std::uint32_t transaction);
  void place_version(std::uint32_t transaction, std::uint32_t key, std::uint32_t before,
                     std::uint32_t value);
  void judge_register_read(const Read& read);
  std::uint32_t own_before(const Read& read) const;
  void add_edge(Edge edge, std::uint32_t from, std::uint32_t to, std::uint32_t key,
                std::uint32_t before, std::uint32_t value, bool is_predicate = false);
  void add_overwriter(const Read& read, std::uint32_t next);

  const History& history_;
  Dependencies& out_;
  std::vector<ListOrder> lists_;                // by key
  std::vector<std::uint8_t> is_in_order_;       // by value: stands in its list's longest read
  std::vector<std::uint32_t> next_;             // by value of a register: what replaced it; 0
  std::vector<std::uint32_t> next_of_nothing_;  // by key of a register
  std::unordered_multimap<std::uint64_t, std::uint32_t> forks_;  // further versions, by key, before
};

}  // namespace flugs::isolation
