#include "http/h2/session_state.h"
#include "http/text.h"
#include "selector/list.h"

/*
 * The output of a session: frames in `output`, in order, and bodies that wait for the peer's windows and for their turn
 * (RFC 9218). DATA frames are made only when the session's owner (the server or the client) pulls them. So a more
 * urgent stream waits only for bytes that the owner has already pulled.
 */

enum {
    /*
     * Nanoseconds. For this long, the session's copies of bodies may take more than connection_output bytes. Afterwards
     * each stream is limited to its share. A client that reads receives the excess in this time.
     */
    CROWDED = 1000000000,
    /* the minimum payload, in bytes, of a frame that is cut to fit; with less room the frame waits for the next pull */
    SMALLEST_PIECE = 1024,
};

void heddle_h2_note_output(heddle_h2_session *session)
{
    if (heddle_bytes_left(&session->output) > 0 || session->listed_count > 0)
        return;
    session->progress = (heddle_h2_progress){session->now, 0};
    if (session->queued == 0)
        session->check_at = session->now + session->limits->write_timeout / HEDDLE_H2_PROGRESS_CHECKS;
}

/* -- lists of streams that can send -------------------------------------------------------------------------------- */

static heddle_h2_list *list_of(heddle_h2_session *session, const heddle_h2_stream *stream)
{
    heddle_h2_schedule *schedule = session->schedule;
    return (stream->incremental ? schedule->incremental : schedule->sequential) + stream->urgency;
}

/*
 * Incremental streams are listed in the order of their turns. Other streams are listed by id, because each is sent
 * completely before the next one.
 */
static void link_stream(heddle_h2_session *session, heddle_h2_stream *stream)
{
    heddle_h2_list *list = list_of(session, stream);
    heddle_h2_stream *before = list->last;
    while (before && !stream->incremental && before->id > stream->id)
        before = before->previous;
    stream->previous = before;
    stream->next = before ? before->next : list->first;
    *(before ? &before->next : &list->first) = stream;
    *(stream->next ? &stream->next->previous : &list->last) = stream;
}

static void unlink_stream(heddle_h2_session *session, heddle_h2_stream *stream)
{
    heddle_h2_list *list = list_of(session, stream);
    HEDDLE_QUEUE_REMOVE(list, stream);
}

void heddle_h2_list_stream(heddle_h2_session *session, heddle_h2_stream *stream)
{
    bool can_send = stream->queued > 0 && stream->send_window > 0;
    if (can_send == stream->listed)
        return;
    if (can_send) {
        heddle_h2_note_output(session);
        link_stream(session, stream);
        session->listed_count++;
        stream->listed_at = session->now;
    } else {
        unlink_stream(session, stream);
        session->listed_count--;
        /* waiting for other streams does not count as a stall */
        stream->progress.since += session->now - stream->listed_at;
    }
    stream->listed = can_send;
}

/*
 * Returns one of the most urgent streams, to be sent next; NULL if no stream can send. Incremental streams and other
 * streams take turns.
 */
static heddle_h2_stream *choose_stream(heddle_h2_session *session)
{
    heddle_h2_schedule *schedule = session->schedule;
    for (unsigned urgency = 0; schedule && urgency < HEDDLE_H2_URGENCIES; urgency++) {
        heddle_h2_stream *sequential = schedule->sequential[urgency].first;
        heddle_h2_stream *incremental = schedule->incremental[urgency].first;
        if (sequential && incremental) {
            schedule->incremental_turn ^= (uint8_t)(1 << urgency);
            return schedule->incremental_turn >> urgency & 1 ? sequential : incremental;
        }
        if (sequential || incremental)
            return sequential ? sequential : incremental;
    }
    return NULL;
}

/* -- bodies -------------------------------------------------------------------------------------------------------- */

/* Returns how many bytes of bodies the session keeps as copies. */
static size_t count_kept(const heddle_h2_session *session)
{
    return session->queued - session->lent;
}

static void queue_segment(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_segment *segment)
{
    if (stream->queued == 0)
        stream->progress = (heddle_h2_progress){session->now, 0};
    if (session->queued == 0 && heddle_bytes_left(&session->output) == 0)
        session->check_at = session->now + session->limits->write_timeout / HEDDLE_H2_PROGRESS_CHECKS;
    *(stream->last ? &stream->last->next : &stream->first) = segment;
    stream->last = segment;
    if (count_kept(session) <= session->limits->connection_output)
        session->crowded_since = session->now;
    stream->queued += segment->size;
    session->queued += segment->size;
    heddle_h2_list_stream(session, stream);
}

bool heddle_h2_may_write(const heddle_h2_stream *stream)
{
    return stream->head_written && !stream->finished && heddle_h2_state_sends(stream->state);
}

size_t heddle_h2_room(const heddle_h2_session *session, const heddle_h2_stream *stream)
{
    const heddle_h2_limits *limits = session->limits;
    size_t room = stream->queued < limits->stream_output ? limits->stream_output - stream->queued : 0;
    size_t kept = count_kept(session);
    size_t shared = kept < limits->connection_output ? limits->connection_output - kept : 0;
    /*
     * A stream without queued bytes may always queue the bytes of one frame. Otherwise streams whose windows are closed
     * could block all others.
     */
    if (shared < HEDDLE_H2_FRAME_SIZE && stream->queued == 0)
        shared = HEDDLE_H2_FRAME_SIZE;
    return room < shared ? room : shared;
}

size_t heddle_h2_write(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size)
{
    if (!heddle_h2_may_write(stream))
        return 0;
    size_t room = heddle_h2_room(session, stream), taken = size < room ? size : room;
    if (taken < size)
        stream->waits = HEDDLE_H2_WAITS_FOR_ROOM;
    if (taken == 0)
        return 0;
    heddle_h2_segment *segment = malloc(sizeof(*segment) + taken);
    if (!segment) {
        heddle_h2_enter(session);
        heddle_h2_fail_stream(session, stream->id, HEDDLE_H2_INTERNAL_ERROR);
        heddle_h2_leave(session);
        return 0;
    }
    *segment = (heddle_h2_segment){.bytes = segment->own, .size = taken};
    memcpy(segment->own, bytes, taken);
    queue_segment(session, stream, segment);
    return taken;
}

bool heddle_h2_write_whole(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size,
                           const char *more, size_t more_size)
{
    if (!heddle_h2_may_write(stream))
        return false;
    if (size + more_size == 0)
        return true;
    heddle_h2_segment *segment = malloc(sizeof(*segment) + size + more_size);
    if (!segment)
        return false;
    *segment = (heddle_h2_segment){.bytes = segment->own, .size = size + more_size};
    if (size)
        memcpy(segment->own, bytes, size);
    if (more_size)
        memcpy(segment->own + size, more, more_size);
    stream->waits = HEDDLE_H2_WAITS_FOR_EMPTY;
    queue_segment(session, stream, segment);
    return true;
}

bool heddle_h2_exceeds_share(const heddle_h2_session *session, const heddle_h2_stream *stream)
{
    size_t all = session->limits->connection_output, share = all / session->stream_count;
    return count_kept(session) > all && session->now - session->crowded_since >= CROWDED &&
           stream->queued > (share > HEDDLE_H2_FRAME_SIZE ? share : HEDDLE_H2_FRAME_SIZE);
}

bool heddle_h2_lend(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes, size_t size,
                    void (*end_loan)(void *loan), void *loan)
{
    if (!heddle_h2_may_write(stream) || size == 0)
        return false;
    heddle_h2_segment *segment = malloc(sizeof(*segment));
    if (!segment)
        return false;
    *segment = (heddle_h2_segment){.bytes = bytes, .size = size, .end_loan = end_loan, .loan = loan};
    queue_segment(session, stream, segment);
    session->lent += size;
    return true;
}

static void free_segment(heddle_h2_segment *segment)
{
    if (segment->end_loan)
        segment->end_loan(segment->loan);
    free(segment);
}

void heddle_h2_drop_output(heddle_h2_session *session, heddle_h2_stream *stream)
{
    session->queued -= stream->queued;
    stream->queued = 0;
    heddle_h2_list_stream(session, stream);
    while (stream->first) {
        heddle_h2_segment *next = stream->first->next;
        if (stream->first->end_loan)
            session->lent -= stream->first->size;
        free_segment(stream->first);
        stream->first = next;
    }
    stream->last = NULL;
}

/* Moves `size` bytes of the body to `to`. */
static void take_body(heddle_h2_session *session, heddle_h2_stream *stream, uint8_t *to, size_t size)
{
    while (size > 0) {
        heddle_h2_segment *segment = stream->first;
        size_t part = segment->size < size ? segment->size : size;
        memcpy(to, segment->bytes, part);
        to += part;
        size -= part;
        segment->bytes += part;
        segment->size -= part;
        if (segment->end_loan)
            session->lent -= part;
        if (segment->size > 0)
            return;
        stream->first = segment->next;
        if (!stream->first)
            stream->last = NULL;
        free_segment(segment);
    }
}

static void report_room(heddle_h2_session *session, heddle_h2_stream *stream)
{
    size_t most = stream->waits == HEDDLE_H2_WAITS_FOR_ROOM ? session->limits->stream_output / 2 : 0;
    if (stream->waits == HEDDLE_H2_WAITS_FOR_NOTHING || stream->queued > most)
        return;
    stream->waits = HEDDLE_H2_WAITS_FOR_NOTHING;
    if (stream->held)
        session->operations->on_window(session, stream);
}

/* Writes one DATA frame to `to`. Returns its size, or 0 if the room is too small. */
static size_t pull_data(heddle_h2_session *session, heddle_h2_stream *stream, uint8_t *to, size_t room)
{
    size_t wanted = heddle_least(heddle_least(stream->queued, HEDDLE_H2_FRAME_SIZE),
                          heddle_least((size_t)stream->send_window, (size_t)session->send_window));
    if (room < HEDDLE_H2_HEADER_SIZE + heddle_least(wanted, SMALLEST_PIECE))
        return 0;
    size_t size = heddle_least(wanted, room - HEDDLE_H2_HEADER_SIZE);
    bool end = stream->finished && size == stream->queued;
    uint8_t *payload = heddle_h2_put_header(to, (uint32_t)size, HEDDLE_H2_DATA, end ? HEDDLE_H2_END_STREAM : 0,
                                            stream->id);
    take_body(session, stream, payload, size);
    stream->queued -= size;
    session->queued -= size;
    stream->send_window -= (int64_t)size;
    session->send_window -= (int64_t)size;
    session->data_frames++;
    session->payload += size;
    stream->progress.bytes += size;
    if (stream->incremental) { /* moves the stream to the end of its list */
        unlink_stream(session, stream);
        link_stream(session, stream);
    }
    heddle_h2_list_stream(session, stream);
    if (end)
        heddle_h2_answer_sent(session, stream);
    else if (stream->finished && stream->queued == 0)
        heddle_h2_send_end(session, stream);
    else
        report_room(session, stream);
    return HEDDLE_H2_HEADER_SIZE + size;
}

/* -- pulling ------------------------------------------------------------------------------------------------------- */

/* Moves as many whole frames as fit from `output` to `to`. Returns their size. */
static size_t pull_output(heddle_h2_session *session, uint8_t *to, size_t room)
{
    heddle_bytes *output = &session->output;
    size_t size = 0, left = heddle_bytes_left(output);
    if (left == 0)
        return 0;
    const uint8_t *frames = (const uint8_t *)output->bytes + output->start;
    while (size < left) {
        const uint8_t *frame = frames + size;
        size_t length = HEDDLE_H2_HEADER_SIZE + ((size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2]);
        if (size + length > room)
            break;
        size += length;
    }
    memcpy(to, frames, size);
    output->start += size;
    if (size == left) {
        heddle_bytes_reset(output, 0);
        session->answers = 0;
    }
    return size;
}

size_t heddle_h2_pull(heddle_h2_session *session, int64_t now, void *buffer, size_t room)
{
    uint8_t *to = buffer;
    size_t used = 0;
    session->now = now;
    heddle_h2_enter(session);
    if (session->is_client && session->preface_size == 0) {
        memcpy(to, HEDDLE_H2_PREFACE, HEDDLE_H2_PREFACE_SIZE);
        session->preface_size = HEDDLE_H2_PREFACE_SIZE;
        used = HEDDLE_H2_PREFACE_SIZE;
    }
    for (;;) {
        used += pull_output(session, to + used, room - used);
        if (heddle_bytes_left(&session->output) > 0 || !heddle_h2_is_open(session) || session->send_window <= 0)
            break;
        heddle_h2_stream *stream = choose_stream(session);
        size_t size = stream ? pull_data(session, stream, to + used, room - used) : 0;
        if (size == 0)
            break;
        used += size;
    }
    session->progress.bytes += used;
    heddle_h2_leave(session);
    return used;
}

bool heddle_h2_has_output(const heddle_h2_session *session)
{
    return heddle_bytes_left(&session->output) > 0 ||
           (heddle_h2_is_open(session) && session->listed_count > 0 && session->send_window > 0);
}
