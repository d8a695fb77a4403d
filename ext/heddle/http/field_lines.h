#ifndef HEDDLE_HTTP_FIELD_LINES_H
#define HEDDLE_HTTP_FIELD_LINES_H

/* Reads the field lines of a head (RFC 9112, 5; RFC 9110, 5.5 and 5.6). */

#include "http/controls.h"

typedef struct {
    const char *bytes;
    uint32_t end;            /* of what may be looked at */
    heddle_field *fields;
    unsigned room;           /* lines beyond it are too many */
    bool keep_underscores;
    bool unfold;             /* a line that starts with white space goes on with the value before it */

    unsigned field_count, line_count;
    bool folded;             /* some value has the CR LF of a fold in it */
    uint32_t line;           /* where the line that was read last starts */
    heddle_controls controls;
} heddle_field_lines;

enum {
    HEDDLE_LINES_INCOMPLETE = 0,
    HEDDLE_LINES_MALFORMED = -1,
    HEDDLE_LINES_TOO_MANY = -2,
};

/* Reads from the start of a line on. Where the body starts, or one of the above. */
int64_t heddle_field_lines_read(heddle_field_lines *lines, uint32_t start);

#endif
