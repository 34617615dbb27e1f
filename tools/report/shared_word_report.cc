#include "tools/report/shared_word_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/shared_words.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

double per(std::uint64_t count, std::uint64_t transactions) {
  return static_cast<double>(count) / static_cast<double>(std::max<std::uint64_t>(transactions, 1));
}

bool is_used(const SharedWordCounts::Counts& counts) { return counts.writes + counts.reads != 0; }

bench::Json counts_json(const SharedWordCounts& counts, std::uint64_t transactions) {
  bench::Json json = bench::Json::object();
  SharedWordCounts::Counts all;
  for (std::size_t i = 0; i < kSharedWords; ++i) {
    const SharedWordCounts::Counts& word = counts.of[i];
    if (!is_used(word)) continue;
    all.contended_writes += word.contended_writes;
    all.contended_reads += word.contended_reads;
    json[std::string(to_string(static_cast<SharedWord>(i)))] = {
        {"writes", per(word.writes, transactions)},
        {"contended_writes", per(word.contended_writes, transactions)},
        {"reads", per(word.reads, transactions)},
        {"contended_reads", per(word.contended_reads, transactions)}};
  }
  json["all"] = {{"contended_writes", per(all.contended_writes, transactions)},
                 {"contended_reads", per(all.contended_reads, transactions)}};
  return json;
}

SharedWordCounts of_all(const bench::TatpRunResult& run) {
  SharedWordCounts all;
  for (const bench::TatpTypeResult& type : run.types) all += type.shared_words;
  return all;
}

}  // namespace

bench::Json shared_words_json(const bench::TatpRunResult& run) {
  bench::Json json;
  json["all"] = counts_json(of_all(run), run.executed());
  for (std::size_t i = 0; i < bench::kTatpTypes; ++i)
    json[std::string(bench::kTatpTypeNames[i])] =
        counts_json(run.types[i].shared_words, run.types[i].executed);
  return json;
}

void print_shared_words(const bench::TatpRunResult& run) {
  std::vector<std::string> titles = {"contended per transaction", "all"};
  for (const std::string_view name : bench::kTatpTypeNames) titles.emplace_back(name);
  TextTable table(titles);
  const SharedWordCounts all = of_all(run);
  for (std::size_t i = 0; i < kSharedWords; ++i) {
    if (!is_used(all.of[i])) continue;
    const auto cell = [&](const SharedWordCounts& counts, std::uint64_t transactions) {
      return fmt::format("{:.3f} w {:.3f} r", per(counts.of[i].contended_writes, transactions),
                         per(counts.of[i].contended_reads, transactions));
    };
    std::vector<std::string> cells = {std::string(to_string(static_cast<SharedWord>(i))),
                                      cell(all, run.executed())};
    for (const bench::TatpTypeResult& type : run.types)
      cells.push_back(cell(type.shared_words, type.executed));
    table.add(std::move(cells));
  }
  fmt::print("{}w: writes, r: reads of a line that another thread had\n\n", table.to_string());
}

}  // namespace flugs::tools
