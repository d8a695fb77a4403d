#pragma once

/* Reads the field lines of a head (RFC 9112, 5; RFC 9110, 5.5 and 5.6). */

#include "http/control_fields.h"

typedef struct {
    const char *bytes;
    uint32_t end;            /* the end of the bytes that may be read */
    heddle_field *fields;    /* the fields that were read */
    unsigned room;           /* the maximum number of lines */
    bool keep_underscores;   /* keep fields whose names contain an underscore */
    bool unfold;             /* a line that starts with white space continues the value of the line before it */

    unsigned field_count, line_count;
    bool folded;             /* a value continues on another line, so it contains CR LF */
    uint32_t line;           /* where the line that was read last starts; after an error, the malformed line */
    heddle_control_fields controls;
} heddle_field_lines;

enum {
    HEDDLE_LINES_INCOMPLETE = 0,
    HEDDLE_LINES_MALFORMED = -1,
    HEDDLE_LINES_TOO_MANY = -2,
};

/*
 * Reads lines up to the end of the head. `start` is the offset of a line's first byte. Returns the offset at which the
 * body starts, or one of the constants above.
 */
int64_t heddle_field_lines_read(heddle_field_lines *lines, uint32_t start);
