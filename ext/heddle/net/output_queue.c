/* The queued output of a connection: see output_queue.h. */

#include "net/output_queue.h"

static heddle_piece *add_piece(heddle_output *output)
{
    if (output->count == output->piece_room && output->first) {
        memmove(output->pieces, output->pieces + output->first, (output->count - output->first) * sizeof(heddle_piece));
        output->count -= output->first;
        output->first = 0;
    }
    if (output->count == output->piece_room) {
        unsigned room = output->piece_room ? output->piece_room * 2 : 4;
        heddle_piece *pieces = realloc(output->pieces, room * sizeof(*pieces));
        if (!pieces)
            return NULL;
        output->pieces = pieces;
        output->piece_room = room;
    }
    return &output->pieces[output->count];
}

/*
 * Moves the unsent bytes to the front of the buffer, if at least half of it was sent. Otherwise the buffer would grow
 * forever if the client never catches up.
 */
static void compact_bytes(heddle_output *output)
{
    size_t gone = output->used;
    for (unsigned i = output->first; i < output->count; i++) {
        if (!output->pieces[i].string) {
            gone = output->pieces[i].start;
            break;
        }
    }
    if (gone < output->used / 2 || gone == 0)
        return;
    memmove(output->bytes, output->bytes + gone, output->used - gone);
    output->used -= gone;
    for (unsigned i = output->first; i < output->count; i++) {
        if (!output->pieces[i].string) {
            output->pieces[i].start -= gone;
            output->pieces[i].end -= gone;
        }
    }
}

char *heddle_output_reserve(heddle_output *output, size_t size)
{
    if (output->room - output->used < size)
        compact_bytes(output);
    if (output->room - output->used < size) {
        size_t room = output->room ? output->room * 2 : 1024;
        while (room - output->used < size)
            room *= 2;
        char *bytes = realloc(output->bytes, room);
        if (!bytes)
            return NULL;
        output->bytes = bytes;
        output->room = room;
    }
    heddle_piece *last = output->count > output->first ? &output->pieces[output->count - 1] : NULL;
    if ((!last || last->string || last->end != output->used) && !add_piece(output))
        return NULL;
    return output->bytes + output->used;
}

void heddle_output_added(heddle_output *output, size_t size)
{
    if (size == 0)
        return;
    heddle_piece *last = output->count > output->first ? &output->pieces[output->count - 1] : NULL;
    if (last && !last->string && last->end == output->used)
        last->end += size;
    else
        output->pieces[output->count++] = (heddle_piece){.start = output->used, .end = output->used + size};
    output->used += size;
    output->size += size;
}

bool heddle_output_add_bytes(heddle_output *output, const char *bytes, size_t size)
{
    if (size == 0)
        return true;
    char *room = heddle_output_reserve(output, size);
    if (!room)
        return false;
    memcpy(room, bytes, size);
    heddle_output_added(output, size);
    return true;
}

bool heddle_output_add_string(heddle_output *output, VALUE string, size_t start)
{
    size_t length = (size_t)RSTRING_LEN(string);
    if (length - start <= HEDDLE_OUTPUT_COPIED)
        return heddle_output_add_bytes(output, RSTRING_PTR(string) + start, length - start);
    heddle_piece *piece = add_piece(output);
    if (!piece)
        return false;
    *piece = (heddle_piece){.string = string, .start = start, .end = length};
    output->count++;
    output->size += length - start;
    return true;
}

bool heddle_output_take_back(heddle_output *output, const char *bytes, size_t size)
{
    heddle_piece *last = output->count > output->first ? &output->pieces[output->count - 1] : NULL;
    if (!last || last->end - last->start < size || (!last->string && last->end != output->used))
        return false;
    const char *base = last->string ? RSTRING_PTR(last->string) : output->bytes;
    if (memcmp(base + last->end - size, bytes, size) != 0)
        return false;
    last->end -= size;
    if (!last->string)
        output->used -= size;
    output->size -= size;
    if (last->end == last->start)
        output->count--;
    return true;
}

int heddle_output_gather(const heddle_output *output, struct iovec *pieces, int most)
{
    int used = 0;
    for (unsigned i = output->first; i < output->count && used < most; i++) {
        const heddle_piece *piece = &output->pieces[i];
        char *base = piece->string ? RSTRING_PTR(piece->string) : output->bytes;
        pieces[used++] = (struct iovec){.iov_base = base + piece->start, .iov_len = piece->end - piece->start};
    }
    return used;
}

void heddle_output_advance(heddle_output *output, size_t sent)
{
    output->size -= sent;
    output->sent += sent;
    while (sent) {
        heddle_piece *piece = &output->pieces[output->first];
        size_t left = piece->end - piece->start;
        if (sent < left) {
            piece->start += sent;
            return;
        }
        sent -= left;
        output->first++;
    }
    if (output->first == output->count) {
        output->first = output->count = 0;
        output->used = 0;
    }
}

void heddle_output_mark(const heddle_output *output)
{
    for (unsigned i = output->first; i < output->count; i++) {
        if (output->pieces[i].string)
            rb_gc_mark(output->pieces[i].string); /* pinned, because the kernel may be using the String's address */
    }
}

void heddle_output_clear(heddle_output *output)
{
    free(output->bytes);
    free(output->pieces);
    *output = (heddle_output){.sent = output->sent};
}
