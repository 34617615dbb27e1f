#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "flugs/status.h"
#include "pmem/pool/pool_format.h"

namespace flugs::pmem {

/// The journal that a pool's file needs; id 0: none, or its header cannot be found.
NeededJournal journal_needed_by(std::span<const std::byte> file) noexcept;

/// Stores what this journal of the pool at `path` has into a mapping of its file; nothing if its id
/// is 0. kNotFound: the journal is not there; kCorrupt, kIncompatible, kIoError.
Status replay_into_view(const std::string& path, const NeededJournal& needed,
                        std::span<std::byte> view);

}  // namespace flugs::pmem
