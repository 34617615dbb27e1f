#include "base/zeroed_memory.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/stable_array.h"

namespace flugs {
namespace {

TEST_CASE("kept memory is zero for its next owner", "[base]") {
  constexpr std::size_t kBytes = std::size_t{3} << 12;
  keep_zeroed_memory(2);
  auto* first = static_cast<std::byte*>(take_zeroed(kBytes));
  first[0] = std::byte{1};
  first[99] = std::byte{2};
  give_back_zeroed(first, kBytes, 100);
  auto* second = static_cast<std::byte*>(take_zeroed(kBytes));
  CHECK(second == first);
  for (std::size_t i = 0; i < kBytes; ++i) REQUIRE(second[i] == std::byte{0});
  give_back_zeroed(second, kBytes, 0);
  keep_zeroed_memory(0);
}

TEST_CASE("small pieces are whole pages, zero, and shared with no other piece", "[base]") {
  struct Piece {
    std::byte* begin;
    std::size_t bytes;
  };
  std::vector<Piece> pieces;  // more than several reserves hold
  for (std::size_t i = 0; i < 600; ++i) {
    const std::size_t bytes = 1 + i * 977 % (std::size_t{64} << 10);
    pieces.push_back({static_cast<std::byte*>(take_zeroed(bytes)), bytes});
    REQUIRE(reinterpret_cast<std::uintptr_t>(pieces.back().begin) % 4096 == 0);
  }
  const auto has_only = [](const Piece& piece, std::byte value) {
    return std::all_of(piece.begin, piece.begin + piece.bytes,
                       [value](std::byte b) { return b == value; });
  };
  for (const Piece& piece : pieces) {
    REQUIRE(has_only(piece, std::byte{0}));
    std::fill_n(piece.begin, piece.bytes, std::byte{7});
  }
  for (std::size_t i = 0; i < pieces.size(); i += 2)
    give_back_zeroed(pieces[i].begin, pieces[i].bytes, pieces[i].bytes);
  for (std::size_t i = 1; i < pieces.size(); i += 2) {
    REQUIRE(has_only(pieces[i], std::byte{7}));
    give_back_zeroed(pieces[i].begin, pieces[i].bytes, pieces[i].bytes);
  }
}

TEST_CASE("a stable array starts as zeros, whatever its memory held before", "[base]") {
  keep_zeroed_memory(4);
  for (std::uint64_t round = 1; round < 4; ++round) {
    StableArray<std::uint64_t> array(1000);
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(static_cast<std::uint64_t>(array[i]) == 0);
    array.begin(700) = round;
    array.begin(3) = round;
    array[700] += 1;
  }
  keep_zeroed_memory(0);
}

}  // namespace
}  // namespace flugs
