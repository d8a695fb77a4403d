/* An env from a head and a connection that are Ruby objects, as tests have them. */

#include "rack/env_of_object.h"

#include "http/fields.h"
#include "rack/env.h"

#include <arpa/inet.h>
#include <string.h>

static VALUE ask(VALUE object, const char *method)
{
    return rb_funcall(object, rb_intern(method), 0);
}

/* Appends to the bytes of the head. */
static heddle_slice slice_of(VALUE bytes, VALUE text)
{
    heddle_slice slice = {.start = (uint32_t)RSTRING_LEN(bytes)};
    if (!NIL_P(text)) {
        StringValue(text);
        slice.size = (uint32_t)RSTRING_LEN(text);
        rb_str_cat(bytes, RSTRING_PTR(text), RSTRING_LEN(text));
    }
    return slice;
}

static heddle_method method_of(const char *name, size_t size)
{
    static const char *const names[] = {[HEDDLE_GET] = "GET",         [HEDDLE_HEAD] = "HEAD",
                                        [HEDDLE_POST] = "POST",       [HEDDLE_PUT] = "PUT",
                                        [HEDDLE_DELETE] = "DELETE",   [HEDDLE_PATCH] = "PATCH",
                                        [HEDDLE_OPTIONS] = "OPTIONS", [HEDDLE_CONNECT] = "CONNECT",
                                        [HEDDLE_TRACE] = "TRACE"};
    for (heddle_method method = HEDDLE_GET; method <= HEDDLE_TRACE; method++) {
        if (strlen(names[method]) == size && memcmp(names[method], name, size) == 0)
            return method;
    }
    return HEDDLE_METHOD_OTHER;
}

static void add_fields(heddle_request_head *head, VALUE bytes, VALUE lines)
{
    for (unsigned i = 0; i < head->field_count; i++) {
        heddle_field *field = &head->fields[i];
        field->name = slice_of(bytes, rb_ary_entry(lines, 2 * i));
        field->value = slice_of(bytes, rb_ary_entry(lines, 2 * i + 1));
        field->id = (uint16_t)heddle_field_find(RSTRING_PTR(bytes) + field->name.start, field->name.size);
    }
}

static heddle_address address_of(VALUE text, VALUE port)
{
    heddle_address address = {.port = NIL_P(port) ? 0 : (uint16_t)NUM2UINT(port)};
    if (NIL_P(text))
        return address;
    const char *name = StringValueCStr(text);
    if (strcmp(name, "unix") == 0)
        address.family = AF_UNIX;
    else if (inet_pton(AF_INET, name, address.bytes) == 1)
        address.family = AF_INET;
    else if (inet_pton(AF_INET6, name, address.bytes) == 1)
        address.family = AF_INET6;
    else
        rb_raise(rb_eArgError, "%+" PRIsVALUE " is no IP address", text);
    return address;
}

VALUE heddle_rack_env_of_objects(VALUE builder, VALUE given, VALUE connection)
{
    VALUE bytes = rb_str_new(NULL, 0), lines = rb_Array(ask(given, "fields"));
    heddle_request_head head = {
        .method = slice_of(bytes, ask(given, "method")),
        .target = slice_of(bytes, ask(given, "target")),
        .path = slice_of(bytes, ask(given, "path")),
        .query = slice_of(bytes, ask(given, "query")),
        .authority = slice_of(bytes, ask(given, "authority")),
        .host = slice_of(bytes, ask(given, "host")),
        .port = slice_of(bytes, ask(given, "port")),
        .minor = (uint8_t)NUM2UINT(ask(given, "minor")),
        .has_host = !NIL_P(ask(given, "host")),
        .upgrade = !NIL_P(ask(given, "upgrade")),
        .field_count = (uint16_t)(RARRAY_LEN(lines) / 2),
    };
    VALUE room;
    head.fields = ALLOCV_N(heddle_field, room, head.field_count);
    add_fields(&head, bytes, lines);
    head.method_id = method_of(RSTRING_PTR(bytes) + head.method.start, head.method.size);

    heddle_address remote = address_of(ask(connection, "remote_address"), Qnil);
    heddle_address local = address_of(ask(connection, "local_address"), ask(connection, "local_port"));
    VALUE copy = rb_str_new_frozen(bytes);
    VALUE env = heddle_rack_env_between(builder, &head, RSTRING_PTR(copy), &remote, &local);
    ALLOCV_END(room);
    RB_GC_GUARD(copy);
    return env;
}
