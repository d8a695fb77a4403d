#pragma once

/* Collects the codings in a message's Transfer-Encoding (RFC 9112, 6.1), line by line. Only chunked is supported. */

#include "http/message.h"

typedef struct {
    bool present, malformed;
    bool early_chunked, last_chunked; /* a coding before the last one is `chunked`; the last coding is */
    uint32_t codings;                 /* number of codings */
} heddle_transfer_encoding;

/* Adds the codings of one field line. */
void heddle_transfer_encoding_note(heddle_transfer_encoding *encoding, const char *at, const char *end);

/*
 * Returns 0 if the only coding is chunked. Otherwise rejects the message and returns -1. The status is `malformed` if
 * the list is empty or malformed, or if chunked comes before the last coding; otherwise it is `unknown`.
 */
int heddle_transfer_encoding_check(const heddle_transfer_encoding *encoding, int malformed, int unknown,
                                   heddle_rejection *rejection);
