#include "http/h2/block.h"
#include "http/text.h"

/* The client's side of a session: begins requests, reads responses, and handles the server's GOAWAY. */

enum {
    STATUS_DIGITS = 3,
    SWITCHING_PROTOCOLS = 101,
    FIRST_FINAL_STATUS = 200,
    NO_CONTENT = 204,
    NOT_MODIFIED = 304,
    INTERIM_LIMIT = 32, /* a response with this many interim heads is rejected */
};

heddle_h2_limits heddle_h2_client_limits(void)
{
    heddle_h2_limits limits = heddle_h2_default_limits();
    limits.max_streams = 128;
    limits.stream_window = 512 << 10;
    /*
     * The connection's window is large enough for the windows of all streams, so that streams that are not read never
     * block others.
     */
    limits.connection_window = 128 * (512 << 10);
    limits.header_limit = 65536;
    limits.header_count = 256;
    limits.crumb_count = 0;
    limits.keep_underscores = true;
    limits.continuations = 8;
    limits.fields_per_feed = UINT32_MAX; /* no limit: only a server's connections share the loop in turns */
    limits.reset_burst = 1000;
    limits.reset_rate = 100;
    limits.stream_output = 128 << 10;
    return limits;
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

bool heddle_h2_is_leaving(const heddle_h2_session *session)
{
    return !heddle_h2_is_open(session) || session->goaway || session->last_stream >= HEDDLE_H2_LARGEST_STREAM - 1;
}

uint32_t heddle_h2_stream_limit(const heddle_h2_session *session)
{
    uint32_t most = session->limits->max_streams;
    return session->peer_streams < most ? session->peer_streams : most;
}

bool heddle_h2_may_open(const heddle_h2_session *session)
{
    return !heddle_h2_is_leaving(session) && session->stream_count < heddle_h2_stream_limit(session);
}

/* Returns the number of pseudo-header fields, which come first. */
static size_t count_pseudo(const heddle_h2_field *fields, size_t count)
{
    size_t pseudo = 0;
    while (pseudo < count && fields[pseudo].name_size > 0 && *fields[pseudo].name == ':')
        pseudo++;
    return pseudo;
}

static bool encode_request(heddle_h2_session *session, const heddle_h2_field *fields, size_t pseudo, size_t count)
{
    if (!heddle_h2_start_block(session))
        return false;
    for (size_t i = 0; i < pseudo; i++) {
        if (!heddle_hpack_encode(&session->encoder, &session->workspace->block, fields[i].name, fields[i].name_size,
                                 fields[i].value, fields[i].value_size))
            return false;
    }
    for (size_t i = pseudo; i < count; i++) {
        bool other_te = heddle_is_word(fields[i].name, fields[i].name_size, "te") &&
                        !heddle_is_word(fields[i].value, fields[i].value_size, "trailers");
        if (!other_te && !heddle_h2_encode_field(session, &fields[i]))
            return false;
    }
    return true;
}

heddle_h2_write_result heddle_h2_open_stream(heddle_h2_session *session, const heddle_h2_field *fields, size_t count,
                                             bool end, bool expects_body, heddle_h2_stream **opened)
{
    *opened = NULL;
    if (!heddle_h2_may_open(session))
        return HEDDLE_H2_GONE;
    size_t pseudo = count_pseudo(fields, count);
    for (size_t i = 0; i < pseudo; i++) {
        const char *end_of_value = fields[i].value + fields[i].value_size;
        if (heddle_find_control(fields[i].value, end_of_value) != end_of_value)
            return HEDDLE_H2_BAD_VALUE;
    }
    heddle_h2_write_result result = heddle_h2_check_fields(fields + pseudo, count - pseudo);
    if (result != HEDDLE_H2_WRITTEN)
        return result;
    heddle_h2_enter(session);
    heddle_h2_stream *stream = heddle_h2_add_stream(session, session->last_stream ? session->last_stream + 2 : 1);
    if (stream) {
        session->last_stream = stream->id;
        stream->head_written = true;
        stream->expects_body = expects_body;
        stream->held = true;
    }
    if (!stream || !encode_request(session, fields, pseudo, count) || !heddle_h2_write_block(session, stream, end)) {
        if (stream)
            stream->held = false; /* the result reports the failure, so on_reset is not called */
        heddle_h2_fail_without_memory(session);
        result = HEDDLE_H2_GONE;
    } else {
        *opened = stream;
        stream->finished = end;
        if (end)
            heddle_h2_move_stream(session, stream, HEDDLE_H2_SENT_END);
    }
    heddle_h2_leave(session);
    return result;
}

/* -- responses ----------------------------------------------------------------------------------------------------- */

/* Returns the status, or -1 if it is missing or invalid. */
static int read_status(const heddle_h2_block *block)
{
    heddle_slice text = block->pseudo[HEDDLE_H2_STATUS];
    if (!block->has_pseudo[HEDDLE_H2_STATUS] || text.size != STATUS_DIGITS)
        return -1;
    int status = 0;
    for (unsigned i = 0; i < STATUS_DIGITS; i++) {
        char digit = block->bytes->bytes[text.start + i];
        if (!heddle_is(digit, HEDDLE_DIGIT))
            return -1;
        status = status * 10 + (digit - '0');
    }
    return status >= 100 && status != SWITCHING_PROTOCOLS ? status : -1;
}

/*
 * Returns how many bytes of DATA must follow, or -1 if that is unknown. Returns -2 if content-length is invalid, or
 * contradicts the end of the stream.
 */
static int64_t read_length(const heddle_h2_stream *stream, const heddle_h2_block *block, int status, bool ended)
{
    const heddle_control_fields *controls = &block->controls;
    if (!stream->expects_body || status == NO_CONTENT || status == NOT_MODIFIED)
        return 0;
    if (!controls->content_length.present)
        return -1;
    int64_t length = heddle_content_length_read(&controls->content_length, block->bytes->bytes);
    return controls->content_length.differs || length < 0 || (ended && length > 0) ? -2 : length;
}

/* Checks a head. Returns a text that says what is wrong, or NULL. */
static const char *judge_head(heddle_h2_stream *stream, const heddle_h2_block *block, int status, bool ended)
{
    if (status < 0)
        return "the response's head has no valid :status";
    if (status < FIRST_FINAL_STATUS) {
        if (ended)
            return "an interim response ends the stream";
        return ++stream->interims >= INTERIM_LIMIT ? "too many interim responses" : NULL;
    }
    int64_t length = read_length(stream, block, status, ended);
    if (length < -1)
        return "the response's content-length is invalid, or contradicts the end of the stream";
    stream->answered = true;
    stream->body_left = length;
    return NULL;
}

void heddle_h2_take_response(heddle_h2_session *session, heddle_h2_stream *stream, heddle_h2_block *block)
{
    if (!stream || !heddle_h2_state_receives(stream->state))
        return;
    uint32_t id = stream->id;
    bool ended = session->block_ends_stream, trailers = stream->answered;
    if (block->too_large) {
        heddle_h2_fail_stream_because(session, id, HEDDLE_H2_ENHANCE_YOUR_CALM,
                                      trailers ? "the response's trailers are larger than their limit"
                                               : "the response's head is larger than its limit");
        return;
    }
    if (block->malformed || (trailers && !ended)) {
        heddle_h2_fail_stream_because(session, id, HEDDLE_H2_PROTOCOL_ERROR,
                                      block->malformed ? block->malformed
                                                       : "the response's trailers don't end its stream");
        return;
    }
    int status = trailers ? 0 : read_status(block);
    const char *wrong = trailers ? NULL : judge_head(stream, block, status, ended);
    if (wrong) {
        heddle_h2_fail_stream_because(session, id, HEDDLE_H2_PROTOCOL_ERROR, wrong);
        return;
    }
    heddle_h2_response response = {status, block->fields, block->field_count, block->bytes->bytes, block->bytes->size,
                                   ended};
    if (stream->held)
        session->operations->on_response(session, stream, &response);
    stream = heddle_h2_find_stream(session, id);
    if (ended && stream && heddle_h2_is_open(session) && heddle_h2_state_receives(stream->state))
        heddle_h2_complete_message(session, stream);
}

/* -- GOAWAY -------------------------------------------------------------------------------------------------------- */

/*
 * GOAWAY names the last stream that the server has processed or may still process. Requests on later streams may be
 * sent again on another connection (RFC 9113, 6.8), over HTTP/1.1 if the error demands it.
 */
void heddle_h2_take_goaway(heddle_h2_session *session, const uint8_t *payload)
{
    uint32_t last = heddle_h2_get_31(payload);
    heddle_h2_error error = heddle_h2_get_32(payload + 4) == HEDDLE_H2_HTTP_1_1_REQUIRED ? HEDDLE_H2_HTTP_1_1_REQUIRED
                                                                                         : HEDDLE_H2_REFUSED_STREAM;
    session->goaway = true;
    for (uint32_t i = session->stream_count; i > 0; i--) {
        if (i > session->stream_count) /* on_reset may have released other streams */
            continue;
        heddle_h2_stream *stream = session->streams[i - 1];
        if (stream->id <= last)
            break;
        if (heddle_h2_state_is_closed(stream->state))
            continue;
        bool held = stream->held;
        heddle_h2_move_stream(session, stream, HEDDLE_H2_GOT_RESET);
        if (held)
            session->operations->on_reset(session, stream, error);
    }
}
