// Many callers share a crew: every task runs once, whoever calls, also from within a task.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/crew.h"
#include "base/parallel_sort.h"

namespace flugs::test {
namespace {

constexpr std::size_t kTasks = 200;

/// Number of tasks that did not run exactly once.
std::size_t run_tasks(Crew& crew, std::uint32_t workers) {
  std::vector<int> plain(kTasks);  // the crew orders what tasks do before what the caller does next
  crew.for_each(workers, kTasks, [&](std::size_t i) { ++plain[i]; });
  std::size_t wrong = 0;
  for (const int runs : plain) wrong += runs == 1 ? 0 : 1;
  return wrong;
}

}  // namespace

TEST_CASE("each task of a crew runs once, with many callers at a time", "[crew]") {
  Crew crew;
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> callers;
  for (std::uint32_t caller = 0; caller < 4; ++caller)
    callers.emplace_back([&crew, &wrong, caller] {
      for (std::uint32_t round = 0; round < 200; ++round)
        wrong += run_tasks(crew, 1 + (round + caller) % 5);
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("a task of a crew may have the crew run others", "[crew]") {
  Crew crew;
  std::atomic<std::size_t> wrong{0};
  for (int round = 0; round < 20; ++round)
    crew.for_each(3, 6, [&](std::size_t) { wrong += run_tasks(crew, 3); });
  CHECK(wrong == 0);
}

TEST_CASE("workers of a crew have numbers of their own, the caller has 0", "[crew]") {
  Crew crew;
  for (int round = 0; round < 100; ++round) {
    std::vector<int> calls(4);
    const std::thread::id caller = std::this_thread::get_id();
    bool is_caller_first = false;
    crew.run(4, [&](std::uint32_t worker) {
      ++calls[worker];
      if (worker == 0) is_caller_first = std::this_thread::get_id() == caller;
    });
    CHECK(is_caller_first);
    CHECK(calls[0] == 1);
    CHECK(*std::max_element(calls.begin(), calls.end()) == 1);
  }
}

TEST_CASE("what a task of a crew throws comes to the caller, and ends the rest", "[crew]") {
  Crew crew;
  for (const std::uint32_t workers : {1u, 4u}) {
    std::atomic<std::size_t> ran{0};
    std::string what;
    try {
      crew.for_each(workers, 100'000, [&](std::size_t i) {
        ++ran;
        if (i == 3) throw std::runtime_error("three");
      });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    CHECK(what == "three");
    CHECK(ran < 100'000);
    CHECK(run_tasks(crew, workers) == 0);
  }
}

TEST_CASE("a range is sorted alike by any number of threads", "[crew]") {
  Crew crew;
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 100'001u})
    for (const std::uint32_t threads : {1u, 2u, 3u, 7u}) {
      std::vector<std::uint64_t> range(size);
      std::uint64_t word = 1;
      for (std::uint64_t& value : range) value = word = word * 6364136223846793005u + 1;
      std::vector<std::uint64_t> expected = range;
      std::sort(expected.begin(), expected.end());
      parallel_sort(crew, threads, range, std::less<>());
      CHECK(range == expected);
    }
}

}  // namespace flugs::test
