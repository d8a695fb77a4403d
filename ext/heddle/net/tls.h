#ifndef HEDDLE_TLS_H
#define HEDDLE_TLS_H

/*
 * The transport over TLS. Ruby's openssl makes the contexts and shakes hands; after that what it has made, an SSL, is
 * read and written here, by the functions of the very library that openssl.so is linked with.
 */

#include "net/transport.h"

#include <ruby.h>

struct heddle_tls {
    void *ssl;      /* of the socket, once the hands are shaken */
    VALUE acceptor; /* the Heddle::Net::TLS that makes the socket; 0 afterwards */
    VALUE socket;   /* OpenSSL::SSL::SSLSocket; 0 before. Its IO never closes the descriptor, which is ours */
    const char *version; /* TLSv1.3, for example; the library's own constant */
    bool asks;      /* whether the client was asked for a certificate of its own */
    bool broken;    /* the library must not be asked for anything more */
    bool said_goodbye;
    bool read_wants_room, write_wants_input; /* a handshake's rest in the middle of data */
    char *stuck;    /* the data of a record that the kernel has not taken whole: SSL_write needs it again */
    int stuck_size;
    heddle_tls *next, *previous; /* of those that hold objects */
    heddle_tls **first;
};

extern const heddle_transport_operations heddle_tls_transport;

/*
 * Finds the library's functions, once: in what the shared object of this path, which is loaded already, is linked with.
 * NULL, or what is missing.
 */
const char *heddle_tls_load(const char *path);
/* One that not every version has, once it is loaded; NULL: it is not there. */
void *heddle_tls_function(const char *name);

/* One that has not begun, put on the list; NULL: no memory. */
heddle_tls *heddle_tls_new(heddle_tls **list, VALUE acceptor);
/* Off the list, and gone. */
void heddle_tls_free(heddle_tls *tls);
void heddle_tls_mark(const heddle_tls *list);

/* The socket has shaken hands. From now on this transport is the one over TLS. */
void heddle_tls_begin(heddle_transport *transport);
/* Tells the peer that nothing more comes, unless there is something that it misses. */
void heddle_tls_send_close_notify(heddle_transport *transport);
/* The result of the next recv: bytes, 0 at the end of input, or -errno. */
ssize_t heddle_tls_peek(heddle_transport *transport);

/* Maps the kernel's events to those that a waiter needs, where one direction waits for the other. */
static inline uint8_t heddle_tls_translate_events(const heddle_tls *tls, uint8_t ready)
{
    if (tls->read_wants_room && (ready & HEDDLE_HAS_ROOM))
        ready |= HEDDLE_HAS_INPUT;
    if (tls->write_wants_input && (ready & HEDDLE_HAS_INPUT))
        ready |= HEDDLE_HAS_ROOM;
    return ready;
}

#endif
