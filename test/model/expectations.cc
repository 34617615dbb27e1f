// Compares the database's results with the model's.
#include <algorithm>

#include "test/model/exerciser.h"

namespace flugs::test {

void Exerciser::expect(bool condition, const std::string& what) {
  if (!condition && complaint_.empty())
    complaint_ = "operation " + std::to_string(figures_.steps) + ": " + what;
}

void Exerciser::expect_code(Outcomes expected, const Status& found, const std::string& what) {
  ++figures_.outcomes[static_cast<std::size_t>(found.code())];
  if (expected.admits(found.code())) return;
  expect(false, what + ": expected " + expected.to_string() + ", found " + found.to_string());
}

void Exerciser::expect_row(const SeenRow& expected, const Row& found, const std::string& what) {
  if (expected.id != found.id())
    expect(false, what + ": expected row " + std::to_string(expected.id.value()) + ", found " +
                      std::to_string(found.id().value()));
  std::vector<Value> values(expected.row->size());
  found.get_all(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value wanted = (*expected.row)[i].view();
    if (!(wanted == values[i]))
      expect(false, what + ": column " + std::to_string(i) + ": expected " + wanted.to_string() +
                        ", found " + values[i].to_string());
  }
}

void Exerciser::expect_rows(const ModelTable& table, std::vector<SeenRow> expected,
                            const std::vector<Row>& found, const ModelKey* order,
                            const std::string& what) {
  const std::string where = what + " in " + table.schema.name;
  const auto by_id = [](const SeenRow& a, const SeenRow& b) { return a.id < b.id; };
  std::sort(expected.begin(), expected.end(), by_id);
  std::vector<bool> is_found(expected.size());
  const ModelRow* previous = nullptr;
  for (const Row& row : found) {
    const auto wanted = std::lower_bound(expected.begin(), expected.end(),
                                         SeenRow{nullptr, row.id(), nullptr}, by_id);
    const auto place = static_cast<std::size_t>(wanted - expected.begin());
    if (wanted == expected.end() || wanted->id != row.id() || is_found[place])
      return expect(false, where + ": row " + std::to_string(row.id().value()) +
                               " is one too many, or comes twice");
    is_found[place] = true;
    expect_row(*wanted, row, where);
    if (order != nullptr && previous != nullptr)
      for (const std::size_t column : order->columns) {
        const int sign = compare((*previous)[column], (*wanted->row)[column]);
        expect(sign <= 0, where + ": not in the order of the key");
        if (sign != 0) break;
      }
    previous = wanted->row;
  }
  if (found.size() != expected.size())
    expect(false, where + ": " + std::to_string(expected.size() - found.size()) +
                      " rows are missing of " + std::to_string(expected.size()));
}

}  // namespace flugs::test
