#pragma once

#include <cstddef>
#include <string>

// The functions of RocksDB's C interface that we call. The package with its library has no header.
// `error`: null, or a text that rocksdb_free frees.

extern "C" {

struct rocksdb_t;
struct rocksdb_transactiondb_t;
struct rocksdb_transaction_t;
struct rocksdb_options_t;
struct rocksdb_readoptions_t;
struct rocksdb_writeoptions_t;
struct rocksdb_envoptions_t;
struct rocksdb_block_based_table_options_t;
struct rocksdb_filterpolicy_t;
struct rocksdb_transactiondb_options_t;
struct rocksdb_transaction_options_t;
struct rocksdb_ingestexternalfileoptions_t;
struct rocksdb_writebatch_t;
struct rocksdb_iterator_t;
struct rocksdb_pinnableslice_t;
struct rocksdb_sstfilewriter_t;

void rocksdb_free(void* pointer);

rocksdb_options_t* rocksdb_options_create();
void rocksdb_options_destroy(rocksdb_options_t* options);
void rocksdb_options_set_create_if_missing(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_compression(rocksdb_options_t* options, int kind);
void rocksdb_options_set_allow_mmap_reads(rocksdb_options_t* options, unsigned char value);
void rocksdb_options_set_skip_stats_update_on_db_open(rocksdb_options_t* options,
                                                      unsigned char value);
rocksdb_block_based_table_options_t* rocksdb_block_based_options_create();
void rocksdb_block_based_options_destroy(rocksdb_block_based_table_options_t* options);
/// Takes the policy.
void rocksdb_block_based_options_set_filter_policy(rocksdb_block_based_table_options_t* options,
                                                   rocksdb_filterpolicy_t* policy);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom_full(double bits_per_key);
void rocksdb_options_set_block_based_table_factory(rocksdb_options_t* options,
                                                   rocksdb_block_based_table_options_t* table);

rocksdb_readoptions_t* rocksdb_readoptions_create();
void rocksdb_readoptions_destroy(rocksdb_readoptions_t* options);
/// The bytes of the key stay the caller's.
void rocksdb_readoptions_set_iterate_upper_bound(rocksdb_readoptions_t* options, const char* key,
                                                 std::size_t bytes);
rocksdb_writeoptions_t* rocksdb_writeoptions_create();
void rocksdb_writeoptions_destroy(rocksdb_writeoptions_t* options);
void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t* options, unsigned char value);

rocksdb_t* rocksdb_open(const rocksdb_options_t* options, const char* path, char** error);
void rocksdb_close(rocksdb_t* database);
rocksdb_pinnableslice_t* rocksdb_get_pinned(rocksdb_t* database,
                                            const rocksdb_readoptions_t* options, const char* key,
                                            std::size_t key_bytes, char** error);
const char* rocksdb_pinnableslice_value(const rocksdb_pinnableslice_t* value, std::size_t* bytes);
void rocksdb_pinnableslice_destroy(rocksdb_pinnableslice_t* value);
rocksdb_writebatch_t* rocksdb_writebatch_create();
void rocksdb_writebatch_destroy(rocksdb_writebatch_t* batch);
void rocksdb_writebatch_clear(rocksdb_writebatch_t* batch);
void rocksdb_writebatch_put(rocksdb_writebatch_t* batch, const char* key, std::size_t key_bytes,
                            const char* value, std::size_t value_bytes);
void rocksdb_write(rocksdb_t* database, const rocksdb_writeoptions_t* options,
                   rocksdb_writebatch_t* batch, char** error);

rocksdb_envoptions_t* rocksdb_envoptions_create();
void rocksdb_envoptions_destroy(rocksdb_envoptions_t* options);
rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create(const rocksdb_envoptions_t* environment,
                                                      const rocksdb_options_t* options);
void rocksdb_sstfilewriter_destroy(rocksdb_sstfilewriter_t* writer);
void rocksdb_sstfilewriter_open(rocksdb_sstfilewriter_t* writer, const char* path, char** error);
void rocksdb_sstfilewriter_put(rocksdb_sstfilewriter_t* writer, const char* key,
                               std::size_t key_bytes, const char* value, std::size_t value_bytes,
                               char** error);
void rocksdb_sstfilewriter_finish(rocksdb_sstfilewriter_t* writer, char** error);
rocksdb_ingestexternalfileoptions_t* rocksdb_ingestexternalfileoptions_create();
void rocksdb_ingestexternalfileoptions_destroy(rocksdb_ingestexternalfileoptions_t* options);
void rocksdb_ingestexternalfileoptions_set_move_files(rocksdb_ingestexternalfileoptions_t* options,
                                                      unsigned char value);
void rocksdb_ingest_external_file(rocksdb_t* database, const char* const* files, std::size_t count,
                                  const rocksdb_ingestexternalfileoptions_t* options, char** error);

rocksdb_transactiondb_options_t* rocksdb_transactiondb_options_create();
void rocksdb_transactiondb_options_destroy(rocksdb_transactiondb_options_t* options);
rocksdb_transaction_options_t* rocksdb_transaction_options_create();
void rocksdb_transaction_options_destroy(rocksdb_transaction_options_t* options);
rocksdb_transactiondb_t* rocksdb_transactiondb_open(const rocksdb_options_t* options,
                                                    const rocksdb_transactiondb_options_t* locks,
                                                    const char* path, char** error);
void rocksdb_transactiondb_close(rocksdb_transactiondb_t* database);
rocksdb_t* rocksdb_transactiondb_get_base_db(rocksdb_transactiondb_t* database);
void rocksdb_transactiondb_close_base_db(rocksdb_t* database);
rocksdb_pinnableslice_t* rocksdb_transactiondb_get_pinned(rocksdb_transactiondb_t* database,
                                                          const rocksdb_readoptions_t* options,
                                                          const char* key, std::size_t key_bytes,
                                                          char** error);
rocksdb_iterator_t* rocksdb_transactiondb_create_iterator(rocksdb_transactiondb_t* database,
                                                          const rocksdb_readoptions_t* options);
/// `former`: a transaction that has ended, whose object is used again; or null.
rocksdb_transaction_t* rocksdb_transaction_begin(rocksdb_transactiondb_t* database,
                                                 const rocksdb_writeoptions_t* options,
                                                 const rocksdb_transaction_options_t* own,
                                                 rocksdb_transaction_t* former);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned(rocksdb_transaction_t* transaction,
                                                        const rocksdb_readoptions_t* options,
                                                        const char* key, std::size_t key_bytes,
                                                        char** error);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_for_update(
    rocksdb_transaction_t* transaction, const rocksdb_readoptions_t* options, const char* key,
    std::size_t key_bytes, unsigned char exclusive, char** error);
void rocksdb_transaction_put(rocksdb_transaction_t* transaction, const char* key,
                             std::size_t key_bytes, const char* value, std::size_t value_bytes,
                             char** error);
void rocksdb_transaction_delete(rocksdb_transaction_t* transaction, const char* key,
                                std::size_t key_bytes, char** error);
void rocksdb_transaction_commit(rocksdb_transaction_t* transaction, char** error);
void rocksdb_transaction_rollback(rocksdb_transaction_t* transaction, char** error);
void rocksdb_transaction_destroy(rocksdb_transaction_t* transaction);

void rocksdb_iter_destroy(rocksdb_iterator_t* iterator);
void rocksdb_iter_seek(rocksdb_iterator_t* iterator, const char* key, std::size_t key_bytes);
void rocksdb_iter_next(rocksdb_iterator_t* iterator);
unsigned char rocksdb_iter_valid(const rocksdb_iterator_t* iterator);
const char* rocksdb_iter_key(const rocksdb_iterator_t* iterator, std::size_t* bytes);
const char* rocksdb_iter_value(const rocksdb_iterator_t* iterator, std::size_t* bytes);
void rocksdb_iter_get_error(const rocksdb_iterator_t* iterator, char** error);

}  // extern "C"

namespace rocksdb {

/// The C interface does not say it.
std::string GetRocksVersionAsString(bool with_patch);

}  // namespace rocksdb
