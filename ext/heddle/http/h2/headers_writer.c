#include "http/h2/block.h"
#include "http/text.h"

/* Encodes heads as HEADERS frames, checks all fields that are sent, and ends messages. */

enum {
    STATUS_DIGITS = 3,
    FIRST_FINAL_STATUS = 200,
    LAST_STATUS = 999,
};

/* -- checks -------------------------------------------------------------------------------------------------------- */

heddle_h2_write_result heddle_h2_check_fields(const heddle_h2_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *end = fields[i].value + fields[i].value_size;
        if (!heddle_is_token(fields[i].name, fields[i].name_size))
            return HEDDLE_H2_BAD_NAME;
        if (heddle_find_control(fields[i].value, end) != end)
            return HEDDLE_H2_BAD_VALUE;
    }
    return HEDDLE_H2_WRITTEN;
}

/* -- encoding ------------------------------------------------------------------------------------------------------ */

bool heddle_h2_encode_field(heddle_h2_session *session, const heddle_h2_field *field)
{
    heddle_h2_workspace *workspace = session->workspace;
    const char *name = field->name, *value = field->value;
    size_t size = field->value_size;
    if (heddle_h2_is_about_connection(heddle_field_find(name, field->name_size), name, field->name_size))
        return true;
    while (size > 0 && heddle_is_space(*value)) {
        value++;
        size--;
    }
    while (size > 0 && heddle_is_space(value[size - 1]))
        size--;
    heddle_bytes_reset(&workspace->scratch, SIZE_MAX);
    if (!heddle_bytes_add(&workspace->scratch, name, field->name_size))
        return false;
    char *lower = workspace->scratch.bytes;
    for (uint32_t i = 0; i < field->name_size; i++) {
        if (lower[i] >= 'A' && lower[i] <= 'Z')
            lower[i] |= 0x20;
    }
    return heddle_hpack_encode(&session->encoder, &workspace->block, lower, field->name_size, value, size);
}

bool heddle_h2_start_block(heddle_h2_session *session)
{
    heddle_bytes_reset(&session->workspace->block, SIZE_MAX);
    return heddle_hpack_encode_start(&session->encoder, &session->workspace->block);
}

bool heddle_h2_write_block(heddle_h2_session *session, const heddle_h2_stream *stream, bool end)
{
    const heddle_bytes *block = &session->workspace->block;
    heddle_h2_note_output(session);
    return heddle_h2_write_headers(&session->output, stream->id, end, block->bytes, block->size, HEDDLE_H2_FRAME_SIZE);
}

static bool encode_head(heddle_h2_session *session, int status, const heddle_h2_field *fields, size_t count)
{
    const char digits[STATUS_DIGITS] = {
        (char)('0' + status / 100), (char)('0' + status / 10 % 10), (char)('0' + status % 10),
    };
    if (!heddle_h2_start_block(session) ||
        !heddle_hpack_encode(&session->encoder, &session->workspace->block, ":status", 7, digits, STATUS_DIGITS))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!heddle_h2_encode_field(session, &fields[i]))
            return false;
    }
    return true;
}

heddle_h2_write_result heddle_h2_write_head(heddle_h2_session *session, heddle_h2_stream *stream, int status,
                                            const heddle_h2_field *fields, size_t count, bool end)
{
    if (!heddle_h2_state_sends(stream->state))
        return HEDDLE_H2_GONE;
    bool interim = status < FIRST_FINAL_STATUS;
    if (stream->head_written || status < 100 || status > LAST_STATUS || status == 101 || (interim && end))
        return HEDDLE_H2_MISPLACED;
    heddle_h2_write_result result = heddle_h2_check_fields(fields, count);
    if (result != HEDDLE_H2_WRITTEN)
        return result;
    heddle_h2_enter(session);
    if (!encode_head(session, status, fields, count) || !heddle_h2_write_block(session, stream, end)) {
        heddle_h2_fail_without_memory(session);
        result = HEDDLE_H2_GONE;
    } else if (!interim) {
        stream->head_written = true;
        stream->finished = end;
        if (end)
            heddle_h2_answer_sent(session, stream);
    }
    heddle_h2_leave(session);
    return result;
}

/* -- the end ------------------------------------------------------------------------------------------------------- */

void heddle_h2_send_end(heddle_h2_session *session, heddle_h2_stream *stream)
{
    heddle_h2_note_output(session);
    if (!heddle_bytes_reserve(&session->output, HEDDLE_H2_HEADER_SIZE)) {
        heddle_h2_fail_without_memory(session);
        return;
    }
    heddle_h2_put_header((uint8_t *)session->output.bytes + session->output.size, 0, HEDDLE_H2_DATA,
                         HEDDLE_H2_END_STREAM, stream->id);
    session->output.size += HEDDLE_H2_HEADER_SIZE;
    heddle_h2_answer_sent(session, stream);
}

heddle_h2_write_result heddle_h2_finish(heddle_h2_session *session, heddle_h2_stream *stream)
{
    if (!heddle_h2_state_sends(stream->state))
        return HEDDLE_H2_GONE;
    if (!stream->head_written || stream->finished)
        return HEDDLE_H2_MISPLACED;
    heddle_h2_enter(session);
    stream->finished = true;
    if (stream->queued == 0)
        heddle_h2_send_end(session, stream);
    heddle_h2_leave(session);
    return HEDDLE_H2_WRITTEN;
}
