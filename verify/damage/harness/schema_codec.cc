// A schema as it is in a pool: any bytes are decoded or refused, and a schema that is encoded and
// decoded again is the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tables/catalog/schema_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto schema = flugs::engine::decode_schema({reinterpret_cast<const char*>(data), size});
  if (!schema.ok()) {
    FLUGS_CHECK(!schema.status().message().empty());
    return 0;
  }
  const std::string encoded = flugs::engine::encode_schema(*schema);
  const auto again = flugs::engine::decode_schema(encoded);
  FLUGS_CHECK(again.ok());
  FLUGS_CHECK(flugs::engine::encode_schema(*again) == encoded);
  return 0;
}
