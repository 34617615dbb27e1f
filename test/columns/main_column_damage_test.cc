#include <catch2/catch.hpp>

#include "columns/main/main_column.h"
#include "test/support/main_column_group.h"

namespace flugs::test {
namespace {

using columns::KernelRoute;
using columns::MainColumn;
using columns::MainColumnLayout;
using columns::MainEncoding;
using columns::MainEncodings;
using columns::ValueBounds;

constexpr MainEncoding kDamagedEncodings[] = {MainEncoding::kConstant,   MainEncoding::kPacked,
                                              MainEncoding::kDictionary, MainEncoding::kRunLength,
                                              MainEncoding::kPlain,      MainEncoding::kCompressed};

MainColumnGroup random_group(Random& random) {
  MainColumnShape shape;
  shape.type = static_cast<Type>(1 + random.below(9));
  shape.rows = 1 + random.below(3000);
  shape.spread = shape.type == Type::kBool ? 1 : (std::uint64_t{1} << random.below(40)) - 1;
  shape.run_rows = random.below(2) == 0 ? 40 : 1;
  shape.null_percent = random.below(2) == 0 ? 10 : 0;
  return {shape.type, random_values(shape, random),
          MainEncodings::only(kDamagedEncodings[random.below(std::size(kDamagedEncodings))])};
}

// Reads everything. Results do not matter, only that every read stays inside the pool.
std::uint64_t read_all(const MainColumnGroup& group) {
  const MainColumn column = group.column();
  const std::uint32_t rows = column.row_count();
  std::vector<std::uint64_t> mask(rows / 64 + 1, ~std::uint64_t{0});
  std::uint64_t sink = 0;
  std::uint32_t beyond = 0;
  const auto touch = [&](std::string_view text) {
    for (const char c : text) sink += static_cast<unsigned char>(c);
  };
  for (std::uint32_t row = 0; row < rows; ++row) {
    const Value value = column.value(row);
    touch(value.as_string());
    sink += static_cast<std::uint64_t>(value.raw());
    if (column.code_count() != 0 && column.code(row) >= column.code_count()) ++beyond;
  }
  REQUIRE(beyond == 0);
  if (column.code_count() != 0 && column.code_count() <= 100000) {
    std::vector<std::uint32_t> codes(rows);
    column.codes(0, rows, codes.data());
    for (const std::uint32_t code : codes) REQUIRE(code < column.code_count());
    const std::vector<std::uint64_t> wanted(column.code_count() / 64 + 1, 0x5555555555555555);
    column.filter_codes(0, rows, wanted.data(), mask.data());
  }
  if (column.is_text()) {
    std::vector<std::string_view> texts(rows);
    column.texts(0, rows, texts.data(), mask.data());
    for (const std::string_view text : texts) touch(text);
  } else {
    std::vector<std::int64_t> payloads(rows);
    column.integers(0, rows, payloads.data(), mask.data());
    sink += static_cast<std::uint64_t>(column.sum(0, rows, mask.data()).count);
  }
  const columns::MainExtremes extremes = column.extremes(0, rows, mask.data());
  touch(extremes.min.as_string());
  for (const Value& bound : {column.min(), column.max(), column.value(rows / 2)}) {
    touch(bound.as_string());
    column.filter(0, rows, column.within(ValueBounds::equal(bound)), mask.data());
    column.filter(0, rows, column.outside({bound, {}, true, false}), mask.data());
  }
  column.filter_is_null(0, rows, mask.data());
  return sink + mask[0];
}

void flip_bits(std::span<std::byte> bytes, Random& random) {
  for (std::uint32_t i = 1 + random.below(8); i != 0; --i)
    bytes[random.below(bytes.size())] ^=
        std::byte{static_cast<std::uint8_t>(1u << random.below(8))};
}

}  // namespace

TEST_CASE("damaged parts lead no read out of the group, and the audit finds them", "[columns]") {
  Random random(11);
  for (int i = 0; i < 400; ++i) {
    const MainColumnGroup group = random_group(random);
    if (group.parts().empty()) continue;
    const std::vector<std::byte> before(group.parts().begin(), group.parts().end());
    if (random.below(3) == 0) {
      for (std::byte& byte : group.parts()) byte = static_cast<std::byte>(random.next());
    } else {
      flip_bits(group.parts(), random);
    }
    columns::force_kernel_route(static_cast<KernelRoute>(random.below(3)));
    CHECK(group.check().ok());
    const bool is_same = std::equal(before.begin(), before.end(), group.parts().begin());
    CHECK(group.audit().ok() == is_same);
    if (!is_same) {
      CHECK(group.audit().code() == StatusCode::kCorrupt);
      CHECK(group.audit().message().find("pool: table t, column c: offset") == 0);
    }
    read_all(group);
  }
  columns::force_kernel_route(KernelRoute::kAvx512);
}

TEST_CASE("a damaged layout is refused", "[columns]") {
  Random random(12);
  for (int i = 0; i < 300; ++i) {
    MainColumnGroup group = random_group(random);
    const MainColumnLayout before = group.layout();
    flip_bits({reinterpret_cast<std::byte*>(&group.layout()), sizeof before}, random);
    if (std::memcmp(&before, &group.layout(), sizeof before) == 0) continue;
    CHECK(group.check().code() == StatusCode::kCorrupt);
    CHECK(group.audit().code() == StatusCode::kCorrupt);
  }
}

TEST_CASE("a wrong layout with a valid checksum leads no read out of the group", "[columns]") {
  Random random(13);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    MainColumnGroup group = random_group(random);
    flip_bits({reinterpret_cast<std::byte*>(&group.layout()), 8 + random.below(112)}, random);
    group.sign();
    if (!group.check().ok()) continue;
    ++accepted;
    read_all(group);
    (void)group.audit().ok();
  }
  CHECK(accepted > 100);
}

TEST_CASE("the audit finds errors under a valid checksum", "[columns]") {
  Random random(14);
  const auto audit_after = [&](MainColumnShape shape, MainEncoding encoding, auto&& change) {
    MainColumnGroup group(shape.type, random_values(shape, random), MainEncodings::only(encoding));
    REQUIRE(group.audit().ok());
    change(group);
    group.sign_parts();
    group.sign();
    return group.audit();
  };
  const auto words = [](MainColumnGroup& group) {
    return reinterpret_cast<std::uint64_t*>(group.parts().data());
  };
  const auto says = [](const Status& status, std::string_view text) {
    return status.code() == StatusCode::kCorrupt &&
           status.message().find(text) != std::string_view::npos;
  };
  const MainColumnShape ints{Type::kInt64, 500, 99};
  CHECK(says(audit_after(ints, MainEncoding::kPacked,
                         [&](MainColumnGroup& group) { words(group)[0] |= 0x7F; }),
             "a valid code"));
  CHECK(says(audit_after(ints, MainEncoding::kDictionary,
                         [&](MainColumnGroup& group) { words(group)[3] = words(group)[2]; }),
             "ascending"));
  CHECK(says(audit_after(ints, MainEncoding::kPlain,
                         [&](MainColumnGroup& group) { words(group)[3] = 1000; }),
             "values from"));
  CHECK(says(audit_after({Type::kInt64, 500, 99, 0, 1, 50}, MainEncoding::kPlain,
                         [&](MainColumnGroup& group) { group.layout().null_count += 1; }),
             "NULLs"));
  const MainColumnShape runs{Type::kInt64, 500, 99, 0, 20};
  CHECK(says(audit_after(runs, MainEncoding::kRunLength,
                         [&](MainColumnGroup& group) { words(group)[0] = 0; }),
             "an end of run"));
  CHECK(says(audit_after({Type::kString, 500, 99}, MainEncoding::kPlain,
                         [&](MainColumnGroup& group) {
                           words(group)[0] = ~std::uint64_t{0};
                           words(group)[1] = std::uint64_t{0xFF} << 56;
                         }),
             "code or cell"));
  CHECK(says(audit_after({Type::kString, 500, 99}, MainEncoding::kDictionary,
                         [&](MainColumnGroup& group) {
                           words(group)[2] = ~std::uint64_t{0};
                           words(group)[3] = std::uint64_t{0xFF} << 56;
                         }),
             "text in the pool"));
}

TEST_CASE("a column of another type or size is refused", "[columns]") {
  Random random(15);
  const MainColumnGroup group(Type::kInt64, random_values({Type::kInt64, 500, 99}, random));
  columns::MainColumnOwner owner = group.owner();
  CHECK(MainColumn::check(group.layout(), group.extent(), owner).ok());
  owner.type = Type::kTimestamp;
  CHECK(MainColumn::check(group.layout(), group.extent(), owner).code() == StatusCode::kCorrupt);
  owner = group.owner();
  owner.row_count = 501;
  CHECK(MainColumn::check(group.layout(), group.extent(), owner).code() == StatusCode::kCorrupt);
  CHECK(MainColumn::check(group.layout(), group.extent().first(group.extent().size() - 64),
                          group.owner())
            .code() == StatusCode::kCorrupt);
}

}  // namespace flugs::test
