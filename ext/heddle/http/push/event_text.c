#include "http/push/event_text.h"

#include "http/response_head_writer.h"

/* Adds each line of the payload as a field `data`. A carriage return also ends a line. */
static void add_lines(VALUE text, const char *bytes, size_t size)
{
    for (size_t at = 0;;) {
        size_t end = at;
        while (end < size && bytes[end] != '\n' && bytes[end] != '\r')
            end++;
        rb_str_cat(text, "data: ", 6);
        rb_str_cat(text, bytes + at, (long)(end - at));
        rb_str_cat(text, "\n", 1);
        if (end == size)
            return;
        at = end + (bytes[end] == '\r' && end + 1 < size && bytes[end + 1] == '\n' ? 2 : 1);
    }
}

VALUE heddle_event_text(VALUE data)
{
    VALUE text = rb_str_buf_new(RSTRING_LEN(data) + 32);
    add_lines(text, RSTRING_PTR(data), (size_t)RSTRING_LEN(data));
    rb_str_cat(text, "\n", 1);
    RB_GC_GUARD(data);
    return rb_obj_freeze(text);
}

VALUE heddle_event_encode(heddle_message *message, VALUE key, void *context)
{
    char position[HEDDLE_POSITION_SIZE];
    size_t payload = message->reset ? 0 : (size_t)RSTRING_LEN(message->payload);
    VALUE text = rb_str_buf_new((long)(payload + HEDDLE_POSITION_SIZE + 48));
    if (message->reset)
        rb_str_cat_cstr(text, "event: reset\n");
    rb_str_cat_cstr(text, "id: ");
    rb_str_cat(text, position, (long)heddle_position_write(message->epoch, message->offset, position));
    rb_str_cat_cstr(text, "\n");
    if (message->reset)
        rb_str_cat_cstr(text, "data: reset\n");
    else
        add_lines(text, RSTRING_PTR(message->payload), payload);
    rb_str_cat_cstr(text, "\n");
    return rb_obj_freeze(text);
}

VALUE heddle_event_chunk(VALUE text)
{
    char head[HEDDLE_EVENTS_TEXT];
    long size = RSTRING_LEN(text);
    if (size == 0)
        return text;
    size_t used = heddle_chunk_head(head, (size_t)size);
    VALUE chunk = rb_str_buf_new(size + (long)used + 2);
    rb_str_cat(chunk, head, (long)used);
    rb_str_cat(chunk, RSTRING_PTR(text), size);
    rb_str_cat_cstr(chunk, "\r\n");
    RB_GC_GUARD(text);
    return rb_obj_freeze(chunk);
}

VALUE heddle_event_encode_chunk(heddle_message *message, VALUE key, void *context)
{
    return heddle_event_chunk(heddle_event_encode(message, key, context));
}

size_t heddle_events_first_id(const heddle_subscriber *subscriber, char *text, size_t room)
{
    char position[HEDDLE_POSITION_SIZE];
    heddle_subscriber_position(subscriber, position);
    int size = snprintf(text, room, "id: %s\n\n", position);
    return size > 0 && (size_t)size < room ? (size_t)size : 0;
}

size_t heddle_events_farewell(char *text, size_t room)
{
    static _Atomic uint64_t state;
    state = (state ^ (uint64_t)heddle_clock_coarse()) * UINT64_C(0x9e3779b97f4a7c15);
    int size = snprintf(text, room, "retry: %" PRIu64 "\n\n", (state >> 33) % HEDDLE_EVENTS_RETRY);
    return size > 0 && (size_t)size < room ? (size_t)size : 0;
}
