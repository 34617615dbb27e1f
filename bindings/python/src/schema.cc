// Schemas: flugs.Column, flugs.Key and flugs.ForeignKey of flugs/_schema.py, in both directions.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/src/classes.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/values.h"
#include "flugs/condition.h"

namespace flugs::python {

namespace {

constexpr Type kTypes[] = {Type::kBool,      Type::kInt32,   Type::kInt64,
                           Type::kDouble,    Type::kDecimal, Type::kDate,
                           Type::kTimestamp, Type::kString,  Type::kBytes};

Type type_of(std::string_view name) {
  for (const Type type : kTypes)
    if (to_string(type) == name) return type;
  throw nb::value_error("no such type of a column");
}

/// A str, or an iterable of them.
std::vector<std::string> names_of(nb::handle names) {
  std::vector<std::string> result;
  if (nb::isinstance<nb::str>(names)) {
    result.emplace_back(text_of(names));
    return result;
  }
  for (const nb::handle name : names) result.emplace_back(text_of(name));
  return result;
}

ReferenceAction action_of(nb::handle action) {
  std::string name(text_of(action));
  std::replace(name.begin(), name.end(), '_', ' ');
  for (const ReferenceAction known :
       {ReferenceAction::kRestrict, ReferenceAction::kCascade, ReferenceAction::kSetNull})
    if (name == to_string(known)) return known;
  throw nb::value_error("an action is 'restrict', 'cascade' or 'set_null'");
}

/// The dict as it is now: attributes of what it holds are code of Python, which may change it.
nb::dict copy_of(nb::handle mapping) {
  nb::object copy = nb::steal(PyDict_Copy(nb::cast<nb::dict>(mapping).ptr()));
  if (!copy.is_valid()) throw nb::python_error();
  return nb::cast<nb::dict>(copy);
}

nb::object option(nb::handle options, const char* name) {
  return nb::borrow<nb::dict>(options).get(name, nb::none());
}

void add_keys(TableSchema& schema, nb::handle keys, bool unique) {
  if (keys.is_none()) return;
  for (const auto& [name, key] : copy_of(keys))
    schema.keys.push_back(make_key(text_of(name), key, unique));
}

void add_foreign_keys(TableSchema& schema, nb::handle foreign_keys) {
  if (foreign_keys.is_none()) return;
  for (const auto& [name, foreign] : copy_of(foreign_keys)) {
    ForeignKeySchema made;
    made.name = text_of(name);
    made.columns = names_of(foreign.attr("columns"));
    made.table = text_of(foreign.attr("table"));
    made.key = text_of(foreign.attr("key"));
    made.on_delete = action_of(foreign.attr("on_delete"));
    made.on_update = action_of(foreign.attr("on_update"));
    schema.foreign_keys.push_back(std::move(made));
  }
}

}  // namespace

ColumnSchema make_column(std::string_view name, nb::handle column) {
  if (!nb::hasattr(column, "type") || !nb::hasattr(column, "is_auto_increment")) {
    PyErr_SetString(PyExc_TypeError, "the type of a column is flugs.int64, flugs.string, ...");
    throw nb::python_error();
  }
  ColumnSchema made;
  made.name = name;
  made.type = type_of(text_of(column.attr("type")));
  made.scale = nb::cast<std::uint8_t>(column.attr("scale"));
  made.nullable = nb::cast<bool>(column.attr("nullable"));
  made.auto_increment = nb::cast<bool>(column.attr("is_auto_increment"));
  if (nb::cast<bool>(column.attr("has_default"))) {
    const nb::object value = column.attr("default_value");
    made.default_value = Constant(to_value(value));
  }
  return made;
}

KeySchema make_key(std::string_view name, nb::handle key, bool unique) {
  KeySchema made;
  made.name = name;
  made.unique = unique;
  made.ordered = !unique;
  if (nb::hasattr(key, "ordered")) {
    made.columns = names_of(key.attr("columns"));
    made.ordered |= nb::cast<bool>(key.attr("ordered"));
  } else {
    made.columns = names_of(key);
  }
  return made;
}

void set_layout(TableSchema& schema, nb::handle layout) {
  std::vector<std::vector<std::string>> groups;
  if (nb::isinstance<nb::str>(layout)) {
    const std::string_view word = text_of(layout);
    for (const DeltaLayout known : {DeltaLayout::kRows, DeltaLayout::kColumns})
      if (word == to_string(known)) {
        schema.delta_layout = known;
        return;
      }
    throw nb::value_error("layout must be 'rows', 'columns' or a list of groups of columns");
  }
  for (const nb::handle group : nb::iter(layout)) groups.push_back(names_of(group));
  schema.in_column_groups(std::move(groups));
}

TableSchema make_schema(std::string_view name, nb::handle columns, nb::handle options) {
  TableSchema schema{std::string(name)};
  std::vector<KeySchema> of_columns;
  for (const auto& [column_name, column] : copy_of(columns)) {
    schema.columns.push_back(make_column(text_of(column_name), column));
    if (nb::cast<bool>(column.attr("is_unique")))
      of_columns.push_back(make_key(text_of(column_name), column_name, true));
  }
  if (const nb::object primary = option(options, "primary_key"); !primary.is_none()) {
    const KeySchema key = make_key("primary", primary, true);
    schema.primary_key(key.columns, {.ordered = key.ordered});
  }
  for (KeySchema& key : of_columns) schema.keys.push_back(std::move(key));
  add_keys(schema, option(options, "unique"), true);
  add_keys(schema, option(options, "keys"), false);
  if (const nb::object checks = option(options, "checks"); !checks.is_none())
    for (const auto& [check_name, condition] : copy_of(checks))
      schema.check(std::string(text_of(check_name)), to_expr(condition));
  add_foreign_keys(schema, option(options, "foreign_keys"));
  if (const nb::object layout = option(options, "layout"); !layout.is_none())
    set_layout(schema, layout);
  return schema;
}

nb::object describe(const ColumnSchema& column) {
  const std::string type(to_string(column.type));
  const nb::object make = nb::module_::import_("flugs._schema").attr("Column");
  nb::dict fields;
  fields["scale"] = column.scale;
  fields["nullable"] = column.nullable;
  fields["is_auto_increment"] = column.auto_increment;
  if (column.default_value.has_value()) {
    fields["has_default"] = true;
    fields["default_value"] = from_value(column.default_value->value(), column.scale);
  }
  return make(type.c_str(), **fields);
}

}  // namespace flugs::python
