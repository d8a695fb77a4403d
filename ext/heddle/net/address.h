#ifndef HEDDLE_ADDRESS_H
#define HEDDLE_ADDRESS_H

/* An address as the env of a request wants it. No Ruby here. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef struct {
    uint8_t bytes[16];
    uint16_t port;
    uint8_t family; /* AF_INET, AF_INET6, AF_UNIX; 0: not known */
} heddle_address;

/* Family and bytes of a socket's address. */
heddle_address heddle_address_of(const struct sockaddr *address);
enum { HEDDLE_ADDRESS_ROOM = 46 };
/* "192.0.2.1", "::1", "unix"; NULL: not known. */
const char *heddle_address_text(const heddle_address *address, char room[HEDDLE_ADDRESS_ROOM]);
/* Of such a text, also with a port (192.0.2.1:80, [::1]:80), which does not count. false: it is no address. */
bool heddle_address_read(const char *text, size_t size, heddle_address *address);

#endif
