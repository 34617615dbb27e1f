#pragma once

#include <string>

#include "flugs/value.h"

namespace flugs {

/// For messages: the value; a long text is cut off.
std::string shown(const Value& value);

}  // namespace flugs
