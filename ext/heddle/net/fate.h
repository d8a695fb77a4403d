#pragma once

/*
 * The result of a call that may have freed a connection, stream or request. The compiler warns where the result is
 * ignored. A caller that uses the record afterwards must check the result. Any other caller passes the result to
 * heddle_last_use.
 */

typedef enum {
    HEDDLE_GONE, /* the record may be freed: it must not be touched */
    HEDDLE_ALIVE,
} heddle_fate;

/* Stands before the result type of a function whose result the caller must check. */
#define HEDDLE_MUST_CHECK __attribute__((warn_unused_result))

#define HEDDLE_FATE HEDDLE_MUST_CHECK heddle_fate

/*
 * Marks a function without a result that may free a record. The record is the first argument, or the second one if the
 * first is a heddle_sockets. The caller must not use that record afterwards; test/last_use_test.rb reads every call.
 */
#define HEDDLE_LAST_USE

/* Says that the caller does not use the record afterwards, whether it still exists or not. */
static inline void heddle_last_use(heddle_fate fate)
{
}
