#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace flugs::query {

/// One input of a chain of inner joins, as far as the order of the joins depends on it.
struct JoinInput {
  double rows = 1;      ///< expected, behind the conditions on this input alone
  double rows_all = 1;  ///< without these conditions
};
/// A key that links two inputs. `a_values` and `b_values` count its values in each input, without
/// conditions. The count is a guess unless the key is unique.
struct JoinLink {
  std::size_t a = 0;
  std::size_t b = 0;
  double a_values = 1;
  double b_values = 1;
  bool is_unique_in_a = false;  ///< each row of `a` has a value of its own
  bool is_unique_in_b = false;
};

/// An order: an input, or a join of two orders. The rows of the first stream, those of the second
/// are held.
struct JoinTree {
  static constexpr std::size_t kJoin = ~std::size_t{0};

  std::size_t input = kJoin;  ///< an index; kJoin: a join
  std::unique_ptr<JoinTree> streamed;
  std::unique_ptr<JoinTree> held;
  double rows = 0;  ///< expected

  static std::unique_ptr<JoinTree> of(std::size_t input);
  static std::unique_ptr<JoinTree> join(std::unique_ptr<JoinTree> streamed,
                                        std::unique_ptr<JoinTree> held);
};

/// Chooses the order of inner joins. With up to ten inputs it looks at all orders; with up to 64 it
/// repeatedly makes the cheapest next join; with more it changes nothing. `written` is the user's
/// order. It stays unless another order costs less than 0.8 of it. Sets `rows` everywhere in the
/// result. `links` must connect all inputs.
std::unique_ptr<JoinTree> choose_join_order(const std::vector<JoinInput>& inputs,
                                            const std::vector<JoinLink>& links,
                                            std::unique_ptr<JoinTree> written);

}  // namespace flugs::query
