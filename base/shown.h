#pragma once

#include <string>

#include "flugs/value.h"

namespace flugs {

/// For messages: the value, of a long text only its beginning.
std::string shown(const Value& value);

}  // namespace flugs
