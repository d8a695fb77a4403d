#pragma once

/*
 * The result of a function that may have freed a record: a connection, stream or request. The compiler warns if a
 * caller ignores the result. A caller that uses the record afterwards must check the result. Any other caller passes
 * the result to heddle_last_use.
 */

typedef enum {
    HEDDLE_GONE, /* the record may be freed, so it must not be used */
    HEDDLE_ALIVE,
} heddle_fate;

/* Precedes the result type of a function whose result the caller must check. */
#define HEDDLE_MUST_CHECK __attribute__((warn_unused_result))

#define HEDDLE_FATE HEDDLE_MUST_CHECK heddle_fate

/*
 * Marks a function that returns no result and may free a record. The record is the first argument, or the second one if
 * the first is a heddle_sockets. The caller must not use the record afterwards; test/last_use_test.rb checks every
 * call.
 */
#define HEDDLE_LAST_USE

/* Ignores the result: the caller does not use the record afterwards, whether it still exists or not. */
static inline void heddle_last_use(heddle_fate fate)
{
}
