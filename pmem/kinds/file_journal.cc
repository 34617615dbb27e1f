#include "pmem/kinds/file_journal.h"

#include <array>
#include <cstring>

#include "pmem/journal/pool_journal.h"
#include "pmem/kinds/object_format.h"

namespace flugs::pmem {

NeededJournal journal_needed_by(std::span<const std::byte> file) noexcept {
  std::uint64_t root = 0;
  if (file.size() < kDescriptorBytes) return {};
  std::memcpy(&root, file.data() + kRootOffsetOffset, sizeof root);
  std::array<PoolHeader, 2> headers;
  if (root > file.size()) return {};
  root = round_up(root, kLineBytes);
  if (root > file.size() || file.size() - root < sizeof headers) return {};
  std::memcpy(&headers, file.data() + root, sizeof headers);
  return needed_journal(headers);
}

Status replay_into_view(const PoolFile& file, const NeededJournal& needed,
                        std::span<std::byte> view, DirtyPages& changed) {
  if (needed.id == 0) return {};
  const auto mark = [&](std::uint64_t offset, std::uint64_t bytes) { changed.mark(offset, bytes); };
  const auto show_again = [&](std::uint64_t offset, std::uint64_t bytes) {
    changed.clear_all(offset, bytes);
    return file.show_again(offset, view.subspan(offset, bytes));
  };
  return pmem::replay_into_view(file.path(), needed.pool_uuid, needed.id, {view, mark, show_again});
}

Status replay_into_view(const PoolFile& file, const NeededJournal& needed,
                        std::span<std::byte> view) {
  if (needed.id == 0) return {};
  Result<DirtyPages> changed = DirtyPages::reserve(view.size(), file.path());
  return changed.ok() ? replay_into_view(file, needed, view, *changed) : changed.status();
}

}  // namespace flugs::pmem
