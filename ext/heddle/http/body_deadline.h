#pragma once

/* The time limits of the body of a request, in every version of HTTP. */

#include "http/engine.h"

/*
 * These functions return the time (CLOCK_MONOTONIC, ns) by which the next bytes of a body must arrive. At first it is
 * body_grace after `since`. Each received byte delays it by the time that one byte takes at body_rate. It is never more
 * than body_timeout from now, so that a client that was fast at first can't pause for long. If body_rate is 0, only
 * body_timeout applies.
 */
int64_t heddle_body_first_deadline(const heddle_engine *engine, int64_t since);
int64_t heddle_body_next_deadline(const heddle_engine *engine, int64_t deadline, uint64_t bytes);
/* Rejects a request whose body missed its deadline. */
HEDDLE_LAST_USE void heddle_body_reject_slow(heddle_exchange *exchange);
