#pragma once

/*
 * Parses the header that a proxy sends before its client's bytes: the PROXY protocol, versions 1 and 2
 * (https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt). Does no I/O and uses no Ruby.
 */

#include "net/address.h"

typedef struct {
    heddle_address source, destination; /* family 0: this is the proxy's own connection, or the client is unknown */
    bool secure;                        /* the client uses TLS with the proxy */
} heddle_proxy_header;

/* Returns the header's size in bytes, 0 if more bytes are needed, or -1 if the bytes are not a PROXY header. */
long heddle_proxy_header_parse(heddle_proxy_header *header, const char *bytes, size_t size);
