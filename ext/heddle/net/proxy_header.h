#pragma once

/*
 * Parses the header that a proxy sends before the bytes of its client: the PROXY protocol, versions 1 and 2
 * (https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt). A pure function that uses no Ruby.
 */

#include "net/address.h"

typedef struct {
    heddle_address source, destination; /* family 0: the connection is the proxy's own, or the client is unknown */
    bool secure;                        /* the client uses TLS with the proxy */
} heddle_proxy_header;

/* The header's size in bytes; 0: more bytes are needed; -1: the bytes are no PROXY header. */
long heddle_proxy_header_parse(heddle_proxy_header *header, const char *bytes, size_t size);
