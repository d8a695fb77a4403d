#include "http/h2/session_state.h"

/*
 * Flow control (RFC 9113, 5.2 and 6.9): the windows of the connection and its streams, and WINDOW_UPDATE. session.c
 * (DATA), streams.c (closed streams) and the session's owner decide which received bytes are credited, and when.
 */

static void widen_connection(heddle_h2_session *session, uint32_t increment)
{
    if (increment == 0) {
        heddle_h2_fail(session, HEDDLE_H2_PROTOCOL_ERROR, "a WINDOW_UPDATE of 0");
    } else if (session->send_window + increment > HEDDLE_H2_LARGEST_WINDOW) {
        heddle_h2_fail(session, HEDDLE_H2_FLOW_CONTROL_ERROR, "WINDOW_UPDATE enlarges the window beyond 2^31-1");
    } else {
        session->send_window += increment;
    }
}

void heddle_h2_take_window_update(heddle_h2_session *session, uint32_t id, uint32_t increment)
{
    if (id == 0) {
        widen_connection(session, increment);
        return;
    }
    heddle_h2_stream *stream = heddle_h2_find_stream(session, id);
    if (!stream || heddle_h2_state_is_closed(stream->state))
        return;
    if (increment == 0) {
        heddle_h2_fail_stream(session, id, HEDDLE_H2_PROTOCOL_ERROR);
    } else if (stream->send_window + increment > HEDDLE_H2_LARGEST_WINDOW) {
        heddle_h2_fail_stream(session, id, HEDDLE_H2_FLOW_CONTROL_ERROR);
    } else {
        stream->send_window += increment;
        heddle_h2_list_stream(session, stream);
    }
}

/*
 * Announces the credit when it has reached half of the full window, because a WINDOW_UPDATE for each DATA frame would
 * cost too much. Returns false when out of memory.
 */
static bool update_window(heddle_h2_session *session, uint32_t id, uint32_t *credit, int64_t *window, uint32_t full)
{
    if (*credit < full / 2 || *credit == 0)
        return true;
    heddle_h2_note_output(session);
    *window += *credit;
    uint32_t increment = *credit;
    *credit = 0;
    return heddle_h2_write_window_update(&session->output, id, increment);
}

/* Credits `shared` bytes to the connection's window, and `own` bytes to the stream's window. */
static void add_credit(heddle_h2_session *session, uint32_t shared, heddle_h2_stream *stream, uint32_t own)
{
    const heddle_h2_limits *limits = session->limits;
    if (!heddle_h2_is_open(session))
        return;
    uint32_t connection_window = limits->connection_window > HEDDLE_H2_DEFAULT_WINDOW ? limits->connection_window
                                                                                       : HEDDLE_H2_DEFAULT_WINDOW;
    session->credit += shared;
    bool written = update_window(session, 0, &session->credit, &session->receive_window, connection_window);
    if (written && stream && heddle_h2_state_receives(stream->state)) {
        stream->credit += own;
        written = update_window(session, stream->id, &stream->credit, &stream->receive_window, limits->stream_window);
    }
    if (!written)
        heddle_h2_fail_without_memory(session);
}

void heddle_h2_credit(heddle_h2_session *session, heddle_h2_stream *stream, uint32_t size)
{
    add_credit(session, size, stream, size);
}

void heddle_h2_widen_window(heddle_h2_session *session, heddle_h2_stream *stream, uint32_t size)
{
    heddle_h2_enter(session);
    add_credit(session, 0, stream, size);
    heddle_h2_leave(session);
}

static uint32_t cut_size(size_t size, uint32_t most)
{
    return size < most ? (uint32_t)size : most;
}

/*
 * Called for bytes that the application has not read yet. They are credited to the connection's window now, so that
 * other streams continue. The stream's own window is credited when they are consumed.
 */
void heddle_h2_keep(heddle_h2_session *session, heddle_h2_stream *stream, size_t size)
{
    heddle_h2_enter(session);
    uint32_t part = cut_size(size, stream->unconsumed - stream->kept);
    stream->kept += part;
    add_credit(session, part, NULL, 0);
    heddle_h2_leave(session);
}

void heddle_h2_consume(heddle_h2_session *session, heddle_h2_stream *stream, size_t size)
{
    heddle_h2_enter(session);
    uint32_t part = cut_size(size, stream->unconsumed), kept = cut_size(part, stream->kept);
    stream->unconsumed -= part;
    stream->kept -= kept;
    add_credit(session, part - kept, stream, part);
    heddle_h2_leave(session);
}
