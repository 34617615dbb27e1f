#include "query/run_context.h"

#include <fmt/format.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace flugs::query {

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
