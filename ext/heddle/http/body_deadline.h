#pragma once

/* The time limits of the body of a request, in every version of HTTP. */

#include "http/engine.h"

/*
 * The deadline of a body's next bytes. At first it is body_grace after the beginning. Each received byte moves it by
 * the time that one byte takes at body_rate. It is never later than body_timeout from now: a client that begins fast
 * must not pause for long.
 */
int64_t heddle_body_first_deadline(const heddle_engine *engine, int64_t since);
int64_t heddle_body_next_deadline(const heddle_engine *engine, int64_t deadline, uint64_t bytes);
/* Rejects a request whose body missed its deadline. */
HEDDLE_LAST_USE void heddle_body_reject_slow(heddle_exchange *exchange);
