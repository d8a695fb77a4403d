#pragma once

/*
 * A UDP socket that receives many datagrams with one system call. None of these functions waits. Uses no Ruby. Only one
 * thread at a time may call these functions for a socket: the methods of datagram_ruby.c call them with the GVL.
 */

#include <netinet/in.h>

#include "system.h"

#include <sys/socket.h>

enum {
    HEDDLE_DATAGRAM_BATCH = 64,          /* the maximum number of datagrams that one system call receives */
    HEDDLE_DATAGRAM_LARGEST = 65535,     /* the maximum max_size, in bytes: the length field of UDP has 16 bits */
};

/* The sender of a datagram, and the local address to which it was sent. Responses must come from that address. */
typedef struct {
    union {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } remote;
    /* the local address: 4 or 16 bytes, depending on the family; not used for a response if it is multicast */
    uint8_t own[16];
    uint32_t own_interface; /* IPv6 only: the interface, without which a link-local address is not unique */
    bool has_own;           /* `own` is set: only on a socket that is bound to a wildcard address */
} heddle_datagram_peer;

typedef struct {
    const char *bytes; /* in the socket's memory: valid until the next receive, or until the memory is released */
    size_t size;
    bool truncated; /* the datagram was larger than max_size, and its end is lost */
    heddle_datagram_peer peer;
} heddle_datagram;

typedef struct heddle_datagram_incoming heddle_datagram_incoming;

typedef struct {
    int fd;                             /* -1: closed; the owner of this record closes the descriptor */
    bool is_wildcard;                   /* the kernel reports the local address of each datagram */
    size_t max_size;                    /* how many bytes of a received datagram are kept */
    heddle_datagram_incoming *incoming; /* allocated by malloc at the first receive */
    uint64_t unsent;                    /* how many datagrams the kernel has not accepted for sending */
} heddle_datagram_socket;

/* Receives without waiting. Returns the number of datagrams, -EAGAIN if there is none, -ENOMEM or another -errno. */
int heddle_datagram_receive(heddle_datagram_socket *socket);
/* Returns a datagram of the last receive. */
const heddle_datagram *heddle_datagram_at(const heddle_datagram_socket *socket, int index);
/*
 * Returns whether this -errno of a receive reports that an earlier datagram of this socket did not reach its receiver.
 * The socket is still usable.
 */
bool heddle_datagram_is_late_error(int error);

/*
 * Sends a datagram. Returns false if the kernel has not accepted it, for example because the socket's buffer is full.
 * Never waits, because that would delay datagrams to other peers.
 */
bool heddle_datagram_send(heddle_datagram_socket *socket, const void *bytes, size_t size,
                          const heddle_datagram_peer *peer);

size_t heddle_datagram_memory_size(const heddle_datagram_socket *socket);
void heddle_datagram_release_memory(heddle_datagram_socket *socket);
