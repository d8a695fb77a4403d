#pragma once

/*
 * The transport over TLS. Ruby's openssl makes the contexts and the handshakes; afterwards C code reads and writes
 * through the SSL object of the handshake, with the functions of the library that openssl.so is linked with.
 */

#include "net/transport.h"

#include <ruby.h>

struct heddle_tls {
    void *ssl;      /* the SSL of the socket, once the handshake is complete */
    VALUE acceptor; /* the Heddle::Net::TLS that makes the socket; 0 afterwards */
    /* OpenSSL::SSL::SSLSocket; 0 before the handshake. Its IO never closes the descriptor, which is ours */
    VALUE socket;
    const char *version; /* such as "TLSv1.3"; the library's own constant */
    bool asks;      /* the client was asked for a certificate */
    bool chose_h2;  /* ALPN (RFC 7301) has chosen HTTP/2 */
    bool broken;    /* the library must not be called any more */
    bool paused;    /* the last recv has stopped so that others have their turn; records are left to read */
    bool serves;    /* this side is the server */
    unsigned overhead; /* records of the handshake, and messages of TLS itself afterwards */
    unsigned records;  /* received; wraps */
    bool close_notify_sent;
    /* a message of TLS itself must come first: so reading waits for room, or writing waits for input */
    bool read_wants_room, write_wants_input;
    char *unsent;    /* the bytes of a record that the kernel has not taken completely; SSL_write must get them again */
    int unsent_size;
    uint64_t written; /* bytes of the application in complete records, including those of a send that failed later */
    heddle_tls *next, *previous; /* in the list of records that hold objects */
    heddle_tls **first;
};

extern const heddle_transport_operations heddle_tls_transport;

/*
 * Finds the library's functions, once, through the loaded shared object at this path, which is linked with the library.
 * Returns NULL, or the name of a missing function or library.
 */
const char *heddle_tls_load(const char *path);
/* A function that not every version of the library has, or NULL. Call it after heddle_tls_load. */
void *heddle_tls_function(const char *name);

/* A function of the library, and the pointer that is set to it. */
typedef struct {
    const char *name;
    void *place;
} heddle_tls_entry;
/* The tables of a file whose FUNCTIONS(X) has a row X(name, member, result, arguments) for each function it calls. */
#define HEDDLE_TLS_LIBRARY(FUNCTIONS) static struct { FUNCTIONS(HEDDLE_TLS_MEMBER) } library
#define HEDDLE_TLS_MEMBER(name, member, result, arguments) result(*member) arguments;
#define HEDDLE_TLS_ENTRY(name, member, result, arguments) {name, &library.member},
/* Sets all pointers. Returns NULL, or the name of the first missing function: the entries behind it are not set. */
const char *heddle_tls_find_functions(const heddle_tls_entry *entries, size_t count);

/* Makes a record for a handshake that has not begun, and adds it to the list. Returns NULL if out of memory. */
heddle_tls *heddle_tls_new(heddle_tls **list, VALUE acceptor);
/* Removes it from the list and frees it. */
void heddle_tls_free(heddle_tls *tls);
void heddle_tls_mark(const heddle_tls *list);

/* Limits the work of the handshake, which begins now on the record's socket. */
void heddle_tls_begin_handshake(heddle_tls *tls);
/* From now on this thread's calls of the library count for this record, or, if it is NULL, for none. */
void heddle_tls_count(heddle_tls *tls);
/* Called when the handshake is complete: from now on this transport uses TLS. */
void heddle_tls_begin(heddle_transport *transport);
/* Sends close_notify, unless queued output is incomplete. */
void heddle_tls_send_close_notify(heddle_transport *transport);
/* The result that the next recv would have: the number of bytes, 0 at the end of input, or -errno. */
ssize_t heddle_tls_peek(heddle_transport *transport);

/* Maps the kernel's events to the events that waiters need: reading may wait for room, and writing for input. */
static inline uint8_t heddle_tls_translate_events(const heddle_tls *tls, uint8_t ready)
{
    if (tls->read_wants_room && (ready & HEDDLE_HAS_ROOM))
        ready |= HEDDLE_HAS_INPUT;
    if (tls->write_wants_input && (ready & HEDDLE_HAS_INPUT))
        ready |= HEDDLE_HAS_ROOM;
    return ready;
}
