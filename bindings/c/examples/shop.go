// flugs from Go with the C ABI alone.
//
//	CGO_CFLAGS=-IHEADER_FOLDER CGO_LDFLAGS=-LLIBRARY_FOLDER go build shop.go
//	LD_LIBRARY_PATH=LIBRARY_FOLDER ./shop POOL
package main

/*
#cgo LDFLAGS: -lflugs_c
#include <stdlib.h>
#include <string.h>
#include "flugs.h"

// Go calls no pointers to functions.
static int next_batch(struct ArrowArrayStream* stream, struct ArrowArray* out) {
	return stream->get_next(stream, out);
}
static void release_batch(struct ArrowArray* a) { a->release(a); }
static void release_stream(struct ArrowArrayStream* s) { s->release(s); }
static const char* text_of(flugs_value value) { return value.data; }
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

func check(err *C.flugs_error) error {
	if err == nil {
		return nil
	}
	defer C.flugs_error_free(err)
	return errors.New(C.GoString(C.flugs_error_message(err)))
}

func must(err *C.flugs_error) {
	if e := check(err); e != nil {
		fmt.Fprintln(os.Stderr, e)
		os.Exit(1)
	}
}

// Memory of C, which a value may point to while C reads it.
func text(s string) *C.char { return C.CString(s) }

func ensureTable(database *C.flugs_database) C.uint32_t {
	var schema *C.flugs_schema
	id, name, item := text("id"), text("name"), text("item")
	defer C.free(unsafe.Pointer(id))
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(item))
	must(C.flugs_schema_create(item, &schema))
	defer C.flugs_schema_free(schema)
	must(C.flugs_schema_column(schema, id, C.FLUGS_INT64))
	must(C.flugs_schema_column(schema, name, C.FLUGS_STRING))
	must(C.flugs_schema_primary_key(schema, &id, 1))
	var table C.uint32_t
	must(C.flugs_table_ensure(database, schema, &table))
	return table
}

func insert(database *C.flugs_database, table C.uint32_t, rows int) {
	var t *C.flugs_transaction
	must(C.flugs_transaction_begin(database, C.FLUGS_READ_WRITE, C.FLUGS_SNAPSHOT, &t))
	defer C.flugs_transaction_free(t)
	row := (*[2]C.flugs_value)(C.malloc(2 * C.sizeof_flugs_value))
	defer C.free(unsafe.Pointer(row))
	for id := 1; id <= rows; id++ {
		name := text(fmt.Sprintf("item %d", id))
		row[0], row[1] = C.flugs_int64(C.int64_t(id)), C.flugs_string(name)
		must(C.flugs_insert(t, table, &row[0], 2, nil))
		C.free(unsafe.Pointer(name))
	}
	must(C.flugs_transaction_commit(t, nil))
}

func find(t *C.flugs_transaction, lookup *C.flugs_lookup, id int) (string, error) {
	key := C.flugs_int64(C.int64_t(id))
	var found C.flugs_value
	if err := check(C.flugs_find(t, lookup, &key, 1, &found, 1)); err != nil {
		return "", err
	}
	return C.GoStringN(C.text_of(found), C.int(found.size)), nil
}

func scan(t *C.flugs_transaction) (rows, sum int64) {
	var query *C.flugs_query
	item, id := text("item"), text("id")
	defer C.free(unsafe.Pointer(item))
	defer C.free(unsafe.Pointer(id))
	must(C.flugs_query_table(item, &query))
	defer C.flugs_query_free(query)
	limit := C.flugs_int64(500)
	must(C.flugs_query_where(query, C.flugs_expr_binary(C.FLUGS_OP_GREATER,
		C.flugs_expr_column(id), C.flugs_expr_constant(&limit)))) // taken over
	var stream C.struct_ArrowArrayStream
	must(C.flugs_query_stream(query, t, nil, &stream))
	defer C.release_stream(&stream)
	for {
		var batch C.struct_ArrowArray
		if code := C.next_batch(&stream, &batch); code != 0 {
			panic(fmt.Sprintf("get_next: %d", code))
		}
		if batch.release == nil {
			return rows, sum
		}
		column := *batch.children
		buffers := unsafe.Slice(column.buffers, column.n_buffers)
		for _, id := range unsafe.Slice((*int64)(buffers[1]), column.length) {
			sum += id
		}
		rows += int64(batch.length)
		C.release_batch(&batch)
	}
}

func main() {
	path := text(os.Args[1])
	defer C.free(unsafe.Pointer(path))
	var database *C.flugs_database
	must(C.flugs_database_open(path, nil, &database))
	table := ensureTable(database)
	insert(database, table, 1000)

	var t *C.flugs_transaction
	must(C.flugs_transaction_begin(database, C.FLUGS_READ_ONLY_ACCESS, C.FLUGS_SNAPSHOT, &t))
	name := text("name")
	defer C.free(unsafe.Pointer(name))
	var lookup *C.flugs_lookup
	must(C.flugs_lookup_create(database, table, nil, &name, 1, &lookup))
	found, err := find(t, lookup, 42)
	if err != nil {
		panic(err)
	}
	fmt.Println("found", found)
	_, err = find(t, lookup, -1)
	fmt.Println("missing:", err)
	rows, sum := scan(t)
	fmt.Printf("scanned %d rows, sum %d\n", rows, sum)
	C.flugs_lookup_free(lookup)
	C.flugs_database_free(database) // ends the transaction
	C.flugs_transaction_free(t)
}
