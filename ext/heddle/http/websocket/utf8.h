#pragma once

/* Checks text in pieces for valid UTF-8 (RFC 3629). A piece may end within a character. Uses no Ruby. */

#include "system.h"

/* The state between two pieces of a text. It must be zero at the beginning of a text. */
typedef struct {
    uint8_t missing;        /* bytes of the current character that are still to come */
    uint8_t lowest, highest; /* the range of the next byte */
} heddle_utf8;

/* Returns false if the bytes can't be part of valid UTF-8. */
bool heddle_utf8_check(heddle_utf8 *utf8, const char *bytes, size_t size);
/* Is the whole text valid UTF-8? */
bool heddle_utf8_is_valid(const char *text, size_t size);

static inline bool heddle_utf8_is_complete(const heddle_utf8 *utf8)
{
    return utf8->missing == 0;
}
