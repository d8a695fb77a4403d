#ifndef HEDDLE_FATE_H
#define HEDDLE_FATE_H

/*
 * The fate of a connection, stream or request after a call that may have ended it. The compiler warns where such a
 * result is not used: code that goes on with the record has to look at it, code that does not says so by
 * heddle_last_use.
 */

typedef enum {
    HEDDLE_GONE, /* the record may be freed: nothing of it may be touched */
    HEDDLE_ALIVE,
} heddle_fate;

#define HEDDLE_FATE __attribute__((warn_unused_result)) heddle_fate

/*
 * Marks a function without a result that may free a record: that of its first argument, or of its second where the first
 * is a heddle_sockets. A call is its caller's last use of that record; test/last_use_test.rb reads every call.
 */
#define HEDDLE_LAST_USE

/* The caller touches the record no more, whatever became of it. */
static inline void heddle_last_use(heddle_fate fate)
{
    (void)fate;
}

#endif
