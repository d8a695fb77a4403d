#pragma once

/* The Content-Length of a message (RFC 9110, 8.6). The caller passes each Content-Length line to this module. */

#include "http/message.h"

typedef struct {
    heddle_slice value; /* the value of the first line */
    bool present;
    bool differs; /* a later line has another value */
} heddle_content_length;

void heddle_content_length_note(heddle_content_length *length, const char *bytes, const heddle_field *field);

/* Parses a decimal number. Returns -1 if the text is not a number, and INT64_MAX if the number exceeds INT64_MAX. */
int64_t heddle_content_length_parse(const char *text, size_t size);
/* Parses the value of the first line. */
int64_t heddle_content_length_read(const heddle_content_length *length, const char *bytes);
