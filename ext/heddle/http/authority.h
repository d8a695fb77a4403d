#pragma once

/* Splits `uri-host[:port]` (RFC 9110, 7.2; RFC 3986, 3.2.2), as in Host fields and request targets. */

#include "system.h"

typedef struct {
    size_t host_size;  /* bytes from the start of the text; includes the brackets of an IPv6 address */
    size_t port_start; /* offset in the text; the text's size if there is no port */
} heddle_authority;

/* Returns false if the text is not an authority. An empty text is valid: targets may have an empty authority. */
bool heddle_authority_split(heddle_authority *authority, const char *text, size_t size);
