#ifndef HEDDLE_HTTP_CONTROLS_H
#define HEDDLE_HTTP_CONTROLS_H

/*
 * The fields of a head that are about the message itself and its connection (RFC 9112, 6 and 9; RFC 9110, 7.6 to 7.8
 * and 10.1.1), gathered line by line. Lines of one name are a list. Judged when the head is complete.
 */

#include "http/message.h"

typedef struct {
    heddle_slice host, length; /* the first of each */
    bool has_host, has_length;
    bool second_host, other_length; /* only what came first of these two is noted */
    bool has_coding, malformed_coding, early_chunked, last_chunked;
    uint32_t codings;
    bool has_connection, close, keep_alive, upgrade_named;
    bool upgrade_offered;
    bool continue_expected, more_expected;
} heddle_controls;

/* Notes a field with an id that we know; the others don't matter. */
void heddle_controls_note(heddle_controls *controls, const char *bytes, const heddle_field *field);

/* The digits as a number. -1: they are none, or something else is among them; INT64_MAX: more than that. */
int64_t heddle_content_length(const char *text, size_t size);

/* 0 if the one coding is chunked, or refused: with `malformed` or, where we don't know the coding, with `unknown`. */
int heddle_controls_coding(const heddle_controls *controls, int malformed, int unknown, heddle_rejection *rejection);

/* May the connection go on after this message (RFC 9112, 9.3)? */
bool heddle_controls_keep_alive(const heddle_controls *controls, uint8_t minor);

#endif
