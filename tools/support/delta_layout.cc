#include "tools/support/delta_layout.h"

#include <array>
#include <string>
#include <vector>

namespace flugs::tools {

void add_layout_option(CLI::App& command, TableLayout& layout) {
  static constexpr std::array kLayouts = {TableLayout::kRows, TableLayout::kColumns,
                                          TableLayout::kGroups};
  std::vector<std::string> words;
  for (const TableLayout known : kLayouts) words.emplace_back(to_string(known));
  command
      .add_option_function<std::string>(
          "--layout",
          [&layout](const std::string& word) {
            for (const TableLayout known : kLayouts)
              if (to_string(known) == word) layout = known;
          },
          "Layout of tables in the delta: the cells of a row side by side, each column apart, or "
          "all columns of a table in one group, apart from the time-stamps")
      ->check(CLI::IsMember(words))
      ->default_str(std::string(to_string(layout)));
}

}  // namespace flugs::tools
