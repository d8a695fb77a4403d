#pragma once

/*
 * The states of an exchange's record.
 *
 *   from              to                when
 *   SPARE             WAITING           a session has a complete head
 *   WAITING           RUNNING           a runner takes it
 *   WAITING           SPARE             it was rejected, or its connection or stream has ended
 *   RUNNING           WITHOUT_SESSION   the response is complete, or the connection or stream has ended
 *   RUNNING           WAITING           the collector frees its Ruby object with the whole loop; the session frees the
 *                                       record
 *   RUNNING           SPARE             the application has returned, and everything that it left open is closed
 *   WITHOUT_SESSION   SPARE             the application has returned
 */

#include "selector/transitions.h"

typedef enum {
    HEDDLE_EXCHANGE_SPARE,
    HEDDLE_EXCHANGE_WAITING,  /* its body is received, or it waits for a runner: the session owns it */
    HEDDLE_EXCHANGE_RUNNING,  /* the runner owns it, and the session knows it */
    HEDDLE_EXCHANGE_WITHOUT_SESSION, /* the runner alone knows it */
} heddle_exchange_state;

/* A row for each state, a bit for each state that may follow it. */
HEDDLE_TRANSITIONS(heddle_exchange_may_enter,
    [HEDDLE_EXCHANGE_SPARE] = 1 << HEDDLE_EXCHANGE_WAITING,
    [HEDDLE_EXCHANGE_WAITING] = 1 << HEDDLE_EXCHANGE_RUNNING | 1 << HEDDLE_EXCHANGE_SPARE,
    [HEDDLE_EXCHANGE_RUNNING] = 1 << HEDDLE_EXCHANGE_WAITING | 1 << HEDDLE_EXCHANGE_WITHOUT_SESSION |
        1 << HEDDLE_EXCHANGE_SPARE,
    [HEDDLE_EXCHANGE_WITHOUT_SESSION] = 1 << HEDDLE_EXCHANGE_SPARE)
