#include "bindings/duckdb/adapter.h"

#include <dlfcn.h>

#include <memory>
#include <string>

#include "bindings/duckdb/instance.h"

// The table of functions, which DuckDB fills.
DUCKDB_EXTENSION_GLOBAL

namespace flugs::duckdb {

namespace {

/// The library of DuckDB in this process that loads the extension. Its functions are found by name,
/// and so mean the same in every version.
class Library {
 public:
  explicit Library(const duckdb_v2_extension_input& input) {
    Dl_info where{};
    if (dladdr(reinterpret_cast<void*>(input.get_api), &where) != 0)
      library_ = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    // A program that has DuckDB in it has no file of its own to find.
    if (library_ == nullptr) library_ = dlopen(nullptr, RTLD_LAZY);
  }
  ~Library() {
    if (library_ != nullptr) dlclose(library_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Null: it is not there.
  template <typename FunctionPointer>
  FunctionPointer find(const char* name) const noexcept {
    if (library_ == nullptr) return nullptr;
    return reinterpret_cast<FunctionPointer>(dlsym(library_, name));
  }

 private:
  void* library_ = nullptr;
};

std::string wrong_version(std::string_view found) {
  return "this extension of flugs is for DuckDB " + std::string(kVersion.substr(1)) +
         ", and this is " + std::string(found.substr(found.starts_with('v') ? 1 : 0)) +
         "; install duckdb==" + std::string(kVersion.substr(1));
}

/// Says whether the table has the form that the headers describe. If not, the reason is reported by
/// functions that are found by name. Without names, DuckDB's own check, by the file's end, must do.
bool has_right_version(const duckdb_v2_extension_input& input, const Library& library) {
  const auto version = library.find<const char* (*)()>("duckdb_library_version");
  if (version == nullptr || kVersion == version()) return true;
  const auto set_code =
      library.find<decltype(duckdb_v2_error_info_set_code)>("duckdb_v2_error_info_set_code");
  const auto set_text =
      library.find<decltype(duckdb_v2_error_info_set_text)>("duckdb_v2_error_info_set_text");
  if (set_code == nullptr || set_text == nullptr) return false;
  const std::string why = wrong_version(version());
  const duckdb_v2_str text = str_of(why);
  set_code(*input.err, DUCKDB_V2_ERROR_INPUT_INVALID);
  set_text(*input.err, &text);
  return false;
}

Status register_all(const duckdb_v2_extension_input& input) {
  duckdb_v2_str version = {nullptr, 0};
  FLUGS_TRY(ask(duckdb_v2_library_version, &version));
  if (view_of(version) != kVersion)
    return Status(StatusCode::kInvalidArgument, wrong_version(view_of(version)));
  FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(input.context));
  const auto instance = std::make_shared<Instance>();
  FLUGS_TRY(register_scan(input.extension, factory, instance));
  FLUGS_TRY(register_tables(input.extension, factory, instance));
  FLUGS_TRY(register_copy(input.extension, factory, instance));
  return register_replacement(input.extension, factory);
}

}  // namespace

void start(duckdb_v2_extension_input* input) noexcept {
  try {
    const Library library(*input);
    if (!has_right_version(*input, library)) return;
  } catch (const std::exception&) {
    return;  // DuckDB says that nothing was registered
  }
  const void* const table = input->get_api(input->extension, DUCKDB_EXTENSION_API_VERSION_STRING);
  if (table == nullptr) return;  // DuckDB knows why
  duckdb_ext_api = *static_cast<const duckdb_ext_api_v2*>(table);
  guarded(input->err, [&] { return register_all(*input); });
}

}  // namespace flugs::duckdb
