#include "query/run_context.h"

#include <fmt/format.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <exception>
#include <thread>

#include "engine/transaction_context.h"

namespace flugs::query {

void RunContext::check_stop() const {
  if (stop.stop_requested()) fail(StatusCode::kCancelled, "the query was asked to stop");
  if (transaction != nullptr && transaction->is_to_end())
    throw Failure{engine::why_ended(*transaction)};
}

#if defined(__SANITIZE_THREAD__)

// The thread sanitizer does not see what orders oneTBB's tasks, which is not built for it: here it
// gets threads that it knows, so that it sees every race of the workers.
void run_workers(std::uint32_t workers, const std::function<void(std::uint32_t)>& work) {
  std::vector<std::exception_ptr> failures(workers);
  std::vector<std::thread> threads;
  for (std::uint32_t worker = 0; worker < workers; ++worker)
    threads.emplace_back([&work, &failures, worker] {
      try {
        work(worker);
      } catch (...) {
        failures[worker] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

#else

void run_workers(std::uint32_t workers, const std::function<void(std::uint32_t)>& work) {
  if (workers <= 1) return work(0);
  tbb::task_arena arena(static_cast<int>(workers));
  arena.execute([&] {
    tbb::task_group group;
    for (std::uint32_t worker = 1; worker < workers; ++worker)
      group.run([&work, worker] { work(worker); });
    group.run_and_wait([&work] { work(0); });
  });
}

#endif

std::string to_text(const ExplainNode& node, unsigned depth) {
  std::string text = fmt::format("{:{}}{}", "", depth * 2, node.title);
  if (node.seconds >= 0) text += fmt::format("  [{:.3f} ms]", node.seconds * 1e3);
  text += "\n";
  for (const std::string& detail : node.details)
    text += fmt::format("{:{}}- {}\n", "", depth * 2 + 4, detail);
  for (const ExplainPtr& input : node.inputs) text += to_text(*input, depth + 1);
  return text;
}

}  // namespace flugs::query
