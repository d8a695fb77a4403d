#pragma once

/* An address in the form that a request's env needs. Uses no Ruby. */

#include "system.h"

#include <sys/socket.h>

typedef struct {
    uint8_t bytes[16];
    uint16_t port;
    uint8_t family; /* AF_INET, AF_INET6, AF_UNIX; 0: unknown */
} heddle_address;

/* The family, address and port of a socket's address. */
heddle_address heddle_address_of(const struct sockaddr *address);
/* The socket's own address, or its peer's. If the system has none, the family is 0 and errno is set. */
heddle_address heddle_address_of_socket(int fd);
heddle_address heddle_address_of_peer(int fd);
enum {
    HEDDLE_ADDRESS_ROOM = 46,
    HEDDLE_ADDRESS_BUCKETS = 2048, /* records in which addresses are counted, see net/listener.c */
};
/* "192.0.2.1", "::1" or "unix"; NULL if unknown. */
const char *heddle_address_text(const heddle_address *address, char room[HEDDLE_ADDRESS_ROOM]);
/*
 * Parses the text of an IP address. A port after it (192.0.2.1:80, [::1]:80) is ignored. Returns false if it is not an
 * address.
 */
bool heddle_address_read(const char *text, size_t size, heddle_address *address);
