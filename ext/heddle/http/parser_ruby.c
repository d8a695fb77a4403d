/* Heddle::HTTP::H1::HeadParser, ResponseParser and ChunkedDecoder: the parsers, for Strings. */

#include "http/fields.h"
#include "http/http.h"
#include "http/message.h"
#include "http/parser_ruby.h"
#include "http/text.h"

#include <ruby/encoding.h>

static VALUE h1_module;
static VALUE names[HEDDLE_FIELD_COUNT]; /* frozen */
static ID id_new, id_method, id_target, id_path, id_query, id_minor, id_fields, id_authority, id_host, id_port,
    id_content_length, id_chunked, id_keep_alive, id_expects_continue, id_upgrade, id_ending, id_field_bytes,
    id_line_count, id_status, id_reason, id_until_close;

static VALUE to_binary(const char *bytes, size_t size)
{
    return rb_enc_str_new(bytes, (long)size, rb_ascii8bit_encoding());
}

static VALUE text_of(const char *bytes, heddle_slice slice)
{
    return to_binary(bytes + slice.start, slice.size);
}

static VALUE find_class(const char *name)
{
    return rb_const_get(h1_module, rb_intern(name)); /* loaded by autoload */
}

VALUE heddle_rejection_object(const heddle_rejection *rejection)
{
    VALUE reason = rb_obj_freeze(rb_utf8_str_new_cstr(rejection->reason));
    return rb_funcall(rb_path2class("Heddle::HTTP::Rejection"), id_new, 2, INT2FIX(rejection->status), reason);
}

/* -- limits ------------------------------------------------------------------------------------------------------- */

/* An Integer that is not negative; one beyond 62 bits means no limit. */
static uint64_t read_limit(VALUE configuration, const char *name)
{
    VALUE value = rb_funcall(configuration, rb_intern(name), 0);
    return FIXNUM_P(value) ? (uint64_t)FIX2LONG(value) : (uint64_t)FIXNUM_MAX;
}

heddle_http_limits heddle_http_limits_of(VALUE configuration)
{
    uint64_t count = read_limit(configuration, "header_count");
    return (heddle_http_limits){
        .request_line = read_limit(configuration, "request_line_limit"),
        .header = read_limit(configuration, "header_limit"),
        .header_count = count > UINT16_MAX ? UINT16_MAX : (unsigned)count,
        .body = read_limit(configuration, "body_limit"),
        .chunk_extension = read_limit(configuration, "chunk_extension_limit"),
        .chunk_overhead = read_limit(configuration, "chunk_overhead_limit"),
        .keep_underscores = RTEST(rb_funcall(configuration, rb_intern("underscore_headers"), 0)),
    };
}

/* -- heads -------------------------------------------------------------------------------------------------------- */

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

static VALUE copy_lower_case(const char *bytes, heddle_slice name)
{
    VALUE string = text_of(bytes, name);
    char *text = RSTRING_PTR(string);
    for (uint32_t i = 0; i < name.size; i++) {
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] |= 0x20;
    }
    return string;
}

/* Each fold with the white space around it becomes one space (RFC 9112, 5.2). */
static VALUE unfold_value(const char *bytes, heddle_slice value)
{
    VALUE string = text_of(bytes, value);
    char *text = RSTRING_PTR(string);
    long length = 0;
    for (uint32_t i = 0; i < value.size; i++) {
        if (text[i] != '\r') {
            text[length++] = text[i];
            continue;
        }
        while (length > 0 && heddle_is_space(text[length - 1]))
            length--;
        while (i + 1 < value.size && (text[i + 1] == '\n' || text[i + 1] == '\r' || heddle_is_space(text[i + 1])))
            i++;
        text[length++] = ' ';
    }
    rb_str_set_len(string, length);
    return string;
}

/* name, value, name, value … */
VALUE heddle_fields_array(const char *bytes, const heddle_field *fields, unsigned count, bool folded)
{
    VALUE array = rb_ary_new_capa((long)count * 2);
    for (unsigned i = 0; i < count; i++) {
        const heddle_field *field = &fields[i];
        rb_ary_push(array, field->id == HEDDLE_FIELD_OTHER ? copy_lower_case(bytes, field->name) : names[field->id]);
        rb_ary_push(array, folded ? unfold_value(bytes, field->value) : text_of(bytes, field->value));
    }
    return array;
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

static void set_length(VALUE object, int64_t length)
{
    rb_ivar_set(object, id_chunked, truth_of(length == HEDDLE_CHUNKED_BODY));
    rb_ivar_set(object, id_content_length, length >= 0 ? LL2NUM(length) : Qnil);
}

static VALUE request_path(const char *bytes, const heddle_request_head *head)
{
    return head->path.size > 0 ? text_of(bytes, head->path) : to_binary("*", 1);
}

static VALUE request_object(const char *bytes, const heddle_request_head *head, size_t position)
{
    VALUE object = rb_obj_alloc(find_class("RequestHead"));
    rb_ivar_set(object, id_method, text_of(bytes, head->method));
    rb_ivar_set(object, id_target, text_of(bytes, head->target));
    rb_ivar_set(object, id_path, request_path(bytes, head));
    rb_ivar_set(object, id_query, text_of(bytes, head->query));
    rb_ivar_set(object, id_minor, INT2FIX(head->minor));
    rb_ivar_set(object, id_fields, heddle_fields_array(bytes, head->fields, head->field_count, false));
    rb_ivar_set(object, id_authority, head->has_host ? text_of(bytes, head->authority) : Qnil);
    rb_ivar_set(object, id_host, head->has_host ? text_of(bytes, head->host) : Qnil);
    rb_ivar_set(object, id_port, head->has_host ? text_of(bytes, head->port) : Qnil);
    set_length(object, head->content_length);
    rb_ivar_set(object, id_keep_alive, truth_of(head->keep_alive));
    rb_ivar_set(object, id_expects_continue, truth_of(head->expects_continue));
    rb_ivar_set(object, id_upgrade, head->upgrade ? read_protocols(bytes, head->fields, head->field_count) : Qnil);
    rb_ivar_set(object, id_ending, SIZET2NUM(position + head->size));
    rb_ivar_set(object, id_field_bytes, UINT2NUM(head->field_bytes));
    rb_ivar_set(object, id_line_count, UINT2NUM(head->line_count));
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

VALUE heddle_received_response(const char *bytes, const heddle_response_head *head, size_t position)
{
    VALUE object = rb_obj_alloc(find_class("ReceivedResponse"));
    rb_ivar_set(object, id_status, INT2FIX(head->status));
    rb_ivar_set(object, id_reason, text_of(bytes, head->reason));
    rb_ivar_set(object, id_minor, INT2FIX(head->minor));
    rb_ivar_set(object, id_fields, heddle_fields_array(bytes, head->fields, head->field_count, head->folded));
    set_length(object, head->content_length);
    rb_ivar_set(object, id_until_close, truth_of(head->until_close));
    rb_ivar_set(object, id_keep_alive, truth_of(head->keep_alive));
    rb_ivar_set(object, id_upgrade, truth_of(head->upgrade));
    rb_ivar_set(object, id_ending, SIZET2NUM(position + head->size));
    rb_ivar_set(object, id_field_bytes, UINT2NUM(head->field_bytes));
    rb_ivar_set(object, id_line_count, UINT2NUM(head->line_count));
    return object;
}

heddle_method heddle_response_method(VALUE name)
{
    const char *text = StringValueCStr(name);
    if (strcmp(text, "HEAD") == 0)
        return HEDDLE_HEAD;
    return strcmp(text, "CONNECT") == 0 ? HEDDLE_CONNECT : HEDDLE_METHOD_OTHER;
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
    heddle_method method = heddle_response_method(argv[0]);
    input in = input_of(argc - 1, argv + 1);
    heddle_response_head head = {.fields = parser->fields, .field_room = (uint16_t)parser->limits.header_count};
    heddle_rejection rejection;
    int result = heddle_response_head_parse(&head, method, in.bytes, in.size, in.seen, &parser->limits, &rejection);
    if (result == 0)
        return Qnil;
    VALUE object = result < 0 ? heddle_rejection_object(&rejection) : heddle_received_response(in.bytes, &head, in.position);
    RB_GC_GUARD(argv[1]);
    return object;
}

/* -- chunked bodies ----------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_http_limits limits;
    heddle_chunked chunked;
    VALUE rejection; /* or nil */
} decoder;

static void decoder_mark(void *data)
{
    rb_gc_mark_movable(((decoder *)data)->rejection);
}

static void decoder_compact(void *data)
{
    decoder *self = data;
    self->rejection = rb_gc_location(self->rejection);
}

static size_t decoder_size(const void *data)
{
    return sizeof(decoder);
}

static const rb_data_type_t decoder_type = {
    .wrap_struct_name = "Heddle::HTTP::H1::ChunkedDecoder",
    .function = {.dmark = decoder_mark,
                 .dfree = RUBY_DEFAULT_FREE,
                 .dsize = decoder_size,
                 .dcompact = decoder_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static decoder *decoder_of(VALUE self)
{
    decoder *one;
    TypedData_Get_Struct(self, decoder, &decoder_type, one);
    return one;
}

static VALUE decoder_allocate(VALUE class)
{
    decoder *one;
    VALUE self = TypedData_Make_Struct(class, decoder, &decoder_type, one);
    one->rejection = Qnil;
    return self;
}

/*
 * call-seq: new(configuration, header_bytes: 0, header_count: 0)
 *
 * `header_bytes`, `header_count`: size and number of the field lines of the head, because trailers count against the
 * same limits.
 */
static VALUE decoder_initialize(int argc, VALUE *argv, VALUE self)
{
    VALUE configuration, keywords, values[2] = {Qundef, Qundef};
    ID ids[2] = {rb_intern("header_bytes"), rb_intern("header_count")};
    rb_scan_args(argc, argv, "1:", &configuration, &keywords);
    if (!NIL_P(keywords))
        rb_get_kwargs(keywords, ids, 0, 2, values);
    decoder *one = decoder_of(self);
    one->limits = heddle_http_limits_of(configuration);
    heddle_chunked_start(&one->chunked, values[0] == Qundef ? 0 : NUM2UINT(values[0]),
                         values[1] == Qundef ? 0 : NUM2UINT(values[1]));
    return self;
}

/*
 * call-seq: decode(buffer, position, output) -> Integer
 *
 * Appends the body's bytes to the output. Returns the position of the first byte that is not part of the body: the end
 * of the buffer until the body is complete, or where decoding began if the bytes are invalid: see #rejection.
 */
static VALUE decoder_decode(VALUE self, VALUE buffer, VALUE position, VALUE output)
{
    decoder *one = decoder_of(self);
    input in = input_of(2, (VALUE[]){buffer, position});
    if (!NIL_P(one->rejection))
        return position;
    StringValue(output);
    if (output == buffer)
        rb_raise(rb_eArgError, "the output must be another String than the buffer");
    rb_str_modify_expand(output, (long)in.size);
    long before = RSTRING_LEN(output);
    size_t length;
    heddle_rejection rejection;
    int64_t used = heddle_chunked_decode(&one->chunked, in.bytes, in.size, RSTRING_PTR(output) + before, &length,
                                         &one->limits, &rejection);
    rb_str_set_len(output, before + (long)length);
    RB_GC_GUARD(buffer);
    if (used >= 0)
        return SIZET2NUM(in.position + (size_t)used);
    RB_OBJ_WRITE(self, &one->rejection, heddle_rejection_object(&rejection));
    return position;
}

/*
 * call-seq: done? -> true or false
 *
 * Are the body and its trailers complete?
 */
static VALUE decoder_done_p(VALUE self)
{
    return truth_of(decoder_of(self)->chunked.done);
}

/*
 * call-seq: rejection -> Rejection or nil
 *
 * Why the bytes were invalid.
 */
static VALUE decoder_rejection(VALUE self)
{
    return decoder_of(self)->rejection;
}

/*
 * call-seq: remaining -> nil
 *
 * How many bytes are to come is unknown.
 */
static VALUE decoder_remaining(VALUE self)
{
    return Qnil;
}

static void define_names(void)
{
    for (heddle_field_id id = HEDDLE_FIELD_OTHER + 1; id < HEDDLE_FIELD_COUNT; id++) {
        const char *name = heddle_field_name(id);
        names[id] = rb_enc_interned_str(name, (long)strlen(name), rb_ascii8bit_encoding());
        rb_gc_register_mark_object(names[id]);
    }
    id_new = rb_intern("new");
    id_method = rb_intern("@method");
    id_target = rb_intern("@target");
    id_path = rb_intern("@path");
    id_query = rb_intern("@query");
    id_minor = rb_intern("@minor");
    id_fields = rb_intern("@fields");
    id_authority = rb_intern("@authority");
    id_host = rb_intern("@host");
    id_port = rb_intern("@port");
    id_content_length = rb_intern("@content_length");
    id_chunked = rb_intern("@chunked");
    id_keep_alive = rb_intern("@keep_alive");
    id_expects_continue = rb_intern("@expects_continue");
    id_upgrade = rb_intern("@upgrade");
    id_ending = rb_intern("@ending");
    id_field_bytes = rb_intern("@field_bytes");
    id_line_count = rb_intern("@line_count");
    id_status = rb_intern("@status");
    id_reason = rb_intern("@reason");
    id_until_close = rb_intern("@until_close");
}

void Init_heddle_http_parser(VALUE h1)
{
    h1_module = h1;
    define_names();
    VALUE head_parser_class = rb_define_class_under(h1, "HeadParser", rb_cObject);
    rb_define_alloc_func(head_parser_class, parser_allocate);
    rb_define_method(head_parser_class, "initialize", parser_initialize, 1);
    rb_define_method(head_parser_class, "parse", parser_parse, -1);

    VALUE response_parser_class = rb_define_class_under(h1, "ResponseParser", rb_cObject);
    rb_define_alloc_func(response_parser_class, parser_allocate);
    rb_define_method(response_parser_class, "initialize", parser_initialize, 1);
    rb_define_method(response_parser_class, "parse", response_parser_parse, -1);

    VALUE decoder_class = rb_define_class_under(h1, "ChunkedDecoder", rb_cObject);
    rb_define_alloc_func(decoder_class, decoder_allocate);
    rb_define_method(decoder_class, "initialize", decoder_initialize, -1);
    rb_define_method(decoder_class, "decode", decoder_decode, 3);
    rb_define_method(decoder_class, "done?", decoder_done_p, 0);
    rb_define_method(decoder_class, "rejection", decoder_rejection, 0);
    rb_define_method(decoder_class, "remaining", decoder_remaining, 0);
}
