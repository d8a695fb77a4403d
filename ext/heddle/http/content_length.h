#pragma once

/* The Content-Length of a message (RFC 9110, 8.6), collected line by line. */

#include "http/message.h"

typedef struct {
    heddle_slice value; /* of the first line */
    bool present;
    bool differs; /* a further line has another value */
} heddle_content_length;

void heddle_content_length_note(heddle_content_length *length, const char *bytes, const heddle_field *field);

/* Parses digits. -1: it is no number; INT64_MAX: it is larger than that. */
int64_t heddle_content_length_parse(const char *text, size_t size);
/* The same for the noted value. */
int64_t heddle_content_length_read(const heddle_content_length *length, const char *bytes);
