#include "bindings/sqlite/changes.h"

namespace flugs::sqlite {

std::uint64_t Definitions::next() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

DefinitionChange::~DefinitionChange() {
  // In this order: a thread that sees no change begun sees this number.
  of_.number_ = Definitions::next();
  --of_.begun_;
}

}  // namespace flugs::sqlite
