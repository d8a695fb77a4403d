#include "http/h2/frame.h"

/* -- reading ------------------------------------------------------------------------------------------------------- */

static void parse_header(heddle_h2_frame *frame, const uint8_t *header)
{
    *frame = (heddle_h2_frame){
        .length = (uint32_t)header[0] << 16 | (uint32_t)header[1] << 8 | header[2],
        .type = header[3],
        .flags = header[4],
        .stream = heddle_h2_get_31(header + 5),
    };
}

heddle_h2_reading heddle_h2_read(heddle_h2_reader *reader, const uint8_t **at, const uint8_t *end,
                                 heddle_h2_piece *piece)
{
    size_t available = (size_t)(end - *at);
    if (reader->header_size < HEDDLE_H2_HEADER_SIZE) {
        size_t wanted = (size_t)HEDDLE_H2_HEADER_SIZE - reader->header_size;
        size_t taken = available < wanted ? available : wanted;
        if (taken > 0)
            memcpy(reader->header + reader->header_size, *at, taken);
        reader->header_size += (uint8_t)taken;
        *at += taken;
        if (taken < wanted)
            return HEDDLE_H2_INCOMPLETE;
        parse_header(&reader->frame, reader->header);
        reader->left = reader->frame.length;
        return HEDDLE_H2_BEGIN;
    }

    *piece = (heddle_h2_piece){*at, available < reader->left ? (uint32_t)available : reader->left};
    *at += piece->size;
    reader->left -= piece->size;
    if (reader->left == 0) {
        reader->header_size = 0;
        return HEDDLE_H2_LAST_PIECE;
    }
    return piece->size > 0 ? HEDDLE_H2_PIECE : HEDDLE_H2_INCOMPLETE;
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

static uint8_t *put_16(uint8_t *to, uint32_t value)
{
    *to++ = (uint8_t)(value >> 8);
    *to++ = (uint8_t)value;
    return to;
}

static uint8_t *put_32(uint8_t *to, uint32_t value)
{
    return put_16(put_16(to, value >> 16), value);
}

uint8_t *heddle_h2_put_header(uint8_t *to, uint32_t length, heddle_h2_type type, uint8_t flags, uint32_t stream)
{
    *to++ = (uint8_t)(length >> 16);
    to = put_16(to, length);
    *to++ = (uint8_t)type;
    *to++ = flags;
    return put_32(to, stream);
}

/* Adds a frame's header and room for its payload. Returns the address of the payload, or NULL when out of memory. */
static uint8_t *add_frame(heddle_bytes *to, uint32_t length, heddle_h2_type type, uint8_t flags, uint32_t stream)
{
    size_t size = HEDDLE_H2_HEADER_SIZE + (size_t)length;
    if (!heddle_bytes_reserve(to, size))
        return NULL;
    uint8_t *payload = heddle_h2_put_header((uint8_t *)to->bytes + to->size, length, type, flags, stream);
    to->size += size;
    return payload;
}

bool heddle_h2_write_goaway(heddle_bytes *to, uint32_t last_stream, heddle_h2_error error, const char *reason)
{
    size_t size = strlen(reason);
    uint8_t *payload = add_frame(to, 8 + (uint32_t)size, HEDDLE_H2_GOAWAY, 0, 0);
    if (!payload)
        return false;
    memcpy(put_32(put_32(payload, last_stream), error), reason, size);
    return true;
}

bool heddle_h2_write_rst_stream(heddle_bytes *to, uint32_t stream, heddle_h2_error error)
{
    uint8_t *payload = add_frame(to, 4, HEDDLE_H2_RST_STREAM, 0, stream);
    return payload && put_32(payload, error);
}

bool heddle_h2_write_window_update(heddle_bytes *to, uint32_t stream, uint32_t increment)
{
    uint8_t *payload = add_frame(to, 4, HEDDLE_H2_WINDOW_UPDATE, 0, stream);
    return payload && put_32(payload, increment);
}

bool heddle_h2_write_ping(heddle_bytes *to, uint8_t flags, const uint8_t ping[HEDDLE_H2_PING_SIZE])
{
    uint8_t *payload = add_frame(to, HEDDLE_H2_PING_SIZE, HEDDLE_H2_PING, flags, 0);
    return payload && memcpy(payload, ping, HEDDLE_H2_PING_SIZE);
}

bool heddle_h2_write_settings(heddle_bytes *to, uint8_t flags, const heddle_h2_setting_value *settings, unsigned count)
{
    uint8_t *payload = add_frame(to, count * HEDDLE_H2_SETTING_SIZE, HEDDLE_H2_SETTINGS, flags, 0);
    if (!payload)
        return false;
    for (unsigned i = 0; i < count; i++)
        payload = put_32(put_16(payload, settings[i].id), settings[i].value);
    return true;
}

bool heddle_h2_write_headers(heddle_bytes *to, uint32_t stream, bool end_stream, const char *block, size_t size,
                             uint32_t frame_size)
{
    if (!heddle_bytes_reserve(to, size + (size / frame_size + 1) * HEDDLE_H2_HEADER_SIZE))
        return false;
    heddle_h2_type type = HEDDLE_H2_HEADERS;
    uint8_t flags = end_stream ? HEDDLE_H2_END_STREAM : 0;
    do {
        uint32_t length = size < frame_size ? (uint32_t)size : frame_size;
        if (length == size)
            flags |= HEDDLE_H2_END_HEADERS;
        memcpy(add_frame(to, length, type, flags, stream), block, length);
        block += length;
        size -= length;
        type = HEDDLE_H2_CONTINUATION;
        flags = 0;
    } while (size > 0);
    return true;
}
