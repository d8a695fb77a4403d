#include "http/h2/session_state.h"

/* The default limits of a session, and the checks of rates and time limits. */

enum {
    SECOND = 1000000000,
    FRAMES_PER_STREAM = 10,     /* each stream raises the limits of PRIORITY and WINDOW_UPDATE frames by this many */
    /*
     * WINDOW_UPDATE frames that the peer may send for each DATA frame that it receives. Go's clients and servers update
     * both windows for each 4 KiB that they read, which makes 8 for a frame of 16 KiB.
     */
    UPDATES_PER_DATA_FRAME = 16,
    OVERHEAD_RATIO = 8,         /* at most this many received bytes for each byte of payload */
    TRIM_AFTER = 2,             /* seconds without streams before memory is freed */
};

/*
 * Browsers and proxies stay within these limits, whatever the application does. So most limits can't be configured.
 * For a server, server/setup.c sets max_streams (the option http2_streams), the limits of heads and bodies, and the
 * time limits; it also raises the limits that must grow with max_streams and header_limit. A burst is a number of
 * tokens; a third of it is refilled each second.
 */
heddle_h2_limits heddle_h2_default_limits(void)
{
    return (heddle_h2_limits){
        .max_streams = 100, .stream_window = 65536,
        .header_limit = 32768, .header_count = 100, .body_limit = UINT64_MAX,
        .crumb_count = 50, /* browsers send each cookie in a field of its own, and keep at least 50 cookies of a site */
        .connection_window = 1 << 20, /* bytes: 80 Mbit/s at a round trip of 100 ms */
        .streams_per_feed = 100, .fields_per_feed = 1000,
        .refused_burst = 100,         /* clients may open a hundred streams before they know max_streams */
        /* when a user leaves a page, the browser resets up to max_streams streams at once */
        .reset_burst = 100, .reset_rate = 33,
        .control_burst = 1000, .control_rate = 330,
        .overhead = 1 << 20,          /* bytes */
        .control_answers = 100,       /* each acknowledgement is kept in memory until the client reads it */
        .updates = 100,
        .settings_entries = 32,       /* RFC 9113 and its extensions define 9 */
        .continuations = 4,           /* with HEADERS, five frames of 16 KiB: more than the default of header_limit */
        .stream_output = 256 << 10,   /* bytes of a body that are kept for a slow client */
        .connection_output = 1 << 20, /* bytes, for all streams of a connection */
        .write_rate = 1000,           /* bytes a second: less than any mobile network carries */
        .write_timeout = INT64_C(30) * SECOND, .head_timeout = INT64_C(10) * SECOND,
        .idle_timeout = INT64_C(75) * SECOND, .drain_delay = SECOND,
    };
}

/* -- floods -------------------------------------------------------------------------------------------------------- */

bool heddle_h2_spend(heddle_h2_bucket *bucket, int64_t now, uint32_t burst, uint32_t rate)
{
    if (bucket->used == 0 || rate == 0) {
        bucket->at = now;
    } else {
        int64_t back = (now - bucket->at) / (SECOND / rate);
        if (back >= bucket->used) {
            bucket->used = 0;
            bucket->at = now;
        } else {
            bucket->used -= (uint32_t)back;
            bucket->at += back * (SECOND / rate);
        }
    }
    if (bucket->used >= burst)
        return false;
    bucket->used++;
    return true;
}

bool heddle_h2_count_reset(heddle_h2_session *session)
{
    if (heddle_h2_spend(&session->resets, session->now, session->limits->reset_burst, session->limits->reset_rate))
        return true;
    return heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "too many streams were reset");
}

bool heddle_h2_count_control(heddle_h2_session *session)
{
    const heddle_h2_limits *limits = session->limits;
    if (heddle_h2_spend(&session->controls, session->now, limits->control_burst, limits->control_rate))
        return true;
    return heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "too many control frames or empty frames");
}

static bool count_among(heddle_h2_session *session, uint64_t *count, uint64_t most, const char *reason)
{
    return ++*count <= most || heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, reason);
}

bool heddle_h2_count_frame(heddle_h2_session *session, const heddle_h2_frame *frame)
{
    session->received += HEDDLE_H2_HEADER_SIZE + frame->length;
    if (frame->type == HEDDLE_H2_DATA || frame->type == HEDDLE_H2_HEADERS || frame->type == HEDDLE_H2_CONTINUATION)
        session->payload += frame->length;
    if (session->received / OVERHEAD_RATIO > session->payload + session->limits->overhead)
        return heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "the frames carry too little payload");
    uint64_t allowance = session->limits->updates + FRAMES_PER_STREAM * session->opened;
    switch (frame->type) {
    case HEDDLE_H2_DATA:
        return frame->length > 0 || frame->flags & HEDDLE_H2_END_STREAM || heddle_h2_count_control(session);
    case HEDDLE_H2_HEADERS:
    case HEDDLE_H2_CONTINUATION: /* these frames have their own limits */
    case HEDDLE_H2_RST_STREAM:
        return true;
    case HEDDLE_H2_PRIORITY:
    case HEDDLE_H2_PRIORITY_UPDATE:
        return count_among(session, &session->priorities, allowance, "too many PRIORITY and PRIORITY_UPDATE frames");
    case HEDDLE_H2_WINDOW_UPDATE:
        return count_among(session, &session->window_updates, allowance + UPDATES_PER_DATA_FRAME * session->data_frames,
                           "too many WINDOW_UPDATE frames");
    default:
        return heddle_h2_count_control(session);
    }
}

/* -- deadlines ----------------------------------------------------------------------------------------------------- */

static int64_t pick_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t find_trim_time(const heddle_h2_session *session)
{
    return session->idle_since + (int64_t)TRIM_AFTER * SECOND;
}

int64_t heddle_h2_deadline(const heddle_h2_session *session)
{
    const heddle_h2_limits *limits = session->limits;
    int64_t deadline = INT64_MAX;
    if (!heddle_h2_is_open(session))
        return deadline;
    if (session->stage != HEDDLE_H2_AT_FRAMES)
        deadline = pick_earlier(deadline, session->idle_since + limits->head_timeout);
    else if (session->stream_count == 0)
        deadline = pick_earlier(deadline, session->idle_since + limits->idle_timeout);
    if (heddle_h2_can_trim(session))
        deadline = pick_earlier(deadline, find_trim_time(session));
    if (session->block_stream)
        deadline = pick_earlier(deadline, session->block_since + limits->head_timeout);
    if (session->drain_stage == HEDDLE_H2_DRAIN_ANNOUNCED)
        deadline = pick_earlier(deadline, session->drain_at);
    if (session->queued > 0 || heddle_bytes_left(&session->output) > 0)
        deadline = pick_earlier(deadline, session->check_at);
    return deadline;
}

/*
 * Measures progress in spans of write_timeout. At the end of a span, returns true if less was sent than write_rate
 * requires, and begins the next span. Before the end of a span, returns false.
 */
static bool has_stalled(const heddle_h2_session *session, heddle_h2_progress *progress)
{
    const heddle_h2_limits *limits = session->limits;
    if (session->now - progress->since < limits->write_timeout)
        return false;
    double least = (double)limits->write_timeout / SECOND * limits->write_rate;
    bool stalled = progress->bytes == 0 || (double)progress->bytes < least;
    *progress = (heddle_h2_progress){session->now, 0};
    return stalled;
}

/*
 * Ends the session, or single streams, if the client reads output more slowly than write_rate. A minimum rate is needed
 * because even a client that blocks the output may read a byte now and then. A stream that waits for its turn
 * (`listed`) has not stalled, so only the check of the whole connection applies to it.
 */
static void check_progress(heddle_h2_session *session)
{
    session->check_at = session->now + session->limits->write_timeout / HEDDLE_H2_PROGRESS_CHECKS;
    if ((heddle_bytes_left(&session->output) > 0 || session->listed_count > 0) &&
        has_stalled(session, &session->progress)) {
        heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "the client reads output too slowly");
        return;
    }
    for (uint32_t i = session->stream_count; i > 0 && heddle_h2_is_open(session); i--) {
        if (i > session->stream_count) /* on_reset may have released other streams */
            continue;
        heddle_h2_stream *stream = session->streams[i - 1];
        if (stream->queued > 0 && !stream->listed && has_stalled(session, &stream->progress))
            heddle_h2_fail_stream(session, stream->id, HEDDLE_H2_CANCEL);
    }
}

void heddle_h2_expire(heddle_h2_session *session, int64_t now)
{
    const heddle_h2_limits *limits = session->limits;
    if (!heddle_h2_is_open(session))
        return;
    session->now = now;
    heddle_h2_enter(session);
    if (session->stage != HEDDLE_H2_AT_FRAMES) {
        if (now >= session->idle_since + limits->head_timeout)
            heddle_h2_fail(session, HEDDLE_H2_SETTINGS_TIMEOUT, "the preface and SETTINGS were not received in time");
    } else if (session->block_stream && now >= session->block_since + limits->head_timeout) {
        heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "a header block was not complete in time");
    } else if (session->stream_count == 0 && now >= session->idle_since + limits->idle_timeout) {
        heddle_h2_send_goaway(session, session->last_processed, "idle");
        heddle_h2_enter_stage(session, HEDDLE_H2_AT_END);
    }
    if (heddle_h2_can_trim(session) && now >= find_trim_time(session))
        heddle_h2_trim(session);
    heddle_h2_finish_drain(session);
    if (heddle_h2_is_open(session) && now >= session->check_at &&
        (session->queued > 0 || heddle_bytes_left(&session->output) > 0))
        check_progress(session);
    heddle_h2_leave(session);
}
