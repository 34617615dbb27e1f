#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bench/support/random.h"
#include "bench/tatp/tatp_population.h"

namespace flugs::bench {

/// TATP's transactions, in the order of its description.
enum class TatpType : std::uint8_t {
  kGetSubscriberData = 0,
  kGetNewDestination = 1,
  kGetAccessData = 2,
  kUpdateSubscriberData = 3,
  kUpdateLocation = 4,
  kInsertCallForwarding = 5,
  kDeleteCallForwarding = 6,
};
inline constexpr std::size_t kTatpTypes = 7;
inline constexpr std::array<std::string_view, kTatpTypes> kTatpTypeNames = {
    "get_subscriber_data",    "get_new_destination", "get_access_data",
    "update_subscriber_data", "update_location",     "insert_call_forwarding",
    "delete_call_forwarding"};

constexpr std::size_t index_of(TatpType type) noexcept { return static_cast<std::size_t>(type); }
constexpr bool writes(TatpType type) noexcept { return type >= TatpType::kUpdateSubscriberData; }

/// Bytes of the values that a transaction inserts or changes when it does something: 4 of an int32,
/// 8 of an int64, those of a string.
constexpr std::uint64_t committed_bytes(TatpType type) noexcept {
  switch (type) {
    case TatpType::kUpdateSubscriberData:
      return 4 + 4;  // bit_1, data_a
    case TatpType::kUpdateLocation:
      return 8;  // vlr_location
    case TatpType::kInsertCallForwarding:
      return 4 + 4 + 4 + 4 + kSubNbrDigits;
    default:
      return 0;
  }
}

/// Which transactions a run consists of.
enum class TatpMix : std::uint8_t {
  kFull,            ///< 35 10 35 2 14 2 2 %
  kRead,            ///< the three reads: 33 33 34 %
  kGetSubscriber,   ///< GET_SUBSCRIBER_DATA alone
  kUpdateLocation,  ///< UPDATE_LOCATION alone
};

enum class TatpDistribution : std::uint8_t { kNuRand, kUniform };

/// One transaction with all its inputs; which of them it uses depends on the type.
struct TatpRequest {
  TatpType type = TatpType::kGetSubscriberData;
  std::uint8_t sub_type = 1;  ///< ai_type or sf_type
  std::uint8_t start_time = 0;
  std::uint8_t end_time = 1;
  std::uint8_t bit = 0;  ///< new bit_1
  std::uint8_t data_a = 0;
  std::uint32_t s_id = 1;
  std::uint32_t vlr_location = 1;
  std::uint32_t numberx = 1;  ///< the subscriber whose number it is
};

/// A of NURand for a population of `subscribers`.
constexpr std::uint32_t nurand_a(std::uint32_t subscribers) noexcept {
  if (subscribers <= 1'000'000) return 65'535;
  if (subscribers <= 10'000'000) return 1'048'575;
  return 2'097'151;
}

/// NURand(A, 1, P) = ((random(0, A) OR random(1, P)) mod P) + 1. With A = 0 it is uniform.
constexpr std::uint32_t nurand(Random& random, std::uint32_t a,
                               std::uint32_t subscribers) noexcept {
  const std::uint32_t left = random.between(0, a);
  return (left | random.between(1, subscribers)) % subscribers + 1;
}

/// Seed of the generator of one user in a run.
constexpr std::uint64_t user_seed(std::uint64_t run_seed, std::uint32_t user) noexcept {
  return mix64(run_seed) + mix64(user);
}

/// Draws the transactions of one user, inputs included.
class TatpGenerator {
 public:
  TatpGenerator(const Population& population, TatpMix mix, TatpDistribution distribution,
                std::uint64_t seed) noexcept
      : population_(population),
        random_(seed),
        a_(distribution == TatpDistribution::kNuRand ? nurand_a(population.subscribers()) : 0) {
    switch (mix) {
      case TatpMix::kFull:
        shares_ = {35, 45, 80, 82, 96, 98, 100};
        break;
      case TatpMix::kRead:
        shares_ = {33, 66, 100, 100, 100, 100, 100};
        break;
      case TatpMix::kGetSubscriber:
        shares_ = {100, 100, 100, 100, 100, 100, 100};
        break;
      case TatpMix::kUpdateLocation:
        shares_ = {0, 0, 0, 0, 100, 100, 100};
        break;
    }
  }

  void next(TatpRequest& request) noexcept {
    const std::uint32_t percent = random_.below(100);
    std::size_t type = 0;
    while (percent >= shares_[type]) ++type;
    request.type = static_cast<TatpType>(type);
    request.s_id = nurand(random_, a_, population_.subscribers());
    switch (request.type) {
      case TatpType::kGetSubscriberData:
        break;
      case TatpType::kGetAccessData:
        draw_type(request);
        break;
      case TatpType::kGetNewDestination:
        draw_type(request);
        draw_times(request);
        break;
      case TatpType::kUpdateSubscriberData:
        draw_subscriber_data(request);
        break;
      case TatpType::kUpdateLocation:
        request.vlr_location = random_.between(1, 0xffffffffu);
        break;
      case TatpType::kInsertCallForwarding:
        draw_type(request);
        draw_times(request);
        request.numberx = random_.between(1, population_.subscribers());
        break;
      case TatpType::kDeleteCallForwarding:
        draw_type(request);
        draw_times(request);
        break;
    }
  }

 private:
  void draw_type(TatpRequest& request) noexcept {
    request.sub_type = static_cast<std::uint8_t>(random_.between(1, kTypesMax));
  }
  void draw_times(TatpRequest& request) noexcept {
    request.start_time = kStartTimes[random_.below(kStartTimes.size())];
    request.end_time = static_cast<std::uint8_t>(random_.between(1, 24));
  }
  /// For T8 the request keeps data_a mod 2 = bit_1 and goes to the lowest type there is.
  void draw_subscriber_data(TatpRequest& request) noexcept {
    request.bit = static_cast<std::uint8_t>(random_.below(2));
    request.data_a = static_cast<std::uint8_t>(random_.below(256));
    draw_type(request);
    if (!population_.options().parity) return;
    request.data_a = static_cast<std::uint8_t>((request.data_a & ~1u) | request.bit);
    const unsigned types = population_.facility_types(request.s_id);
    request.sub_type = static_cast<std::uint8_t>(std::countr_zero(types) + 1);
  }

  Population population_;
  Random random_;
  std::uint32_t a_;
  std::array<std::uint8_t, kTatpTypes> shares_{};  ///< cumulated, percent
};

}  // namespace flugs::bench
