#pragma once

#include "system.h"

/* Why a message is rejected: the status of the response, and one sentence. Uses no Ruby. */

/* The field retry-after of a rejection for lack of room, in seconds. */
#define HEDDLE_RETRY_AFTER "1"

typedef struct {
    int status;
    bool by_admission; /* admission rejected a request that waited. Such ones are reported together */
    bool unlogged;     /* of a health check */
    char reason[112];
} heddle_rejection;

/* Of CONNECT without an upgrade: this server is not a proxy. */
void heddle_reject_connect(heddle_rejection *rejection);
/* A rejection that is not admission's. Returns -1, so that a parser can `return heddle_reject(…)`. */
int heddle_reject(heddle_rejection *rejection, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
