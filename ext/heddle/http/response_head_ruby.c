#include "http/response_head_ruby.h"

#include "http/content_length.h"
#include "http/field_value.h"

#include <ruby/encoding.h>

static VALUE invalid_response;
static bool lines_are_values; /* set before the first request */

/* -- buffers ----------------------------------------------------------------------------------------------------- */

enum { SMALLEST_BUFFER = 1024 };

static bool grow_buffer(heddle_buffer *buffer, size_t more)
{
    if (more <= buffer->room - buffer->used)
        return true;
    size_t room = buffer->room ? buffer->room : SMALLEST_BUFFER;
    while (room < buffer->used + more)
        room *= 2;
    char *bytes = realloc(buffer->bytes, room);
    if (!bytes)
        return false;
    buffer->bytes = bytes;
    buffer->room = room;
    return true;
}

void heddle_buffer_reserve(heddle_buffer *buffer, size_t more)
{
    if (!grow_buffer(buffer, more))
        rb_memerror();
}

void heddle_buffer_free(heddle_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (heddle_buffer){0};
}

/* -- the cache of valid names ------------------------------------------------------------------------------------ */

/*
 * A cache of valid field names in lower case, as Rack requires them. An application uses few names, so most names are
 * found here and need no check. The index of an entry is a hash of its name. Entries contain no Ruby objects, so the GC
 * need not mark them. Each thread has its own table.
 */
enum {
    PLACES = 128, /* a power of two */
    SHORTEST_KEPT = 4,
    LONGEST_KEPT = 31,
};

typedef struct {
    unsigned char size;
    char name[LONGEST_KEPT];
} kept_name;

static _Thread_local kept_name kept_names[PLACES];

/* Call this again after application code has run: the Ruby thread may then be on another native thread. */
static __attribute__((noinline)) kept_name *table_of_thread(void)
{
    __asm__ volatile("");
    return kept_names;
}

static inline kept_name *find_slot(kept_name *table, const char *name, size_t size)
{
    uint32_t first, last;
    memcpy(&first, name, sizeof(first));
    memcpy(&last, name + size - sizeof(last), sizeof(last));
    uint64_t mixed = ((uint64_t)first << 32 | (last ^ (uint32_t)size)) * UINT64_C(0x9E3779B97F4A7C15);
    return &table[mixed >> 57 & (PLACES - 1)];
}

static void keep_name(kept_name *kept, const char *name, size_t size)
{
    if (!heddle_head_writer_plain_name(name, size))
        return;
    for (size_t i = 0; i < size; i++) {
        if (name[i] >= 'A' && name[i] <= 'Z')
            return;
    }
    kept->size = (unsigned char)size;
    memcpy(kept->name, name, size);
}

/* -- rejected heads ---------------------------------------------------------------------------------------------- */

static VALUE to_binary(VALUE string)
{
    return rb_enc_str_new(RSTRING_PTR(string), RSTRING_LEN(string), rb_ascii8bit_encoding());
}

/*
 * `value`: a String, or nil if the field has no value. `original`: the value before its conversion to a String, or
 * Qundef if it was not converted.
 */
NORETURN(static void raise_invalid(heddle_field_result failure, VALUE name, VALUE value, VALUE original))
{
    if (original == Qundef)
        original = NIL_P(value) ? Qnil : to_binary(value);
    switch (failure) {
    case HEDDLE_BAD_VALUE:
        rb_raise(invalid_response,
                 "the value of the header %" PRIsVALUE " contains CR, LF or NUL: %+" PRIsVALUE
                 " (pass several values of a header as an Array)",
                 rb_funcall(name, rb_intern("downcase"), 0), to_binary(value));
    case HEDDLE_BAD_LENGTH:
        if (RSTRING_LEN(value) < 19 &&
            heddle_content_length_parse(RSTRING_PTR(value), (size_t)RSTRING_LEN(value)) >= 0)
            rb_raise(invalid_response, "there are two different content-lengths");
        rb_raise(invalid_response, "the content-length must be a number, but is %+" PRIsVALUE, original);
    case HEDDLE_BAD_CODING:
        rb_raise(invalid_response,
                 "the transfer-encoding is %+" PRIsVALUE ", but may only be identity or chunked (once), because the "
                 "server itself encodes the body",
                 original);
    default:
        rb_raise(invalid_response, "the header name %+" PRIsVALUE " has characters that are not allowed", name);
    }
}

NORETURN(static void reject_name(VALUE name))
{
    rb_raise(invalid_response, "the header name %+" PRIsVALUE " must be a String", name);
}

/* -- fields ------------------------------------------------------------------------------------------------------ */

typedef struct {
    heddle_head_writer *head;
    heddle_buffer *out;
    kept_name *kept;
    heddle_field_result failure; /* HEDDLE_FIELD_WRITTEN until a field is invalid */
    VALUE name, value;           /* the field that is invalid */
    bool unprepared;             /* prepare_headers must convert the headers, which runs application code */
    bool no_memory;
} field_writer;

static heddle_field_result write_bytes(field_writer *writer, const char *name, size_t name_size, const char *value,
                                       size_t value_size)
{
    if (name_size < SHORTEST_KEPT || name_size > LONGEST_KEPT)
        return heddle_head_writer_field(writer->head, writer->out, name, name_size, value, value_size);
    kept_name *kept = find_slot(writer->kept, name, name_size);
    if (kept->size == name_size && memcmp(kept->name, name, name_size) == 0)
        return heddle_head_writer_plain_field(writer->head, writer->out, name, name_size, value, value_size);
    heddle_field_result result =
        heddle_head_writer_field(writer->head, writer->out, name, name_size, value, value_size);
    if (result == HEDDLE_FIELD_WRITTEN)
        keep_name(kept, name, name_size);
    return result;
}

static bool write_values(field_writer *writer, VALUE name, VALUE values);

/* Writes one value of a field. Returns false if no more fields can be written: see `failure` and `no_memory`. */
static bool write_value(field_writer *writer, VALUE name, VALUE value)
{
    const char *name_bytes = RSTRING_PTR(name), *bytes = RSTRING_PTR(value);
    size_t name_size = (size_t)RSTRING_LEN(name), size = (size_t)RSTRING_LEN(value), before = writer->out->used;
    heddle_field_result result = write_bytes(writer, name_bytes, name_size, bytes, size);
    if (writer->out->used > writer->out->room) {
        size_t needed = writer->out->used - before;
        writer->out->used = before;
        writer->no_memory = !grow_buffer(writer->out, needed);
        if (writer->no_memory)
            return false;
        result = write_bytes(writer, name_bytes, name_size, bytes, size);
    }
    if (result <= HEDDLE_FIELD_TAKEN)
        return true;
    if (result == HEDDLE_BAD_VALUE && lines_are_values && memchr(bytes, '\n', size))
        return write_values(writer, name, rb_str_split(to_binary(value), "\n"));
    writer->failure = result;
    writer->name = name;
    writer->value = value;
    return false;
}

static bool ignore_field(heddle_head_writer *head, VALUE name)
{
    return heddle_head_writer_ignore(head, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
}

/* Checks the name of a field that has no values. */
static bool write_nothing(field_writer *writer, VALUE name)
{
    heddle_head_writer scratch = *writer->head;
    heddle_buffer none = {0};
    if (ignore_field(writer->head, name) ||
        heddle_head_writer_field(&scratch, &none, RSTRING_PTR(name), (size_t)RSTRING_LEN(name), "", 0) !=
            HEDDLE_BAD_NAME)
        return true;
    writer->failure = HEDDLE_BAD_NAME;
    writer->name = name;
    writer->value = Qnil;
    return false;
}

static bool write_values(field_writer *writer, VALUE name, VALUE values)
{
    if (RARRAY_LEN(values) == 0)
        return write_nothing(writer, name);
    for (long i = 0; i < RARRAY_LEN(values); i++) {
        VALUE value = RARRAY_AREF(values, i);
        if (!RB_TYPE_P(value, T_STRING)) {
            writer->unprepared = !ignore_field(writer->head, name);
            return !writer->unprepared;
        }
        if (!write_value(writer, name, value))
            return false;
    }
    return true;
}

static bool write_header(field_writer *writer, VALUE name, VALUE value)
{
    if (RB_TYPE_P(name, T_STRING)) {
        if (RB_TYPE_P(value, T_STRING))
            return write_value(writer, name, value);
        if (RB_TYPE_P(value, T_ARRAY))
            return write_values(writer, name, value);
        if (ignore_field(writer->head, name))
            return true;
    }
    writer->unprepared = true;
    return false;
}

static int write_pair(VALUE name, VALUE value, VALUE writer)
{
    return write_header((field_writer *)writer, name, value) ? ST_CONTINUE : ST_STOP;
}

/* -- headers that are not a Hash of Strings ---------------------------------------------------------------------- */

static int collect_pair(VALUE name, VALUE value, VALUE pairs)
{
    rb_ary_push(pairs, rb_assoc_new(name, value));
    return ST_CONTINUE;
}

static VALUE collect_yielded(RB_BLOCK_CALL_FUNC_ARGLIST(yielded, pairs))
{
    VALUE pair = argc == 1 ? rb_check_array_type(argv[0]) : Qnil;
    if (NIL_P(pair))
        rb_ary_push(pairs, rb_assoc_new(argc > 0 ? argv[0] : Qnil, argc > 1 ? argv[1] : Qnil));
    else
        rb_ary_push(pairs, rb_assoc_new(rb_ary_entry(pair, 0), rb_ary_entry(pair, 1)));
    return Qnil;
}

static bool is_plain_hash(VALUE headers)
{
    return RB_TYPE_P(headers, T_HASH) &&
           (rb_obj_class(headers) == rb_cHash || rb_method_basic_definition_p(CLASS_OF(headers), rb_intern("each")));
}

static VALUE strings_of(VALUE value)
{
    if (!RB_TYPE_P(value, T_ARRAY))
        return rb_ary_new_from_args(1, rb_obj_as_string(value));
    VALUE strings = rb_ary_new_capa(RARRAY_LEN(value));
    for (long i = 0; i < RARRAY_LEN(value); i++)
        rb_ary_push(strings, rb_obj_as_string(RARRAY_AREF(value, i)));
    return strings;
}

/* Returns a flat Array with three elements for each header: its name, an Array of Strings, and the original value. */
static VALUE prepare_headers(heddle_head_writer *head, VALUE headers)
{
    VALUE pairs = rb_ary_new();
    if (is_plain_hash(headers))
        rb_hash_foreach(headers, collect_pair, pairs);
    else
        rb_block_call(headers, rb_intern("each"), 0, NULL, collect_yielded, pairs);

    VALUE prepared = rb_ary_new_capa(3 * RARRAY_LEN(pairs));
    for (long i = 0; i < RARRAY_LEN(pairs); i++) {
        VALUE name = RARRAY_AREF(RARRAY_AREF(pairs, i), 0), value = RARRAY_AREF(RARRAY_AREF(pairs, i), 1);
        if (!RB_TYPE_P(name, T_STRING))
            reject_name(name);
        if (ignore_field(head, name))
            continue;
        rb_ary_push(prepared, rb_str_new_frozen(name));
        rb_ary_push(prepared, strings_of(value));
        rb_ary_push(prepared, value);
    }
    return prepared;
}

/*
 * Converts the headers, which runs application code. Other fibers may use the buffer meanwhile, so its content is
 * restored afterwards.
 */
static VALUE prepare_aside(heddle_head_writer *head, heddle_buffer *out, size_t restart, VALUE headers)
{
    VALUE before = rb_str_new(out->bytes, (long)out->used);
    out->used = restart;
    VALUE prepared = prepare_headers(head, headers);
    out->used = 0;
    heddle_buffer_reserve(out, (size_t)RSTRING_LEN(before));
    if (RSTRING_LEN(before) > 0)
        memcpy(out->bytes, RSTRING_PTR(before), (size_t)RSTRING_LEN(before));
    out->used = (size_t)RSTRING_LEN(before);
    RB_GC_GUARD(before);
    return prepared;
}

static void check_written(field_writer *writer, size_t restart, VALUE original)
{
    if (writer->failure != HEDDLE_FIELD_WRITTEN || writer->no_memory)
        writer->out->used = restart;
    if (writer->no_memory)
        rb_memerror();
    if (writer->failure != HEDDLE_FIELD_WRITTEN)
        raise_invalid(writer->failure, writer->name, writer->value, original);
}

static void write_prepared(field_writer *writer, size_t restart, VALUE prepared)
{
    for (long i = 0; i < RARRAY_LEN(prepared); i += 3) {
        write_values(writer, RARRAY_AREF(prepared, i), RARRAY_AREF(prepared, i + 1));
        VALUE original = RARRAY_AREF(prepared, i + 2);
        check_written(writer, restart, RB_TYPE_P(original, T_STRING) ? Qundef : original);
    }
    RB_GC_GUARD(prepared);
}

/* Writes all fields. `restart`: the number of bytes in the buffer that are kept if an exception is raised. */
static void write_headers(heddle_head_writer *head, heddle_buffer *out, VALUE headers, size_t restart)
{
    size_t start = out->used;
    heddle_head_writer before = *head;
    field_writer writer = {.head = head, .out = out, .kept = table_of_thread(), .failure = HEDDLE_FIELD_WRITTEN};
    if (is_plain_hash(headers))
        rb_hash_foreach(headers, write_pair, (VALUE)&writer);
    else
        writer.unprepared = true;
    check_written(&writer, restart, Qundef);
    if (writer.unprepared) {
        out->used = start;
        *head = before;
        VALUE prepared = prepare_aside(head, out, restart, headers);
        writer.kept = table_of_thread();
        write_prepared(&writer, restart, prepared);
    }
    RB_GC_GUARD(headers);
}

/* -- whole heads ------------------------------------------------------------------------------------------------- */

int heddle_response_status(VALUE status)
{
    VALUE number = FIXNUM_P(status) ? status : rb_check_funcall(status, rb_intern("to_i"), 0, NULL);
    if (FIXNUM_P(number)) {
        long code = FIX2LONG(number);
        if ((code >= 200 && code <= 999) || code == 101)
            return (int)code;
    }
    rb_raise(invalid_response, "the status is %+" PRIsVALUE ": it must be from 200 to 999, or 101 for an upgrade",
             status);
}

/* Raises if the response has the status 101 and may not have it (RFC 9110, 7.8 and 15.2; RFC 9113, 8.6). */
static void check_switch(const heddle_head_writer *head, heddle_buffer *out, size_t restart, size_t protocol_size)
{
    if (head->status != 101 || (head->upgrade && (protocol_size || head->declared_upgrade)))
        return;
    out->used = restart;
    if (head->form == HEDDLE_AS_FIELDS)
        rb_raise(invalid_response, "the status 101 is not allowed in a response over HTTP/2");
    if (!head->upgrade)
        rb_raise(invalid_response,
                 "the status 101 is allowed only if the request has an upgrade header: check env[\"rack.protocol\"]");
    rb_raise(invalid_response, "the status 101 needs an upgrade header with the protocol");
}

static VALUE checked_protocol(VALUE protocol)
{
    if (!RB_TYPE_P(protocol, T_STRING) || RSTRING_LEN(protocol) == 0)
        rb_raise(invalid_response, "the protocol to upgrade to must be a name, but is %+" PRIsVALUE, protocol);
    if (heddle_value_is_forbidden(RSTRING_PTR(protocol), (size_t)RSTRING_LEN(protocol)))
        raise_invalid(HEDDLE_BAD_VALUE, rb_str_new_cstr("rack.protocol"), protocol, Qundef);
    return rb_str_new_frozen(protocol);
}

/* Bytes: enough for the beginning and the end of a head, apart from the protocol and the date. */
enum { FRAME = 256 };

void heddle_response_head_write(heddle_head_writer *head, heddle_buffer *out, VALUE headers, VALUE protocol,
                                const char *date, size_t date_size)
{
    size_t start = out->used, protocol_size = 0;
    if (!NIL_P(protocol)) {
        protocol = checked_protocol(protocol);
        protocol_size = (size_t)RSTRING_LEN(protocol);
        head->status = 101;
    }
    heddle_buffer_reserve(out, FRAME);
    heddle_head_writer_begin(head, out);
    write_headers(head, out, headers, start);
    check_switch(head, out, start, protocol_size);
    if (!grow_buffer(out, FRAME + date_size + protocol_size)) {
        out->used = start;
        rb_memerror();
    }
    heddle_head_writer_end(head, out, date, date_size, protocol_size ? RSTRING_PTR(protocol) : NULL, protocol_size);
    RB_GC_GUARD(protocol);
}

void heddle_early_hints(heddle_buffer *out, VALUE headers, heddle_head_form form)
{
    size_t start = out->used;
    heddle_head_writer head = {.form = form, .minor = 1, .status = 103, .length = -1};
    heddle_buffer_reserve(out, FRAME);
    heddle_head_writer_begin(&head, out);
    write_headers(&head, out, headers, start);
    if (form == HEDDLE_AS_FIELDS)
        return;
    if (!grow_buffer(out, 2)) {
        out->used = start;
        rb_memerror();
    }
    memcpy(out->bytes + out->used, "\r\n", 2);
    out->used += 2;
}

/*
 * call-seq: Heddle::Native.lines_are_values = true or false
 *
 * Sets whether a header may have several values in one String, one on each line, as in Rack 2. In Rack 3 several values
 * are an Array, and a line end in a value is an error.
 */
static VALUE set_lines_are_values(VALUE self, VALUE yes)
{
    lines_are_values = RTEST(yes);
    return yes;
}

void Init_heddle_response_head(VALUE http)
{
    rb_define_singleton_method(rb_path2class("Heddle::Native"), "lines_are_values=", set_lines_are_values, 1);

    /*
     * Raised when a response of the application can't be sent as HTTP, for example because a header contains a line
     * end. If the body is at fault, a part of the response may have been sent; otherwise nothing was.
     */
    invalid_response = rb_define_class_under(http, "InvalidResponseError", rb_eStandardError);
    rb_include_module(invalid_response, rb_path2class("Heddle::Error"));
    rb_gc_register_mark_object(invalid_response);
}
