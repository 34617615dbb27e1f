/* The types of the C ABI: docs/c_api.md. Made from bindings/c/api_spec by bindings/c/api.py. */
/* clang-format off */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Why a call failed. Each function that can fail returns one, or NULL: then it has done what
 * was asked. A failed call had no effect, unless it says otherwise, and has set what its `out`
 * points to to NULL or 0. Free each error by flugs_error_free. */
typedef struct flugs_error flugs_error;

/** Options of a call, by name, with texts as values. A call looks at all of them when it is
 * made. It fails with FLUGS_INVALID_ARGUMENT if it has no option of a name, or if a value does
 * not fit. NULL stands for no options. Sizes are in bytes, and may end in K, M, G or T; truths
 * are "true" or "false". */
typedef struct flugs_options flugs_options;

/** An open pool. Any thread may call any function with it. After flugs_database_close, and in a
 * forked child, every call fails with FLUGS_INVALID_ARGUMENT. */
typedef struct flugs_database flugs_database;

/** A table to be made. The calls add columns, keys, checks and foreign keys in turn, and say
 * more of the column or key that was added last. They fail only for arguments that no schema can
 * have; flugs_table_create checks the rest. One thread at a time. */
typedef struct flugs_schema flugs_schema;

/** A unit of work. One thread at a time may be in a call with it, or with a stream or walk of
 * it: another one gets FLUGS_BUSY. Threads may change between calls. The handle stays valid
 * after the end of the transaction, until it is freed; calls fail then with
 * FLUGS_INVALID_ARGUMENT. */
typedef struct flugs_transaction flugs_transaction;

/** A unique key and columns of its table, found once for many calls. Any number of transactions
 * may use it at the same time, until the database is closed. */
typedef struct flugs_lookup flugs_lookup;

/** Rows of an ordered key, which the caller pulls. They come as they were when the walk began. A
 * call with the walk is a call with its transaction. */
typedef struct flugs_walk flugs_walk;

/** A value computed for each row: a column, a constant, or an operation on expressions.
 * flugs/expression.h has the rules of types and of NULL. A function that is given an expression
 * takes it over, also when it fails: its caller must neither use nor free it any more, unless it
 * made a copy before. So expressions nest. Making one does not fail: what is wrong in it, such
 * as a NULL that a function gave for want of memory, is reported by the call that uses the
 * whole. */
typedef struct flugs_expr flugs_expr;

/** A table, and the steps applied to its rows, in the order in which they are added. Names and
 * types are looked at when the query runs, not before. It runs any number of times, in any
 * transaction. One thread at a time adds steps; running a query changes nothing in it. */
typedef struct flugs_query flugs_query;

/* The library and its errors. */

/** Why a call did not do what was asked. The numbers are stable and may be stored.
 * docs/errors.md says of each what to do. */
typedef int32_t flugs_code;
enum {
  FLUGS_OK = 0,                      /**< No error. */
  FLUGS_NOT_FOUND = 1,               /**< No such table, column, key or row is visible. */
  FLUGS_ALREADY_EXISTS = 2,          /**< A table, or a row with this unique key, exists already. */
  FLUGS_CONFLICT = 3,                /**< Another transaction got there first: abort and retry. */
  FLUGS_CONSTRAINT_VIOLATED = 4,     /**< A value breaks the schema. */
  FLUGS_INVALID_ARGUMENT = 5,        /**< The call itself is wrong; nothing was changed. */
  FLUGS_OUT_OF_SPACE = 6,            /**< The pool, the medium or an id space is full. */
  FLUGS_CORRUPT = 7,                 /**< Bytes in the pool contradict the format. */
  FLUGS_INCOMPATIBLE = 8,            /**< No flugs pool, or one of another format version. */
  FLUGS_BUSY = 9,                    /**< A process, transaction or thread holds a resource. */
  FLUGS_TOO_MANY_TRANSACTIONS = 10,  /**< Every transaction slot is taken. */
  FLUGS_READ_ONLY = 11,              /**< A write to what may only be read. */
  FLUGS_IO_ERROR = 12,               /**< The operating system refused; the message says why. */
  FLUGS_CANCELLED = 13,              /**< The caller asked it to stop. */
  FLUGS_OUT_OF_MEMORY = 14,          /**< A bound on memory was reached, or there is none. */
  FLUGS_OVERFLOW = 15,               /**< A computed number does not fit its type. */
};

/* Values. */

/** The types of columns and of values. The numbers are part of the pool format. */
typedef int32_t flugs_type;
enum {
  FLUGS_NULL = 0,       /**< A value that is NULL. No column has this type. */
  FLUGS_BOOL = 1,       /**< `number` is 0 or 1 */
  FLUGS_INT32 = 2,      /**< `number` */
  FLUGS_INT64 = 3,      /**< `number` */
  FLUGS_DOUBLE = 4,     /**< `real` */
  FLUGS_DECIMAL = 5,    /**< `number` in units of 10^-scale */
  FLUGS_DATE = 6,       /**< `number` of days since 1970-01-01 */
  FLUGS_TIMESTAMP = 7,  /**< `number` of microseconds since 1970-01-01T00:00:00 UTC */
  FLUGS_STRING = 8,     /**< `data` and `size` */
  FLUGS_BYTES = 9,      /**< `data` and `size` */
};

/** A value, or NULL. A text that a caller gives must stay alive for the call. A text that a
 * function gives is valid until the transaction ends or writes to its row. A column takes each
 * value that stands for one of its own exactly: an integer for a decimal or a double, a date for
 * a timestamp, a string for bytes. */
typedef struct flugs_value {
  flugs_type type;
  int32_t scale;  /* of a decimal, 0 to 18; -1: that of the column */
  union {
    int64_t number;
    double real;
    const char* data;  /* of a string or bytes; need not end in a zero byte */
  };
  uint64_t size;  /* bytes of `data`, at most 2^31 - 1 */
} flugs_value;

/** Values by their types. These functions are in this header only, not in the library.
 * flugs_string takes a text that ends in a zero byte. */
static inline flugs_value flugs_of_number(flugs_type type, int64_t number,
                                          int32_t scale) {
  flugs_value value;
  value.type = type;
  value.scale = scale;
  value.number = number;
  value.size = 0;
  return value;
}
static inline flugs_value flugs_of_text(flugs_type type, const char* data, size_t size) {
  flugs_value value;
  value.type = type;
  value.scale = 0;
  value.data = data;
  value.size = size;
  return value;
}
static inline flugs_value flugs_null(void) { return flugs_of_number(FLUGS_NULL, 0, 0); }
static inline flugs_value flugs_bool(int truth) {
  return flugs_of_number(FLUGS_BOOL, truth != 0, 0);
}
static inline flugs_value flugs_int32(int32_t number) {
  return flugs_of_number(FLUGS_INT32, number, 0);
}
static inline flugs_value flugs_int64(int64_t number) {
  return flugs_of_number(FLUGS_INT64, number, 0);
}
static inline flugs_value flugs_double(double real) {
  flugs_value value = flugs_of_number(FLUGS_DOUBLE, 0, 0);
  value.real = real;
  return value;
}
static inline flugs_value flugs_decimal(int64_t units, int32_t scale) {
  return flugs_of_number(FLUGS_DECIMAL, units, scale);
}
static inline flugs_value flugs_date(int32_t days) {
  return flugs_of_number(FLUGS_DATE, days, 0);
}
static inline flugs_value flugs_timestamp(int64_t microseconds) {
  return flugs_of_number(FLUGS_TIMESTAMP, microseconds, 0);
}
static inline flugs_value flugs_text(const char* data, size_t size) {
  return flugs_of_text(FLUGS_STRING, data, size);
}
static inline flugs_value flugs_string(const char* text) {
  size_t size = 0;
  while (text[size] != 0) ++size;
  return flugs_text(text, size);
}
static inline flugs_value flugs_bytes(const void* data, size_t size) {
  return flugs_of_text(FLUGS_BYTES, (const char*)data, size);
}

/* Tables. */

/** How the rows of the delta store a column: flugs/schema.h. */
typedef int32_t flugs_encoding;
enum {
  FLUGS_ENCODING_AUTO = 0,        /**< The engine chooses. */
  FLUGS_ENCODING_DICTIONARY = 1,  /**< Each value once, and codes in the rows. */
  FLUGS_ENCODING_DIRECT = 2,      /**< The values themselves. */
};

/** Where the cells of a table's rows lie in the delta: flugs/schema.h. */
typedef int32_t flugs_delta_layout;
enum {
  FLUGS_DELTA_ROWS = 0,     /**< Side by side in the row. */
  FLUGS_DELTA_COLUMNS = 1,  /**< Each column apart. */
};

/** What happens to referring rows when the row that they refer to is deleted or changed. */
typedef int32_t flugs_reference_action;
enum {
  FLUGS_RESTRICT = 0,  /**< The statement is refused. */
  FLUGS_CASCADE = 1,   /**< They are deleted, too, or get the new values. */
  FLUGS_SET_NULL = 2,  /**< Their referring columns become NULL. */
};

/* Transactions. */

/** What a transaction may do. */
typedef int32_t flugs_access;
enum {
  FLUGS_READ_WRITE = 0,        /**< Read and write. */
  FLUGS_READ_ONLY_ACCESS = 1,  /**< Only read. */
};

/** What a transaction sees of concurrent ones: flugs/transaction.h. */
typedef int32_t flugs_isolation;
enum {
  FLUGS_SNAPSHOT = 0,        /**< The database as committed at its begin. */
  FLUGS_SERIALIZABLE = 1,    /**< And commit fails if what it read has changed since. */
  FLUGS_READ_COMMITTED = 2,  /**< Each call sees what is committed when it begins. */
};

/* Rows. */

/** A part of an ordered key: values for its first columns at each end; none: no bound. All
 * fields 0: the whole key. */
typedef struct flugs_range {
  const flugs_value* lower;
  size_t lower_count;
  const flugs_value* upper;
  size_t upper_count;
  uint32_t flags;     /* FLUGS_RANGE_... */
  uint32_t reserved;  /* 0 */
  uint64_t limit;     /* rows at most; 0: all */
} flugs_range;

/** Bits of flugs_range.flags. */
typedef int32_t flugs_range_flags;
enum {
  FLUGS_RANGE_LOWER_OPEN = 1,  /**< Rows with the lower values do not come. */
  FLUGS_RANGE_UPPER_OPEN = 2,  /**< Rows with the upper values do not come. */
  FLUGS_RANGE_REVERSE = 4,     /**< From the last row to the first. */
};

/* Expressions. */

/** Operations, with the number of their arguments. Each does what the operator or function of
 * flugs/expression.h with its name does. An argument that is called constant must come from
 * flugs_expr_constant. */
typedef int32_t flugs_op;
enum {
  FLUGS_OP_EQUAL = 1,            /**< 2 */
  FLUGS_OP_NOT_EQUAL = 2,        /**< 2 */
  FLUGS_OP_LESS = 3,             /**< 2 */
  FLUGS_OP_LESS_EQUAL = 4,       /**< 2 */
  FLUGS_OP_GREATER = 5,          /**< 2 */
  FLUGS_OP_GREATER_EQUAL = 6,    /**< 2 */
  FLUGS_OP_AND = 7,              /**< 1 or more */
  FLUGS_OP_OR = 8,               /**< 1 or more */
  FLUGS_OP_NOT = 9,              /**< 1 */
  FLUGS_OP_PLUS = 10,            /**< 2 */
  FLUGS_OP_MINUS = 11,           /**< 2 */
  FLUGS_OP_TIMES = 12,           /**< 2 */
  FLUGS_OP_DIVIDE = 13,          /**< 2; the result is a double */
  FLUGS_OP_REMAINDER = 14,       /**< 2; integers */
  FLUGS_OP_IS_NULL = 15,         /**< 1 */
  FLUGS_OP_IS_NOT_NULL = 16,     /**< 1 */
  FLUGS_OP_BETWEEN = 17,         /**< 3: value, low, high */
  FLUGS_OP_IN = 18,              /**< 1 or more: value, constants */
  FLUGS_OP_STARTS_WITH = 19,     /**< 2: text, constant text */
  FLUGS_OP_ENDS_WITH = 20,       /**< 2: text, constant text */
  FLUGS_OP_CONTAINS = 21,        /**< 2: text, constant text */
  FLUGS_OP_YEAR = 22,            /**< 1 */
  FLUGS_OP_MONTH = 23,           /**< 1 */
  FLUGS_OP_DAY = 24,             /**< 1 */
  FLUGS_OP_SUBSTRING = 25,       /**< 3: text, constant first byte (from 1), constant length */
  FLUGS_OP_FIRST_BYTE = 26,      /**< 1 */
  FLUGS_OP_TO_DOUBLE = 27,       /**< 1 */
  FLUGS_OP_CASE = 28,            /**< 2 or more: when, then, when, then, ... perhaps otherwise */
  FLUGS_OP_ROW_ID = 29,          /**< 0; only directly behind a table */
  FLUGS_OP_LIKE = 30,            /**< 2 or 3: text, constant pattern, constant text of one byte */
  FLUGS_OP_LENGTH = 31,          /**< 1 */
  FLUGS_OP_BYTE_LENGTH = 32,     /**< 1 */
  FLUGS_OP_LOWER = 33,           /**< 1 */
  FLUGS_OP_UPPER = 34,           /**< 1 */
  FLUGS_OP_TRIM = 35,            /**< 1 or 2: text, constant sides: 1 left, 2 right, 3 both */
  FLUGS_OP_CONCAT = 36,          /**< 1 or more: texts */
  FLUGS_OP_POSITION = 37,        /**< 2: text, part */
  FLUGS_OP_TO_TEXT = 38,         /**< 1 */
  FLUGS_OP_ABSOLUTE = 39,        /**< 1 */
  FLUGS_OP_FLOOR = 40,           /**< 1 */
  FLUGS_OP_CEILING = 41,         /**< 1 */
  FLUGS_OP_ROUND = 42,           /**< 1 or 2: number, constant places */
  FLUGS_OP_SQUARE_ROOT = 43,     /**< 1 */
  FLUGS_OP_LOGARITHM = 44,       /**< 1 */
  FLUGS_OP_EXPONENTIAL = 45,     /**< 1 */
  FLUGS_OP_POWER = 46,           /**< 2 */
  FLUGS_OP_QUOTIENT = 47,        /**< 2; integers */
  FLUGS_OP_TO_INT64 = 48,        /**< 1 */
  FLUGS_OP_TO_DECIMAL = 49,      /**< 2: number, constant scale */
  FLUGS_OP_TO_DATE = 50,         /**< 1 */
  FLUGS_OP_TO_TIMESTAMP = 51,    /**< 1 */
  FLUGS_OP_QUARTER = 52,         /**< 1 */
  FLUGS_OP_DAY_OF_YEAR = 53,     /**< 1 */
  FLUGS_OP_WEEKDAY = 54,         /**< 1 */
  FLUGS_OP_HOUR = 55,            /**< 1 */
  FLUGS_OP_MINUTE = 56,          /**< 1 */
  FLUGS_OP_SECOND = 57,          /**< 1 */
  FLUGS_OP_TRUNCATE_TIME = 58,   /**< 2: time, constant text: the unit, as year or second */
  FLUGS_OP_ADD_MONTHS = 59,      /**< 2: time, months */
  FLUGS_OP_MATCHES = 60,         /**< 2: text, constant regular expression */
  FLUGS_OP_REGEXP_EXTRACT = 61,  /**< 2 or 3: text, constant pattern, constant group */
  FLUGS_OP_REGEXP_REPLACE = 62,  /**< 3 or 4: text, constant pattern and text, 0 or 1 (all) */
};

/* Queries and Arrow streams. */

/** Which rows a join gives: flugs/query.h. */
typedef int32_t flugs_join;
enum {
  FLUGS_JOIN_INNER = 0,  /**< Each pair of rows. */
  FLUGS_JOIN_LEFT = 1,   /**< And rows of the left input without a partner, once. */
  FLUGS_JOIN_SEMI = 2,   /**< Rows of the left input that have a partner, once. */
  FLUGS_JOIN_ANTI = 3,   /**< Rows of the left input that have none. */
};

/** Figures of a group. */
typedef int32_t flugs_aggregate_kind;
enum {
  FLUGS_COUNT_ROWS = 0,              /**< Has no argument. */
  FLUGS_COUNT = 1,                   /**< Of values that are not NULL. */
  FLUGS_COUNT_DISTINCT = 2,
  FLUGS_SUM = 3,
  FLUGS_MIN = 4,
  FLUGS_MAX = 5,
  FLUGS_AVG = 6,                     /**< A double. */
  FLUGS_VARIANCE = 7,                /**< Of a sample; a double. */
  FLUGS_STDDEV = 8,                  /**< Of a sample; a double. */
  FLUGS_QUANTILE = 9,                /**< `reserved` is the part of the values, in millionths. */
  FLUGS_MEDIAN = 10,                 /**< A double. */
  FLUGS_APPROX_COUNT_DISTINCT = 11,  /**< With a standard error of 1.6 %. */
};

/** A figure of a group, and its name; NULL: a name like "sum(price)". */
typedef struct flugs_aggregate {
  flugs_aggregate_kind kind;
  int32_t reserved;  /* 0; for FLUGS_QUANTILE 0 to 1000000 */
  flugs_expr* of;    /* taken over; NULL for FLUGS_COUNT_ROWS */
  const char* name;
} flugs_aggregate;

#ifdef __cplusplus
}
#endif
