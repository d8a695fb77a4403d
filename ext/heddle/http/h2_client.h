#ifndef HEDDLE_H2_CLIENT_H
#define HEDDLE_H2_CLIENT_H

/*
 * A client's HTTP/2 connection as Ruby sees it: a session over an outbound connection, and its streams. Many fibers and
 * threads use it, under the lock of the threads; lib/heddle/http/client/h2_connection.rb says which of them reads.
 */

#include "http/h2/session.h"

#include <ruby.h>

typedef struct heddle_h2_client heddle_h2_client;
typedef struct heddle_h2_client_stream heddle_h2_client_stream;

/* How a stream has ended early. */
typedef enum {
    HEDDLE_H2_NOT_FAILED,
    HEDDLE_H2_STREAM_REFUSED,  /* the server has not looked at the request */
    HEDDLE_H2_STREAM_RESET,    /* by the server */
    HEDDLE_H2_ANSWER_REJECTED, /* by us: it is malformed or too large */
    HEDDLE_H2_CONNECTION_FAILED, /* by us: the server breaks the protocol, or floods */
    HEDDLE_H2_CONNECTION_LOST,
} heddle_h2_failure;

struct heddle_h2_client_stream {
    heddle_h2_client *client;  /* a reference that counts; NULL: it has not begun */
    heddle_h2_stream *stream;  /* NULL: it is released */
    VALUE connection;          /* H2::ClientConnection */
    VALUE waiter;              /* what is to be woken; nil: nobody waits, or the fiber that waits reads itself */
    heddle_h2_client_stream *next_ready;
    bool is_ready;             /* on the list of those with something new */
    bool has_room;             /* on_window has come */
    bool ended;                /* the answer is complete */
    heddle_h2_failure failure;
    heddle_h2_error error;
    const char *reason;
    int status;                /* of the final head; 0: it has not come */
    bool ended_with_head;
    heddle_field *head;        /* from malloc, the bytes behind the fields; NULL: taken, or not come */
    heddle_field *trailers;
    uint32_t head_count, trailer_count;
    heddle_bytes body;         /* received, and not read */
};

/* Outlives its Ruby object while streams of it do. */
struct heddle_h2_client {
    heddle_h2_session *session;
    heddle_h2_workspace workspace;
    heddle_h2_limits limits;
    unsigned references;       /* the connection's object, and its streams' */
    heddle_h2_client_stream *first_ready, *last_ready;
    bool busy;                 /* somebody sends or receives, and sends the rest afterwards */
    bool is_read, is_sent;     /* a fiber or thread waits for input, or for room */
    bool lost;                 /* the connection has ended, or failed */
    heddle_bytes outgoing;     /* pulled, and not taken by the kernel */
};

extern const heddle_h2_operations heddle_h2_client_operations;

void heddle_h2_client_release(heddle_h2_client *client);
/* The stream is the session's alone again, and reset unless it is complete. */
void heddle_h2_client_close_stream(heddle_h2_client_stream *stream);
/* Takes the next one with something new; NULL: there is none. */
heddle_h2_client_stream *heddle_h2_client_take_ready(heddle_h2_client *client);
/* Those who wait for one of these, which stay on the list; nil: nobody does. */
VALUE heddle_h2_client_waiters(const heddle_h2_client *client);

/* An H2::ClientStream that has not begun. */
VALUE heddle_h2_client_stream_object(VALUE connection);
heddle_h2_client_stream *heddle_h2_client_stream_of(VALUE object);

void Init_heddle_h2_client(VALUE h2);
void Init_heddle_h2_client_stream(VALUE h2);

#endif
