#ifndef HEDDLE_QUARANTINE_H
#define HEDDLE_QUARANTINE_H

/*
 * Endpoints that were learned to hold up their worker are served by one worker only, the quarantine: the others'
 * requests don't have to wait for them. Whoever has read the head of such a request passes its connection on.
 */

#include "net/connection.h"
#include "net/learned.h"

typedef struct {
    VALUE object;            /* the Ruby object that keeps the table, 0: none */
    heddle_learned *learned; /* NULL: this is no worker among others, or takes no part */
    int socket;              /* where the quarantine's worker takes connections over; -1: none */
    uint64_t passed;         /* requests that went there */
} heddle_quarantine;

/* From now on; 0 or -errno. */
int heddle_quarantine_join(heddle_sockets *sockets, VALUE object, heddle_learned *learned, int socket);
/* Idempotent. */
void heddle_quarantine_leave(heddle_sockets *sockets);

/*
 * Is a request of this method and target another worker's? Then its connection, of which these bytes were read and not
 * used, goes there: true, the record is gone. Otherwise it is served here, also when that worker is not there, or has
 * more to do than it can take.
 */
bool heddle_quarantine_takes(heddle_connection *connection, const char *method, size_t method_size, const char *target,
                             size_t target_size, const char *bytes, size_t size);

#endif
