#include "http/h2/session_state.h"

enum {
    OPEN = HEDDLE_H2_OPEN,
    HALF_LOCAL = HEDDLE_H2_HALF_CLOSED_LOCAL,
    HALF_REMOTE = HEDDLE_H2_HALF_CLOSED_REMOTE,
    ENDED = HEDDLE_H2_ENDED,
    BY_US = HEDDLE_H2_RESET_BY_US,
    BY_PEER = HEDDLE_H2_RESET_BY_PEER,
    IGNORE = HEDDLE_H2_IGNORE,
    STREAM = HEDDLE_H2_CLOSED_STREAM,
    CONNECTION = HEDDLE_H2_CLOSED_CONNECTION,
    WRONG = HEDDLE_H2_WRONG,
    NEVER = HEDDLE_H2_IMPOSSIBLE,
};

/*
 * The next state for each event, or how the frame is handled (RFC 9113, 5.1). HEADERS on an open stream are trailers,
 * or on the client the head of a response.
 */
const uint8_t heddle_h2_transitions[HEDDLE_H2_STATES][HEDDLE_H2_EVENTS] = {
    /*                   HEADERS      DATA         WINDOW       RST_STREAM  END          own END     own RST_STREAM */
    [HEDDLE_H2_IDLE] =  {OPEN,        WRONG,       WRONG,       WRONG,      NEVER,       NEVER,      BY_US},
    [OPEN] =            {OPEN,        OPEN,        OPEN,        BY_PEER,    HALF_REMOTE, HALF_LOCAL, BY_US},
    [HALF_LOCAL] =      {HALF_LOCAL,  HALF_LOCAL,  HALF_LOCAL,  BY_PEER,    ENDED,       NEVER,      BY_US},
    [HALF_REMOTE] =     {STREAM,      STREAM,      HALF_REMOTE, BY_PEER,    NEVER,       ENDED,      BY_US},
    [ENDED] =           {CONNECTION,  CONNECTION,  IGNORE,      IGNORE,     NEVER,       NEVER,      NEVER},
    [BY_US] =           {IGNORE,      IGNORE,      IGNORE,      IGNORE,     NEVER,       NEVER,      BY_US},
    [BY_PEER] =         {STREAM,      STREAM,      IGNORE,      IGNORE,     NEVER,       NEVER,      BY_US},
    [HEDDLE_H2_FORGOTTEN] = {WRONG,   STREAM,      IGNORE,      IGNORE,     NEVER,       NEVER,      BY_US},
};

/* -- lookup -------------------------------------------------------------------------------------------------------- */

/* Returns the index of the first stream whose id is at least this id. */
static uint32_t find_index(const heddle_h2_session *session, uint32_t id)
{
    uint32_t low = 0, high = session->stream_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (session->streams[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

heddle_h2_stream *heddle_h2_find_stream(const heddle_h2_session *session, uint32_t id)
{
    uint32_t index = find_index(session, id);
    return index < session->stream_count && session->streams[index]->id == id ? session->streams[index] : NULL;
}

/* Enlarges the ring of closed streams. When out of memory, keeps its size: the oldest stream is forgotten earlier. */
static void grow_memory(heddle_h2_session *session)
{
    unsigned room = session->remembered_room ? session->remembered_room * 2 : HEDDLE_H2_FIRST_REMEMBERED;
    heddle_h2_closed_stream *remembered = realloc(session->remembered, room * sizeof(*remembered));
    if (!remembered)
        return;
    memset(remembered + session->remembered_room, 0, (room - session->remembered_room) * sizeof(*remembered));
    session->remembered = remembered;
    session->remembered_room = (uint8_t)room;
}

void heddle_h2_remember(heddle_h2_session *session, uint32_t id, heddle_h2_state state)
{
    unsigned room = session->remembered_room;
    for (unsigned i = 0; i < room; i++) {
        if (session->remembered[i].id == id) {
            session->remembered[i].state = (uint8_t)state;
            return;
        }
    }
    if (session->remembered_next == room && room < HEDDLE_H2_REMEMBERED)
        grow_memory(session);
    if (session->remembered_next == session->remembered_room)
        session->remembered_next = 0;
    if (session->remembered_room > 0)
        session->remembered[session->remembered_next++] = (heddle_h2_closed_stream){id, (uint8_t)state};
}

heddle_h2_state heddle_h2_stream_state(const heddle_h2_session *session, uint32_t id)
{
    /* Even ids are for streams that a server pushes. Heddle's server pushes none, and its client forbids pushing. */
    if (id > session->last_stream || id % 2 == 0)
        return HEDDLE_H2_IDLE;
    const heddle_h2_stream *stream = heddle_h2_find_stream(session, id);
    if (stream)
        return stream->state;
    for (unsigned i = 0; i < session->remembered_room; i++) {
        if (session->remembered[i].id == id)
            return session->remembered[i].state;
    }
    /* On the client, responses to requests that it has reset may still be on their way. */
    return session->is_client ? HEDDLE_H2_RESET_BY_US : HEDDLE_H2_FORGOTTEN;
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

bool heddle_h2_allocate_schedule(heddle_h2_session *session)
{
    if (!session->schedule)
        session->schedule = calloc(1, sizeof(*session->schedule));
    return session->schedule != NULL;
}

/*
 * Frees the schedule, unless it contains the priority of a stream that has not begun: PRIORITY_UPDATE may arrive before
 * its stream begins.
 */
static void free_schedule(heddle_h2_session *session)
{
    for (unsigned i = 0; i < HEDDLE_H2_EARLY_PRIORITIES; i++) {
        if (session->schedule->early_streams[i] > session->last_stream)
            return;
    }
    free(session->schedule);
    session->schedule = NULL;
}

bool heddle_h2_can_trim(const heddle_h2_session *session)
{
    return session->stream_room > 0 && session->stream_count == 0 && heddle_h2_is_open(session);
}

/* Keeps the decoder's table, because only the peer can empty it. */
void heddle_h2_trim(heddle_h2_session *session)
{
    free(session->remembered);
    session->remembered = NULL;
    session->remembered_room = session->remembered_next = 0;
    free(session->streams);
    session->streams = NULL;
    session->stream_room = 0;
    heddle_hpack_encoder_trim(&session->encoder);
}

heddle_h2_stream *heddle_h2_add_stream(heddle_h2_session *session, uint32_t id)
{
    if (!heddle_h2_allocate_schedule(session))
        return NULL;
    if (session->stream_count == session->stream_room) {
        uint32_t room = session->stream_room ? session->stream_room * 2 : 4;
        heddle_h2_stream **streams = realloc(session->streams, room * sizeof(*streams));
        if (!streams)
            return NULL;
        session->streams = streams;
        session->stream_room = room;
    }
    heddle_h2_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    uint32_t window = session->limits->stream_window;
    /* Until the peer has received our SETTINGS, it may assume the default window. */
    if (!session->settings_acknowledged && window < HEDDLE_H2_DEFAULT_WINDOW)
        window = HEDDLE_H2_DEFAULT_WINDOW;
    stream->id = id;
    stream->state = HEDDLE_H2_OPEN;
    stream->urgency = HEDDLE_H2_DEFAULT_URGENCY;
    stream->send_window = session->peer_window;
    stream->receive_window = window;
    stream->body_left = -1;
    session->streams[session->stream_count++] = stream; /* at the end, because ids only grow */
    session->opened++;
    return stream;
}

/* Removes the stream from the session's array, if it is closed and its owner has released it. */
static void remove_stream(heddle_h2_session *session, heddle_h2_stream *stream)
{
    if (!heddle_h2_state_is_closed(stream->state) || stream->held)
        return;
    uint32_t index = find_index(session, stream->id);
    session->stream_count--;
    memmove(session->streams + index, session->streams + index + 1,
            (session->stream_count - index) * sizeof(*session->streams));
    heddle_h2_remember(session, stream->id, stream->state);
    stream->next = session->dead;
    session->dead = stream;
    if (session->stream_count == 0) {
        free_schedule(session);
        session->idle_since = session->now;
        heddle_h2_finish_drain(session);
    }
    /* This must be the last step: the session and all its streams end if WINDOW_UPDATE can't be allocated. */
    if (stream->unconsumed > stream->kept)
        heddle_h2_credit(session, NULL, stream->unconsumed - stream->kept);
}

void heddle_h2_leave(heddle_h2_session *session)
{
    if (--session->depth > 0)
        return;
    while (session->dead) {
        heddle_h2_stream *next = session->dead->next;
        free(session->dead); /* its output was dropped when it was closed */
        session->dead = next;
    }
}

void heddle_h2_move_stream(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_event event)
{
    uint8_t next = heddle_h2_transitions[stream->state][event];
    HEDDLE_ASSERT(next != HEDDLE_H2_IMPOSSIBLE);
    if (next >= HEDDLE_H2_STATES)
        return;
    stream->state = next;
    if (!heddle_h2_state_is_closed(next))
        return;
    heddle_h2_drop_output(session, stream);
    remove_stream(session, stream);
}

void heddle_h2_release(heddle_h2_session *session, heddle_h2_stream *stream)
{
    if (!stream->held)
        return;
    heddle_h2_enter(session);
    stream->held = false;
    remove_stream(session, stream);
    heddle_h2_leave(session);
}

/* -- early ends ---------------------------------------------------------------------------------------------------- */

/* The owner may release the stream, which is not freed before the outermost call ends. */
static void report_reset(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error)
{
    if (stream->held)
        session->operations->on_reset(session, stream, error);
}

static void send_reset(heddle_h2_session *session, uint32_t id, heddle_h2_error error)
{
    heddle_h2_note_output(session);
    if (!heddle_h2_write_rst_stream(&session->output, id, error))
        heddle_h2_fail_without_memory(session);
}

static void reset_stream(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error)
{
    send_reset(session, stream->id, error);
    if (!heddle_h2_state_is_closed(stream->state)) /* if there was no memory for the frame, all streams have ended */
        heddle_h2_move_stream(session, stream, HEDDLE_H2_SENT_RESET);
}

void heddle_h2_fail_stream(heddle_h2_session *session, uint32_t id, heddle_h2_error error)
{
    if (!heddle_h2_is_open(session) || !heddle_h2_count_reset(session))
        return;
    send_reset(session, id, error);
    heddle_h2_stream *stream = heddle_h2_find_stream(session, id);
    if (!stream || heddle_h2_state_is_closed(stream->state)) {
        if (stream)
            stream->state = HEDDLE_H2_RESET_BY_US;
        else
            heddle_h2_remember(session, id, HEDDLE_H2_RESET_BY_US);
        return;
    }
    heddle_h2_move_stream(session, stream, HEDDLE_H2_SENT_RESET);
    report_reset(session, stream, error);
}

void heddle_h2_fail_stream_because(heddle_h2_session *session, uint32_t id, heddle_h2_error error, const char *reason)
{
    session->reason = reason;
    heddle_h2_stream *stream = heddle_h2_find_stream(session, id);
    if (session->operations->on_malformed && (!stream || stream->held))
        session->operations->on_malformed(session, stream, error);
    heddle_h2_fail_stream(session, id, error);
}

void heddle_h2_refuse_stream(heddle_h2_session *session, uint32_t id)
{
    const heddle_h2_limits *limits = session->limits;
    if (heddle_h2_spend(&session->refused, session->now, limits->refused_burst, limits->reset_rate)) {
        send_reset(session, id, HEDDLE_H2_REFUSED_STREAM);
        heddle_h2_remember(session, id, HEDDLE_H2_RESET_BY_US);
    } else {
        heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "too many streams beyond SETTINGS_MAX_CONCURRENT_STREAMS");
    }
}

void heddle_h2_stream_reset_by_peer(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error)
{
    if (!heddle_h2_count_reset(session))
        return;
    heddle_h2_move_stream(session, stream, HEDDLE_H2_GOT_RESET);
    report_reset(session, stream, error);
}

void heddle_h2_reset(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_error error)
{
    heddle_h2_enter(session);
    if (heddle_h2_is_open(session) && !heddle_h2_state_is_closed(stream->state) &&
        (error == HEDDLE_H2_NO_ERROR || session->is_client || heddle_h2_count_reset(session)))
        reset_stream(session, stream, error);
    heddle_h2_leave(session);
}

/* -- the ends of request and response ------------------------------------------------------------------------------ */

static void report_completion(heddle_h2_session *session, heddle_h2_stream *stream)
{
    if (stream->held && session->operations->on_complete)
        session->operations->on_complete(session, stream);
}

void heddle_h2_complete_message(heddle_h2_session *session, heddle_h2_stream *stream)
{
    if (stream->body_left > 0) {
        heddle_h2_fail_stream_because(session, stream->id, HEDDLE_H2_PROTOCOL_ERROR,
                                "DATA is shorter than the content-length");
        return;
    }
    heddle_h2_move_stream(session, stream, HEDDLE_H2_GOT_END);
    if (stream->held && !stream->rejected)
        session->operations->on_end(session, stream);
    if (stream->state == HEDDLE_H2_ENDED)
        report_completion(session, stream);
}

void heddle_h2_answer_sent(heddle_h2_session *session, heddle_h2_stream *stream)
{
    heddle_h2_move_stream(session, stream, HEDDLE_H2_SENT_END);
    /* RST_STREAM with NO_ERROR tells the client to stop sending its request (RFC 9113, 8.1). */
    if (stream->state == HEDDLE_H2_HALF_CLOSED_LOCAL && !stream->tunnel && !session->is_client) {
        reset_stream(session, stream, HEDDLE_H2_NO_ERROR);
        report_completion(session, stream);
        return;
    }
    if (stream->tunnel && stream->held)
        session->operations->on_window(session, stream);
    if (stream->state == HEDDLE_H2_ENDED)
        report_completion(session, stream);
}

/* -- tunnels ------------------------------------------------------------------------------------------------------- */

void heddle_h2_end_tunnel(heddle_h2_session *session, heddle_h2_stream *stream, bool abrupt)
{
    if (heddle_h2_state_is_closed(stream->state))
        return;
    /*
     * A browser that receives RST_STREAM with an error at the end of a WebSocket's closing handshake uses only HTTP/1.1
     * from then on.
     */
    if (!abrupt && stream->state == HEDDLE_H2_HALF_CLOSED_LOCAL)
        heddle_h2_reset(session, stream, HEDDLE_H2_NO_ERROR);
    else if (!abrupt && stream->state == HEDDLE_H2_HALF_CLOSED_REMOTE && stream->queued == 0 && !stream->finished)
        heddle_h2_finish(session, stream);
    else
        heddle_h2_reset(session, stream, HEDDLE_H2_CANCEL);
}
