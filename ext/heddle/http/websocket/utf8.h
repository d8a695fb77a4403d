#pragma once

/* Checks UTF-8 (RFC 3629) that comes in pieces: a piece may end within a character. Uses no Ruby. */

#include "system.h"

/* All zero between two characters. */
typedef struct {
    uint8_t missing;        /* bytes of the current character that are still to come */
    uint8_t lowest, highest; /* the range of the next byte */
} heddle_utf8;

/* Returns false if no text that continues these bytes can be UTF-8. */
bool heddle_utf8_check(heddle_utf8 *utf8, const char *bytes, size_t size);

static inline bool heddle_utf8_is_complete(const heddle_utf8 *utf8)
{
    return utf8->missing == 0;
}
