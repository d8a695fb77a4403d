#pragma once

#include "system.h"

/* Why a message is rejected: the status of the response, and one sentence. Uses no Ruby. */

/* Seconds: the value of the field retry-after where a request is rejected for lack of room. */
#define HEDDLE_RETRY_AFTER "1"

typedef struct {
    int status;
    bool by_admission; /* admission rejected a waiting request. Such rejections are reported together */
    bool unlogged;     /* the request is a health check */
    char reason[112];
} heddle_rejection;

/* Rejects CONNECT without an upgrade: this server is not a proxy. */
void heddle_reject_connect(heddle_rejection *rejection);
/* Rejects a message, for another reason than admission. Returns -1, so that a parser can `return heddle_reject(…)`. */
int heddle_reject(heddle_rejection *rejection, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
