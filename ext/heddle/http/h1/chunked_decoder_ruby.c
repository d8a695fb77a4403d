/* Heddle::HTTP::H1::ChunkedDecoder: decodes chunked bodies from Strings. */

#include "binding.h"
#include "http/head_ruby.h"
#include "http/http.h"

typedef struct {
    heddle_http_limits limits;
    heddle_chunked chunked;
    VALUE rejection; /* why the bytes are invalid: an HTTP::Rejection, or nil */
} decoder;

static const rb_data_type_t decoder_type =
    HEDDLE_TYPE("Heddle::HTTP::H1::ChunkedDecoder", RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_DECL_MARKING,
                .dmark = HEDDLE_REFERENCES(offsetof(decoder, rejection)),
                .dfree = RUBY_DEFAULT_FREE);

HEDDLE_RECORD_OF(decoder_of, decoder, decoder_type)

HEDDLE_ALLOCATE(decoder_allocate, decoder, decoder_type)

/*
 * call-seq: new(configuration)
 *
 * +configuration+ is an HTTP::Limits.
 */
static VALUE decoder_initialize(VALUE self, VALUE configuration)
{
    decoder *one = decoder_of(self);
    one->limits = heddle_http_limits_of(configuration);
    one->rejection = Qnil;
    heddle_chunked_start(&one->chunked, 0, 0);
    return self;
}

/*
 * call-seq: decode(buffer, position, output) -> Integer
 *
 * Decodes the buffer from +position+ on, and appends the content to +output+. Returns the position of the first byte
 * after the body; while the body is incomplete, this is the end of the buffer. Returns +position+ if the bytes are
 * invalid; then #rejection says why. Positions are in bytes.
 */
static VALUE decoder_decode(VALUE self, VALUE buffer, VALUE position, VALUE output)
{
    decoder *one = decoder_of(self);
    StringValue(buffer);
    StringValue(output); /* called before the buffer's size is read, because it may run Ruby code */
    size_t start = NUM2SIZET(position), size = (size_t)RSTRING_LEN(buffer);
    if (start > size)
        rb_raise(rb_eArgError, "position %zu is beyond the buffer of %zu bytes", start, size);
    if (!NIL_P(one->rejection))
        return position;
    if (output == buffer)
        rb_raise(rb_eArgError, "the output and the buffer must be different Strings");
    rb_str_modify_expand(output, (long)(size - start));
    long before = RSTRING_LEN(output);
    size_t length;
    heddle_rejection rejection;
    int64_t used = heddle_chunked_decode(&one->chunked, RSTRING_PTR(buffer) + start, size - start,
                                         RSTRING_PTR(output) + before, &length, &one->limits, &rejection);
    rb_str_set_len(output, before + (long)length);
    RB_GC_GUARD(buffer);
    if (used >= 0)
        return SIZET2NUM(start + (size_t)used);
    RB_OBJ_WRITE(self, &one->rejection, heddle_rejection_object(&rejection));
    return position;
}

#define METHODS(X)                                                                                                     \
    /* Are the body and its trailers complete? */                                                                      \
    X(decoder_done_p, "done?", decoder_of(self)->chunked.done ? Qtrue : Qfalse)                                        \
    /* Why the bytes are invalid; nil while all bytes were valid. */                                                   \
    X(decoder_rejection, "rejection", decoder_of(self)->rejection)
METHODS(HEDDLE_DEFINE_METHOD)

void Init_heddle_http_chunked(VALUE h1)
{
    VALUE class = heddle_define_class(h1, "ChunkedDecoder", decoder_allocate);
    rb_define_method(class, "initialize", decoder_initialize, 1);
    rb_define_method(class, "decode", decoder_decode, 3);
    METHODS(HEDDLE_REGISTER_METHOD)
}
