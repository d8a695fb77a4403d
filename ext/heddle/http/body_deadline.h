#pragma once

/* The time limits of the body of a request, in every version of HTTP. */

#include "http/engine.h"

/*
 * These functions return a deadline: the time (CLOCK_MONOTONIC, ns) by which the next bytes of a body must arrive. The
 * first deadline is body_grace after `since`. Each received byte delays the deadline by the time that one byte takes at
 * body_rate, but not beyond body_timeout from now, so that a client that was fast at first can't pause for long. If
 * body_rate is 0, the deadline is body_timeout after `since`, and then body_timeout after the last received bytes.
 */
int64_t heddle_body_first_deadline(const heddle_engine *engine, int64_t since);
int64_t heddle_body_next_deadline(const heddle_engine *engine, int64_t deadline, uint64_t bytes);
/* Rejects a request whose body missed its deadline. */
HEDDLE_LAST_USE void heddle_body_reject_slow(heddle_exchange *exchange);
