#pragma once

/*
 * The description of a session that is handed off to another process. It begins with the protocol's number and a
 * version, one byte each. The version determines the fields that follow. Each field begins with its size (32 bits,
 * native byte order).
 */

#include "system.h"

typedef struct {
    char *bytes;
    size_t size, room;
    bool fits; /* false after a field that did not fit */
} heddle_description_writer;

typedef struct {
    const char *bytes; /* the fields that are still to be read */
    size_t size;
    bool valid; /* false after a field that was missing or invalid */
} heddle_description_reader;

typedef struct {
    const char *bytes;
    size_t size;
} heddle_description_field;

static inline void heddle_description_add(heddle_description_writer *writer, const void *bytes, size_t size)
{
    uint32_t length = (uint32_t)size;
    writer->fits = writer->fits && size <= UINT32_MAX && writer->room - writer->size >= sizeof(length) &&
                   writer->room - writer->size - sizeof(length) >= size;
    if (!writer->fits)
        return;
    memcpy(writer->bytes + writer->size, &length, sizeof(length));
    if (size)
        memcpy(writer->bytes + writer->size + sizeof(length), bytes, size);
    writer->size += sizeof(length) + size;
}

static inline void heddle_description_add_number(heddle_description_writer *writer, uint32_t number)
{
    heddle_description_add(writer, &number, sizeof(number));
}

/* Begins a description with the protocol's number and the version. `room` is at least 2. */
static inline heddle_description_writer heddle_description_begin(char *bytes, size_t room, uint8_t protocol,
                                                                 uint8_t version)
{
    bytes[0] = (char)protocol;
    bytes[1] = (char)version;
    return (heddle_description_writer){.bytes = bytes, .size = 2, .room = room, .fits = true};
}

/* `bytes` begins after the protocol's number. If the version differs, the reader is not valid. */
static inline heddle_description_reader heddle_description_open(const char *bytes, size_t size, uint8_t version)
{
    if (size < 1 || (uint8_t)bytes[0] != version)
        return (heddle_description_reader){0};
    return (heddle_description_reader){.bytes = bytes + 1, .size = size - 1, .valid = true};
}

/* Returns the next field. If there is none, returns an empty field, and the reader is no longer valid. */
static inline heddle_description_field heddle_description_take(heddle_description_reader *reader)
{
    uint32_t length;
    if (!reader->valid || reader->size < sizeof(length))
        goto invalid;
    memcpy(&length, reader->bytes, sizeof(length));
    if (reader->size - sizeof(length) < length)
        goto invalid;
    heddle_description_field field = {reader->bytes + sizeof(length), length};
    reader->bytes += sizeof(length) + length;
    reader->size -= sizeof(length) + length;
    return field;
invalid:
    reader->valid = false;
    return (heddle_description_field){"", 0};
}

/*
 * Returns the next field, a number. If it is missing or larger than `most`, returns 0, and the reader is no longer
 * valid.
 */
static inline uint32_t heddle_description_take_number(heddle_description_reader *reader, uint32_t most)
{
    uint32_t number = 0;
    heddle_description_field field = heddle_description_take(reader);
    if (reader->valid && field.size == sizeof(number))
        memcpy(&number, field.bytes, sizeof(number));
    reader->valid = reader->valid && field.size == sizeof(number) && number <= most;
    return reader->valid ? number : 0;
}

/* Was the whole description read, and valid? */
static inline bool heddle_description_is_complete(const heddle_description_reader *reader)
{
    return reader->valid && reader->size == 0;
}
