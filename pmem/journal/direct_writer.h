#pragma once

#include <cstddef>
#include <mutex>
#include <span>

#include "pmem/journal/checkpointer.h"
#include "pmem/journal/journal.h"
#include "pmem/medium/page_writer.h"

namespace flugs::pmem {

/// Writes large pieces of a pool to its file at once, so that they are not written twice, and not
/// kept in memory that the kernel cannot take back.
///
/// Source: revoke records and their order are those of jbd2, the journal of ext4.
class DirectWriter final : public PageWriter {
 public:
  /// `base` is the beginning of the pool.
  DirectWriter(PageFile& pool_file, Journal& journal, Checkpointer& checkpointer,
               const std::byte* base) noexcept
      : pool_file_(pool_file), journal_(journal), checkpointer_(checkpointer), base_(base) {}

  bool write(std::span<std::byte> pages) noexcept override;

 private:
  PageFile& pool_file_;
  Journal& journal_;
  Checkpointer& checkpointer_;
  const std::byte* const base_;
  std::mutex mutex_;  // one piece at a time goes to the device; then those of the two above
};

}  // namespace flugs::pmem
