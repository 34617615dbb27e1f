#include "verify/crash/rig/explorer.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <unordered_map>
#include <utility>

namespace flugs::crash {

constexpr std::size_t kPageBytes = 4096;

struct AlignedDelete {
  void operator()(std::byte* memory) const noexcept {
    ::operator delete[](memory, std::align_val_t{kPageBytes});
  }
};
using Image = std::unique_ptr<std::byte[], AlignedDelete>;

namespace {

constexpr std::size_t kWordBytes = 8;
constexpr std::size_t kWordsPerLine = pmem::kLineBytes / kWordBytes;

Image new_image(std::size_t bytes) {
  return Image(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kPageBytes})));
}

template <typename Line>
std::uint64_t hash_of(std::size_t index, const Line& line) {
  return XXH3_64bits_withSeed(line.data(), line.size(), index);
}

}  // namespace

/// Shared by an explorer and those of nested crashes.
struct CrashExplorer::Shared {
  CrashCheck check;
  ExplorerOptions options;
  ExplorerReport report;
  // Images judged at the present outermost crash point, and to what depth. The expectation of the
  // check does not change until the next one.
  std::unordered_map<std::uint64_t, std::uint32_t> judged;
  std::vector<Image> spare;

  Image take_image(std::size_t bytes) {
    if (spare.empty()) return new_image(bytes);
    Image image = std::move(spare.back());
    spare.pop_back();
    return image;
  }
  bool is_done() const noexcept {
    return report.used_up || report.failure_count >= options.failures_max;
  }
};

std::string CrashFailure::to_string() const {
  std::string where;
  for (const auto& [point, image] : replay) where += fmt::format("{{{}, {}}}, ", point, image);
  return fmt::format("crash at {}: {}\n  {}\n  to repeat: seed = {}, replay = {{{}}}", label,
                     status.to_string(), versions, seed,
                     where.empty() ? where : where.substr(0, where.size() - 2));
}

std::string ExplorerReport::to_string() const {
  std::string text = fmt::format(
      "{} crash points ({} sampled), {} images checked ({} nested), {} skipped, at most {} "
      "uncertain "
      "lines, {} failures{}",
      crash_points, sampled_points, images_checked, nested_images, images_skipped,
      lines_uncertain_max, failure_count, used_up ? "; budget used up" : "");
  for (const CrashFailure& failure : failures) text += "\n" + failure.to_string();
  return text;
}

SiteCounts& SiteCounts::operator+=(const SiteCounts& other) noexcept {
  calls += other.calls;
  lines += other.lines;
  clean += other.clean;
  repeated += other.repeated;
  unfenced += other.unfenced;
  idle += other.idle;
  return *this;
}

pmem::PersistObserver* ExplorerContext::observer() const noexcept { return child_; }

void ExplorerContext::crash_now(const char* label) const {
  if (child_ != nullptr) child_->crash_now(label);
}

CrashExplorer::CrashExplorer(std::span<std::byte> memory, CrashCheck check, ExplorerOptions options)
    : CrashExplorer(memory, std::make_shared<Shared>(), 0, "", {}, 0) {
  shared_->check = std::move(check);
  shared_->options = std::move(options);
  last_flush_.resize((memory.size() + pmem::kLineBytes - 1) / pmem::kLineBytes);
}

CrashExplorer::CrashExplorer(std::span<std::byte> memory, std::shared_ptr<Shared> shared,
                             std::uint32_t depth, std::string context,
                             std::vector<std::pair<std::uint64_t, std::uint64_t>> replay,
                             std::uint64_t durable_hash)
    : memory_(memory),
      shared_(std::move(shared)),
      depth_(depth),
      context_(std::move(context)),
      path_(std::move(replay)),
      durable_(memory.begin(), memory.end()),
      durable_hash_(durable_hash) {}

CrashExplorer::~CrashExplorer() = default;

bool CrashExplorer::is_done() const noexcept { return shared_->is_done(); }

const ExplorerReport& CrashExplorer::report() const noexcept { return shared_->report; }

CrashExplorer::LineBytes CrashExplorer::line_of(const std::byte* base, std::size_t index) const {
  LineBytes line{};
  const std::size_t offset = index * pmem::kLineBytes;
  std::memcpy(line.data(), base + offset, std::min(line.size(), memory_.size() - offset));
  return line;
}

void CrashExplorer::on_flush(const void* /*address*/, std::size_t /*bytes*/,
                             pmem::Label /*label*/) {
  std::abort();  // never called: on_flush_by is
}

void CrashExplorer::on_fence(pmem::Label /*label*/) { std::abort(); }

/// A new Persister may get the address of an earlier one, which, if a fence is ignored, has one
/// fence less than the program made. A flush whose `lines` are all that the Persister has flushed
/// is the first of a new one.
std::uint64_t CrashExplorer::identity_of(const pmem::Persister& by, std::uint64_t lines) {
  const auto [known, is_new] = identities_.try_emplace(&by, next_identity_);
  const bool is_first = lines != 0 && by.counters().lines_flushed == lines;
  if (is_new || is_first) known->second = next_identity_++;
  return known->second;
}

void CrashExplorer::on_flush_by(const pmem::Persister& by, const void* address, std::size_t bytes,
                                pmem::Label label) {
  const std::scoped_lock lock(mutex_);
  const auto first_line = reinterpret_cast<std::uintptr_t>(address) / pmem::kLineBytes;
  const auto last_line = (reinterpret_cast<std::uintptr_t>(address) + bytes - 1) / pmem::kLineBytes;
  const std::uint64_t identity = identity_of(by, last_line - first_line + 1);
  if (label == shared_->options.ignored_flush) return;
  const auto begin =
      static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.data());
  if (begin >= memory_.size()) return;  // not of this pool
  const std::size_t last = std::min(begin + bytes, memory_.size()) - 1;
  if (shared_->options.at_flushes) explore_changes(label);
  SiteCounts* counts = site_counts("flush ", label);
  for (std::size_t i = begin / pmem::kLineBytes; i <= last / pmem::kLineBytes; ++i) {
    std::vector<FlushedVersion>& versions = flushed_[i];
    const LineBytes content = line_of(memory_.data(), i);
    const bool is_known = !versions.empty() && versions.back().content == content;
    const bool is_clean = versions.empty() && content == line_of(durable_.data(), i);
    if (counts != nullptr) {
      const auto& by_whom = versions.empty() ? std::vector<std::uint64_t>() : versions.back().by;
      const bool is_repeated =
          is_known && std::find(by_whom.begin(), by_whom.end(), identity) != by_whom.end();
      if (is_repeated) ++counts->repeated;
      if (is_clean) ++counts->clean;
      ++counts->lines;
    }
    if (is_clean) {  // nothing changes
      if (!last_flush_.empty()) last_flush_[i] = label;
      flushed_.erase(i);
      continue;
    }
    if (!is_known) versions.push_back({content, label, {}});
    if (!last_flush_.empty()) last_flush_[i] = label;
    versions.back().by.push_back(identity);
  }
}

void CrashExplorer::on_fence_by(const pmem::Persister& by, pmem::Label label) {
  const std::scoped_lock lock(mutex_);
  if (label == shared_->options.ignored_fence) return;
  explore(label);
  const std::uint64_t identity = identity_of(by, 0);
  std::uint64_t lines_made_durable = 0;
  for (auto it = flushed_.begin(); it != flushed_.end();) {
    std::vector<FlushedVersion>& versions = it->second;
    const auto newest = std::find_if(versions.rbegin(), versions.rend(), [&](const auto& version) {
      return std::find(version.by.begin(), version.by.end(), identity) != version.by.end();
    });
    if (newest != versions.rend()) {
      // This version is durable for certain, so older ones cannot come back.
      ++lines_made_durable;
      set_durable(it->first, newest->content);
      versions.erase(versions.begin(), newest.base());
    }
    it = versions.empty() ? flushed_.erase(it) : std::next(it);
  }
  if (SiteCounts* counts = site_counts("fence ", label); counts != nullptr) {
    counts->lines += lines_made_durable;
    if (lines_made_durable == 0) ++counts->idle;
  }
}

/// Counts the call. Null where nothing is counted: in recoveries from a crash, and while muted.
SiteCounts* CrashExplorer::site_counts(const char* kind, pmem::Label label) {
  if (depth_ != 0 || is_muted_) return nullptr;
  SiteCounts& counts = shared_->report.sites[std::string(kind) + label];
  ++counts.calls;
  return &counts;
}

void CrashExplorer::count_unfenced() {
  const std::scoped_lock lock(mutex_);
  if (is_muted_) return;
  for (const auto& [index, versions] : flushed_)
    for (const FlushedVersion& version : versions)
      ++shared_->report.sites[std::string("flush ") + version.label].unfenced;
}

std::vector<CrashExplorer::UnflushedLine> CrashExplorer::unflushed_lines() const {
  std::vector<UnflushedLine> unflushed;
  if (is_muted_) return unflushed;
  for (const UncertainLine& line : uncertain_lines())
    if (!flushed_.contains(line.index))
      unflushed.push_back({line.index * pmem::kLineBytes, last_flush_[line.index]});
  return unflushed;
}

void CrashExplorer::set_durable(std::size_t index, const LineBytes& content) {
  durable_hash_ += hash_of(index, content) - hash_of(index, line_of(durable_.data(), index));
  const std::size_t offset = index * pmem::kLineBytes;
  std::memcpy(durable_.data() + offset, content.data(),
              std::min(pmem::kLineBytes, memory_.size() - offset));
}

void CrashExplorer::crash_now(const char* label) {
  const std::scoped_lock lock(mutex_);
  explore(label);
}

std::vector<std::byte> CrashExplorer::crash_image(std::uint64_t choice) const {
  std::mt19937_64 random(choice);
  std::vector<std::byte> image = durable_;
  for (const UncertainLine& line : uncertain_lines()) {
    std::size_t version = 0;
    if (choice == 1) version = line.newest;
    if (choice > 1) version = random() % line.versions.size();
    const std::size_t offset = line.index * pmem::kLineBytes;
    std::memcpy(image.data() + offset, line.versions[version].data(),
                std::min(pmem::kLineBytes, image.size() - offset));
  }
  return image;
}

struct CrashExplorer::Moment {
  std::vector<std::byte> durable;
  std::uint64_t durable_hash;
  std::vector<UncertainLine> lines;
};

std::shared_ptr<CrashExplorer::Moment> CrashExplorer::moment() const {
  return std::make_shared<Moment>(Moment{durable_, durable_hash_, uncertain_lines()});
}

void CrashExplorer::crash_then(Moment& moment, const void* address, std::size_t bytes,
                               const char* label) {
  const std::scoped_lock lock(mutex_);
  if (is_muted_ || shared_->is_done()) return;
  std::vector<UncertainLine> lines = moment.lines;
  const auto begin =
      static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.data());
  for (std::size_t i = begin / pmem::kLineBytes; i <= (begin + bytes - 1) / pmem::kLineBytes; ++i) {
    auto line =
        std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.index >= i; });
    if (line == lines.end() || line->index != i)
      line = lines.insert(line, {i, {line_of(moment.durable.data(), i)}, 0});
    LineBytes early = line->versions[line->newest];
    const std::size_t first = std::max(begin, i * pmem::kLineBytes);
    const std::size_t end = std::min(begin + bytes, (i + 1) * pmem::kLineBytes);
    std::memcpy(&early[first % pmem::kLineBytes], &memory_[first], end - first);
    line->newest = line->versions.size();
    line->versions.push_back(early);
  }
  std::swap(durable_hash_, moment.durable_hash);
  durable_.swap(moment.durable);
  explore_lines(lines, label);
  durable_.swap(moment.durable);
  std::swap(durable_hash_, moment.durable_hash);
}

void CrashExplorer::restart() {
  const std::scoped_lock lock(mutex_);
  durable_.assign(memory_.begin(), memory_.end());
  flushed_.clear();
  std::fill(last_flush_.begin(), last_flush_.end(), nullptr);
}

/// Adds every subset of the words in which the durable and the newest version differ.
void CrashExplorer::add_torn(UncertainLine& line) const {
  const LineBytes durable = line.versions[0];
  const LineBytes newest = line.versions[line.newest];
  std::vector<std::size_t> words;
  for (std::size_t i = 0; i < kWordsPerLine; ++i) {
    const std::size_t at = i * kWordBytes;
    if (std::memcmp(&durable[at], &newest[at], kWordBytes) != 0) words.push_back(at);
  }
  const std::size_t subsets = std::size_t{1} << words.size();
  for (std::size_t subset = 1; subset + 1 < subsets; ++subset) {
    LineBytes torn = durable;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if ((subset >> i & 1) != 0) std::memcpy(&torn[words[i]], &newest[words[i]], kWordBytes);
    }
    if (std::find(line.versions.begin(), line.versions.end(), torn) == line.versions.end()) {
      line.versions.push_back(torn);
    }
  }
}

void CrashExplorer::add_line(std::size_t index, std::vector<UncertainLine>& lines) const {
  UncertainLine line{index, {line_of(durable_.data(), index)}, 0};
  const auto add = [&line](const LineBytes& content) {
    const auto known = std::find(line.versions.begin(), line.versions.end(), content);
    line.newest = static_cast<std::size_t>(known - line.versions.begin());
    if (known == line.versions.end()) line.versions.push_back(content);
  };
  if (const auto it = flushed_.find(index); it != flushed_.end()) {
    for (const FlushedVersion& version : it->second) add(version.content);
  }
  add(line_of(memory_.data(), index));
  if (line.versions.size() == 1) return;
  if (shared_->options.tears_words) add_torn(line);
  lines.push_back(std::move(line));
}

std::vector<CrashExplorer::UncertainLine> CrashExplorer::uncertain_lines() const {
  std::vector<UncertainLine> lines;
  auto flushed = flushed_.begin();
  for (std::size_t page = 0; page < memory_.size(); page += kPageBytes) {
    const std::size_t end = std::min(page + kPageBytes, memory_.size());
    const bool is_flushed = flushed != flushed_.end() && flushed->first * pmem::kLineBytes < end;
    if (!is_flushed && std::memcmp(&memory_[page], &durable_[page], end - page) == 0) continue;
    for (std::size_t at = page; at < end; at += pmem::kLineBytes) {
      const std::size_t index = at / pmem::kLineBytes;
      const bool line_is_flushed = flushed != flushed_.end() && flushed->first == index;
      if (line_is_flushed) ++flushed;
      const std::size_t bytes = std::min(pmem::kLineBytes, end - at);
      if (line_is_flushed || std::memcmp(&memory_[at], &durable_[at], bytes) != 0) {
        add_line(index, lines);
      }
    }
  }
  return lines;
}

void CrashExplorer::explore(const char* label) {
  if (is_muted_ || shared_->is_done()) return;
  const std::vector<UncertainLine> lines = uncertain_lines();
  explored_ = digest_of(lines);
  explore_lines(lines, label);
}

// Opening mostly flushes what is already durable: thousands of lines, and nothing changes between
// them.
void CrashExplorer::explore_changes(const char* label) {
  if (is_muted_ || shared_->is_done()) return;
  const std::vector<UncertainLine> lines = uncertain_lines();
  const std::uint64_t digest = digest_of(lines);
  if (std::exchange(explored_, digest) != digest) explore_lines(lines, label);
}

std::uint64_t CrashExplorer::digest_of(const std::vector<UncertainLine>& lines) {
  std::uint64_t digest = XXH3_64bits(nullptr, 0);
  for (const UncertainLine& line : lines) {
    digest = XXH3_64bits_withSeed(&line.index, sizeof line.index, digest);
    digest =
        XXH3_64bits_withSeed(line.versions.data(), line.versions.size() * pmem::kLineBytes, digest);
  }
  return digest;
}

void CrashExplorer::explore_lines(const std::vector<UncertainLine>& lines, const char* label) {
  const std::uint64_t point = point_++;
  image_ = 0;
  const auto& replay = shared_->options.replay;
  if (depth_ < replay.size() && replay[depth_].first != point) return;
  if (depth_ == 0) shared_->judged.clear();
  ExplorerReport& report = shared_->report;
  ++report.crash_points;
  report.lines_uncertain_max = std::max<std::uint64_t>(report.lines_uncertain_max, lines.size());
  std::uint64_t combinations = 1;
  for (const UncertainLine& line : lines) {
    combinations *= line.versions.size();
    if (combinations > shared_->options.combinations_max) break;
  }
  if (combinations <= shared_->options.combinations_max) {
    explore_all(lines, label);
  } else {
    ++report.sampled_points;
    explore_some(lines, label);
  }
}

void CrashExplorer::explore_all(const std::vector<UncertainLine>& lines, const char* label) {
  Choice choice(lines.size(), 0);
  for (;;) {
    try_choice(lines, choice, label);
    std::size_t digit = 0;  // counts up, one digit per line
    while (digit < lines.size() && ++choice[digit] == lines[digit].versions.size()) {
      choice[digit++] = 0;
    }
    if (digit == lines.size()) return;
  }
}

void CrashExplorer::explore_some(const std::vector<UncertainLine>& lines, const char* label) {
  // Seeded for each crash point: a replay comes here without having been at the others.
  std::uint64_t seed = shared_->options.seed;
  for (const auto& [point, image] : path_)
    seed = (seed * 0x9e3779b97f4a7c15u) ^ (point << 32) ^ image;
  std::mt19937_64 random((seed * 0x9e3779b97f4a7c15u) ^ point_);
  const Choice none(lines.size(), 0);
  Choice all(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) all[i] = lines[i].newest;
  try_choice(lines, none, label);
  try_choice(lines, all, label);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::size_t version = 0; version < lines[i].versions.size(); ++version) {
      Choice missing = all;
      missing[i] = version;
      if (version != all[i]) try_choice(lines, missing, label);
      Choice only = none;
      only[i] = version;
      if (version != 0) try_choice(lines, only, label);
    }
  }
  for (std::uint32_t n = 0; n < shared_->options.random_images; ++n) {
    Choice choice(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      choice[i] = random() % lines[i].versions.size();
    }
    try_choice(lines, choice, label);
  }
}

bool CrashExplorer::is_replayed(std::uint64_t image) const {
  const auto& replay = shared_->options.replay;
  return depth_ >= replay.size() || replay[depth_].second == image;
}

void CrashExplorer::try_choice(const std::vector<UncertainLine>& lines, const Choice& choice,
                               const char* label) {
  Shared& shared = *shared_;
  const std::uint64_t image_index = image_++;
  if (shared.is_done() || !is_replayed(image_index)) return;
  std::uint64_t hash = durable_hash_;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (choice[i] != 0)
      hash += hash_of(lines[i].index, lines[i].versions[choice[i]]) -
              hash_of(lines[i].index, lines[i].versions[0]);
  const bool is_nested =
      depth_ < shared.options.replay.size()
          ? depth_ + 1 < shared.options.replay.size()
          : (point_ * 31 + image_) % std::max(shared.options.nested_one_in, 1U) == 0;
  const std::uint32_t depth_left = is_nested ? shared.options.nested_depth - depth_ : 0;
  if (!is_new_image(hash, depth_left)) return;
  Image image = shared.take_image(memory_.size());
  std::memcpy(image.get(), durable_.data(), durable_.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t offset = lines[i].index * pmem::kLineBytes;
    std::memcpy(image.get() + offset, lines[i].versions[choice[i]].data(),
                std::min(pmem::kLineBytes, memory_.size() - offset));
  }
  path_.emplace_back(point_ - 1, image_index);
  Status status = judge({image.get(), memory_.size()}, hash, depth_left, label);
  if (!status.ok()) report_failure(lines, choice, label, std::move(status));
  path_.pop_back();
  shared.spare.push_back(std::move(image));
}

/// Whether the image must be judged: not if the same image was judged at this crash point to that
/// depth.
bool CrashExplorer::is_new_image(std::uint64_t hash, std::uint32_t depth_left) {
  Shared& shared = *shared_;
  ExplorerReport& report = shared.report;
  const auto [judged, is_new] = shared.judged.try_emplace(hash, depth_left);
  if (!is_new && judged->second >= depth_left) {
    ++report.images_skipped;
    return false;
  }
  if (report.images_checked >= shared.options.images_max) {
    report.used_up = true;
    return false;
  }
  judged->second = depth_left;
  ++report.images_checked;
  report.digest += XXH3_64bits_withSeed(&hash, sizeof hash, depth_left);
  if (depth_ > 0) ++report.nested_images;
  return true;
}

Status CrashExplorer::judge(std::span<std::byte> image, std::uint64_t hash,
                            std::uint32_t depth_left, const char* label) {
  std::unique_ptr<CrashExplorer> child;
  if (depth_left > 0) {
    child.reset(
        new CrashExplorer(image, shared_, depth_ + 1, context_ + label + " > ", path_, hash));
  }
  ExplorerContext context(child.get(), depth_);
  return shared_->check(image, context);
}

void CrashExplorer::report_failure(const std::vector<UncertainLine>& lines, const Choice& choice,
                                   const char* label, Status status) {
  ExplorerReport& report = shared_->report;
  ++report.failure_count;
  constexpr std::size_t kFailuresKept = 16;
  if (report.failures.size() == kFailuresKept) return;
  CrashFailure failure;
  failure.label = context_ + label;
  failure.seed = shared_->options.seed;
  failure.replay = path_;
  failure.status = std::move(status);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* what = "flushed or torn";
    if (choice[i] == lines[i].newest) what = "newest";
    if (choice[i] == 0) what = "old";
    failure.versions +=
        fmt::format("{}line {:#x}: {}{}", i == 0 ? "" : ", ", lines[i].index * pmem::kLineBytes,
                    what, flush_words(lines[i].index));
  }
  report.failures.push_back(std::move(failure));
}

/// The label that a line waits for or, if it waits for none, its last label. A missing flush is
/// mostly one of a neighbouring line.
std::string CrashExplorer::flush_words(std::size_t index) const {
  if (const auto flushed = flushed_.find(index); flushed != flushed_.end())
    return fmt::format(" (flushed by {}, no fence)", flushed->second.back().label);
  if (last_flush_.empty()) return {};
  if (last_flush_[index] == nullptr) return " (never flushed)";
  return fmt::format(" (not flushed since {})", last_flush_[index]);
}

}  // namespace flugs::crash
