#pragma once

/*
 * Why a message is rejected: the status of the response, and one sentence. This file has only rejections that all
 * versions of HTTP share. Uses no Ruby.
 */

#include "net/admission.h"

/* In seconds: the value of Retry-After when the server has no room for a request. */
#define HEDDLE_RETRY_AFTER "1"

/* Statuses of rejected heads (RFC 9110, 15.5; RFC 6585, 5). */
enum {
    HEDDLE_BAD_REQUEST = 400,
    HEDDLE_HEAD_TOO_LARGE = 431,
};

typedef struct {
    int status;
    bool by_admission; /* the server is overloaded or stops (heddle_overload); such rejections are reported together */
    bool unlogged;     /* not reported, because the request is a health check */
    char reason[112];
} heddle_rejection;

/* Rejects a message for any reason except admission. Returns -1, so that a parser can `return heddle_reject(…)`. */
int heddle_reject(heddle_rejection *rejection, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Rejects a CONNECT that requests a tunnel to another host, because this server is not a proxy. */
void heddle_reject_connect(heddle_rejection *rejection);
/* Rejects a request by admission, with 503. `queue_timeout`: the option in ns, for HEDDLE_QUEUED_TOO_LONG. */
void heddle_reject_overload(heddle_rejection *rejection, heddle_overload why, int64_t queue_timeout);
