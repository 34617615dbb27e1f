#pragma once

#include <span>

#include "base/check.h"
#include "base/shared_words.h"
#include "base/spin_lock.h"
#include "mvcc/slot_mirror.h"
#include "mvcc/stamps.h"

namespace flugs::mvcc {

/// What a transaction sees: rows created at or before its snapshot and not deleted by then, and its
/// own writes. Takes no lock. A reader that meets a transaction in the middle of its commit waits
/// for that one fence, but only if the time-stamp is, or may become, at or below its snapshot: else
/// a later commit could be visible before an earlier one.
///
/// Thread-safety: const, any thread.
class Visibility {
 public:
  Visibility() = default;
  Visibility(std::span<SlotMirror> mirrors, std::uint64_t snapshot, Stamp own_tag) noexcept
      : mirrors_(mirrors.data()),
        mirror_count_(static_cast<std::uint32_t>(mirrors.size())),
        snapshot_(snapshot),
        own_tag_(own_tag) {}
  /// What a transaction sees that is committing at `timestamp`, which is in the past (Clock::pass).
  /// Among transactions with the same time-stamp, those in lower slots come first.
  static Visibility at_commit(std::span<SlotMirror> mirrors, std::uint64_t timestamp,
                              Stamp own_tag) noexcept {
    FLUGS_DCHECK(is_tag(own_tag));
    Visibility visibility(mirrors, timestamp, own_tag);
    visibility.is_at_commit_ = true;
    return visibility;
  }

  /// The same transactions as seen from another snapshot. For tests that break the rules.
  Visibility seen_from(std::uint64_t snapshot, Stamp own_tag) const noexcept {
    return {{mirrors_, mirror_count_}, snapshot, own_tag};
  }

  std::uint64_t snapshot() const noexcept { return snapshot_; }
  Stamp own_tag() const noexcept { return own_tag_; }

  bool sees(const VersionLayout& version) const noexcept {
    return happened(version.created) && !happened(version.deleted);
  }

  /// Whether what `stamp` records has happened in this transaction's snapshot.
  bool happened(const Stamp& stamp) const noexcept {
    const Stamp seen = load_stamp(stamp);
    if (seen == kNoStamp) return false;
    if (!is_tag(seen)) return seen <= snapshot_;
    return seen == own_tag_ || tag_happened(stamp, seen);
  }

  /// What a stamp means now, whatever the snapshot.
  enum class Fate : std::uint8_t {
    kNothing,    ///< 0, or the tag of an aborted or crashed transaction
    kOwn,        ///< this transaction's own tag
    kInFlight,   ///< another transaction that has not ended
    kCommitted,  ///< `timestamp` is set
  };
  struct Resolved {
    Fate fate = Fate::kNothing;
    Stamp seen = kNoStamp;  ///< the word the fate was derived from
    std::uint64_t timestamp = 0;
  };
  Resolved resolve(const Stamp& stamp) const noexcept;

 private:
  bool tag_happened(const Stamp& stamp, Stamp seen) const noexcept;

  SlotMirror* mirrors_ = nullptr;
  std::uint32_t mirror_count_ = 0;
  bool is_at_commit_ = false;
  std::uint64_t snapshot_ = 0;
  Stamp own_tag_ = kNoStamp;
};

}  // namespace flugs::mvcc
