#pragma once

/* An address of a socket, as the Rack env of a request needs it. Uses no Ruby. */

#include "system.h"

#include <sys/socket.h>

typedef struct {
    uint8_t bytes[16];
    uint16_t port;
    uint8_t family; /* AF_INET, AF_INET6, AF_UNIX; 0: unknown */
} heddle_address;

/* Converts a socket's address. */
heddle_address heddle_address_of(const struct sockaddr *address);
/*
 * The first function returns the local address of a socket, the second one the address of its peer. If the socket has
 * no such address, the family of the result is 0, and errno is set.
 */
heddle_address heddle_address_of_socket(int fd);
heddle_address heddle_address_of_peer(int fd);
enum {
    HEDDLE_ADDRESS_ROOM = 46,
    HEDDLE_ADDRESS_BUCKETS = 2048, /* the number of records in which net/listener.c counts connections by address */
};
/*
 * Returns "192.0.2.1", "::1" or "unix"; or NULL if the address is unknown. The text is in `room`, or is a constant.
 */
const char *heddle_address_text(const heddle_address *address, char room[HEDDLE_ADDRESS_ROOM]);
/*
 * Parses an IP address. A port may follow it (192.0.2.1:80, [::1]:80), and is ignored without a check. Returns false if
 * the text is not an address.
 */
bool heddle_address_read(const char *text, size_t size, heddle_address *address);
