#pragma once

/*
 * Why a message is rejected: the status of the response, and one sentence. This file has the rejections that every
 * version of HTTP has; those of one version are with its parser. Uses no Ruby.
 */

#include "net/admission.h"

/* Seconds: the value of the field retry-after where a request is rejected for lack of room. */
#define HEDDLE_RETRY_AFTER "1"

/* Statuses of rejected heads (RFC 9110, 15.5; RFC 6585, 5). */
enum {
    HEDDLE_BAD_REQUEST = 400,
    HEDDLE_HEAD_TOO_LARGE = 431,
};

typedef struct {
    int status;
    bool by_admission; /* admission rejected a waiting request. Such rejections are reported together */
    bool unlogged;     /* the request is a health check */
    char reason[112];
} heddle_rejection;

/* Rejects a message, for another reason than admission. Returns -1, so that a parser can `return heddle_reject(…)`. */
int heddle_reject(heddle_rejection *rejection, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Rejects CONNECT without an upgrade: this server is not a proxy. */
void heddle_reject_connect(heddle_rejection *rejection);
/* Rejects a waiting request. `queue_timeout`: in ns. */
void heddle_reject_overload(heddle_rejection *rejection, heddle_overload why, int64_t queue_timeout);
