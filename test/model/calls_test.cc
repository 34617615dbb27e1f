// Compares the list of the random model's calls with the public headers: a new public function must
// be called by the model.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <fstream>
#include <string>
#include <vector>

#include "test/model/calls.h"

namespace flugs::test {
namespace {

std::vector<std::string> lines_of(const std::string& header) {
  std::ifstream file(std::string(FLUGS_HEADERS) + "/" + header);
  REQUIRE(file.good());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The function that a line declares, or nothing.
std::string declared(const std::string& line) {
  const std::size_t parenthesis = line.find('(');
  if (parenthesis == std::string::npos) return {};
  std::size_t begin = parenthesis;
  while (begin > 0 &&
         (std::isalnum(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_'))
    --begin;
  return line.substr(begin, parenthesis - begin);
}

/// Public member functions of a class, as its declaration is formatted: two blanks before each.
std::vector<std::string> functions_of(const std::string& header, const std::string& name) {
  std::vector<std::string> functions;
  bool is_inside = false;
  for (const std::string& line : lines_of(header)) {
    if (line == "class " + name + " {") is_inside = true;
    if (line == " private:" || line == "};") is_inside = false;
    const bool is_member = is_inside && line.size() > 2 && line.starts_with("  ") &&
                           line[2] != ' ' && line[2] != '/' && line[2] != '~';
    if (!is_member || line.find("operator") != std::string::npos) continue;
    const std::string function = declared(line);
    if (function.empty() || function == name) continue;
    functions.push_back(name + "::" + function);
  }
  REQUIRE(functions.size() > 3);
  return functions;
}

/// Functions that are declared at the left margin.
std::vector<std::string> free_functions_of(const std::string& header) {
  std::vector<std::string> functions;
  for (const std::string& line : lines_of(header))
    if (line.starts_with("Result<") || line.starts_with("Status "))
      functions.push_back(declared(line));
  REQUIRE(!functions.empty());
  return functions;
}

/// These name parts of a query or batch and do nothing.
const std::vector<std::string> kNoCalls = {
    "ScanBatch::columns", "ScanBatch::row_id_buffer", "ScanBatch::set_row_count",
    "Query::node",        "Query::explain",           "Rows::begin",
    "Rows::end"};

bool is_listed(const std::string& function) {
  return std::find(kNoCalls.begin(), kNoCalls.end(), function) != kNoCalls.end() ||
         std::any_of(kCallNames.begin(), kCallNames.end(), [&](std::string_view name) {
           return name.substr(0, name.find(' ')) == function;
         });
}

}  // namespace

TEST_CASE("the random model's list of calls has every function of the public headers",
          "[engine][model]") {
  for (const auto& [header, name] :
       std::vector<std::pair<std::string, std::string>>{{"database.h", "Database"},
                                                        {"transaction.h", "Transaction"},
                                                        {"row.h", "Row"},
                                                        {"rows.h", "Rows"},
                                                        {"scan.h", "ScanBatch"},
                                                        {"query.h", "Query"}})
    for (const std::string& function : functions_of(header, name)) {
      INFO(function << " in " << header
                    << ": add it to test/model/calls.h, and a step that calls it");
      CHECK(is_listed(function));
    }
  for (const std::string header : {"pool_check.h", "opening_estimate.h"})
    for (const std::string& function : free_functions_of(header)) {
      INFO(function << " in " << header);
      CHECK(is_listed(function));
    }
}

TEST_CASE("the random model's list of calls names each once", "[engine][model]") {
  std::vector<std::string_view> names(kCallNames.begin(), kCallNames.end());
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(names.front() != "");  // as many names as calls
}

}  // namespace flugs::test
