#ifndef HEDDLE_HTTP_BODY_RULES_H
#define HEDDLE_HTTP_BODY_RULES_H

/* Where the body of a request is kept until it is complete, whatever version brings it. */

#include "http/engine.h"

/*
 * When a body that began at `since`, and of which so many bytes were taken, is too slow; with body_rate 0, when nothing
 * has come of it since `last`.
 */
int64_t heddle_body_deadline(const heddle_engine *engine, int64_t since, uint64_t taken, int64_t last);
/* The response to one that was. */
void heddle_body_too_slow(const heddle_engine *engine, heddle_rejection *rejection);
/* Is the path of this request among those whose application reads bodies as they come (option stream_bodies)? */
bool heddle_body_is_streamed(const heddle_engine *engine, const heddle_exchange *exchange);
/* May a body of this length, in bytes, stay in memory? Reserves it. */
bool heddle_body_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, uint64_t length);
/* The same of what has come so far of a body whose length is unknown. */
bool heddle_body_still_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, bool complete);
/* A spool for the exchange; false without memory. */
bool heddle_body_begin_spool(heddle_engine *engine, heddle_exchange *exchange, heddle_loop *loop, void *owner,
                             void (*written)(void *owner, int error));
/* The response to a body that can't be kept, and its further field lines or NULL. `error`: an errno, ENOBUFS: our limit. */
const char *heddle_body_rejection(const heddle_engine *engine, const heddle_exchange *exchange, int error,
                                  heddle_rejection *rejection);
/* The same for one that is larger than all bodies together may be. */
const char *heddle_body_too_large(const heddle_engine *engine, heddle_rejection *rejection);

#endif
