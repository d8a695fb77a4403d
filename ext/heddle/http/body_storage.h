#pragma once

/* Decides where the body of a request is kept until it is complete: in memory, or in a file. */

#include "http/engine.h"

/*
 * Reserves memory for a body of `length` bytes if it is larger than body_buffer. Returns false if the body must go to a
 * file.
 */
bool heddle_body_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, uint64_t length);
/*
 * Does the same for a body of unknown length, if its received part is larger than body_buffer. Reserves as much memory
 * as one body may use, because more bytes may follow; but only the body's size if the body is `complete`.
 */
bool heddle_body_still_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, bool complete);
/*
 * Creates the spool of an exchange (the file of its body). `others`: the number of spools that the connection already
 * has. Returns 0 or -errno: -ENOBUFS if body_disk_limit leaves no room for the announced length, -EMFILE if there are
 * too many files, -ENOMEM if no memory is left. The caller passes the (positive) errno to heddle_body_reject.
 */
int heddle_body_begin_spool(heddle_connection *connection, heddle_exchange *exchange, void *owner,
                            void (*written)(void *owner, int error), unsigned others);
/*
 * Rejects a request whose body can't be stored. `error` is an errno: ENOBUFS if body_disk_limit leaves no room, EMFILE
 * if too many bodies are in files, or else why the body could not be written.
 */
HEDDLE_LAST_USE void heddle_body_reject(heddle_exchange *exchange, int error);
