#pragma once

/*
 * The states of an exchange's record.
 *
 *   from              to                when
 *   SPARE             WAITING           a session has received a complete head
 *   WAITING           RUNNING           a runner takes the exchange
 *   WAITING           SPARE             the exchange was rejected, or its connection or stream has ended
 *   RUNNING           WITHOUT_SESSION   the response is complete, or the connection or stream has ended
 *   RUNNING           WAITING           the garbage collector frees the Ruby object and the whole loop together; then
 *                                       the session frees the record
 *   RUNNING           SPARE             the application has returned in a forked child, which has no session
 *   WITHOUT_SESSION   SPARE             the application has returned
 */

#include "selector/transitions.h"

typedef enum {
    HEDDLE_EXCHANGE_SPARE,
    HEDDLE_EXCHANGE_WAITING,  /* its body is being received, or it waits for a runner: the session owns it */
    HEDDLE_EXCHANGE_RUNNING,  /* the runner owns it, and the session refers to it */
    HEDDLE_EXCHANGE_WITHOUT_SESSION, /* the runner owns it; the session has released it */
} heddle_exchange_state;

/* One row for each state, with one bit for each state that may follow it. */
HEDDLE_TRANSITIONS(heddle_exchange_may_enter,
    [HEDDLE_EXCHANGE_SPARE] = 1 << HEDDLE_EXCHANGE_WAITING,
    [HEDDLE_EXCHANGE_WAITING] = 1 << HEDDLE_EXCHANGE_RUNNING | 1 << HEDDLE_EXCHANGE_SPARE,
    [HEDDLE_EXCHANGE_RUNNING] = 1 << HEDDLE_EXCHANGE_WAITING | 1 << HEDDLE_EXCHANGE_WITHOUT_SESSION |
        1 << HEDDLE_EXCHANGE_SPARE,
    [HEDDLE_EXCHANGE_WITHOUT_SESSION] = 1 << HEDDLE_EXCHANGE_SPARE)
