#pragma once
#include "pmem/spin_lock.h"
namespace flugs::columns {
using pmem::SpinLock;
using pmem::SpinWait;
}  // namespace flugs::columns
