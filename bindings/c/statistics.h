#pragma once

#include <string>

#include "flugs/database.h"

namespace flugs::c {

std::string json_of(const MergeReport& report);
std::string json_of_statistics(const Database& database);
std::string json_of(const TableSchema& schema);

}  // namespace flugs::c
