#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <vector>

#include "columns/main/main_column.h"
#include "columns/main/main_column_builder.h"
#include "test/support/main_column_group.h"

// Prints figures, and tests nothing: codes per second of every kernel, the median of several runs,
// by the CPU time of one thread, which other load disturbs less than wall-clock time.

namespace flugs::test {
namespace {

using columns::KernelRoute;
using columns::PackedCodes;

constexpr int kRuns = 9;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Seconds of the median of several runs of `body`.
template <typename Body>
double median_seconds(const Body& body) {
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i) {
    const double begin = cpu_seconds();
    body();
    seconds.push_back(cpu_seconds() - begin);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

std::uint64_t sink = 0;

// Calls `kernel(first block, blocks)` for pieces of 1024 rows, as a query does, or for all at once.
template <typename Kernel>
void report(const char* name, unsigned bits, std::size_t blocks, std::size_t step,
            const Kernel& kernel) {
  const std::size_t repeat = std::max<std::size_t>(1, 100'000 / blocks);
  const double seconds = median_seconds([&] {
    for (std::size_t i = 0; i < repeat; ++i)
      for (std::size_t b = 0; b < blocks; b += step) kernel(b, std::min(step, blocks - b));
  });
  const auto codes = static_cast<double>(repeat * blocks * 64);
  fmt::print("  {:<8}{:<18}{:>4} bits {:>8.2f} G codes/s {:>8.1f} GB/s\n", columns::kernels().name,
             name, bits, codes / seconds / 1e9, codes * bits / 8 / seconds / 1e9);
}

void report_kernels(const std::vector<std::uint64_t>& words, unsigned bits, std::size_t blocks) {
  const PackedCodes codes{words.data(), bits};
  const auto& kernels = columns::kernels();
  constexpr std::size_t kStep = 16;
  std::vector<std::uint64_t> mask(blocks, 0x0123456789ABCDEF);
  std::vector<std::uint64_t> all(blocks);
  std::vector<std::int64_t> out(kStep * 64);
  const std::uint64_t half = codes.mask() / 2;
  report("sum", bits, blocks, kStep * 128, [&](std::size_t b, std::size_t n) {
    sink += static_cast<std::uint64_t>(kernels.sum(codes, b, n, 0, false, nullptr).sum);
  });
  report("masked sum", bits, blocks, kStep, [&](std::size_t b, std::size_t n) {
    sink += static_cast<std::uint64_t>(kernels.sum(codes, b, n, 0, false, mask.data() + b).sum);
  });
  report("filter", bits, blocks, kStep, [&](std::size_t b, std::size_t n) {
    std::fill_n(all.data() + b, n, ~std::uint64_t{0});
    kernels.filter(codes, b, n, half / 2, half, false, all.data() + b);
  });
  report("extremes", bits, blocks, kStep, [&](std::size_t b, std::size_t n) {
    sink += kernels.extremes(codes, b, n, 0, 0, mask.data() + b).max;
  });
  report("values", bits, blocks, kStep,
         [&](std::size_t b, std::size_t n) { kernels.values(codes, b, n, 7, out.data()); });
  if (bits > 32) return;
  report("codes", bits, blocks, kStep, [&](std::size_t b, std::size_t n) {
    kernels.codes(codes, b, n, ~0u, reinterpret_cast<std::uint32_t*>(out.data()));
  });
  const auto last = static_cast<std::uint32_t>(std::min<std::uint64_t>(codes.mask(), 999));
  report("members", bits, blocks, kStep, [&](std::size_t b, std::size_t n) {
    std::fill_n(all.data() + b, n, ~std::uint64_t{0});
    kernels.members(codes, b, n, mask.data(), last, all.data() + b);
  });
  if (bits > 16) return;
  std::vector<std::int64_t> entries(std::size_t{1} << bits, 5);
  report("decode", bits, blocks, kStep, [&](std::size_t b, std::size_t n) {
    kernels.decode(codes, b, n, entries.data(), (1u << bits) - 1, out.data());
  });
}

std::vector<std::uint64_t> random_words(std::size_t count) {
  Random random(1);
  std::vector<std::uint64_t> words(count);
  for (std::uint64_t& word : words) word = random.next();
  return words;
}

template <typename Make>
void report_builder(const char* name, std::size_t rows, const Make& make) {
  std::vector<std::byte> group;
  columns::MainColumnLayout layout{};
  const double seconds = median_seconds([&] {
    const columns::MainColumnBuilder builder = make();
    group.resize(builder.parts_bytes() + 64);
    auto* at = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(group.data()) + 63) /
                                            64 * 64);
    builder.write(at, 0, layout);
  });
  fmt::print("  {:<34} encoding {} of {:>2} bits {:>8.1f} M codes/s {:>6.2f} bytes/row\n", name,
             layout.encoding, layout.code_bits, static_cast<double>(rows) / seconds / 1e6,
             static_cast<double>(layout.parts_bytes) / static_cast<double>(rows));
}

void report_in_cache() {
  fmt::print("kernels on a row group of 131,072 rows:\n");
  constexpr std::size_t kBlocks = 2048;  // a row group of 131,072 rows
  for (const KernelRoute route : {KernelRoute::kPlain, KernelRoute::kAvx2, KernelRoute::kAvx512}) {
    if (!columns::force_kernel_route(route)) continue;
    for (const unsigned bits : {1u, 4u, 7u, 12u, 16u, 17u, 24u, 32u, 40u, 64u})
      report_kernels(random_words(kBlocks * bits + 8), bits, kBlocks);
  }
}

void report_from_memory() {
  fmt::print("kernels on 512 MB:\n");
  constexpr std::size_t kBytes = std::size_t{1} << 29;
  const std::vector<std::uint64_t> words = random_words(kBytes / 8 + 8);
  std::uint64_t sum = 0;
  const double seconds = median_seconds([&] {
    std::uint64_t sums[8] = {};
    for (std::size_t i = 0; i < kBytes / 8; i += 8)
      for (std::size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
    for (const std::uint64_t x : sums) sum += x;
  });
  sink += sum;
  fmt::print("  sum of 64-bit words by the compiler: {:.1f} GB/s\n",
             static_cast<double>(kBytes) / seconds / 1e9);
  for (const KernelRoute route : {KernelRoute::kAvx2, KernelRoute::kAvx512}) {
    if (!columns::force_kernel_route(route)) continue;
    for (const unsigned bits : {12u, 17u, 24u, 64u}) report_kernels(words, bits, kBytes / 8 / bits);
  }
}

void report_builder() {
  fmt::print("builder:\n");
  constexpr std::size_t kRows = 131072;
  Random random(3);
  for (const std::uint64_t spread : {100ull, 10'000'000ull, ~0ull >> 1}) {
    std::vector<std::int64_t> payloads(kRows);
    for (auto& x : payloads) x = static_cast<std::int64_t>(random.next() % spread);
    report_builder(fmt::format("integers below {}", spread).c_str(), kRows, [&] {
      return columns::MainColumnBuilder::of_integers(Type::kInt64, payloads, {});
    });
    for (auto& x : payloads) x = (x % 1000) * 1'000'000'007;
    report_builder("1000 far apart", kRows, [&] {
      return columns::MainColumnBuilder::of_integers(Type::kInt64, payloads, {});
    });
    std::vector<columns::Cell> cells;
    for (std::size_t i = 0; i < kRows; ++i)
      cells.push_back(columns::text_cell::make_inline(fmt::format("{}", random.next() % spread)));
    report_builder(fmt::format("texts, {} or fewer", spread).c_str(), kRows,
                   [&] { return columns::MainColumnBuilder::of_texts(Type::kString, cells, {}); });
  }
}

template <typename Body>
void report_rows(const char* name, int encoding, std::size_t rows, const Body& body) {
  const double seconds = median_seconds([&] {
    for (int i = 0; i < 20; ++i) body();
  });
  fmt::print("  {:<22} encoding {} {:>8.2f} G rows/s\n", name, encoding,
             20.0 * static_cast<double>(rows) / seconds / 1e9);
}

void report_columns() {
  fmt::print("columns of a row group of 131,072 rows, in runs of 20 on average:\n");
  constexpr std::uint32_t kRows = 131072;
  Random random(3);
  for (const columns::MainEncoding encoding :
       {columns::MainEncoding::kPacked, columns::MainEncoding::kDictionary,
        columns::MainEncoding::kRunLength, columns::MainEncoding::kPlain}) {
    const MainColumnGroup group(Type::kInt64,
                                random_values({Type::kInt64, kRows, 1000, 0, 20, 5}, random),
                                columns::MainEncodings::only(encoding));
    const columns::MainColumn column = group.column();
    std::vector<std::uint32_t> rows(kRows);
    for (std::uint32_t& row : rows) row = static_cast<std::uint32_t>(random.below(kRows));
    const double seconds = median_seconds([&] {
      for (const std::uint32_t row : rows) sink += static_cast<std::uint64_t>(column.integer(row));
    });
    const int number = static_cast<int>(encoding);
    fmt::print("  integer of a random row, encoding {}: {:.2f} ns\n", number,
               seconds / kRows * 1e9);
    std::vector<std::uint64_t> mask(kRows / 64);
    std::vector<std::int64_t> out(kRows);
    const auto sum = [&] { sink += column.sum(0, kRows).count; };
    report_rows("sum, 5 % NULL", number, kRows, sum);
    report_rows("integers, 5 % NULL", number, kRows,
                [&] { column.integers(0, kRows, out.data(), mask.data()); });
    const auto range = column.within({Value::int64(300), Value::int64(600), false, false});
    const auto all = [&] { std::fill(mask.begin(), mask.end(), ~std::uint64_t{0}); };
    report_rows("filter, 5 % NULL", number, kRows,
                [&] { all(), column.filter(0, kRows, range, mask.data()); });
    if (column.code_count() == 0) continue;
    const std::vector<std::uint64_t> wanted(column.code_count() / 64 + 1, 0x5555);
    report_rows("filter_codes", number, kRows,
                [&] { all(), column.filter_codes(0, kRows, wanted.data(), mask.data()); });
  }
}

}  // namespace
}  // namespace flugs::test

// Runs all parts, or those named: cache, memory, builder, columns.
int main(int argc, char** argv) {
  const auto wants = [&](std::string_view part) {
    return argc < 2 || std::find(argv + 1, argv + argc, part) != argv + argc;
  };
  if (wants("cache")) flugs::test::report_in_cache();
  if (wants("memory")) flugs::test::report_from_memory();
  if (wants("builder")) flugs::test::report_builder();
  if (wants("columns")) flugs::test::report_columns();
  return flugs::test::sink == 0 ? 1 : 0;
}
