#ifndef HEDDLE_HTTP_AUTHORITY_H
#define HEDDLE_HTTP_AUTHORITY_H

/* `uri-host[:port]` (RFC 9110, 7.2; RFC 3986, 3.2.2), as Host headers and request targets have it. */

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    size_t host_size;  /* from the start of the text on; brackets included */
    size_t port_start; /* of the text; its size if there is no port */
} heddle_authority;

/* False: the text is no authority. An empty text is one: that of a target without an authority. */
bool heddle_authority_split(heddle_authority *authority, const char *text, size_t size);

#endif
