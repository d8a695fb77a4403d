#ifndef HEDDLE_HTTP_CONTROLS_H
#define HEDDLE_HTTP_CONTROLS_H

/*
 * The fields of a head about the message itself and its connection (RFC 9112, 6 and 9; RFC 9110, 7.6 to 7.8 and
 * 10.1.1), collected line by line. Several lines of one name are a list. They are checked when the head is complete.
 */

#include "http/message.h"

typedef struct {
    heddle_slice host, length; /* the first line of each */
    bool has_host, has_length;
    bool second_host, other_length; /* further lines of these two are only noted */
    bool has_coding, malformed_coding, early_chunked, last_chunked;
    uint32_t codings;
    bool has_connection, close, keep_alive, upgrade_named;
    bool upgrade_offered;
    bool continue_expected, more_expected;
} heddle_controls;

/* Notes a field with a known id; other fields are ignored. */
void heddle_controls_note(heddle_controls *controls, const char *bytes, const heddle_field *field);

/* Parses the digits. -1: it is no number; INT64_MAX: it is larger than that. */
int64_t heddle_content_length(const char *text, size_t size);

/*
 * 0 if the only coding is chunked. Otherwise rejects with the status `malformed` or, for an unknown coding, `unknown`.
 */
int heddle_controls_coding(const heddle_controls *controls, int malformed, int unknown, heddle_rejection *rejection);

/* May the connection be kept open after this message (RFC 9112, 9.3)? */
bool heddle_controls_keep_alive(const heddle_controls *controls, uint8_t minor);

#endif
