#ifndef HEDDLE_HTTP_BODY_RULES_H
#define HEDDLE_HTTP_BODY_RULES_H

/* Decides where the body of a request is kept until it is complete, in every version of HTTP. */

#include "http/engine.h"

/*
 * The deadline of a body that began at `since` and of which `taken` bytes came; with body_rate 0, of one whose last
 * bytes came at `last`.
 */
int64_t heddle_body_deadline(const heddle_engine *engine, int64_t since, uint64_t taken, int64_t last);
/* The response to a body that missed its deadline. */
void heddle_body_reject_slow(const heddle_engine *engine, heddle_rejection *rejection);
/* May a body of this length, in bytes, stay in memory? Then the memory is reserved. */
bool heddle_body_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, uint64_t length);
/* The same for the received part of a body of unknown length. */
bool heddle_body_still_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, bool complete);
/* Gives the exchange a spool; false without memory. */
bool heddle_body_begin_spool(heddle_engine *engine, heddle_exchange *exchange, heddle_loop *loop, void *owner,
                             void (*written)(void *owner, int error));
/*
 * The response to a body that can't be kept, and its additional field lines or NULL. `error`: an errno; ENOBUFS:
 * Heddle's own limit.
 */
const char *heddle_body_make_rejection(const heddle_engine *engine, const heddle_exchange *exchange, int error,
                                  heddle_rejection *rejection);
/* The same for a body that is larger than all bodies together may be. */
const char *heddle_body_reject_large(const heddle_engine *engine, heddle_rejection *rejection);

#endif
