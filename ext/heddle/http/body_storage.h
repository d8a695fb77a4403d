#pragma once

/* Decides where the body of a request is kept until it is complete: in memory, or in a file. */

#include "http/engine.h"

/* Reserves memory for a body of this length, in bytes. Returns false if the body may not stay in memory. */
bool heddle_body_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, uint64_t length);
/* Does the same for the received part of a body of unknown length. `complete`: no more bytes follow. */
bool heddle_body_still_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, bool complete);
/*
 * Gives the exchange a spool, unless the body has a known length for which the disk has no room now. `others`: how many
 * spools its connection already has. Returns 0, or -errno; heddle_body_reject takes that errno.
 */
int heddle_body_begin_spool(heddle_connection *connection, heddle_exchange *exchange, void *owner,
                            void (*written)(void *owner, int error), unsigned others);
/*
 * Rejects a request whose body can't be kept. `error` is an errno: ENOBUFS is Heddle's limit of bytes, and EMFILE its
 * limit of files.
 */
HEDDLE_LAST_USE void heddle_body_reject(heddle_exchange *exchange, int error);
