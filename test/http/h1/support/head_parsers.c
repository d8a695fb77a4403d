/*
 * Heddle::HTTP::H1::HeadParser and ResponseParser: the server's and the client's parsers of heads, for Strings. The library
 * itself parses the input of connections only.
 */

/* sources: http/head_ruby.c http/h1/server/request_head.c http/h1/client/response_head.c http/h1/head.c http/h1/field_lines.c http/fields.c
 * http/control_fields.c http/content_length.c http/transfer_encoding.c http/target.c http/authority.c http/text.c
 * http/h1/line_errors.c http/rejection.c http/request_limits.c */

#include "http/fields.h"
#include "http/head_ruby.h"
#include "http/http.h"
#include "http/method.h"
#include "http/text.h"

#include <ruby/encoding.h>

static VALUE h1_module;

static VALUE to_binary(const char *bytes, size_t size)
{
    return rb_enc_str_new(bytes, (long)size, rb_ascii8bit_encoding());
}

static VALUE text_of(const char *bytes, heddle_slice slice)
{
    return to_binary(bytes + slice.start, slice.size);
}

typedef struct {
    heddle_http_limits limits;
    heddle_field *fields; /* limits.header_count elements */
} head_parser;

static void parser_free(void *data)
{
    xfree(((head_parser *)data)->fields);
    xfree(data);
}

static size_t parser_size(const void *data)
{
    const head_parser *parser = data;
    return sizeof(*parser) + (parser->fields ? parser->limits.header_count * sizeof(*parser->fields) : 0);
}

static const rb_data_type_t parser_type = {
    .wrap_struct_name = "Heddle::HTTP::H1::HeadParser",
    .function = {.dfree = parser_free, .dsize = parser_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE parser_allocate(VALUE class)
{
    head_parser *parser;
    return TypedData_Make_Struct(class, head_parser, &parser_type, parser);
}

/*
 * call-seq: new(configuration)
 */
static VALUE parser_initialize(VALUE self, VALUE configuration)
{
    head_parser *parser;
    TypedData_Get_Struct(self, head_parser, &parser_type, parser);
    heddle_http_limits limits = heddle_http_limits_of(configuration);
    heddle_field *fields = ALLOC_N(heddle_field, limits.header_count);
    xfree(parser->fields);
    parser->limits = limits;
    parser->fields = fields;
    return self;
}

typedef struct {
    const char *bytes;
    size_t size, position, seen; /* `size` and `seen` count from the position on */
} input;

static head_parser *parser_of(VALUE self)
{
    head_parser *parser;
    TypedData_Get_Struct(self, head_parser, &parser_type, parser);
    if (!parser->fields)
        rb_raise(rb_eArgError, "the parser has not been initialized");
    return parser;
}

/* buffer, position = 0, seen = position */
static input input_of(int argc, VALUE *argv)
{
    StringValue(argv[0]);
    size_t size = (size_t)RSTRING_LEN(argv[0]);
    size_t position = argc > 1 ? NUM2SIZET(argv[1]) : 0, seen = argc > 2 ? NUM2SIZET(argv[2]) : position;
    if (position > size || seen > size || seen < position)
        rb_raise(rb_eArgError, "the position is %zu, seen are %zu, of %zu bytes", position, seen, size);
    return (input){RSTRING_PTR(argv[0]) + position, size - position, position, seen - position};
}

/* The protocols of the Upgrade fields, in order. */
static VALUE read_protocols(const char *bytes, const heddle_field *fields, unsigned count)
{
    VALUE array = rb_ary_new();
    for (unsigned i = 0; i < count; i++) {
        if (fields[i].id != HEDDLE_FIELD_UPGRADE)
            continue;
        const char *at = bytes + fields[i].value.start, *end = at + fields[i].value.size, *element;
        size_t size;
        while ((element = heddle_next_element(&at, end, &size)))
            rb_ary_push(array, to_binary(element, size));
    }
    return array;
}

static VALUE truth_of(bool value)
{
    return value ? Qtrue : Qfalse;
}

static VALUE request_path(const char *bytes, const heddle_request_head *head)
{
    return head->path.size > 0 ? text_of(bytes, head->path) : to_binary("*", 1);
}

static VALUE request_object(const char *bytes, const heddle_request_head *head, size_t position)
{
    VALUE object = rb_obj_alloc(rb_const_get(h1_module, rb_intern("RequestHead")));
    rb_iv_set(object, "@method", text_of(bytes, head->method));
    rb_iv_set(object, "@target", text_of(bytes, head->target));
    rb_iv_set(object, "@path", request_path(bytes, head));
    rb_iv_set(object, "@query", text_of(bytes, head->query));
    rb_iv_set(object, "@minor", INT2FIX(head->minor));
    rb_iv_set(object, "@fields", heddle_fields_array(bytes, head->fields, head->field_count, false));
    rb_iv_set(object, "@authority", head->has_host ? text_of(bytes, head->authority) : Qnil);
    rb_iv_set(object, "@host", head->has_host ? text_of(bytes, head->host) : Qnil);
    rb_iv_set(object, "@port", head->has_host ? text_of(bytes, head->port) : Qnil);
    rb_iv_set(object, "@chunked", truth_of(head->content_length == HEDDLE_CHUNKED_BODY));
    rb_iv_set(object, "@content_length", head->content_length >= 0 ? LL2NUM(head->content_length) : Qnil);
    rb_iv_set(object, "@keep_alive", truth_of(head->keep_alive));
    rb_iv_set(object, "@expects_continue", truth_of(head->expects_continue));
    rb_iv_set(object, "@upgrade", head->upgrade ? read_protocols(bytes, head->fields, head->field_count) : Qnil);
    rb_iv_set(object, "@ending", SIZET2NUM(position + head->size));
    rb_iv_set(object, "@field_bytes", UINT2NUM(head->field_bytes));
    rb_iv_set(object, "@line_count", UINT2NUM(head->line_count));
    return object;
}

/*
 * call-seq: parse(buffer, position = 0, seen = position) -> RequestHead, Rejection or nil
 *
 * Parses the request head at the position of the buffer. `seen`: the end of the bytes that an earlier call for the same
 * head was given. nil: the head is incomplete, and valid so far.
 */
static VALUE parser_parse(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 3);
    head_parser *parser = parser_of(self);
    input in = input_of(argc, argv);
    heddle_request_head head = {.fields = parser->fields, .field_room = (uint16_t)parser->limits.header_count};
    heddle_rejection rejection;
    int result = heddle_request_head_parse(&head, in.bytes, in.size, in.seen, &parser->limits, &rejection);
    if (result == 0)
        return Qnil;
    VALUE object = result < 0 ? heddle_rejection_object(&rejection) : request_object(in.bytes, &head, in.position);
    RB_GC_GUARD(argv[0]);
    return object;
}

static VALUE response_object(const char *bytes, const heddle_response_head *head, size_t position)
{
    VALUE object = heddle_received_response(bytes, head);
    rb_iv_set(object, "@minor", INT2FIX(head->minor));
    rb_iv_set(object, "@keep_alive", truth_of(head->keep_alive));
    rb_iv_set(object, "@ending", SIZET2NUM(position + head->size));
    return object;
}

/*
 * call-seq: parse(method, buffer, position = 0, seen = position) -> ReceivedResponse, Rejection or nil
 *
 * Parses the head of a response, perhaps an interim one (1xx), to a request of the given method. The rest is as with
 * HeadParser#parse; a rejection has status 502.
 */
static VALUE response_parser_parse(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 2, 4);
    head_parser *parser = parser_of(self);
    heddle_method method = heddle_method_find(StringValueCStr(argv[0]), (size_t)RSTRING_LEN(argv[0]));
    input in = input_of(argc - 1, argv + 1);
    heddle_response_head head = {.fields = parser->fields, .field_room = (uint16_t)parser->limits.header_count};
    heddle_rejection rejection;
    int result = heddle_response_head_parse(&head, method, in.bytes, in.size, in.seen, &parser->limits, &rejection);
    if (result == 0)
        return Qnil;
    VALUE object = result < 0 ? heddle_rejection_object(&rejection) : response_object(in.bytes, &head, in.position);
    RB_GC_GUARD(argv[1]);
    return object;
}

__attribute__((visibility("default"))) void Init_head_parsers(void);

void Init_head_parsers(void)
{
    h1_module = rb_path2class("Heddle::HTTP::H1");
    Init_heddle_http_heads(h1_module);
    VALUE head_parser_class = rb_define_class_under(h1_module, "HeadParser", rb_cObject);
    rb_define_alloc_func(head_parser_class, parser_allocate);
    rb_define_method(head_parser_class, "initialize", parser_initialize, 1);
    rb_define_method(head_parser_class, "parse", parser_parse, -1);

    VALUE response_parser_class = rb_define_class_under(h1_module, "ResponseParser", rb_cObject);
    rb_define_alloc_func(response_parser_class, parser_allocate);
    rb_define_method(response_parser_class, "initialize", parser_initialize, 1);
    rb_define_method(response_parser_class, "parse", response_parser_parse, -1);
}
