#include "flugs/condition.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/shown.h"
#include "base/types.h"

namespace flugs {

namespace {

using Kind = Condition::Kind;

// Combinations come last, and a node counts its parts with 16 bits.
static_assert(Kind::kContains < Kind::kAll && Kind::kIsNotNull < Kind::kAll);
static_assert(Kind::kAll < Kind::kAny && Kind::kAny < Kind::kNone);
static_assert(Condition::kNodesMax <= 0xFFFF);

Condition single(Kind kind, std::string column, std::vector<Constant> constants) {
  return Condition::of({{kind, 0, std::move(column), {}, std::move(constants)}});
}

Condition too_large(std::size_t nodes) {
  return Condition::wrong(fmt::format("{} comparisons and combinations, allowed are 1 to {}", nodes,
                                      Condition::kNodesMax));
}

std::string_view infix_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::kEqual:
      return "=";
    case Kind::kNotEqual:
      return "<>";
    case Kind::kLess:
      return "<";
    case Kind::kLessEqual:
      return "<=";
    case Kind::kGreater:
      return ">";
    case Kind::kGreaterEqual:
      return ">=";
    case Kind::kStartsWith:
      return "starts with";
    case Kind::kEndsWith:
      return "ends with";
    case Kind::kContains:
      return "contains";
    default:
      return "?";
  }
}

std::string leaf_text(const Condition::Node& node) {
  if (node.kind == Kind::kIsNull) return node.column + " is null";
  if (node.kind == Kind::kIsNotNull) return node.column + " is not null";
  if (node.kind == Kind::kIn) {
    std::string text = node.column + " in (";
    for (std::size_t i = 0; i < node.constants.size(); ++i)
      text += (i == 0 ? "" : ", ") + node.constants[i].to_string();
    return text + ")";
  }
  const std::string right = !node.other.empty()      ? node.other
                            : node.constants.empty() ? "?"
                                                     : node.constants[0].to_string();
  return fmt::format("{} {} {}", node.column, infix_of(node.kind), right);
}

// The text of the node at `next` and its parts; `next` moves behind them. Recursive; kNodesMax
// bounds the depth.
std::string text_of(const std::vector<Condition::Node>& nodes, std::size_t& next, bool is_part) {
  if (next >= nodes.size()) return "?";
  const Condition::Node& node = nodes[next++];
  if (node.kind < Kind::kAll) return leaf_text(node);
  if (node.kind == Kind::kNone) return "not (" + text_of(nodes, next, false) + ")";
  std::string text;
  for (std::uint16_t i = 0; i < node.parts && next < nodes.size(); ++i)
    text += (i == 0 ? "" : node.kind == Kind::kAll ? " and " : " or ") + text_of(nodes, next, true);
  return is_part ? "(" + text + ")" : text;
}

}  // namespace

Value Constant::value() const noexcept {
  if (!present_) return Value::null();
  if (is_text_type(type_)) return Value::from_bytes(type_, text_);
  return Value::from_raw(type_, raw_).with_scale(scale_);
}

std::string Constant::to_string() const { return shown(value()); }

Condition Condition::compare(std::string column, Kind kind, Constant constant) {
  return single(kind, std::move(column), {std::move(constant)});
}
Condition Condition::compare_columns(std::string column, Kind kind, std::string other) {
  return of({{kind, 0, std::move(column), std::move(other), {}}});
}
Condition Condition::between(const std::string& column, Constant low, Constant high) {
  return all_of({compare(column, Kind::kGreaterEqual, std::move(low)),
                 compare(column, Kind::kLessEqual, std::move(high))});
}
Condition Condition::in(std::string column, std::vector<Constant> constants) {
  return single(Kind::kIn, std::move(column), std::move(constants));
}
Condition Condition::is_null(std::string column) {
  return single(Kind::kIsNull, std::move(column), {});
}
Condition Condition::is_not_null(std::string column) {
  return single(Kind::kIsNotNull, std::move(column), {});
}
Condition Condition::starts_with(std::string column, std::string_view prefix) {
  return single(Kind::kStartsWith, std::move(column), {Constant(Value::string(prefix))});
}
Condition Condition::ends_with(std::string column, std::string_view suffix) {
  return single(Kind::kEndsWith, std::move(column), {Constant(Value::string(suffix))});
}
Condition Condition::contains(std::string column, std::string_view part) {
  return single(Kind::kContains, std::move(column), {Constant(Value::string(part))});
}
Condition Condition::all_of(const std::vector<Condition>& parts) {
  return combined(Kind::kAll, parts);
}
Condition Condition::any_of(const std::vector<Condition>& parts) {
  return combined(Kind::kAny, parts);
}
Condition Condition::negated(const Condition& part) { return combined(Kind::kNone, {part}); }

Condition Condition::combined(Kind kind, const std::vector<Condition>& parts) {
  if (parts.empty()) return wrong("the combination of conditions has no parts");
  if (parts.size() >= kNodesMax) return too_large(parts.size() + 1);
  Condition whole;
  whole.nodes_.push_back({kind, static_cast<std::uint16_t>(parts.size()), {}, {}, {}});
  for (const Condition& part : parts) {
    if (!part.error_.empty()) return part;
    if (part.nodes_.empty()) return wrong("a part of the combination is not a condition");
    whole.nodes_.insert(whole.nodes_.end(), part.nodes_.begin(), part.nodes_.end());
    if (whole.nodes_.size() > kNodesMax) return too_large(whole.nodes_.size());
  }
  return whole;
}

Condition Condition::wrong(std::string why) {
  Condition condition;
  condition.error_ = std::move(why);
  return condition;
}

Condition Condition::of(std::vector<Node> nodes) {
  if (nodes.size() > kNodesMax) return too_large(nodes.size());
  Condition condition;
  condition.nodes_ = std::move(nodes);
  return condition;
}

std::string Condition::to_string() const {
  if (!error_.empty()) return error_;
  std::size_t next = 0;
  return text_of(nodes_, next, false);
}

}  // namespace flugs
