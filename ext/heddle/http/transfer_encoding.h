#pragma once

/* The Transfer-Encoding of a message (RFC 9112, 6.1), line by line. chunked_decoder.c reads the only known coding. */

#include "http/message.h"

typedef struct {
    bool present, malformed, early_chunked, last_chunked;
    uint32_t codings;
} heddle_transfer_encoding;

/* Notes the codings of one field line. */
void heddle_transfer_encoding_note(heddle_transfer_encoding *encoding, const char *at, const char *end);

/*
 * Returns 0 if the only coding is chunked. Otherwise rejects the message, with the status `unknown` for an unknown
 * coding, and else with `malformed`.
 */
int heddle_transfer_encoding_check(const heddle_transfer_encoding *encoding, int malformed, int unknown,
                                   heddle_rejection *rejection);
