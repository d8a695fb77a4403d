/*
 * Heddle::HTTP::WebSocket::Codec: reads the frames that a server sends, and makes frames (RFC 6455), for code that does
 * its own I/O.
 */

#include "binding.h"
#include "http/websocket/codec_ruby.h"

#include <ruby/encoding.h>

VALUE heddle_websocket_message_string(heddle_websocket_message *message)
{
    const char *bytes = message->bytes + message->topic_size;
    long size = (long)(message->size - message->topic_size);
    VALUE string = message->text ? rb_utf8_str_new(bytes, size) : rb_str_new(bytes, size);
    if (message->text) /* its encoding was checked already */
        ENC_CODERANGE_SET(string, rb_enc_str_asciionly_p(string) ? ENC_CODERANGE_7BIT : ENC_CODERANGE_VALID);
    if (message->published)
        string = rb_assoc_new(rb_utf8_str_new(message->bytes, message->topic_size), string);
    free(message);
    return string;
}

typedef struct {
    heddle_websocket_reader reader;
    heddle_websocket_limits limits;
} codec_record;

static void codec_free(void *data)
{
    codec_record *codec = data;
    heddle_websocket_reader_end(&codec->reader);
    xfree(codec);
}

static const rb_data_type_t codec_type =
    HEDDLE_TYPE("Heddle::HTTP::WebSocket::Codec", 0, .dfree = codec_free);

HEDDLE_ALLOCATE(codec_allocate, codec_record, codec_type)

HEDDLE_RECORD_OF(codec_of, codec_record, codec_type)

/*
 * call-seq: Codec.new(message_limit, fragment_limit)
 *
 * The arguments are the maximum numbers of bytes and of frames of a message.
 */
static VALUE codec_initialize(VALUE self, VALUE message_limit, VALUE fragment_limit)
{
    codec_record *codec = codec_of(self);
    codec->limits = (heddle_websocket_limits){NUM2ULL(message_limit), NUM2UINT(fragment_limit)};
    heddle_websocket_reader_end(&codec->reader);
    heddle_websocket_reader_start(&codec->reader, false);
    return self;
}

static VALUE control_text(const heddle_websocket_reader *reader, unsigned from)
{
    if (reader->control_size <= from)
        return rb_str_new(NULL, 0);
    return rb_str_new(reader->control + from, reader->control_size - from);
}

/* Returns the event as an Array, or nil if more bytes are needed. */
static VALUE make_event(codec_record *codec, heddle_websocket_event event)
{
    heddle_websocket_reader *reader = &codec->reader;
    switch (event) {
    case HEDDLE_WEBSOCKET_NO_EVENT:
        return Qnil;
    case HEDDLE_WEBSOCKET_HAS_MESSAGE:
        return rb_ary_new_from_args(2, ID2SYM(rb_intern("message")),
                                    heddle_websocket_message_string(heddle_websocket_take_message(reader)));
    case HEDDLE_WEBSOCKET_HAS_PING:
        return rb_ary_new_from_args(2, ID2SYM(rb_intern("ping")), control_text(reader, 0));
    case HEDDLE_WEBSOCKET_HAS_PONG:
        return rb_ary_new_from_args(2, ID2SYM(rb_intern("pong")), control_text(reader, 0));
    case HEDDLE_WEBSOCKET_HAS_CLOSE:
        return rb_ary_new_from_args(3, ID2SYM(rb_intern("close")), UINT2NUM(reader->code),
                                    rb_enc_associate(control_text(reader, 2), rb_utf8_encoding()));
    case HEDDLE_WEBSOCKET_FAILED:
        return rb_ary_new_from_args(3, ID2SYM(rb_intern("failure")), UINT2NUM(reader->code),
                                    rb_utf8_str_new_cstr(reader->failure));
    case HEDDLE_WEBSOCKET_NO_MEMORY:
        break;
    }
    rb_memerror();
}

/*
 * call-seq: read(bytes) -> Array of Arrays
 *
 * Returns the events that these bytes complete: [:message, String], [:ping, String], [:pong, String], [:close, code,
 * reason] or [:failure, code, reason]. After a failure, no more bytes are read.
 */
static VALUE codec_read(VALUE self, VALUE bytes)
{
    codec_record *codec = codec_of(self);
    VALUE events = rb_ary_new();
    StringValue(bytes);
    bytes = rb_str_new(RSTRING_PTR(bytes), RSTRING_LEN(bytes)); /* a copy: the reader unmasks in place */
    for (size_t at = 0, size = (size_t)RSTRING_LEN(bytes), used;; at += used) {
        heddle_websocket_event event =
            heddle_websocket_read(&codec->reader, &codec->limits, RSTRING_PTR(bytes) + at, size - at, &used);
        VALUE found = make_event(codec, event);
        if (NIL_P(found))
            break;
        rb_ary_push(events, found);
        if (event == HEDDLE_WEBSOCKET_FAILED)
            break;
    }
    RB_GC_GUARD(bytes);
    return events;
}

/*
 * call-seq: Codec.frame(opcode, payload, mask) -> String
 *
 * Makes a frame with a whole message or control payload. `mask`: four unpredictable bytes (section 5.3), or nil for a
 * server's frame.
 */
static VALUE codec_frame(VALUE class, VALUE opcode, VALUE payload, VALUE mask)
{
    char head[HEDDLE_WEBSOCKET_HEAD];
    StringValue(payload);
    if (!NIL_P(mask))
        StringValue(mask);
    if (!NIL_P(mask) && RSTRING_LEN(mask) != 4)
        rb_raise(rb_eArgError, "the mask has %ld bytes, but must have 4", RSTRING_LEN(mask));
    size_t size = (size_t)RSTRING_LEN(payload);
    const uint8_t *key = NIL_P(mask) ? NULL : (const uint8_t *)RSTRING_PTR(mask);
    size_t used = heddle_websocket_write_head(head, (heddle_websocket_opcode)NUM2UINT(opcode), false, size, key);
    VALUE frame = rb_str_buf_new((long)(used + size));
    rb_str_cat(frame, head, (long)used);
    rb_str_cat(frame, RSTRING_PTR(payload), (long)size);
    if (key)
        heddle_websocket_mask(RSTRING_PTR(frame) + used, size, key, 0);
    RB_GC_GUARD(mask);
    RB_GC_GUARD(payload);
    return frame;
}

/* May a close frame have this code? */
static VALUE codec_code_p(VALUE class, VALUE code)
{
    return heddle_websocket_code_is_valid(NUM2UINT(code)) ? Qtrue : Qfalse;
}

void Init_heddle_websocket_codec(VALUE module)
{
    VALUE class = heddle_define_class(module, "Codec", codec_allocate);
    rb_define_method(class, "initialize", codec_initialize, 2);
    rb_define_method(class, "read", codec_read, 1);
    rb_define_singleton_method(class, "frame", codec_frame, 3);
    rb_define_singleton_method(class, "code?", codec_code_p, 1);
}
