#include "http/h2/block.h"
#include "http/text.h"

/* Encodes the heads of responses, and trailers, as HEADERS frames. Also has the checks for all fields that are sent. */

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

static heddle_h2_write_result fail_encoding(heddle_h2_session *session)
{
    heddle_h2_fail_without_memory(session);
    return HEDDLE_H2_GONE;
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
        result = fail_encoding(session);
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

static bool keep_text(heddle_bytes *to, const char *text, uint32_t size)
{
    return heddle_bytes_add(to, &size, sizeof(size)) && heddle_bytes_add(to, text, size);
}

static const char *next_text(const char **at, uint32_t *size)
{
    memcpy(size, *at, sizeof(*size));
    const char *text = *at + sizeof(*size);
    *at = text + *size;
    return text;
}

/*
 * HPACK requires that blocks are encoded in the order in which they are sent. So trailers are encoded after the body.
 */
static bool encode_trailers(heddle_h2_session *session, const heddle_h2_stream *stream)
{
    const char *at = stream->trailers.bytes, *end = at + stream->trailers.size;
    if (!heddle_h2_start_block(session))
        return false;
    while (at < end) {
        heddle_h2_field field;
        field.name = next_text(&at, &field.name_size);
        field.value = next_text(&at, &field.value_size);
        if (!heddle_h2_encode_field(session, &field))
            return false;
    }
    return true;
}

void heddle_h2_send_end(heddle_h2_session *session, heddle_h2_stream *stream)
{
    bool written;
    if (stream->has_trailers) {
        written = encode_trailers(session, stream) && heddle_h2_write_block(session, stream, true);
    } else {
        heddle_h2_note_output(session);
        written = heddle_bytes_reserve(&session->output, HEDDLE_H2_HEADER_SIZE);
        if (written) {
            heddle_h2_put_header((uint8_t *)session->output.bytes + session->output.size, 0, HEDDLE_H2_DATA,
                                 HEDDLE_H2_END_STREAM, stream->id);
            session->output.size += HEDDLE_H2_HEADER_SIZE;
        }
    }
    if (written)
        heddle_h2_answer_sent(session, stream);
    else
        fail_encoding(session);
}

heddle_h2_write_result heddle_h2_finish(heddle_h2_session *session, heddle_h2_stream *stream,
                                        const heddle_h2_field *trailers, size_t count)
{
    if (!heddle_h2_state_sends(stream->state))
        return HEDDLE_H2_GONE;
    if (!stream->head_written || stream->finished)
        return HEDDLE_H2_MISPLACED;
    heddle_h2_write_result result = heddle_h2_check_fields(trailers, count);
    if (result != HEDDLE_H2_WRITTEN)
        return result;
    heddle_h2_enter(session);
    for (size_t i = 0; i < count; i++) {
        if (!keep_text(&stream->trailers, trailers[i].name, trailers[i].name_size) ||
            !keep_text(&stream->trailers, trailers[i].value, trailers[i].value_size)) {
            result = fail_encoding(session);
            break;
        }
    }
    if (result == HEDDLE_H2_WRITTEN) {
        stream->finished = true;
        stream->has_trailers = count > 0;
        if (stream->queued == 0)
            heddle_h2_send_end(session, stream);
    }
    heddle_h2_leave(session);
    return result;
}
