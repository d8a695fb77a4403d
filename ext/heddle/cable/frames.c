/*
 * Encodes pub/sub messages as WebSocket frames for clients of Action Cable: {"identifier":…,"message":…}. The value of
 * "message" is the payload of the pub/sub message, which is JSON. The envelope is the text up to the payload:
 * `{"identifier":…,"message":`.
 */

#include "binding.h"
#include "http/push/subscriptions.h"

static const char ENVELOPE_END[] = ",\"message\":";

/* Adds the position from which a client can resume. */
static void add_position(VALUE json, const heddle_message *message)
{
    rb_str_cat_cstr(json, ",\"stream_id\":");
    heddle_push_add_json(json, message->topic, message->topic_size);
    rb_str_catf(json, ",\"epoch\":\"%.12s\",\"offset\":%" PRIu64, message->epoch, message->offset);
}

static VALUE make_frame(const heddle_message *message, VALUE envelope, bool extended, heddle_deflater **deflater)
{
    const char *bytes = message->reset ? NULL : RSTRING_PTR(message->payload);
    size_t size = message->reset ? 0 : (size_t)RSTRING_LEN(message->payload);
    VALUE json = rb_str_buf_new(RSTRING_LEN(envelope) + (long)(size + message->topic_size) + 128);
    if (message->reset) {
        rb_str_cat(json, RSTRING_PTR(envelope), RSTRING_LEN(envelope) - (long)(sizeof(ENVELOPE_END) - 1));
        rb_str_cat_cstr(json, ",\"type\":\"reject_history\"");
    } else {
        rb_str_cat(json, RSTRING_PTR(envelope), RSTRING_LEN(envelope));
        if (heddle_utf8_is_valid(bytes, size)) /* JSON must be UTF-8; any other payload becomes null */
            rb_str_cat(json, bytes, (long)size);
        else
            rb_str_cat_cstr(json, "null");
        if (extended)
            add_position(json, message);
    }
    rb_str_cat_cstr(json, "}");
    return heddle_push_text_frame(json, deflater);
}

static VALUE encode_plain(heddle_message *message, VALUE envelope, void *deflater)
{
    return make_frame(message, envelope, false, deflater);
}

static VALUE encode_extended(heddle_message *message, VALUE envelope, void *deflater)
{
    return make_frame(message, envelope, true, deflater);
}

static const heddle_push_form_definition
    plain = {
        .name = "cable",
        .min_envelope_size = sizeof(ENVELOPE_END) - 1,
        .encode = encode_plain,
    },
    /*
     * Adds stream_id, epoch and offset. Sends a reset (the notice that messages are lost) as a message of type
     * reject_history.
     */
    extended = {
        .name = "extended_cable",
        .min_envelope_size = sizeof(ENVELOPE_END) - 1,
        .sends_reset = true,
        .encode = encode_extended,
    };

void Init_heddle_cable(void)
{
    heddle_push_register_form(&plain);
    heddle_push_register_form(&extended);
}
