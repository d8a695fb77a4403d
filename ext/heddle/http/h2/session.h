#ifndef HEDDLE_H2_SESSION_H
#define HEDDLE_H2_SESSION_H

/*
 * One side of an HTTP/2 connection (RFC 9113, 9218, 8441) without sockets, clocks or Ruby: the server's, or the client's
 * (at the end of this file). The owner feeds it what the peer sends, and pulls what is to be sent. Times are nanoseconds of a monotonic clock, sizes are bytes.
 * Nothing here is called by two threads at a time.
 */

#include "http/h2/frame.h"
#include "http/message.h"

typedef struct heddle_h2_session heddle_h2_session;
typedef struct heddle_h2_stream heddle_h2_stream;

enum {
    HEDDLE_H2_PULL_ROOM = HEDDLE_H2_PREFACE_SIZE + HEDDLE_H2_HEADER_SIZE + HEDDLE_H2_FRAME_SIZE, /* the least room that heddle_h2_pull takes */
};

typedef struct {
    /* The values of SETTINGS. */
    uint32_t max_streams, stream_window, header_table_size;
    bool connect_protocol;        /* extended CONNECT (RFC 8441): the application serves WebSockets on streams */

    uint32_t connection_window;   /* how much of all request bodies is kept at most */
    uint32_t header_limit;        /* of a request, each field with 32 octets more (RFC 9113, 10.5.1) */
    uint32_t header_count;
    uint32_t crumb_count;         /* cookie fields that `header_count` does not count */
    uint64_t body_limit;
    bool keep_underscores;

    uint32_t streams_a_feed;      /* requests begun in one feed, before others have their turn */
    uint32_t fields_a_feed;       /* the same for decoded fields; the block that exceeds it is completed */
    uint32_t rejected_burst;       /* streams beyond max_streams; refilled as resets are */
    uint32_t reset_burst, reset_rate; /* streams ended early, whoever ends them; tokens, and tokens a second */
    uint32_t control_burst, control_rate; /* control frames, empty frames, frames on streams that are gone */
    uint32_t overhead;            /* bytes by which an eighth of all may exceed those that were worth something */
    uint32_t control_answers;     /* of SETTINGS and PING, not yet pulled */
    uint32_t updates;             /* WINDOW_UPDATE and PRIORITY frames of a connection without streams */
    uint32_t settings_entries;    /* of one frame */
    uint32_t continuations;       /* of one header block */

    uint32_t stream_output, connection_output; /* body bytes kept that the client's windows do not let go */
    uint32_t write_rate;          /* bytes a second, judged over write_timeout */
    int64_t write_timeout, head_timeout, idle_timeout, drain_delay;
} heddle_h2_limits;

/* As docs/http2.md gives them. */
heddle_h2_limits heddle_h2_default_limits(void);

/* A request as its header block has it. Valid during the call that gets it. */
typedef struct {
    heddle_request_head head; /* slices of `bytes`; `host` is among the fields even if only :authority was sent */
    const char *bytes;
    size_t size;
    heddle_slice scheme;
    heddle_slice protocol;    /* of an extended CONNECT; else empty */
    bool ended;               /* there is no body: on_end does not follow */
} heddle_h2_request;

/* A client's: the head of an answer, an interim one (1xx) perhaps, or trailers. Valid during the call that gets it. */
typedef struct {
    int status;         /* 0: trailers */
    const heddle_field *fields;
    uint32_t field_count;
    const char *bytes;  /* what the fields are slices of */
    size_t size;        /* of the bytes */
    bool ended;         /* nothing follows: the next call is on_end */
} heddle_h2_response;

/*
 * The owner's operations. The stream stays valid until the owner releases it, which it may do in each of these. Of
 * on_request and on_rejection exactly one comes first.
 */
typedef struct {
    void (*on_request)(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_request *request);
    /*
     * The request breaks a limit: the owner answers with this status, and without content where the method is HEAD. Its
     * body, if any, is not delivered.
     */
    void (*on_rejection)(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_rejection *rejection,
                         heddle_method method);
    /* Part of the request's body. The owner calls heddle_h2_consume when it has used it. */
    void (*on_data)(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size);
    void (*on_end)(heddle_h2_session *session, heddle_h2_stream *stream);
    /* The stream has ended before its time: what is lent is the owner's again, and nothing more is sent. */
    void (*on_reset)(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error);
    /*
     * There is room for output again, after heddle_h2_write took less than it was given or after a loan. Of a tunnel: all
     * of it is pulled, its end included.
     */
    void (*on_window)(heddle_h2_session *session, heddle_h2_stream *stream);
    /* Request and answer are complete, and all of it is pulled. */
    void (*on_complete)(heddle_h2_session *session, heddle_h2_stream *stream);
    /* A client's, in place of the first two: heads and trailers of answers. */
    void (*on_response)(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_response *response);
} heddle_h2_operations;

/* Memory that sessions of one thread share, used only within a call. */
typedef struct {
    heddle_bytes scratch, head, block;
    heddle_field *fields;
    uint32_t field_room;
} heddle_h2_workspace;

void heddle_h2_workspace_free(heddle_h2_workspace *workspace);

/* -- connection ---------------------------------------------------------------------------------------------------- */

/* NULL: there is no memory. Limits, operations and workspace outlive it. */
heddle_h2_session *heddle_h2_session_new(const heddle_h2_operations *operations, const heddle_h2_limits *limits,
                                         heddle_h2_workspace *workspace, void *owner, int64_t now);
/* Without a call of any operation; every stream is gone. */
void heddle_h2_session_free(heddle_h2_session *session);
void *heddle_h2_session_owner(const heddle_h2_session *session);

/*
 * Takes what the client has sent, the preface first. How many bytes were used: fewer than `size` if the session does
 * not want more now, because much of its output is not pulled yet or because other connections should have their turn.
 */
size_t heddle_h2_feed(heddle_h2_session *session, int64_t now, const void *bytes, size_t size);
/* Did the last feed reach streams_a_feed or fields_a_feed? Other connections come before the next one. */
bool heddle_h2_fed_enough(const heddle_h2_session *session);
/* Writes whole frames, at most `room` >= HEDDLE_H2_PULL_ROOM bytes. 0: there is nothing to send now. */
size_t heddle_h2_pull(heddle_h2_session *session, int64_t now, void *buffer, size_t room);
/* Would a pull give something? */
bool heddle_h2_has_output(const heddle_h2_session *session);
/* Nothing more is to be read, nor, once it has no output, sent: the connection is to be closed. */
bool heddle_h2_is_closing(const heddle_h2_session *session);
/* Are streams in progress? A connection without any may be closed at any time after a drain. */
uint32_t heddle_h2_stream_count(const heddle_h2_session *session);

/* When heddle_h2_expire is to be called next; INT64_MAX: never. */
int64_t heddle_h2_deadline(const heddle_h2_session *session);
void heddle_h2_expire(heddle_h2_session *session, int64_t now);

/* Ends the connection without losing a request: GOAWAY now, and again when the client must know (RFC 9113, 6.8). */
void heddle_h2_drain(heddle_h2_session *session, int64_t now);
/* Ends it at once: GOAWAY, and on_reset for each stream. */
void heddle_h2_abort(heddle_h2_session *session, int64_t now, heddle_h2_error error);
/* The highest stream that may have been acted on, for a GOAWAY that another thread sends. */
uint32_t heddle_h2_last_stream(const heddle_h2_session *session);

/* -- streams ------------------------------------------------------------------------------------------------------- */

void heddle_h2_set_owner(heddle_h2_stream *stream, void *owner);
void *heddle_h2_owner(const heddle_h2_stream *stream);
uint32_t heddle_h2_stream_id(const heddle_h2_stream *stream);
/* Urgency 0 to 7, 0 first (RFC 9218, 4.1). An application may overrule what the client asked for. */
void heddle_h2_set_priority(heddle_h2_session *session, heddle_h2_stream *stream, uint8_t urgency, bool incremental);

typedef struct {
    const char *name, *value;
    uint32_t name_size, value_size;
} heddle_h2_field;

typedef enum {
    HEDDLE_H2_WRITTEN,
    HEDDLE_H2_BAD_NAME,  /* no token, or a pseudo-header */
    HEDDLE_H2_BAD_VALUE, /* CR, LF, NUL or another control character */
    HEDDLE_H2_MISPLACED, /* a second head, trailers before a head … */
    HEDDLE_H2_GONE,      /* the stream has ended, or there is no memory: on_reset was called */
} heddle_h2_write_result;

/*
 * The head of an answer; 1xx before it as often as needed. Names are written in lower case, blanks around values and
 * fields about the connection (RFC 9113, 8.2.2) are left out. After an error nothing was written. `end`: there is no
 * body.
 */
heddle_h2_write_result heddle_h2_write_head(heddle_h2_session *session, heddle_h2_stream *stream, int status,
                                            const heddle_h2_field *fields, size_t count, bool end);
/* Copies part of the body. How much of it was taken: the rest after on_window. */
size_t heddle_h2_write(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size);
/* The same without a copy: the bytes stay as they are until on_window or on_reset. False: it can't be sent. */
bool heddle_h2_lend(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size);
/*
 * The same, whatever becomes of the stream and of its owner: `end_loan` is called with `loan` when the bytes are not
 * needed any more, even after heddle_h2_release, and within heddle_h2_session_free. Lent bytes do not reduce the room
 * of other streams.
 */
bool heddle_h2_lend_until(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size,
                          void (*end_loan)(void *loan), void *loan);
/*
 * The stream carries bytes both ways from here on (RFC 9113, 8.5; RFC 8441): that it ends in one direction does not end it
 * in the other. The head of a successful answer is written.
 */
void heddle_h2_begin_tunnel(heddle_h2_stream *stream);
/*
 * Copies all of both pieces, as the owner bounds what waits: see heddle_h2_unsent. on_window is called when all of it is
 * pulled. False: the stream takes nothing, or there is no memory, and nothing was written.
 */
bool heddle_h2_write_whole(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size,
                           const char *more, size_t more_size);
/* Bytes of the body that were not pulled yet. */
size_t heddle_h2_unsent(const heddle_h2_stream *stream);
/*
 * For owners that use heddle_h2_write_whole: have bodies exceeded connection_output for a second, and does this stream
 * exceed an equal share of it, and a frame's worth?
 */
bool heddle_h2_exceeds_share(const heddle_h2_session *session, const heddle_h2_stream *stream);
/*
 * Ends a tunnel without a word of on_reset: in order where both sides have ended it, or can; else, and if `abrupt`, with
 * RST_STREAM.
 */
void heddle_h2_end_tunnel(heddle_h2_session *session, heddle_h2_stream *stream, bool abrupt);
/* Ends the answer once all of the body is pulled. The trailers are checked as a head's fields. */
heddle_h2_write_result heddle_h2_finish(heddle_h2_session *session, heddle_h2_stream *stream,
                                        const heddle_h2_field *trailers, size_t count);
/* Has the answer begun and not ended? Else heddle_h2_write takes nothing, and on_window never comes. */
bool heddle_h2_may_write(const heddle_h2_stream *stream);
/* How many bytes heddle_h2_write would take now. */
size_t heddle_h2_room(const heddle_h2_session *session, const heddle_h2_stream *stream);
/* The time of the calls that follow, where their functions don't take it. */
void heddle_h2_set_now(heddle_h2_session *session, int64_t now);
/* Ends the stream at once, without on_reset. */
void heddle_h2_reset(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error);
/* So much of what on_data gave is used up: the client may send more. */
void heddle_h2_consume(heddle_h2_session *session, heddle_h2_stream *stream, size_t size);
/* So much more of it waits, but holds back this stream alone: the client may send more on others. */
void heddle_h2_keep(heddle_h2_session *session, heddle_h2_stream *stream, size_t size);
/* The stream is the session's alone again; if its answer is not complete, it is still sent. */
void heddle_h2_release(heddle_h2_session *session, heddle_h2_stream *stream);

/* -- the client's side --------------------------------------------------------------------------------------------- */

heddle_h2_limits heddle_h2_client_limits(void);
/* As heddle_h2_session_new. There are no times: heddle_h2_deadline, _expire, _drain are for servers. */
heddle_h2_session *heddle_h2_client_new(const heddle_h2_operations *operations, const heddle_h2_limits *limits,
                                        heddle_h2_workspace *workspace, void *owner, int64_t now);
/* Could a request begin now? Not with as many as the server takes under way, nor after its GOAWAY. */
bool heddle_h2_may_open(const heddle_h2_session *session);
/* How many may be under way: what the server takes, and what the limits allow. */
uint32_t heddle_h2_stream_limit(const heddle_h2_session *session);
/* Will one never begin again: after GOAWAY, without streams left, or at the end? */
bool heddle_h2_is_leaving(const heddle_h2_session *session);
/*
 * Begins a request: its pseudo-header fields first, in lower case. `end`: it has no body; else heddle_h2_write and
 * heddle_h2_finish follow. `expects_body` is false for HEAD. The stream is held for the owner. The caller has asked
 * heddle_h2_may_open.
 */
heddle_h2_write_result heddle_h2_open_stream(heddle_h2_session *session, const heddle_h2_field *fields, size_t count,
                                             bool end, bool expects_body, heddle_h2_stream **stream);
/* Of a stream that has ended early: was it the server that reset it, or that said in GOAWAY not to look at it? */
bool heddle_h2_is_reset_by_peer(const heddle_h2_stream *stream);
/* Why the session, or the stream that was reset last, has failed; NULL: it has not. */
const char *heddle_h2_reason(const heddle_h2_session *session);

#endif
