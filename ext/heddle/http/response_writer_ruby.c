/* Heddle::HTTP::ResponseWriter: writes heads of responses as Strings. */

#include "binding.h"
#include "http/response_head_ruby.h"
#include "http/http.h"
#include "http/method.h"
#include "selector/clock.h"

typedef struct {
    heddle_buffer buffer;
    heddle_head_form form;
    int64_t second; /* the time of `date`, in seconds since 1970 */
    char date[HEDDLE_DATE_LINE + 1]; /* the `date` line (RFC 9110, 5.6.7), formatted once a second */
} response_writer;

static void writer_free(void *data)
{
    heddle_buffer_free(&((response_writer *)data)->buffer);
    xfree(data);
}

static const rb_data_type_t writer_type =
    HEDDLE_TYPE("Heddle::HTTP::ResponseWriter", RUBY_TYPED_WB_PROTECTED, .dfree = writer_free);

static VALUE allocate_writer(VALUE class, heddle_head_form form)
{
    response_writer *writer;
    VALUE self = TypedData_Make_Struct(class, response_writer, &writer_type, writer);
    writer->form = form;
    return self;
}

static VALUE line_writer_allocate(VALUE class)
{
    return allocate_writer(class, HEDDLE_AS_LINES);
}

static VALUE field_writer_allocate(VALUE class)
{
    return allocate_writer(class, HEDDLE_AS_FIELDS);
}

HEDDLE_RECORD_OF(writer_of, response_writer, writer_type)

static void update_date(response_writer *writer)
{
    int64_t second = heddle_clock_read(CLOCK_REALTIME) / HEDDLE_SECOND;
    if (second == writer->second)
        return;
    writer->second = second;
    heddle_date_line(writer->date, second);
}

static heddle_method method_of(VALUE request)
{
    VALUE method = rb_String(rb_funcall(request, rb_intern("method"), 0));
    return heddle_method_find(RSTRING_PTR(method), (size_t)RSTRING_LEN(method));
}

static VALUE framing_name(heddle_framing framing)
{
    static const char *const names[] = {
        [HEDDLE_CONTENT_BY_LENGTH] = "length", [HEDDLE_CONTENT_CHUNKED] = "chunked",
        [HEDDLE_CONTENT_UNTIL_CLOSE] = "close", [HEDDLE_CONTENT_RAW] = "raw", [HEDDLE_NO_CONTENT] = "none",
    };
    return ID2SYM(rb_intern(names[framing]));
}

/*
 * call-seq: head(request, status, headers, length, keep_alive, protocol, until_close) -> ResponseHead
 *
 * `request`: an Exchange; `headers`: a Hash of Strings and Arrays of Strings, or an object that yields the same;
 * `length`: the length of the content in bytes, which overrides content-length, or nil if it is unknown; `keep_alive`:
 * whether the server would keep the connection open; `protocol`: the protocol to upgrade to, or nil; `until_close`:
 * whether content of unknown length is sent as it is and ends with the connection, also over HTTP/1.1. With
 * `until_close`, the application's transfer-encoding is sent, because the application encodes the content. Raises
 * InvalidResponseError.
 */
static VALUE writer_head(VALUE self, VALUE request, VALUE status, VALUE headers, VALUE length, VALUE keep_alive,
                         VALUE protocol, VALUE until_close)
{
    response_writer *writer = writer_of(self);
    heddle_head_writer head = {
        .request = method_of(request),
        .form = writer->form,
        .minor = (uint8_t)NUM2UINT(rb_funcall(request, rb_intern("minor"), 0)),
        .status = NIL_P(protocol) ? heddle_response_status(status) : 101,
        .keep_alive = RTEST(keep_alive) && RTEST(rb_funcall(request, rb_intern("keep_alive?"), 0)),
        .until_close = RTEST(until_close),
        .length = NIL_P(length) ? -1 : NUM2LL(length),
    };
    head.upgrade = head.status == 101 && RTEST(rb_funcall(request, rb_intern("upgrade_offered?"), 0));
    update_date(writer);
    writer->buffer.used = 0;
    heddle_response_head_write(&head, &writer->buffer, headers, protocol, writer->date, HEDDLE_DATE_LINE);
    VALUE bytes = rb_str_new(writer->buffer.bytes, (long)writer->buffer.used);
    VALUE values[] = {
        INT2FIX(head.status), bytes, framing_name(head.framing), head.length < 0 ? Qnil : LL2NUM(head.length),
        head.keep_alive ? Qtrue : Qfalse, head.declared_chunked ? Qtrue : Qfalse,
    };
    return rb_class_new_instance(6, values, rb_path2class("Heddle::HTTP::ResponseHead"));
}

/*
 * call-seq: early_hints(headers) -> String
 *
 * Returns an interim response 103 (RFC 8297). Raises InvalidResponseError.
 */
static VALUE writer_early_hints(VALUE self, VALUE headers)
{
    response_writer *writer = writer_of(self);
    writer->buffer.used = 0;
    heddle_early_hints(&writer->buffer, headers, writer->form);
    return rb_str_new(writer->buffer.bytes, (long)writer->buffer.used);
}

void Init_heddle_http_writer(VALUE http)
{
    Init_heddle_response_head(http);

    /*
     * Writes heads of responses as bytes (RFC 9110, 6.4 and 15). Does no I/O. A writer belongs to one loop.
     * H1::ResponseWriter writes the lines of RFC 9112. H2::ResponseWriter writes fields for H2::Exchange#write_head.
     */
    VALUE writer = heddle_define_class(http, "ResponseWriter", NULL);
    rb_define_method(writer, "head", writer_head, 7);
    rb_define_method(writer, "early_hints", writer_early_hints, 1);

    VALUE lines = rb_define_class_under(rb_define_module_under(http, "H1"), "ResponseWriter", writer);
    rb_define_alloc_func(lines, line_writer_allocate);
    /* The whole interim response 100 Continue (RFC 9110, 15.2.1). */
    rb_define_const(lines, "CONTINUE", rb_obj_freeze(rb_str_new_lit("HTTP/1.1 100 Continue\r\n\r\n")));
    VALUE fields = rb_define_class_under(rb_define_module_under(http, "H2"), "ResponseWriter", writer);
    rb_define_alloc_func(fields, field_writer_allocate);
}
