#pragma once

/* Decides where the body of a request is kept until it is complete, in every version of HTTP. */

#include "http/engine.h"

/*
 * The deadline of a body's next bytes. It is body_grace after the beginning. Each byte moves it by the time of a byte
 * at body_rate, but at most to body_timeout from now: a fast beginning must not allow a long pause.
 */
int64_t heddle_body_first_deadline(const heddle_engine *engine, int64_t since);
int64_t heddle_body_next_deadline(const heddle_engine *engine, int64_t deadline, uint64_t bytes);
/* The response to a body that missed its deadline. */
void heddle_body_reject_slow(const heddle_engine *engine, heddle_rejection *rejection);
/* May a body of this length, in bytes, stay in memory? Then the memory is reserved. */
bool heddle_body_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, uint64_t length);
/* The same for the received part of a body of unknown length. */
bool heddle_body_still_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, bool complete);
/*
 * Gives the exchange a spool, unless a body of known length has no room on the disk now. `others`: how many spools its
 * connection has. 0, or -errno as of heddle_body_make_rejection.
 */
int heddle_body_begin_spool(heddle_connection *connection, heddle_exchange *exchange, void *owner,
                            void (*written)(void *owner, int error), unsigned others);
/*
 * The response to a body that can't be kept, and its additional field lines or NULL. `error`: an errno; ENOBUFS
 * and EMFILE: Heddle's own limits of bytes and files.
 */
const char *heddle_body_make_rejection(const heddle_engine *engine, const heddle_exchange *exchange, int error,
                                  heddle_rejection *rejection);
