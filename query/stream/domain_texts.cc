#include "query/stream/domain_texts.h"

#include <string>
#include <utility>
#include <vector>

namespace flugs::query {

std::shared_ptr<const TextDictionary> DomainTexts::shared() {
  const std::uint32_t count = domain_->count();
  if (count == 0 || count > kCodesMax || rows_.load(std::memory_order_relaxed) < count) return {};
  std::call_once(once_, [this] { copy(); });
  return copy_;
}

void DomainTexts::copy() {
  const std::uint32_t count = domain_->count();
  std::vector<std::int32_t> offsets(std::size_t{count} + 1);
  std::string bytes;
  for (std::uint32_t code = 0; code < count; ++code) {
    bytes += domain_->text(code);
    if (bytes.size() > kBytesMax) return;
    offsets[code + 1] = static_cast<std::int32_t>(bytes.size());
  }
  copy_ = std::make_shared<const TextDictionary>(std::move(offsets), std::move(bytes));
}

}  // namespace flugs::query
