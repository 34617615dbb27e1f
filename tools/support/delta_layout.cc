#include "tools/support/delta_layout.h"

#include <string>

namespace flugs::tools {

void add_layout_option(CLI::App& command, DeltaLayout& layout) {
  command
      .add_option_function<std::string>(
          "--layout",
          [&layout](const std::string& word) {
            layout = word == "columns" ? DeltaLayout::kColumns : DeltaLayout::kRows;
          },
          "Layout of tables in the delta: the cells of a row side by side, or each column apart")
      ->check(CLI::IsMember({"rows", "columns"}))
      ->default_str(std::string(to_string(layout)));
}

Status lay_out_tables(Database& database, DeltaLayout layout) {
  for (const TableId table : database.tables())
    if (Status s = database.set_delta_layout(table, layout); !s.ok()) return s;
  return {};
}

}  // namespace flugs::tools
