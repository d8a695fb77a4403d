/* Makes Ruby objects from parsed heads: fields, responses and rejections. Reads the limits of the parsers from Ruby. */

#include "http/fields.h"
#include "http/http.h"
#include "http/head_ruby.h"
#include "http/text.h"

#include <ruby/encoding.h>

static VALUE h1_module;
static VALUE names[HEDDLE_FIELD_COUNT]; /* frozen */

static VALUE text_of(const char *bytes, heddle_slice slice)
{
    return rb_str_new(bytes + slice.start, slice.size);
}

VALUE heddle_rejection_object(const heddle_rejection *rejection)
{
    VALUE reason = rb_obj_freeze(rb_utf8_str_new_cstr(rejection->reason));
    return rb_funcall(rb_path2class("Heddle::HTTP::Rejection"), rb_intern("new"), 2, INT2FIX(rejection->status),
                      reason);
}

/* -- limits ------------------------------------------------------------------------------------------------------- */

/* Reads a limit: an Integer that is not negative. An Integer of more than 62 bits means no limit. */
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

/* Replaces each fold, and the white space around it, with one space (RFC 9112, 5.2). */
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

static VALUE truth_of(bool value)
{
    return value ? Qtrue : Qfalse;
}

static void set_length(VALUE object, int64_t length)
{
    rb_ivar_set(object, rb_intern("@chunked"), truth_of(length == HEDDLE_CHUNKED_BODY));
    rb_ivar_set(object, rb_intern("@content_length"), length >= 0 ? LL2NUM(length) : Qnil);
}

VALUE heddle_received_response(const char *bytes, const heddle_response_head *head)
{
    VALUE object = rb_obj_alloc(rb_const_get(h1_module, rb_intern("ReceivedResponse"))); /* loaded by autoload */
    rb_ivar_set(object, rb_intern("@status"), INT2FIX(head->status));
    rb_ivar_set(object, rb_intern("@reason"), text_of(bytes, head->reason));
    rb_ivar_set(object, rb_intern("@fields"),
                heddle_fields_array(bytes, head->fields, head->field_count, head->folded));
    set_length(object, head->content_length);
    rb_ivar_set(object, rb_intern("@until_close"), truth_of(head->until_close));
    rb_ivar_set(object, rb_intern("@upgrade"), truth_of(head->upgrade));
    return object;
}

static void define_names(void)
{
    for (heddle_field_id id = HEDDLE_FIELD_OTHER + 1; id < HEDDLE_FIELD_COUNT; id++) {
        const char *name = heddle_field_name(id);
        names[id] = rb_enc_interned_str(name, (long)strlen(name), rb_ascii8bit_encoding());
        rb_gc_register_mark_object(names[id]);
    }
}

void Init_heddle_http_heads(VALUE h1)
{
    h1_module = h1;
    define_names();
}
