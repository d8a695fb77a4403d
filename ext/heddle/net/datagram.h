#pragma once

/*
 * A UDP socket that receives and sends many datagrams with one system call. Nothing here waits. Uses no Ruby. Only one
 * thread at a time may call these functions for one socket: the callers in Ruby hold the GVL.
 */

#include <netinet/in.h>

#include "system.h"

#include <sys/socket.h>

enum {
    HEDDLE_DATAGRAM_BATCH = 64,          /* datagrams of one system call */
    HEDDLE_DATAGRAM_LARGEST = 65535,     /* bytes; the length field of UDP has 16 bits */
};

/* The sender of a datagram, and the local address to which it was sent. Responses must come from that address. */
typedef struct {
    union {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } remote;
    uint8_t own[16];        /* 4 or 16 bytes, by the family; a multicast address can't be the sender of a response */
    uint32_t own_interface; /* IPv6 only: the interface of a link-local address, which is not unique without it */
    bool has_own;           /* true only on a socket that is bound to a wildcard address */
} heddle_datagram_peer;

typedef struct {
    const char *bytes; /* the socket's memory: valid until any receive of the socket, or until the memory is released */
    size_t size;
    bool truncated; /* the datagram was larger than max_size: the rest is lost */
    heddle_datagram_peer peer;
} heddle_datagram;

typedef struct heddle_datagram_incoming heddle_datagram_incoming;

typedef struct {
    int fd;                             /* -1: closed; the owner of this record closes the descriptor */
    bool is_wildcard;                   /* the kernel reports to which local address each datagram was sent */
    size_t max_size;                    /* bytes of a received datagram that are kept */
    heddle_datagram_incoming *incoming; /* from malloc, at the first receive */
    uint64_t unsent;                    /* datagrams that the kernel has not taken */
} heddle_datagram_socket;

/* Receives without waiting. Returns the number of datagrams, -EAGAIN, -ENOMEM or another -errno. */
int heddle_datagram_receive(heddle_datagram_socket *socket);
/* A datagram of the last receive. */
const heddle_datagram *heddle_datagram_at(const heddle_datagram_socket *socket, int index);
/*
 * Does this error belong to a datagram that was sent earlier? Then its receiver has gone, and the socket is still
 * usable.
 */
bool heddle_datagram_is_late_error(int error);

/*
 * Returns false if the kernel has not taken the datagram, for example because the socket's buffer is full. It does not
 * wait, because that would delay datagrams to other peers.
 */
bool heddle_datagram_send(heddle_datagram_socket *socket, const void *bytes, size_t size,
                          const heddle_datagram_peer *peer);

size_t heddle_datagram_memory_size(const heddle_datagram_socket *socket);
void heddle_datagram_release_memory(heddle_datagram_socket *socket);
