#pragma once

/*
 * The transport over TLS. Ruby's openssl extension sets up the contexts and performs the handshakes. After a handshake,
 * Heddle's C code reads and writes through the SSL object of Ruby's SSLSocket. It calls the functions of the TLS
 * library ("the library" in this file) with which openssl.so is linked.
 */

#include "net/transport.h"

#include <ruby.h>

struct heddle_tls {
    void *ssl;      /* the SSL of `socket`, after the handshake is complete */
    VALUE acceptor; /* the Heddle::Net::TLS that makes `socket`; 0 after the handshake */
    /* The OpenSSL::SSL::SSLSocket; 0 before the handshake. Its IO never closes the descriptor, which Heddle owns. */
    VALUE socket;
    const char *version; /* such as "TLSv1.3"; a constant in the library's memory */
    bool asks;      /* this side requests a certificate from the peer */
    bool chose_h2;  /* ALPN (RFC 7301) has chosen HTTP/2 */
    bool broken;    /* the library must no longer be called for this connection */
    /* the last recv has stopped early, so that other connections get their turn; records are left to read */
    bool paused;
    bool serves;    /* this side is the server */
    /* in the handshake, the number of received records; after it, the number of TLS's own messages, sent or received */
    unsigned overhead;
    unsigned records;  /* the number of received records; wraps around */
    bool close_notify_sent;
    /* reading waits for room, or writing for input, because TLS must first send or receive a message of its own */
    bool read_wants_room, write_wants_input;
    char *unsent;    /* the bytes of a record that is partly sent; SSL_write must get them again */
    int unsent_size;
    /* the number of the application's bytes in records that were written completely, even by a send that then failed */
    uint64_t written;
    heddle_tls *next, *previous; /* in a list of records whose Ruby objects are marked */
    heddle_tls **first; /* the list */
};

extern const heddle_transport_operations heddle_tls_transport;

/*
 * Finds the library's functions once. `path` is the path of a loaded shared object that is linked with the library, or
 * NULL. Returns NULL, or the name of a function or library that is missing.
 */
const char *heddle_tls_load(const char *path);
/* Returns a function that some versions of the library lack; NULL if it is missing. Called after heddle_tls_load. */
void *heddle_tls_function(const char *name);

/* A function of the library, and the pointer that heddle_tls_find_functions sets to it. */
typedef struct {
    const char *name;
    void *place;
} heddle_tls_entry;
/*
 * For use in a file that defines a macro FUNCTIONS(X), with a row X(name, member, result, arguments) for each function
 * that the file calls. HEDDLE_TLS_LIBRARY defines a record `library` with a pointer to each of these functions.
 */
#define HEDDLE_TLS_LIBRARY(FUNCTIONS) static struct { FUNCTIONS(HEDDLE_TLS_MEMBER) } library
#define HEDDLE_TLS_MEMBER(name, member, result, arguments) result(*member) arguments;
#define HEDDLE_TLS_ENTRY(name, member, result, arguments) {name, &library.member},
/*
 * Sets all pointers. Returns NULL, or the name of the first missing function. In that case the pointers of this and of
 * the following functions are not set.
 */
const char *heddle_tls_find_functions(const heddle_tls_entry *entries, size_t count);

/* Makes a record for a handshake that has not begun, and adds it to the list. Returns NULL if memory is exhausted. */
heddle_tls *heddle_tls_new(heddle_tls **list, VALUE acceptor);
/* Removes the record from its list and frees it; does nothing with NULL. */
void heddle_tls_free(heddle_tls *tls);
void heddle_tls_mark(const heddle_tls *list);

/* Called when the handshake begins on `socket`. From now on limits how many messages the peer may send. */
void heddle_tls_begin_handshake(heddle_tls *tls);
/* Sets the record that counts the messages which the library handles on this thread from now on; NULL: none. */
void heddle_tls_count(heddle_tls *tls);
/* Called when the handshake is complete. From now on the transport uses TLS. */
void heddle_tls_begin(heddle_transport *transport);
/* Sends close_notify once, unless the handshake is incomplete, a record is partly sent, or the connection is broken. */
void heddle_tls_send_close_notify(heddle_transport *transport);
/*
 * Like recv, but leaves the input where it is. Returns a positive number if there is input, 0 at the end of the input,
 * or -errno.
 */
ssize_t heddle_tls_peek(heddle_transport *transport);

/*
 * Translates the kernel's events to the events for which fibers wait. With TLS, reading may have to wait until the
 * kernel has room for output, and writing until it has input.
 */
static inline uint8_t heddle_tls_translate_events(const heddle_tls *tls, uint8_t ready)
{
    if (tls->read_wants_room && (ready & HEDDLE_HAS_ROOM))
        ready |= HEDDLE_HAS_INPUT;
    if (tls->write_wants_input && (ready & HEDDLE_HAS_INPUT))
        ready |= HEDDLE_HAS_ROOM;
    return ready;
}
