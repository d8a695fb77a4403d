#ifndef HEDDLE_HTTP_STATUS_H
#define HEDDLE_HTTP_STATUS_H

/* Status lines, ready to send. No Ruby here. */

#include <stddef.h>

enum { HEDDLE_STATUS_LINE_ROOM = 16 }; /* of a line without a phrase */

/*
 * The whole line of an answer with this status, 100 to 999, and its size. One that nobody has registered is put
 * together in `room`: the phrase may be empty, the space before it may not (RFC 9112, 4).
 */
const char *heddle_status_line(int status, size_t *size, char room[HEDDLE_STATUS_LINE_ROOM]);

/* "OK"; empty for a status that nobody has registered. */
const char *heddle_status_phrase(int status);

#endif
