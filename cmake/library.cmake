# The shipped library: the objects of all layers, and the public headers; and what the project's own
# programs link.
flugs_join_layers(layer_objects)
add_library(flugs ${layer_objects})
add_library(flugs::flugs ALIAS flugs)
target_sources(flugs PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES
  ${PROJECT_SOURCE_DIR}/include/flugs/arrow_abi.h
  ${PROJECT_SOURCE_DIR}/include/flugs/arrow_export.h
  ${PROJECT_SOURCE_DIR}/include/flugs/arrow_import.h
  ${PROJECT_SOURCE_DIR}/include/flugs/column_batch.h
  ${PROJECT_SOURCE_DIR}/include/flugs/condition.h
  ${PROJECT_SOURCE_DIR}/include/flugs/conflict.h
  ${PROJECT_SOURCE_DIR}/include/flugs/crashtest.h
  ${PROJECT_SOURCE_DIR}/include/flugs/database.h
  ${PROJECT_SOURCE_DIR}/include/flugs/durability.h
  ${PROJECT_SOURCE_DIR}/include/flugs/events.h
  ${PROJECT_SOURCE_DIR}/include/flugs/expression.h
  ${PROJECT_SOURCE_DIR}/include/flugs/flugs.h
  ${PROJECT_SOURCE_DIR}/include/flugs/function_ref.h
  ${PROJECT_SOURCE_DIR}/include/flugs/ids.h
  ${PROJECT_SOURCE_DIR}/include/flugs/index_place.h
  ${PROJECT_SOURCE_DIR}/include/flugs/merge.h
  ${PROJECT_SOURCE_DIR}/include/flugs/open_options.h
  ${PROJECT_SOURCE_DIR}/include/flugs/opening_estimate.h
  ${PROJECT_SOURCE_DIR}/include/flugs/pool_check.h
  ${PROJECT_SOURCE_DIR}/include/flugs/pool_description.h
  ${PROJECT_SOURCE_DIR}/include/flugs/prepared.h
  ${PROJECT_SOURCE_DIR}/include/flugs/progress.h
  ${PROJECT_SOURCE_DIR}/include/flugs/query.h
  ${PROJECT_SOURCE_DIR}/include/flugs/query_result.h
  ${PROJECT_SOURCE_DIR}/include/flugs/reads.h
  ${PROJECT_SOURCE_DIR}/include/flugs/recovery_report.h
  ${PROJECT_SOURCE_DIR}/include/flugs/retry.h
  ${PROJECT_SOURCE_DIR}/include/flugs/row.h
  ${PROJECT_SOURCE_DIR}/include/flugs/rows.h
  ${PROJECT_SOURCE_DIR}/include/flugs/scan.h
  ${PROJECT_SOURCE_DIR}/include/flugs/schema.h
  ${PROJECT_SOURCE_DIR}/include/flugs/status.h
  ${PROJECT_SOURCE_DIR}/include/flugs/stream.h
  ${PROJECT_SOURCE_DIR}/include/flugs/table.h
  ${PROJECT_SOURCE_DIR}/include/flugs/transaction.h
  ${PROJECT_SOURCE_DIR}/include/flugs/try.h
  ${PROJECT_SOURCE_DIR}/include/flugs/tuning.h
  ${PROJECT_SOURCE_DIR}/include/flugs/typed_table.h
  ${PROJECT_SOURCE_DIR}/include/flugs/value.h
  ${PROJECT_SOURCE_DIR}/include/flugs/version.h
)
target_compile_features(flugs PUBLIC cxx_std_20)
target_link_libraries(flugs PRIVATE ${FLUGS_PACKAGES})
target_link_options(flugs INTERFACE ${FLUGS_SCM_LINK_OPTIONS})
set_target_properties(flugs PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
                                       LINKER_LANGUAGE CXX VERIFY_INTERFACE_HEADER_SETS ON)
flugs_settings(flugs)

# What the project's own tests, bench and tools link: the library and the way to internal headers.
add_library(flugs_internals INTERFACE)
target_include_directories(flugs_internals INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(flugs_internals INTERFACE flugs ${FLUGS_PACKAGES})
