#include "columns/main/main_kernels.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "pmem/medium/scm_reads.h"

namespace flugs::columns {
namespace {

KernelRoute best_route() noexcept {
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                        __builtin_cpu_supports("popcnt");
  const bool has_avx512 =
      has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
  // A build that charges reads does not see gathers and masked loads, and only these kernels have
  // them.
  if (has_avx512 && !pmem::kSeesScmReads) return KernelRoute::kAvx512;
  return has_avx2 ? KernelRoute::kAvx2 : KernelRoute::kPlain;
}

KernelRoute chosen_route() noexcept {
  const KernelRoute best = best_route();
  const char* wish = std::getenv("FLUGS_KERNELS");  // NOLINT(concurrency-mt-unsafe)
  if (wish == nullptr) return best;
  KernelRoute asked = best;
  if (std::string_view(wish) == "plain") asked = KernelRoute::kPlain;
  if (std::string_view(wish) == "avx2") asked = KernelRoute::kAvx2;
  return asked < best ? asked : best;
}

std::atomic<KernelRoute>& route() noexcept {
  static std::atomic<KernelRoute> chosen{chosen_route()};
  return chosen;
}

}  // namespace

KernelRoute kernel_route() noexcept { return route().load(std::memory_order_relaxed); }

bool force_kernel_route(KernelRoute wanted) noexcept {
  if (wanted > best_route()) return false;
  route().store(wanted, std::memory_order_relaxed);
  return true;
}

const MainKernels& kernels() noexcept {
  switch (kernel_route()) {
    case KernelRoute::kAvx512:
      return avx512_kernels();
    case KernelRoute::kAvx2:
      return avx2_kernels();
    case KernelRoute::kPlain:
      break;
  }
  return plain_kernels();
}

}  // namespace flugs::columns
