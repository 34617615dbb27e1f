#include "pmem/journal/direct_writer.h"

#include "base/check.h"
#include "pmem/medium/medium.h"

namespace flugs::pmem {

// Protocol direct. The caller alone knows the pages, and has stored into all that it needs of them.
//   step  store                          where        made durable by  power cut just after it:
//                                                                      recovery
//   1     a record: images of the pages  the journal  itself, waited   free space
//         so far are revoked                          for
//   2     the pages are not dirty        memory       -                the same
//   3     the pages                      the pool's   fdatasync        the same, with any content
//                                        file
//   4     private copies of the pages    memory       -                the same
//         go
//   5     the caller's pointer to them   the journal  protocol         not stored: free space;
//                                                     journal          stored: the pages, whole
// Must hold:  1 durable before 3: before it stands the record that made the pages free. If that
//             were lost, their former owner would find the new content.
//             1 before 5: else replay would store images of the former owner over the content.
//             2 before 3, when no checkpoint has copies of the pages: else it would write the
//             former content over the new. 3 before 5.
// Need not:   succeed. The caller then flushes the pages, behind the record of step 1.
bool DirectWriter::write(std::span<std::byte> pages) noexcept {
  FLUGS_CHECK(pages.data() >= base_ && !pages.empty());
  const auto offset = static_cast<std::uint64_t>(pages.data() - base_);
  FLUGS_CHECK(offset % kPageBytes == 0 && pages.size() % kPageBytes == 0);
  const std::scoped_lock lock(mutex_);
  const JournalPlace place = journal_.revoke(offset, pages.size());
  if (!journal_.wait_between_work(place).ok() || journal_.has_failed()) return false;
  checkpointer_.forget_pages(offset, pages.size());
  if (!pool_file_.write_through(offset, pages).ok()) return false;
  journal_.note_direct_write(pages.size());
  // If the copies stay, they only take memory.
  static_cast<void>(pool_file_.show_again(offset, pages));
  return true;
}

}  // namespace flugs::pmem
