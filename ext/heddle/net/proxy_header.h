#ifndef HEDDLE_PROXY_HEADER_H
#define HEDDLE_PROXY_HEADER_H

/*
 * The header that a proxy puts before the bytes of its client: the PROXY protocol, versions 1 and 2
 * (https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt). A pure function; no Ruby here.
 */

#include "net/address.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    heddle_address source, destination; /* family 0: the proxy speaks for itself, or does not know */
    bool secure;                        /* the client speaks TLS with the proxy */
} heddle_proxy_header;

/* How many bytes it has; 0: more are needed; -1: it is none, and no further byte makes it one. */
long heddle_proxy_header_parse(heddle_proxy_header *header, const char *bytes, size_t size);

#endif
