#include "proof/worker.h"

#include <unistd.h>

#include <semaphore>
#include <thread>

namespace flugs::proof {

namespace {

class Worker {
 public:
  Worker() : process_(::getpid()), thread_([this](const std::stop_token& stop) { serve(stop); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    thread_.request_stop();
    wanted_.release();
  }

  void run(const std::function<void()>& work) {
    if (std::this_thread::get_id() == thread_.get_id()) return work();
    work_ = &work;
    wanted_.release();
    done_.acquire();
  }
  /// After a fork the child has no such thread.
  bool is_alive() const noexcept { return process_ == ::getpid(); }

 private:
  void serve(const std::stop_token& stop) {
    for (;;) {
      wanted_.acquire();
      if (stop.stop_requested()) return;
      (*work_)();
      done_.release();
    }
  }

  pid_t process_;
  const std::function<void()>* work_ = nullptr;
  std::binary_semaphore wanted_{0};
  std::binary_semaphore done_{0};
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace

void run_on_worker(const std::function<void()>& work) {
  // Never destroyed: a child must not wait for a thread that it has not.
  static Worker* worker = nullptr;
  if (worker == nullptr || !worker->is_alive()) worker = new Worker();
  worker->run(work);
}

}  // namespace flugs::proof
