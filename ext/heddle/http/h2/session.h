#pragma once

/*
 * One side of an HTTP/2 connection (RFC 9113, 9218, 8441) without sockets, clocks or Ruby: the server's side, or the
 * client's (at the end of this file). The owner, which is the code that embeds the session (h2/server/server.c,
 * h2/client/client.c), feeds it the peer's bytes, and pulls the bytes to send. The owner may read the records
 * (session_state.h). It may set only a stream's `owner` and `tunnel`, and the session's `now` before calls that have no
 * parameter for the time. Times are nanoseconds of a monotonic clock, sizes are bytes. Only one thread at a time may
 * call these functions.
 */

#include "http/h2/frame.h"
#include "http/message.h"

typedef struct heddle_h2_session heddle_h2_session;
typedef struct heddle_h2_stream heddle_h2_stream;

enum {
    /* bytes; the smallest buffer for heddle_h2_pull */
    HEDDLE_H2_PULL_ROOM = HEDDLE_H2_PREFACE_SIZE + HEDDLE_H2_HEADER_SIZE + HEDDLE_H2_FRAME_SIZE,
};

typedef struct {
    /* A server announces these three values in SETTINGS; a client announces only stream_window. */
    uint32_t max_streams, stream_window;
    bool connect_protocol;        /* extended CONNECT (RFC 8441): the application serves WebSockets on streams */

    uint32_t connection_window;   /* bytes that the peer may send on all streams together before they are consumed */
    uint32_t header_limit;        /* bytes of a head; each field counts 32 more (RFC 9113, 6.5.2); announced, too */
    uint32_t header_count;
    uint32_t crumb_count;         /* cookie fields that `header_count` does not count */
    uint64_t body_limit;
    bool keep_underscores;

    uint32_t streams_per_feed;    /* requests that may begin in one feed, before other connections get their turn */
    uint32_t fields_per_feed;     /* fields that are decoded in one feed; a block that reaches the limit is completed */
    uint32_t refused_burst;       /* streams refused because of max_streams; tokens, refilled at reset_rate */
    uint32_t reset_burst, reset_rate; /* streams that either side ends early; tokens, and tokens a second */
    /* control frames, empty frames, and frames on closed streams; tokens, and tokens a second */
    uint32_t control_burst, control_rate;
    /*
     * In bytes. The connection fails if an eighth of all received bytes exceeds the payload of both directions by more
     * than this.
     */
    uint32_t overhead;
    uint32_t control_answers;     /* acknowledgements of SETTINGS and PING added before all output was pulled */
    /*
     * The number of WINDOW_UPDATE frames that the peer may send in any case. The same number is allowed for PRIORITY
     * and PRIORITY_UPDATE frames together. Each stream raises both limits, and each sent DATA frame raises the limit of
     * WINDOW_UPDATE frames.
     */
    uint32_t updates;
    uint32_t settings_entries;    /* entries of one SETTINGS frame */
    uint32_t continuations;       /* CONTINUATION frames of one header block */

    /* bytes of content that are kept while the peer's windows are closed: of one stream, of all streams */
    uint32_t stream_output, connection_output;
    uint32_t write_rate;          /* bytes a second that the peer must read, measured over write_timeout */
    int64_t write_timeout, head_timeout, idle_timeout;
    int64_t drain_delay;          /* ns between the two GOAWAY frames of a drain */
} heddle_h2_limits;

/* Returns the values that docs/http2.md lists. */
heddle_h2_limits heddle_h2_default_limits(void);

/* A request. Valid only during the call that receives it. */
typedef struct {
    heddle_request_head head; /* its slices refer to `bytes`; has a field `host` even if only :authority was sent */
    const char *bytes;
    size_t size;
    bool ended;               /* there is no body: on_end is not called */
} heddle_h2_request;

/*
 * On the client: the head of a final or interim (1xx) response, or trailers. Valid only during the call that receives
 * it.
 */
typedef struct {
    int status;         /* 0: trailers */
    const heddle_field *fields;
    uint32_t field_count;
    const char *bytes;  /* the bytes of the fields' slices */
    size_t size;        /* the number of these bytes */
    bool ended;         /* nothing follows: the next call is on_end */
} heddle_h2_response;

/*
 * Operations of the owner, which the session calls. A stream is valid until the owner releases it. Any operation may
 * release it. On a server, the first call for a stream is either on_request or on_rejection.
 */
typedef struct {
    void (*on_request)(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_request *request);
    /*
     * Called when the request exceeds a limit, or has an expectation other than 100-continue. The owner sends a
     * response with the rejection's status, and without content if the method is HEAD. The session discards the
     * request's body.
     */
    void (*on_rejection)(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_rejection *rejection,
                         heddle_method method);
    /* Passes a part of the message's body. The owner must call heddle_h2_consume when it has used the bytes. */
    void (*on_data)(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size);
    /* Called when the peer's message is complete. */
    void (*on_end)(heddle_h2_session *session, heddle_h2_stream *stream);
    /* Called when the stream has ended early. Nothing more is sent, and its loans (heddle_h2_lend) have ended. */
    void (*on_reset)(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error);
    /*
     * Called when there is room for output again, after heddle_h2_write has accepted only a part of its bytes.
     * heddle_h2_lend never causes this call. For a tunnel, this is called whenever all of its queued output was pulled,
     * and when its end was sent.
     */
    void (*on_window)(heddle_h2_session *session, heddle_h2_stream *stream);
    /*
     * Called when all output of the stream was pulled, and request and response are complete. Also called when the
     * server has reset the stream after its response, because it needs no more of the request. May be NULL.
     */
    void (*on_complete)(heddle_h2_session *session, heddle_h2_stream *stream);
    /* Passes a head or trailers of a response. A client gets this call instead of on_request and on_rejection. */
    void (*on_response)(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_response *response);
    /*
     * Called before the session resets a stream whose message is malformed or too large, unless the owner has released
     * the stream. The session's `reason` says what is wrong. `stream` is NULL if the message is a request that was not
     * passed to the owner. The operation may be NULL.
     */
    void (*on_malformed)(heddle_h2_session *session, const heddle_h2_stream *stream, heddle_h2_error error);
} heddle_h2_operations;

/* Buffers that several sessions share. A session uses them only within a call. */
typedef struct {
    heddle_bytes scratch, head, block;
    heddle_field *fields;
    uint32_t field_room;
} heddle_h2_workspace;

void heddle_h2_workspace_free(heddle_h2_workspace *workspace);

/* -- connection ---------------------------------------------------------------------------------------------------- */

/*
 * Returns NULL when out of memory. Limits, operations and workspace must outlive the session. Only a server's session
 * has time limits and can drain (heddle_h2_deadline, heddle_h2_expire, heddle_h2_drain).
 */
heddle_h2_session *heddle_h2_session_new(const heddle_h2_operations *operations, const heddle_h2_limits *limits,
                                         heddle_h2_workspace *workspace, void *owner, int64_t now, bool is_client);
/* Frees the session and its streams, without calling an operation. */
void heddle_h2_session_free(heddle_h2_session *session);

/*
 * Reads bytes of the peer, beginning with the preface. Returns how many bytes were used: fewer than `size` if much of
 * the session's output is not pulled yet, or if other connections need their turn.
 */
size_t heddle_h2_feed(heddle_h2_session *session, int64_t now, const void *bytes, size_t size);
/*
 * Did the last feed reach streams_per_feed or fields_per_feed? If so, other connections get their turn before the next
 * feed.
 */
bool heddle_h2_fed_enough(const heddle_h2_session *session);
/*
 * Writes whole frames, at most `room` bytes, where `room` >= HEDDLE_H2_PULL_ROOM. Returns how many bytes it has
 * written: 0 if there is nothing to send now.
 */
size_t heddle_h2_pull(heddle_h2_session *session, int64_t now, void *buffer, size_t room);
/* Would heddle_h2_pull return bytes? */
bool heddle_h2_has_output(const heddle_h2_session *session);

/* Returns the time at which heddle_h2_expire must be called, or INT64_MAX. */
int64_t heddle_h2_deadline(const heddle_h2_session *session);
void heddle_h2_expire(heddle_h2_session *session, int64_t now);

/*
 * Ends the connection without losing a request (RFC 9113, 6.8): sends GOAWAY now, and after drain_delay a second GOAWAY
 * with the last stream that is served. When no stream is left after that, heddle_h2_is_open returns false.
 */
void heddle_h2_drain(heddle_h2_session *session, int64_t now);
/* Ends the connection at once: sends GOAWAY, and calls on_reset for each stream. */
void heddle_h2_abort(heddle_h2_session *session, int64_t now, heddle_h2_error error);

/* -- streams ------------------------------------------------------------------------------------------------------- */

/*
 * Sets the priority: the urgency is 0 to 7, and 0 is sent first (RFC 9218, 4.1). An application may override the
 * client's choice.
 */
void heddle_h2_set_priority(heddle_h2_session *session, heddle_h2_stream *stream, uint8_t urgency, bool incremental);

typedef struct {
    const char *name, *value;
    uint32_t name_size, value_size;
} heddle_h2_field;

typedef enum {
    HEDDLE_H2_WRITTEN,
    HEDDLE_H2_BAD_NAME,  /* not a token, or a pseudo-header field */
    HEDDLE_H2_BAD_VALUE, /* CR, LF, NUL or another control character */
    HEDDLE_H2_MISPLACED, /* not allowed now, such as a second head, or the end before a head */
    HEDDLE_H2_GONE,      /* the stream has ended, or there was no memory, so that the whole session has failed */
} heddle_h2_write_result;

/*
 * Writes a head of a response: any number of interim ones (1xx), then the final one. Writes names in lower case. Omits
 * white space around values, and fields about the connection (RFC 9113, 8.2.2). Writes nothing if it returns an error.
 * `end`: there is no body.
 */
heddle_h2_write_result heddle_h2_write_head(heddle_h2_session *session, heddle_h2_stream *stream, int status,
                                            const heddle_h2_field *fields, size_t count, bool end);
/* Checks the fields in the same way, but writes nothing. Returns HEDDLE_H2_WRITTEN, or what is wrong with a field. */
heddle_h2_write_result heddle_h2_check_fields(const heddle_h2_field *fields, size_t count);
/* Copies a part of the body. Returns how many bytes it has copied: the rest may be written after on_window. */
size_t heddle_h2_write(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size);
/*
 * Sends bytes without a copy. The owner lends them: they must not change or be freed until the session calls `end_loan`
 * with `loan`. That may be after heddle_h2_release, or within heddle_h2_session_free. Lent bytes do not reduce the room
 * of other streams. Returns false if the bytes can't be sent.
 */
bool heddle_h2_lend(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size,
                    void (*end_loan)(void *loan), void *loan);
/*
 * Copies both pieces completely. The owner must limit the bytes that wait to be sent, which the stream's `queued`
 * counts. on_window is called when all bytes were pulled. Returns false and writes nothing when out of memory, or if
 * heddle_h2_may_write returns false.
 */
bool heddle_h2_write_whole(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size,
                           const char *more, size_t more_size);
/*
 * For owners that use heddle_h2_write_whole. Have the copied bytes of all streams exceeded connection_output for a
 * second? And has this stream queued more than its equal share, and more than one frame? Returns true if both hold.
 */
bool heddle_h2_exceeds_share(const heddle_h2_session *session, const heddle_h2_stream *stream);
/*
 * Ends a tunnel. Sends END_STREAM if the peer has ended its direction and all output is sent; RST_STREAM with NO_ERROR
 * if only this side has ended; otherwise RST_STREAM with CANCEL. With `abrupt`, always sends RST_STREAM with CANCEL.
 */
void heddle_h2_end_tunnel(heddle_h2_session *session, heddle_h2_stream *stream, bool abrupt);
/* Ends the message as soon as all of its body was pulled. */
heddle_h2_write_result heddle_h2_finish(heddle_h2_session *session, heddle_h2_stream *stream);
/*
 * Has the head been written, and not the end, and has the stream not been reset? Otherwise heddle_h2_write accepts
 * nothing, and the owner must not wait for on_window.
 */
bool heddle_h2_may_write(const heddle_h2_stream *stream);
/* Returns how many bytes heddle_h2_write would accept now. */
size_t heddle_h2_room(const heddle_h2_session *session, const heddle_h2_stream *stream);
/*
 * Ends the stream at once, without on_reset. On a server this counts against reset_burst, unless the error is NO_ERROR.
 * When reset_burst is exceeded, the connection fails, and on_reset is called for all streams, including this one.
 */
void heddle_h2_reset(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error);
/* Must be called when `size` bytes from on_data were used, so that the peer may send more. */
void heddle_h2_consume(heddle_h2_session *session, heddle_h2_stream *stream, size_t size);
/*
 * May be called while `size` bytes from on_data wait for the application. Then the peer may send as many bytes more on
 * other streams, but not on this one. heddle_h2_consume must still be called when the bytes were used.
 */
void heddle_h2_keep(heddle_h2_session *session, heddle_h2_stream *stream, size_t size);
/* Lets the peer send `size` bytes more on this stream than limits.stream_window. */
void heddle_h2_widen_window(heddle_h2_session *session, heddle_h2_stream *stream, uint32_t size);
/* Must be called when the owner no longer uses the stream. The session still sends what was written. */
void heddle_h2_release(heddle_h2_session *session, heddle_h2_stream *stream);

/* -- the client's side --------------------------------------------------------------------------------------------- */

heddle_h2_limits heddle_h2_client_limits(void);
/* May a request begin now? Returns false if heddle_h2_stream_limit is reached or heddle_h2_is_leaving returns true. */
bool heddle_h2_may_open(const heddle_h2_session *session);
/* Returns how many requests may be in progress: the server's limit or our own, whichever is lower. */
uint32_t heddle_h2_stream_limit(const heddle_h2_session *session);
/*
 * Returns true if no request can begin any more: after GOAWAY, when no stream ids are left, or when the session has
 * ended.
 */
bool heddle_h2_is_leaving(const heddle_h2_session *session);
/*
 * Begins a request. Its pseudo-header fields must come first. Writes the other fields' names in lower case. `end`: the
 * request has no body; otherwise heddle_h2_write and heddle_h2_finish must follow. `expects_body`: false for HEAD. The
 * owner must release the stream. Sets `*stream` to NULL unless it returns HEDDLE_H2_WRITTEN. Returns HEDDLE_H2_GONE if
 * heddle_h2_may_open is false, or when out of memory.
 */
heddle_h2_write_result heddle_h2_open_stream(heddle_h2_session *session, const heddle_h2_field *fields, size_t count,
                                             bool end, bool expects_body, heddle_h2_stream **stream);
