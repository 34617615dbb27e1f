// Explores the crash states of a journal with a mistake in it (mutations.py): the test of the test.
#include <cstdio>
#include <cstdlib>

#include "test/journal/crash_states.h"

// Arguments: the states to explore, and the first script. Exit status 4: something is wrong; 3:
// nothing is. A process that dies has found nothing.
int main(int argc, char** argv) {
  if (argc < 2) return 2;
  flugs::test::CrashStates explored(argc == 2 ? 1 : std::strtoull(argv[2], nullptr, 10));
  explored.explore(std::strtoull(argv[1], nullptr, 10));
  const char* const violation = explored.violation().c_str();
  const auto states = static_cast<unsigned long long>(explored.states());
  std::printf("%llu states: %s\n", states, *violation == '\0' ? "nothing is wrong" : violation);
  return *violation == '\0' ? 3 : 4;
}
