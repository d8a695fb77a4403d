#include "http/h2/block.h"

/*
 * Turns header blocks into requests, responses or trailers. Each block is decoded to its end, even if it is rejected,
 * because it changes HPACK's table, which the next block uses.
 */

enum { FIRST_ROOM = 1024 }; /* bytes for the names and values of a block */

static bool prepare_fields(heddle_h2_workspace *workspace, const heddle_h2_limits *limits)
{
    uint32_t room = limits->header_count + limits->crumb_count + 1; /* 1: Host, which may be added */
    if (!heddle_bytes_reserve(&workspace->head, FIRST_ROOM))
        return false;
    if (workspace->field_room >= room)
        return true;
    heddle_field *fields = realloc(workspace->fields, room * sizeof(*fields));
    if (!fields)
        return false;
    workspace->fields = fields;
    workspace->field_room = room;
    return true;
}

/* Returns false if the connection has failed. */
static bool decode_block(heddle_h2_session *session, heddle_h2_block *block, const uint8_t *bytes, size_t size)
{
    heddle_hpack_block coded = heddle_hpack_block_start(&session->decoder, &session->workspace->scratch, bytes, size);
    heddle_hpack_field field;
    heddle_hpack_result result;
    while ((result = heddle_hpack_block_next(&coded, &field)) == HEDDLE_HPACK_FIELD) {
        session->fed_fields++;
        heddle_h2_block_field(block, &field);
        if (block->list_size > heddle_h2_decode_limit(session->limits))
            return heddle_h2_fail(session, HEDDLE_H2_ENHANCE_YOUR_CALM, "a decoded header block is too large");
    }
    if (result == HEDDLE_HPACK_MALFORMED)
        heddle_h2_fail(session, HEDDLE_H2_COMPRESSION_ERROR, "a header block can't be decoded");
    else if (result == HEDDLE_HPACK_NO_MEMORY || block->no_memory)
        heddle_h2_fail_without_memory(session);
    return heddle_h2_is_open(session);
}

static void take_trailers(heddle_h2_session *session, uint32_t id, const heddle_h2_block *block)
{
    heddle_h2_stream *stream = heddle_h2_find_stream(session, id);
    if (!stream || !heddle_h2_state_receives(stream->state))
        return;
    if (block->malformed)
        heddle_h2_fail_stream_because(session, id, HEDDLE_H2_PROTOCOL_ERROR, block->malformed);
    else if (!session->block_ends_stream)
        heddle_h2_fail_stream_because(session, id, HEDDLE_H2_PROTOCOL_ERROR, "trailers don't end the request");
    else if (block->too_large)
        heddle_h2_fail_stream_because(session, id, HEDDLE_H2_ENHANCE_YOUR_CALM,
                                      "the trailers are too many or too large");
    else
        heddle_h2_complete_message(session, stream);
}

/*
 * Sets the priority from the Priority field. A PRIORITY_UPDATE that came before the request takes precedence (RFC 9218,
 * 7.1).
 */
static void set_priority(heddle_h2_session *session, heddle_h2_stream *stream, const heddle_h2_block *block)
{
    stream->urgency = block->urgency;
    stream->incremental = block->incremental;
    const heddle_h2_schedule *schedule = session->schedule;
    for (unsigned i = 0; i < HEDDLE_H2_EARLY_PRIORITIES; i++) {
        if (schedule->early_streams[i] == stream->id) {
            stream->urgency = schedule->early_bits[i] % HEDDLE_H2_URGENCIES;
            stream->incremental = schedule->early_bits[i] >= HEDDLE_H2_URGENCIES;
        }
    }
}

static void take_request(heddle_h2_session *session, uint32_t id, heddle_h2_block *block)
{
    bool ended = session->block_ends_stream;
    heddle_h2_request request;
    heddle_rejection rejection;
    heddle_h2_block_result result = heddle_h2_request_judge(block, ended, &request, &rejection);
    if (block->no_memory) {
        heddle_h2_fail_without_memory(session);
        return;
    }
    if (result == HEDDLE_H2_MALFORMED || session->block_self_dependent) {
        heddle_h2_fail_stream_because(session, id, HEDDLE_H2_PROTOCOL_ERROR,
                                      block->malformed ? block->malformed : "the stream depends on itself");
        return;
    }
    if (session->stream_count >= session->limits->max_streams) {
        heddle_h2_refuse_stream(session, id);
        return;
    }
    heddle_h2_stream *stream = heddle_h2_add_stream(session, id);
    if (!stream) {
        heddle_h2_fail_without_memory(session);
        return;
    }
    session->last_processed = id;
    session->fed_streams++;
    set_priority(session, stream, block);
    stream->held = true;
    stream->rejected = result == HEDDLE_H2_REJECTED;
    if (!ended && !stream->rejected && request.head.content_length >= 0)
        stream->body_left = request.head.content_length;
    if (ended)
        heddle_h2_move_stream(session, stream, HEDDLE_H2_GOT_END);
    if (stream->rejected)
        session->operations->on_rejection(session, stream, &rejection, request.head.method_id);
    else
        session->operations->on_request(session, stream, &request);
}

void heddle_h2_take_block(heddle_h2_session *session, const uint8_t *bytes, size_t size)
{
    uint32_t id = session->block_stream;
    bool is_new = id > session->last_stream && !session->is_client;
    heddle_h2_stream *answered = session->is_client ? heddle_h2_find_stream(session, id) : NULL;
    heddle_h2_workspace *workspace = session->workspace;
    if (!prepare_fields(workspace, session->limits)) {
        heddle_h2_fail_without_memory(session);
        return;
    }
    heddle_bytes_reset(&workspace->head, SIZE_MAX);
    heddle_h2_block block = {
        .limits = session->limits,
        .bytes = &workspace->head,
        .fields = workspace->fields,
        .urgency = HEDDLE_H2_DEFAULT_URGENCY,
        .response = session->is_client,
        .trailers = session->is_client ? answered && answered->answered : !is_new,
    };
    if (is_new)
        session->last_stream = id;
    if (!decode_block(session, &block, bytes, size))
        return;
    if (session->block_verdict == HEDDLE_H2_CLOSED_STREAM)
        heddle_h2_fail_stream(session, id, HEDDLE_H2_STREAM_CLOSED);
    else if (session->block_verdict == HEDDLE_H2_IGNORE)
        return;
    else if (session->is_client)
        heddle_h2_take_response(session, answered, &block);
    else if (!is_new)
        take_trailers(session, id, &block);
    /* no response is needed: GOAWAY tells the client that the request is not processed */
    else if (session->drain_stage == HEDDLE_H2_DRAINING)
        heddle_h2_remember(session, id, HEDDLE_H2_RESET_BY_US);
    else
        take_request(session, id, &block);
}
