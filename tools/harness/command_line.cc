// Any words after `flugs`: they are parsed or refused, and nothing is run.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/support/command.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words;
  std::string word;
  for (std::size_t i = 0; i < size && words.size() < 64; ++i) {
    if (data[i] == '\n' || data[i] == 0) {
      words.push_back(std::move(word));
      word.clear();
    } else {
      word += static_cast<char>(data[i]);
    }
  }
  words.push_back(std::move(word));
  flugs::tools::Action action;
  CLI::App app("flugs");
  flugs::tools::add_commands(app, action);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError&) {
    return 0;
  }
  return 0;
}
