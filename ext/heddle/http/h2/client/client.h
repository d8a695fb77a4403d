#pragma once

/*
 * A client's HTTP/2 connection for Ruby: a session (h2/session.h) over an outbound connection, and its streams. Many
 * fibers and threads use it, all with the GVL. lib/heddle/http/client/shared_connection.rb decides which of them reads.
 */

#include "http/h2/session_state.h"
#include "net/link.h"
#include "selector/transitions.h"

#include <ruby.h>

typedef struct heddle_h2_client heddle_h2_client;
typedef struct heddle_h2_client_stream heddle_h2_client_stream;

/* The states of a request and its response. */
typedef enum {
    HEDDLE_H2_CLIENT_UNSENT,    /* the request has not begun */
    HEDDLE_H2_CLIENT_SENT,      /* the request has begun; the final head was not received yet */
    HEDDLE_H2_CLIENT_ANSWERED,  /* the final head was received, content may follow */
    HEDDLE_H2_CLIENT_COMPLETE,  /* the response was received completely; it may be unread */
    HEDDLE_H2_CLIENT_FAILED,    /* the response is missing or incomplete: `failure` says why */
    HEDDLE_H2_CLIENT_ABANDONED, /* the caller closed the stream before the response was complete */
} heddle_h2_client_stage;

/* One row for each stage, one bit for each stage that may follow. */
HEDDLE_TRANSITIONS(heddle_h2_client_may_enter,
    [HEDDLE_H2_CLIENT_UNSENT] = 1 << HEDDLE_H2_CLIENT_SENT,
    [HEDDLE_H2_CLIENT_SENT] = 1 << HEDDLE_H2_CLIENT_ANSWERED | 1 << HEDDLE_H2_CLIENT_FAILED |
        1 << HEDDLE_H2_CLIENT_ABANDONED,
    [HEDDLE_H2_CLIENT_ANSWERED] = 1 << HEDDLE_H2_CLIENT_COMPLETE | 1 << HEDDLE_H2_CLIENT_FAILED |
        1 << HEDDLE_H2_CLIENT_ABANDONED,
    [HEDDLE_H2_CLIENT_COMPLETE] = 0,
    [HEDDLE_H2_CLIENT_FAILED] = 0,
    [HEDDLE_H2_CLIENT_ABANDONED] = 0)

/* Why a stream has failed. */
typedef enum {
    HEDDLE_H2_STREAM_REFUSED,  /* the server has not processed the request */
    HEDDLE_H2_STREAM_RESET,    /* reset by the server */
    HEDDLE_H2_ANSWER_REJECTED, /* reset by us: the response is malformed or too large */
    /* we have ended the connection: it was closed on this side, or the server has violated the protocol or a limit */
    HEDDLE_H2_CONNECTION_FAILED,
    HEDDLE_H2_CONNECTION_LOST,   /* the server has closed the connection, or the connection is broken */
} heddle_h2_failure;

struct heddle_h2_client_stream {
    heddle_h2_client *client;  /* a counted reference; NULL: the stream has not begun */
    heddle_h2_stream *stream;  /* the session's record; NULL: this stream was released */
    VALUE connection;          /* H2::ClientConnection */
    VALUE waiter;              /* a Queue: Ruby code pushes true to it to wake the waiting fiber; nil: no fiber waits */
    heddle_link ready;         /* in the client's list of streams with new events */
    uint8_t stage;             /* heddle_h2_client_stage */
    bool has_room;             /* on_window was called: more of the body can be written */
    heddle_h2_failure failure; /* this, `error` and `reason` are set only if the stream has failed */
    heddle_h2_error error;
    const char *reason;
    int status;                /* the final head's status; 0: the head was not received yet */
    bool ended_with_head;      /* the response has no body */
    heddle_field *head;        /* from malloc, followed by the bytes of the fields; NULL: not received, or taken */
    heddle_field *trailers;    /* in the same form as `head` */
    uint32_t head_count, trailer_count;
    heddle_bytes body;         /* the bytes that were received and not read */
};

static inline void heddle_h2_client_enter(heddle_h2_client_stream *stream, heddle_h2_client_stage stage)
{
    HEDDLE_ASSERT(heddle_h2_client_may_enter(stream->stage, stage));
    stream->stage = (uint8_t)stage;
}

/* Exists until its Ruby object and all its streams are freed. */
struct heddle_h2_client {
    heddle_h2_session *session;
    heddle_h2_workspace workspace;
    heddle_h2_limits limits;
    unsigned references;       /* one from the connection's Ruby object, and one from each stream */
    heddle_link ready;         /* the streams with new events */
    bool busy;                 /* a fiber or thread sends or receives; it also sends what others queue meanwhile */
    bool has_reader, has_sender; /* a fiber or thread has the role of reading, or of sending */
    bool lost;                 /* the connection has ended, or failed */
    heddle_bytes outgoing;     /* bytes that were pulled from the session and that the kernel has not accepted yet */
};

extern const heddle_h2_operations heddle_h2_client_operations;

void heddle_h2_client_release(heddle_h2_client *client);

/* Returns a new H2::ClientStream whose request has not begun. */
VALUE heddle_h2_client_stream_object(VALUE connection);
heddle_h2_client_stream *heddle_h2_client_stream_of(VALUE object);

void Init_heddle_h2_client(VALUE h2);
void Init_heddle_h2_client_stream(VALUE h2);
