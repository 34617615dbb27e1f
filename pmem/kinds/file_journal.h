#pragma once

#include <cstddef>
#include <span>

#include "flugs/status.h"
#include "pmem/journal/dirty_pages.h"
#include "pmem/kinds/pool_file.h"
#include "pmem/pool/pool_format.h"

namespace flugs::pmem {

/// The journal that a pool's file needs; id 0: none, or its header cannot be found.
NeededJournal journal_needed_by(std::span<const std::byte> file) noexcept;

/// Stores what this journal of the pool in `file` has into a private mapping of it; nothing if its
/// id is 0. kNotFound: the journal is not there; kCorrupt, kIncompatible, kIoError.
Status replay_into_view(const PoolFile& file, const NeededJournal& needed,
                        std::span<std::byte> view);
/// The same; marks the pages that differ from the file since then.
Status replay_into_view(const PoolFile& file, const NeededJournal& needed,
                        std::span<std::byte> view, DirtyPages& changed);

}  // namespace flugs::pmem
