#include "pmem/kinds/object_maker.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <libpmemobj/atomic_base.h>
#include <libpmemobj/base.h>
#include <libpmemobj/ctl.h>
#include <libpmemobj/pool_base.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <forward_list>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/check.h"
#include "pmem/kinds/object_format.h"

namespace flugs::pmem {

namespace {

constexpr std::uint64_t kArenaType = 1;  // libpmemobj's type number of our arenas
// The largest pool has an arena in each zone. The last zone may be cut off.
static_assert(kPoolBytesMax / kZoneBytes + 1 <= kArenaCountMax);

/// The functions of libpmemobj that we use.
struct Library {
  decltype(&pmemobj_create) create = nullptr;
  decltype(&pmemobj_close) close = nullptr;
  decltype(&pmemobj_root) root = nullptr;
  decltype(&pmemobj_alloc) alloc = nullptr;
  decltype(&pmemobj_alloc_usable_size) alloc_usable_size = nullptr;
  decltype(&pmemobj_ctl_get) ctl_get = nullptr;
  decltype(&pmemobj_ctl_set) ctl_set = nullptr;
  decltype(&pmemobj_errormsg) errormsg = nullptr;
};

/// Hides the settings in the environment from libpmemobj and libpmem: a setting that they do not
/// understand ends the process, and another may make them take a disk for persistent memory. Other
/// threads read the old list of variables or the new one, and both stay. One object at a time.
class HiddenSettings {
 public:
  HiddenSettings() : all_(environ) {
    if (environ == nullptr) return;
    std::vector<char*> shown;
    bool hides = false;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text(*variable);
      const bool is_setting = text.starts_with("PMEM") || text.starts_with("PMREORDER");
      if (!is_setting) shown.push_back(*variable);
      hides |= is_setting;
    }
    if (!hides) return;
    shown.push_back(nullptr);
    environ = kept(std::move(shown)).data();
    shown_ = environ;
  }
  // Unless another thread has set a variable meanwhile, which makes a new list.
  ~HiddenSettings() {
    if (shown_ != nullptr && environ == shown_) environ = all_;
  }
  HiddenSettings(const HiddenSettings&) = delete;
  HiddenSettings& operator=(const HiddenSettings&) = delete;

 private:
  /// The list is never freed, because another thread may still be reading it.
  static std::vector<char*>& kept(std::vector<char*> list) {
    static auto* const lists = new std::forward_list<std::vector<char*>>;
    return lists->emplace_front(std::move(list));
  }

  char** all_;
  char** shown_ = nullptr;
};

template <typename Function>
bool find(void* handle, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr;
}

/// Loads the library if it is not loaded yet. With its dependencies that takes as long as opening a
/// pool. It stays loaded.
Result<Library> load_library(const std::string& path) {
  void* const handle = ::dlopen("libpmemobj.so.1", RTLD_NOW | RTLD_LOCAL);
  Library library;
  if (handle != nullptr && find(handle, "pmemobj_create", library.create) &&
      find(handle, "pmemobj_close", library.close) && find(handle, "pmemobj_root", library.root) &&
      find(handle, "pmemobj_alloc", library.alloc) &&
      find(handle, "pmemobj_alloc_usable_size", library.alloc_usable_size) &&
      find(handle, "pmemobj_ctl_get", library.ctl_get) &&
      find(handle, "pmemobj_ctl_set", library.ctl_set) &&
      find(handle, "pmemobj_errormsg", library.errormsg))
    return library;
  const char* const why = ::dlerror();
  return Status(StatusCode::kIoError,
                fmt::format("{}: cannot load libpmemobj, which makes pools in files: {}", path,
                            why != nullptr ? why : "no reason given"));
}

Status failed(const Library& library, const std::string& path, const char* what) {
  const int error = errno;
  StatusCode code = StatusCode::kIoError;
  if (error == EAGAIN || error == EWOULDBLOCK) code = StatusCode::kBusy;
  if (error == EACCES || error == EPERM || error == EROFS) code = StatusCode::kReadOnly;
  if (error == ENOSPC || error == EFBIG) code = StatusCode::kOutOfSpace;
  if (error == EINVAL) code = StatusCode::kCorrupt;
  return Status(code,
                fmt::format("{}: libpmemobj cannot {} it: {}", path, what, library.errormsg()));
}

/// Number of whole chunks in each zone of libpmemobj's heap in a pool of this size: first the whole
/// zones in the middle, then the first zone, in which the root object lies, then the last one.
std::vector<std::uint64_t> zone_chunks(std::uint64_t max_bytes) {
  std::vector<std::uint64_t> chunks;
  for (std::uint64_t zone = kZonesOffset; zone + kZoneMetadataBytes + kChunkBytes <= max_bytes;
       zone += kZoneBytes) {
    chunks.push_back(std::min((max_bytes - zone - kZoneMetadataBytes) / kChunkBytes, kZoneChunks));
  }
  if (chunks.size() > 2) std::rotate(chunks.begin(), chunks.begin() + 1, chunks.end() - 1);
  return chunks;
}

struct CloseObjects {
  decltype(&pmemobj_close) close = nullptr;
  void operator()(PMEMobjpool* objects) const noexcept { close(objects); }
};
using Objects = std::unique_ptr<PMEMobjpool, CloseObjects>;

/// Makes libpmemobj create its own pool in the empty file. Two settings of the process must be
/// changed meanwhile: that the library allocates the whole file, and that newer versions refuse
/// media without a counter of unsafe shutdowns.
Result<Objects> make_empty(const Library& library, const std::string& path,
                           const std::string& file) {
  constexpr std::array<const char*, 2> kSettings = {"fallocate.at_create", "sds.at_create"};
  std::array<int, kSettings.size()> before{};
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    int off = 0;
    if (library.ctl_get(nullptr, kSettings[i], &before[i]) != 0 ||
        library.ctl_set(nullptr, kSettings[i], &off) != 0) {
      return failed(library, path, "be configured for");
    }
  }
  Objects objects(library.create(file.c_str(), kObjectLayoutName, 0, S_IRUSR | S_IWUSR),
                  {library.close});
  Status status = objects == nullptr ? failed(library, path, "create") : Status();
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    library.ctl_set(nullptr, kSettings[i], &before[i]);
  }
  if (!status.ok()) return status;
  return objects;
}

/// Makes one object for each zone, as large as the zone; in the first zone the root reduces it. In
/// the order of zone_chunks() each object gets a zone of its own and begins at the zone's start.
/// libpmemobj writes a header in front of an object, so the medium must have provided that place.
Result<std::vector<ArenaRecord>> make_arenas(const Library& library, PMEMobjpool* objects,
                                             const std::string& path, const PoolOptions& options,
                                             std::uint64_t max_bytes) {
  constexpr std::uint64_t kRootChunksMax = 4;
  const std::uint64_t unit = options.extent_unit_bytes;
  const std::uint64_t alignment = std::max(unit, kPageBytes);
  const std::vector<std::uint64_t> zones = zone_chunks(max_bytes);
  std::vector<ArenaRecord> arenas;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    const bool is_first_zone = zones.size() == 1 || i + 2 == zones.size();
    PMEMoid object = OID_NULL;
    for (std::uint64_t less = is_first_zone ? 1 : 0;
         OID_IS_NULL(object) && less <= kRootChunksMax && less < zones[i]; ++less) {
      const std::uint64_t bytes = (zones[i] - less) * kChunkBytes - kLineBytes;
      if (library.alloc(objects, &object, bytes, kArenaType, nullptr, nullptr) != 0) {
        object = OID_NULL;
      }
    }
    if (OID_IS_NULL(object)) {
      if (is_first_zone) return failed(library, path, "make an arena in");
      continue;  // a last zone without usable space
    }
    const std::uint64_t end = object.off + library.alloc_usable_size(object);
    const std::uint64_t begin = round_up(object.off, alignment);
    arenas.push_back({.offset = begin,
                      .bytes = (end - begin) / unit * unit,
                      .allocated_limit = begin,
                      .touched_limit = begin});
  }
  FLUGS_CHECK(!arenas.empty() && arenas.size() <= kArenaCountMax);
  std::sort(arenas.begin(), arenas.end(),
            [](const ArenaRecord& a, const ArenaRecord& b) { return a.offset < b.offset; });
  return arenas;
}

}  // namespace

Result<std::vector<ArenaRecord>> make_objects(const std::string& file, const PoolOptions& options,
                                              std::uint64_t max_bytes) {
  FLUGS_CHECK(max_bytes >= PMEMOBJ_MIN_POOL && max_bytes <= kPoolBytesMax);
  static std::mutex settings_mutex;  // protects settings of libpmemobj and the environment; a leaf
  const std::scoped_lock lock(settings_mutex);
  const HiddenSettings hidden;
  const std::string& path = options.path;  // for messages
  const Result<Library> library = load_library(path);
  if (!library.ok()) return library.status();
  Result<Objects> objects = make_empty(*library, path, file);
  if (!objects.ok()) return objects.status();
  const std::uint64_t bytes = root_bytes(zone_chunks(max_bytes).size()) + kLineBytes;
  if (OID_IS_NULL(library->root(objects->get(), bytes)))
    return failed(*library, path, "make a root in");
  return make_arenas(*library, objects->get(), path, options, max_bytes);
}

}  // namespace flugs::pmem
