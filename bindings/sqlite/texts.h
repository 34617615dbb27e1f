#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <tuple>

#include "bindings/sqlite/sqlite_api.h"

namespace flugs::sqlite {

/// Memory for short texts and blobs that are given to SQLite, which calls `give_back` when it no
/// longer needs a text. Otherwise SQLite would allocate memory for each, twice if a program reads
/// it as a text. A connection forgets the results of its statements before it destroys its modules.
///
/// Thread-safety: that of the connection, whose lock SQLite holds when it gives a place back.
class Texts {
 public:
  Texts() = default;
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  /// Gives a copy of a text as the result of a call.
  void give_text(sqlite3_context* context, std::string_view text) {
    const bool has_zero = !text.empty() && std::memchr(text.data(), 0, text.size()) != nullptr;
    // SQLite takes a text of unknown length as one with a zero behind it, and need not add that.
    if (char* kept = has_zero ? nullptr : keep(text); kept != nullptr)
      sqlite3_result_text(context, kept, -1, give_back);
    else
      sqlite3_result_text64(context, text.data() == nullptr ? "" : text.data(), text.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  void give_blob(sqlite3_context* context, std::string_view bytes) {
    if (char* kept = keep(bytes); kept != nullptr)
      sqlite3_result_blob64(context, kept, bytes.size(), give_back);
    else
      sqlite3_result_blob64(context, bytes.data() == nullptr ? "" : bytes.data(), bytes.size(),
                            SQLITE_TRANSIENT);
  }

 private:
  /// A text with a zero behind it.
  struct Place {
    Texts* home;
    Place* next;  // free, too
    std::array<char, 112> bytes;
  };
  static_assert(sizeof(Place) == 128);  // two lines
  static constexpr std::size_t kPlaces = 32;

  /// A copy with a zero behind it. Null: it is too long, or all places are taken.
  char* keep(std::string_view text) noexcept {
    if (text.size() >= std::tuple_size_v<decltype(Place::bytes)>) return nullptr;
    Place* place = free_;
    if (place != nullptr) {
      free_ = place->next;
    } else {
      if (made_ == kPlaces) return nullptr;
      place = &places_[made_++];
      place->home = this;
    }
    char* const bytes = place->bytes.data();
    if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
    bytes[text.size()] = '\0';
    return bytes;
  }
  static void give_back(void* bytes) noexcept {
    auto* place = reinterpret_cast<Place*>(static_cast<char*>(bytes) - offsetof(Place, bytes));
    Texts& home = *place->home;
    place->next = home.free_;
    home.free_ = place;
  }

  std::array<Place, kPlaces> places_{};
  Place* free_ = nullptr;
  std::size_t made_ = 0;  // places that were ever taken
};

}  // namespace flugs::sqlite
