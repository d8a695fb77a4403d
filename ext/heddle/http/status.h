#pragma once

/* Status lines of HTTP/1.1, ready to send, and their phrases. Uses no Ruby. */

#include "system.h"

enum { HEDDLE_STATUS_LINE_ROOM = 16 }; /* bytes: room for a status line without a phrase */

/*
 * Returns the status line of a response with this status, 100 to 999, and its size. The line of an unregistered status
 * is written into `room`. Its phrase is empty, but the space before the phrase is required (RFC 9112, 4).
 */
const char *heddle_status_line(int status, size_t *size, char room[HEDDLE_STATUS_LINE_ROOM]);

/* Returns the phrase, such as "OK"; empty for an unregistered status. */
const char *heddle_status_phrase(int status);
