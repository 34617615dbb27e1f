#include "bindings/sqlite/definition.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "bindings/sqlite/times.h"
#include "bindings/sqlite/words.h"
#include "flugs/try.h"

namespace flugs::sqlite {

namespace {

Status wrong(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

struct TypeName {
  const char* name;
  Type type;
};
constexpr TypeName kTypeNames[] = {
    {"INTEGER", Type::kInt64},       {"INT", Type::kInt64},          {"BIGINT", Type::kInt64},
    {"INT64", Type::kInt64},         {"INT32", Type::kInt32},        {"INT4", Type::kInt32},
    {"SMALLINT", Type::kInt32},      {"BOOLEAN", Type::kBool},       {"BOOL", Type::kBool},
    {"REAL", Type::kDouble},         {"DOUBLE", Type::kDouble},      {"FLOAT", Type::kDouble},
    {"DECIMAL", Type::kDecimal},     {"NUMERIC", Type::kDecimal},    {"DATE", Type::kDate},
    {"TIMESTAMP", Type::kTimestamp}, {"DATETIME", Type::kTimestamp}, {"TEXT", Type::kString},
    {"VARCHAR", Type::kString},      {"CHAR", Type::kString},        {"STRING", Type::kString},
    {"BLOB", Type::kBytes},          {"BYTES", Type::kBytes},
};

Result<int> take_size(Words& words) {
  const Word word = words.take();
  if (word.kind != Word::Kind::kNumber || word.text.size() > 9 ||
      word.text.find_first_not_of("0123456789") != std::string::npos)
    return wrong("a number of digits is missing before '" + word.text + "'");
  return std::atoi(word.text.c_str());
}

/// Takes "(10)" or "(18, 2)" behind the name of a type.
Status take_sizes(Words& words, ColumnSchema& column) {
  if (column.type == Type::kDecimal && !words.is_next("("))
    return wrong("DECIMAL needs its digits: DECIMAL(18,2) for column " + column.name);
  if (!words.take("(")) return {};
  int first = 0;
  int second = 0;
  FLUGS_ASSIGN(first, take_size(words));
  if (words.take(",")) {
    FLUGS_ASSIGN(second, take_size(words));
  }
  if (!words.take(")")) return words.unexpected();
  if (column.type == Type::kDecimal) {
    if (first < 1 || first > 18 || second > first)
      return wrong("a DECIMAL has 1 to 18 digits, and no more of them behind the point: column " +
                   column.name);
    column.scale = static_cast<std::uint8_t>(second);
  } else if (column.type != Type::kString) {
    return wrong("only DECIMAL and texts may have digits: column " + column.name);
  }
  return {};
}

Status take_type(Words& words, ColumnSchema& column) {
  for (const TypeName& known : kTypeNames)
    if (words.take(known.name)) {
      column.type = known.type;
      if (known.type == Type::kDouble) words.take("PRECISION");
      return take_sizes(words, column);
    }
  if (words.is_at_end()) return wrong("column " + column.name + " has no type");
  return wrong("column " + column.name + " has no type that flugs knows: '" + words.front().text +
               "'; there are INTEGER, INT32, REAL, DECIMAL(18,2), TEXT, BLOB, BOOLEAN, DATE, "
               "TIMESTAMP");
}

std::optional<Constant> number_constant(const std::string& text, Type type) {
  char* end = nullptr;
  errno = 0;
  Value decimal;
  if (type == Type::kDecimal && Value::parse_decimal(text, decimal)) return Constant(decimal);
  if (type == Type::kDouble) {
    const double number = std::strtod(text.c_str(), &end);
    if (*end == 0) return Constant(Value::real(number));
    return std::nullopt;
  }
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (*end != 0 || errno != 0) return std::nullopt;
  if (type == Type::kBool && (number == 0 || number == 1))
    return Constant(Value::boolean(number != 0));
  if (type == Type::kInt32 && number >= INT32_MIN && number <= INT32_MAX)
    return Constant(Value::int32(static_cast<std::int32_t>(number)));
  if (type == Type::kInt64) return Constant(Value::int64(number));
  return std::nullopt;
}

std::optional<Constant> text_constant(const std::string& text, Type type) {
  Value value;
  if (type == Type::kString) return Constant(Value::string(std::string_view(text)));
  if (type == Type::kDate && read_date(text, value)) return Constant(value);
  if (type == Type::kTimestamp && read_timestamp(text, value)) return Constant(value);
  if (type == Type::kDecimal && Value::parse_decimal(text, value)) return Constant(value);
  return std::nullopt;
}

Status take_default(Words& words, ColumnSchema& column) {
  const bool has_brackets = words.take("(");
  const bool is_negative = words.take("-");
  if (!is_negative) words.take("+");
  const Word word = words.take();
  std::optional<Constant> found;
  if (word.kind == Word::Kind::kNumber)
    found = number_constant((is_negative ? "-" : "") + word.text, column.type);
  else if (is_negative)
    found = std::nullopt;
  else if (word.kind == Word::Kind::kText)
    found = text_constant(word.text, column.type);
  else if (word.kind == Word::Kind::kBlob && column.type == Type::kBytes)
    found = Constant(Value::bytes(std::string_view(word.text)));
  else if (word.text == "NULL" || word.text == "null")
    return has_brackets && !words.take(")") ? words.unexpected() : Status();
  else if (column.type == Type::kBool && (word.text == "TRUE" || word.text == "true"))
    found = Constant(Value::boolean(true));
  else if (column.type == Type::kBool && (word.text == "FALSE" || word.text == "false"))
    found = Constant(Value::boolean(false));
  if (!found)
    return wrong("the default of column " + column.name + " must be a constant of its type: '" +
                 word.text + "'");
  column.default_value = std::move(found);
  return has_brackets && !words.take(")") ? words.unexpected() : Status();
}

/// What may stand behind the type of a column, besides what a column says of itself.
struct ColumnKeys {
  bool is_primary = false;
  bool is_unique = false;
  bool is_ordered = false;
  std::optional<ForeignKeySchema> foreign;
};

Result<ReferenceAction> take_action(Words& words) {
  if (words.take("CASCADE")) return ReferenceAction::kCascade;
  if (words.take("RESTRICT")) return ReferenceAction::kRestrict;
  if (words.take("SET") && words.take("NULL")) return ReferenceAction::kSetNull;
  if (words.take("NO") && words.take("ACTION")) return ReferenceAction::kRestrict;
  return words.unexpected();
}

/// Behind REFERENCES.
Status take_reference(Words& words, ForeignKeySchema& foreign) {
  FLUGS_ASSIGN(foreign.table, words.take_name("a table"));
  if (words.take("KEY")) {
    FLUGS_ASSIGN(foreign.key, words.take_name("a key"));
  }
  while (words.take("ON")) {
    if (words.take("DELETE")) {
      FLUGS_ASSIGN(foreign.on_delete, take_action(words));
    } else if (words.take("UPDATE")) {
      FLUGS_ASSIGN(foreign.on_update, take_action(words));
    } else {
      return words.unexpected();
    }
  }
  return {};
}

Status take_column(Words& words, ColumnSchema& column, ColumnKeys& keys) {
  FLUGS_ASSIGN(column.name, words.take_name("a column"));
  FLUGS_TRY(take_type(words, column));
  while (!words.is_at_end()) {
    if (words.take("NOT")) {
      if (!words.take("NULL")) return words.unexpected();
      column.nullable = false;
    } else if (words.take("NULL") || words.take("ASC")) {
      continue;
    } else if (words.take("PRIMARY")) {
      if (!words.take("KEY")) return words.unexpected();
      keys.is_primary = true;
    } else if (words.take("AUTOINCREMENT")) {
      column.auto_increment = true;
    } else if (words.take("UNIQUE")) {
      keys.is_unique = true;
    } else if (words.take("ORDERED")) {
      keys.is_ordered = true;
    } else if (words.take("DEFAULT")) {
      FLUGS_TRY(take_default(words, column));
    } else if (words.take("REFERENCES")) {
      keys.foreign.emplace();
      keys.foreign->columns = {column.name};
      FLUGS_TRY(take_reference(words, *keys.foreign));
    } else {
      return words.unexpected();
    }
  }
  return {};
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "_") + name;
  return text;
}

/// Reads "(a, b) [ORDERED] [HASHED BY FIRST 1]".
Status take_key(Words& words, KeySchema& key) {
  FLUGS_ASSIGN(key.columns, words.take_names());
  if (words.take("ORDERED")) key.ordered = true;
  if (words.take("HASHED")) {
    if (!words.take("BY") || !words.take("FIRST")) return words.unexpected();
    FLUGS_ASSIGN(const int count, take_size(words));
    if (count < 1 || count > 16) return wrong("a key is HASHED BY FIRST 1 to 16");
    key.hashed_columns = static_cast<std::uint8_t>(count);
  }
  return words.is_at_end() ? Status() : words.unexpected();
}

void add_primary(TableSchema& schema, const KeySchema& key) {
  schema.primary_key(key.columns, {.ordered = key.ordered, .hashed_columns = key.hashed_columns});
}

Status add_foreign(TableSchema& schema, ForeignKeySchema foreign) {
  if (foreign.name.empty()) foreign.name = joined(foreign.columns) + "_" + foreign.table;
  schema.foreign_keys.push_back(std::move(foreign));
  return {};
}

bool begins_constraint(const Words& words) {
  static constexpr const char* kFirst[] = {"PRIMARY",    "UNIQUE",  "INDEX", "KEY",
                                           "CONSTRAINT", "FOREIGN", "CHECK"};
  return std::any_of(std::begin(kFirst), std::end(kFirst),
                     [&](const char* first) { return words.is_next(first); });
}

/// UNIQUE(...), INDEX name(...), UNIQUE INDEX name(...); `name` is what CONSTRAINT says.
Result<KeySchema> take_secondary_key(Words& words, std::string name) {
  KeySchema key;
  key.name = std::move(name);
  key.unique = words.take("UNIQUE");
  const bool has_name = words.take("INDEX") || words.take("KEY");
  if (!key.unique && !has_name) return words.unexpected();
  if (has_name && !words.is_next("(")) {
    FLUGS_ASSIGN(key.name, words.take_name("an index"));
  }
  key.ordered = has_name;
  FLUGS_TRY(take_key(words, key));
  if (key.name.empty()) key.name = (key.unique ? "unique_" : "by_") + joined(key.columns);
  return key;
}

Status add_constraint(Words& words, TableSchema& schema) {
  std::string name;
  if (words.take("CONSTRAINT")) {
    FLUGS_ASSIGN(name, words.take_name("a constraint"));
  }
  if (words.is_next("CHECK"))
    return wrong("flugs takes no CHECK from SQL: Database::add_check of C++ does");
  if (words.take("PRIMARY")) {
    KeySchema key;
    if (!words.take("KEY")) return words.unexpected();
    FLUGS_TRY(take_key(words, key));
    add_primary(schema, key);
    return {};
  }
  if (words.take("FOREIGN")) {
    ForeignKeySchema foreign;
    foreign.name = name;
    if (!words.take("KEY")) return words.unexpected();
    FLUGS_ASSIGN(foreign.columns, words.take_names());
    if (!words.take("REFERENCES")) return words.unexpected();
    FLUGS_TRY(take_reference(words, foreign));
    if (!words.is_at_end()) return words.unexpected();
    return add_foreign(schema, std::move(foreign));
  }
  FLUGS_ASSIGN(KeySchema key, take_secondary_key(words, name));
  schema.keys.push_back(std::move(key));
  return {};
}

Status add_column(Words& words, TableSchema& schema) {
  ColumnSchema column;
  ColumnKeys keys;
  FLUGS_TRY(take_column(words, column, keys));
  if (keys.is_ordered && !keys.is_primary && !keys.is_unique)
    return wrong("ORDERED belongs to PRIMARY KEY or UNIQUE: column " + column.name);
  const std::string name = column.name;
  schema.columns.push_back(std::move(column));
  if (keys.is_primary) schema.primary_key({name}, {.ordered = keys.is_ordered});
  if (keys.is_unique) schema.unique_key("unique_" + name, {name}, {.ordered = keys.is_ordered});
  if (keys.foreign) return add_foreign(schema, *std::move(keys.foreign));
  return {};
}

}  // namespace

Result<Definition> read_definition(std::string_view name, int count, const char* const* words) {
  Definition definition;
  definition.schema.name = name;
  for (int i = 0; i < count; ++i) {
    FLUGS_ASSIGN(Words part, Words::of(words[i]));
    if (part.is_at_end() && count == 1) break;
    FLUGS_TRY(begins_constraint(part) ? add_constraint(part, definition.schema)
                                      : add_column(part, definition.schema));
  }
  const auto primaries = std::count_if(definition.schema.keys.begin(), definition.schema.keys.end(),
                                       [](const KeySchema& k) { return k.name == "primary"; });
  if (primaries > 1) return wrong("a table has at most one PRIMARY KEY");
  return definition;
}

Result<ColumnSchema> read_column(std::string_view text) {
  FLUGS_ASSIGN(Words words, Words::of(text));
  ColumnSchema column;
  ColumnKeys keys;
  FLUGS_TRY(take_column(words, column, keys));
  if (keys.is_primary || keys.is_unique || keys.is_ordered || keys.foreign)
    return wrong("a column is added without keys: flugs_add_index adds them");
  return column;
}

Result<KeySchema> read_key(std::string_view text) {
  FLUGS_ASSIGN(Words words, Words::of(text));
  std::string name;
  if (words.take("CONSTRAINT")) {
    FLUGS_ASSIGN(name, words.take_name("a constraint"));
  }
  return take_secondary_key(words, name);
}

}  // namespace flugs::sqlite
