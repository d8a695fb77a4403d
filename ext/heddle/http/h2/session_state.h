#pragma once

/* The records of a session, which its owner may read, and the functions that the files of the session share. */

#include "http/h2/hpack.h"
#include "http/h2/session.h"
#include "selector/assert.h"

/* -- states of a stream (RFC 9113, 5.1) ---------------------------------------------------------------------------- */

/*
 * The states of a stream. The meaning of a late frame depends on how its stream was closed, so there are several closed
 * states.
 */
typedef enum {
    HEDDLE_H2_IDLE,
    HEDDLE_H2_OPEN,
    HEDDLE_H2_HALF_CLOSED_LOCAL,  /* our message was sent; the peer's (on the server, the request) is incomplete */
    HEDDLE_H2_HALF_CLOSED_REMOTE, /* the peer's message is complete; ours is not */
    HEDDLE_H2_ENDED,              /* request and response are complete */
    HEDDLE_H2_RESET_BY_US,
    HEDDLE_H2_RESET_BY_PEER,      /* also if the server's GOAWAY excludes the stream */
    HEDDLE_H2_FORGOTTEN, /* the session no longer knows how the stream was closed, or the stream was never used */
    HEDDLE_H2_STATES,
} heddle_h2_state;

typedef enum {
    HEDDLE_H2_GOT_HEADERS,
    HEDDLE_H2_GOT_DATA,
    HEDDLE_H2_GOT_WINDOW,
    HEDDLE_H2_GOT_RESET,
    HEDDLE_H2_GOT_END,  /* END_STREAM came with HEADERS or DATA */
    HEDDLE_H2_SENT_END,
    HEDDLE_H2_SENT_RESET,
    HEDDLE_H2_EVENTS,
} heddle_h2_event;

enum { HEDDLE_H2_PROGRESS_CHECKS = 4 }; /* how often the output's progress is checked in each write_timeout */

/* An entry of the table of transitions is the next state (less than HEDDLE_H2_STATES), or one of these values. */
enum {
    HEDDLE_H2_IGNORE = 0x10,
    HEDDLE_H2_CLOSED_STREAM,     /* a stream error STREAM_CLOSED */
    HEDDLE_H2_CLOSED_CONNECTION, /* a connection error STREAM_CLOSED */
    HEDDLE_H2_WRONG,             /* a connection error PROTOCOL_ERROR */
    HEDDLE_H2_IMPOSSIBLE,        /* never happens */
};

extern const uint8_t heddle_h2_transitions[HEDDLE_H2_STATES][HEDDLE_H2_EVENTS];

static inline bool heddle_h2_state_is_closed(heddle_h2_state state)
{
    return state >= HEDDLE_H2_ENDED;
}

static inline bool heddle_h2_state_receives(heddle_h2_state state)
{
    return state == HEDDLE_H2_OPEN || state == HEDDLE_H2_HALF_CLOSED_LOCAL;
}

static inline bool heddle_h2_state_sends(heddle_h2_state state)
{
    return state == HEDDLE_H2_OPEN || state == HEDDLE_H2_HALF_CLOSED_REMOTE;
}

typedef struct heddle_h2_block heddle_h2_block;

/* -- records ------------------------------------------------------------------------------------------------------- */

enum {
    HEDDLE_H2_URGENCIES = 8,
    HEDDLE_H2_DEFAULT_URGENCY = 3,
    HEDDLE_H2_REMEMBERED = 64, /* closed streams that are remembered */
    HEDDLE_H2_FIRST_REMEMBERED = 8,
    HEDDLE_H2_EARLY_PRIORITIES = 8, /* PRIORITY_UPDATE frames that are remembered until their streams begin */
    HEDDLE_H2_PAUSE_OUTPUT = 65536, /* when more bytes of heads and control frames are queued, nothing more is read */
};

/* A token bucket. */
typedef struct {
    int64_t at;    /* when tokens were last refilled */
    uint32_t used; /* tokens that are not refilled yet */
} heddle_h2_bucket;

/* How many bytes of an output were sent since a point in time. */
typedef struct {
    int64_t since;
    uint64_t bytes;
} heddle_h2_progress;

/* A part of a body that is queued to be sent. */
typedef struct heddle_h2_segment {
    struct heddle_h2_segment *next;
    const char *bytes; /* `own`, or the lent bytes */
    size_t size;
    void (*end_loan)(void *loan); /* NULL: the bytes are not lent */
    void *loan;
    char own[];        /* the bytes, if they are copied and not lent */
} heddle_h2_segment;

typedef struct {
    heddle_h2_stream *first, *last;
} heddle_h2_list;

/* Why on_window will be called. */
typedef enum {
    HEDDLE_H2_WAITS_FOR_NOTHING,
    HEDDLE_H2_WAITS_FOR_ROOM,
    HEDDLE_H2_WAITS_FOR_EMPTY,
} heddle_h2_wait;

struct heddle_h2_stream {
    void *owner;
    /* links in the list of streams that can send, one for each priority; the list of streams to be freed uses `next` */
    heddle_h2_stream *next, *previous;
    uint32_t id;
    uint8_t state;       /* heddle_h2_state */
    uint8_t urgency;
    uint8_t waits;       /* heddle_h2_wait */
    bool incremental;
    bool held;           /* the owner still uses the stream */
    bool listed;         /* the stream is in the list of streams that can send */
    bool head_written, finished; /* the owner has written the head; the owner has written the end */
    bool rejected;       /* on the server: the request was rejected (on_rejection), and its body is discarded */
    bool answered;       /* on the client: the final head was received */
    bool expects_body;   /* on the client: false for HEAD */
    uint8_t interims;    /* on the client: the number of heads before the final one */
    /*
     * Carries bytes both ways (RFC 9113, 8.5; RFC 8441): when one direction ends, the other stays open. Set by the
     * owner when the head of a successful response was written.
     */
    bool tunnel;
    int64_t send_window, receive_window;
    uint32_t credit;     /* consumed bytes that no WINDOW_UPDATE has announced yet */
    uint32_t unconsumed; /* bytes that the owner has received and not consumed */
    uint32_t kept;       /* the part of `unconsumed` that was credited to the connection's window */
    int64_t body_left;   /* bytes of the body still to come, according to content-length; -1: unknown */
    heddle_h2_segment *first, *last;
    size_t queued;       /* bytes of the segments, which is the part of the body that was not pulled yet */
    int64_t listed_at;   /* when it was added to the list of streams that can send */
    heddle_h2_progress progress;
};

typedef enum {
    HEDDLE_H2_AT_PREFACE,
    HEDDLE_H2_AT_FIRST_SETTINGS,
    HEDDLE_H2_AT_FRAMES,
    HEDDLE_H2_AT_END, /* nothing more is read */
} heddle_h2_stage;

typedef enum {
    HEDDLE_H2_NOT_DRAINING,
    HEDDLE_H2_DRAIN_ANNOUNCED, /* the first GOAWAY was sent: new streams are still served */
    HEDDLE_H2_DRAINING,        /* the second GOAWAY was sent */
} heddle_h2_drain_stage;

/* The order in which streams are sent (RFC 9218). Exists while the session has streams or early priorities. */
typedef struct {
    heddle_h2_list sequential[HEDDLE_H2_URGENCIES], incremental[HEDDLE_H2_URGENCIES];
    uint8_t incremental_turn; /* a bit for each urgency: is an incremental stream next? */
    uint8_t early_next;
    uint8_t early_bits[HEDDLE_H2_EARLY_PRIORITIES]; /* the urgency, plus 8 if incremental */
    uint32_t early_streams[HEDDLE_H2_EARLY_PRIORITIES];
} heddle_h2_schedule;

/* A stream that was closed recently. */
typedef struct {
    uint32_t id;
    uint8_t state;
} heddle_h2_closed_stream;

struct heddle_h2_session {
    const heddle_h2_operations *operations;
    const heddle_h2_limits *limits;
    heddle_h2_workspace *workspace;
    void *owner;
    int64_t now; /* the time of the current or last call */

    heddle_h2_reader reader;
    uint8_t stage, drain_stage;
    uint8_t preface_size; /* received bytes of the preface; on the client, sent bytes */
    bool settings_acknowledged;
    bool is_client;
    bool goaway;          /* on the client: the server accepts no further request */
    uint32_t peer_streams; /* on the client: the server's SETTINGS_MAX_CONCURRENT_STREAMS */
    const char *reason;   /* why the session has failed, or the last message was malformed or too large; or NULL */
    uint8_t depth;        /* nested calls into the session; the outermost one frees dead streams at its end */

    /* The frame that is being read. */
    heddle_bytes gathered; /* its payload, if that arrives in pieces */
    bool skipped;          /* its payload is discarded */
    bool padding_known;
    uint32_t data_left;    /* bytes of DATA still to come; once `padding_known` is set, without the padding */

    /* The header block that is being read. */
    heddle_bytes block;
    uint32_t block_stream; /* the id of its stream; 0: no block is being read */
    bool block_ends_stream;
    uint8_t block_verdict; /* the stream's next state, or HEDDLE_H2_IGNORE, or HEDDLE_H2_CLOSED_STREAM */
    bool block_self_dependent; /* the priority in HEADERS makes the stream depend on itself */
    uint32_t block_continuations;
    int64_t block_since;   /* when the block began */

    heddle_hpack_decoder decoder;
    heddle_hpack_encoder encoder;

    heddle_h2_stream **streams; /* sorted by id */
    uint32_t stream_count, stream_room; /* how many streams are in progress or not released; how many fit */
    heddle_h2_stream *dead;  /* streams that the outermost call frees at its end */
    uint32_t last_stream;    /* the highest id that the client has opened */
    uint32_t last_processed; /* the highest id of a request that was passed to the owner */
    uint32_t fed_streams, fed_fields; /* requests that began, and fields that were decoded, in the last feed */
    heddle_h2_schedule *schedule;  /* NULL: no streams, and no early priorities */
    heddle_h2_closed_stream *remembered; /* a ring; NULL: none */
    uint8_t remembered_room, remembered_next;

    int64_t send_window, receive_window;
    uint32_t credit;
    uint32_t peer_window; /* the peer's SETTINGS_INITIAL_WINDOW_SIZE */

    heddle_bytes output; /* whole frames other than DATA, in order */
    uint32_t answers;    /* acknowledgements of PING and SETTINGS that were added since `output` was last empty */
    uint32_t listed_count; /* streams that can send */
    size_t queued;       /* bytes of all streams' bodies that were not pulled yet, including lent bytes */
    int64_t crowded_since; /* since when copied bodies have exceeded connection_output */
    size_t lent; /* the part of `queued` that was passed to heddle_h2_lend, and is not in the session's memory */

    heddle_h2_bucket resets, refused, controls;
    /*
     * Since the session began: streams; sent DATA frames; received WINDOW_UPDATE frames; received PRIORITY and
     * PRIORITY_UPDATE frames.
     */
    uint64_t opened, data_frames, window_updates, priorities;
    /* bytes of received frames; bytes of received header blocks, and of DATA in both directions */
    uint64_t received, payload;

    heddle_h2_progress progress;
    int64_t check_at, drain_at; /* when the output's progress is checked; when the second GOAWAY is sent */
    int64_t idle_since; /* when the last stream ended, the first SETTINGS came, or the session began */
};

/* One row for each stage, one bit for each stage that may follow. */
static inline void heddle_h2_enter_stage(heddle_h2_session *session, heddle_h2_stage stage)
{
    static const uint8_t allowed[] = {
        [HEDDLE_H2_AT_PREFACE] = 1 << HEDDLE_H2_AT_FIRST_SETTINGS | 1 << HEDDLE_H2_AT_END,
        [HEDDLE_H2_AT_FIRST_SETTINGS] = 1 << HEDDLE_H2_AT_FRAMES | 1 << HEDDLE_H2_AT_END,
        [HEDDLE_H2_AT_FRAMES] = 1 << HEDDLE_H2_AT_END,
        [HEDDLE_H2_AT_END] = 0,
    };
    HEDDLE_ASSERT(allowed[session->stage] >> stage & 1);
    session->stage = (uint8_t)stage;
}

static inline void heddle_h2_enter_drain(heddle_h2_session *session, heddle_h2_drain_stage stage)
{
    HEDDLE_ASSERT(stage == session->drain_stage + 1U);
    session->drain_stage = (uint8_t)stage;
}

/* -- streams.c ----------------------------------------------------------------------------------------------------- */

heddle_h2_stream *heddle_h2_find_stream(const heddle_h2_session *session, uint32_t id);
/* Returns the state of any stream, even if it has no record. */
heddle_h2_state heddle_h2_stream_state(const heddle_h2_session *session, uint32_t id);
heddle_h2_stream *heddle_h2_add_stream(heddle_h2_session *session, uint32_t id);
/*
 * Moves the stream to its next state. A closed stream that its owner has released is freed at the end of the outermost
 * call.
 */
void heddle_h2_move_stream(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_event event);
/* Remembers how a stream was closed. */
void heddle_h2_remember(heddle_h2_session *session, uint32_t id, heddle_h2_state state);
/*
 * Sends RST_STREAM, and calls on_reset if the stream exists and is not closed. Ends the connection instead if too many
 * streams were reset.
 */
void heddle_h2_fail_stream(heddle_h2_session *session, uint32_t id, heddle_h2_error error);
/* Like heddle_h2_fail_stream, but first sets the session's `reason` and calls on_malformed. */
void heddle_h2_fail_stream_because(heddle_h2_session *session, uint32_t id, heddle_h2_error error, const char *reason);
void heddle_h2_stream_reset_by_peer(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error);
/*
 * Refuses a stream because too many are in progress. The client may send the request again. Ends the connection instead
 * if too many streams were refused.
 */
void heddle_h2_refuse_stream(heddle_h2_session *session, uint32_t id);
/* Called when the peer has sent its whole message: the request, or on the client the response. */
void heddle_h2_complete_message(heddle_h2_session *session, heddle_h2_stream *stream);
/* Allocates the schedule before streams are added. Returns false when out of memory. */
bool heddle_h2_allocate_schedule(heddle_h2_session *session);
/* Is there memory that the session does not need while it is idle? */
bool heddle_h2_can_trim(const heddle_h2_session *session);
/* Frees the memory that an idle session does not need. Afterwards it no longer knows how streams were closed. */
void heddle_h2_trim(heddle_h2_session *session);

/*
 * Each function that the owner calls and that may end a stream must call heddle_h2_enter before it does so, and
 * heddle_h2_leave after it has used a stream for the last time.
 */
static inline void heddle_h2_enter(heddle_h2_session *session)
{
    session->depth++;
}
void heddle_h2_leave(heddle_h2_session *session);

/* -- session.c ----------------------------------------------------------------------------------------------------- */

/*
 * Ends the session with a connection error: sends GOAWAY, and ends all streams. Returns false, so that a check can
 * `return heddle_h2_fail(…)`.
 */
bool heddle_h2_fail(heddle_h2_session *session, heddle_h2_error error, const char *reason);

static inline void heddle_h2_fail_without_memory(heddle_h2_session *session)
{
    heddle_h2_fail(session, HEDDLE_H2_INTERNAL_ERROR, "out of memory");
}

/* If this returns false, the session reads no more, and the connection must be closed as soon as all output is sent. */
static inline bool heddle_h2_is_open(const heddle_h2_session *session)
{
    return session->stage != HEDDLE_H2_AT_END;
}

/* -- settings.c: SETTINGS and PING --------------------------------------------------------------------------------- */

bool heddle_h2_announce_settings(heddle_h2_session *session);
void heddle_h2_take_settings(heddle_h2_session *session, const uint8_t *payload, uint32_t size);
void heddle_h2_take_settings_ack(heddle_h2_session *session);
void heddle_h2_take_ping(heddle_h2_session *session, const heddle_h2_frame *frame, const uint8_t *payload);

/* -- flow_control.c ------------------------------------------------------------------------------------------------ */

void heddle_h2_take_window_update(heddle_h2_session *session, uint32_t id, uint32_t increment);
/*
 * Credits `size` consumed bytes to the windows of the stream and the connection. WINDOW_UPDATE announces the credit to
 * the peer. If `stream` is NULL, only the connection's window is credited. Discarded bytes count as consumed.
 */
void heddle_h2_credit(heddle_h2_session *session, heddle_h2_stream *stream, uint32_t size);

/* -- header_blocks.c ----------------------------------------------------------------------------------------------- */

/*
 * Returns the maximum number of bytes of a decoded header block. This is more than the limit of a head, so that a
 * request whose head is a little too large gets 431 on its stream. A block larger than this ends the connection.
 */
static inline uint64_t heddle_h2_decode_limit(const heddle_h2_limits *limits)
{
    return (uint64_t)limits->header_limit * 2;
}
/* Handles a complete header block. */
void heddle_h2_take_block(heddle_h2_session *session, const uint8_t *bytes, size_t size);

/* -- session_client.c ---------------------------------------------------------------------------------------------- */

/* Handles a response's head, or its trailers. */
void heddle_h2_take_response(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_block *block);
void heddle_h2_take_goaway(heddle_h2_session *session, const uint8_t *payload);

/* -- priority.c ---------------------------------------------------------------------------------------------------- */

/* Parses a Priority field or a PRIORITY_UPDATE (RFC 9218, 4); absent parameters keep their values. */
void heddle_h2_parse_priority(const char *text, size_t size, uint8_t *urgency, bool *incremental);
void heddle_h2_take_priority(heddle_h2_session *session, uint32_t id, const uint8_t *payload);
void heddle_h2_take_priority_update(heddle_h2_session *session, const uint8_t *payload, uint32_t size);

/* -- output.c ------------------------------------------------------------------------------------------------------ */

/* Must be called before output is queued. If no output is queued yet, begins to measure the output's progress. */
void heddle_h2_note_output(heddle_h2_session *session);
/* Adds the stream to the list of streams that can send, or removes it, according to its window and its queue. */
void heddle_h2_list_stream(heddle_h2_session *session, heddle_h2_stream *stream);
/* Discards the stream's queued output, and ends its loans. */
void heddle_h2_drop_output(heddle_h2_session *session, heddle_h2_stream *stream);

/* -- headers_writer.c ---------------------------------------------------------------------------------------------- */

/*
 * heddle_h2_start_block begins a header block in the workspace, heddle_h2_encode_field adds a field to it, and
 * heddle_h2_write_block queues its frames. All three return false when out of memory.
 */
bool heddle_h2_start_block(heddle_h2_session *session);
bool heddle_h2_write_block(heddle_h2_session *session, const heddle_h2_stream *stream, bool end);
bool heddle_h2_encode_field(heddle_h2_session *session, const heddle_h2_field *field);

/* Sends the frame that ends the body: empty DATA. */
void heddle_h2_send_end(heddle_h2_session *session, heddle_h2_stream *stream);
/* Called when END_STREAM was sent. */
void heddle_h2_answer_sent(heddle_h2_session *session, heddle_h2_stream *stream);

/* -- limits.c: limits over time ------------------------------------------------------------------------------------ */

/* Takes a token from the bucket. Returns false if none is left. `burst`: tokens; `rate`: tokens a second. */
bool heddle_h2_spend(heddle_h2_bucket *bucket, int64_t now, uint32_t burst, uint32_t rate);
/* These functions fail the connection and return false when they detect a flood. */
bool heddle_h2_count_reset(heddle_h2_session *session);
bool heddle_h2_count_control(heddle_h2_session *session);
bool heddle_h2_count_frame(heddle_h2_session *session, const heddle_h2_frame *frame);

/* -- drain.c ------------------------------------------------------------------------------------------------------- */

/* Sends GOAWAY without an error. */
void heddle_h2_send_goaway(heddle_h2_session *session, uint32_t last_stream, const char *reason);
/*
 * During a drain: sends the second GOAWAY if drain_delay has passed. Once that was sent, ends the session if no stream
 * is left.
 */
void heddle_h2_finish_drain(heddle_h2_session *session);
