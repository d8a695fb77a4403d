/*
 * EnvBuilders::EnvBuilder#build(head, connection): makes an env of a head and a connection that are Ruby objects. `head`:
 * an HTTP::H1::RequestHead; `connection`: an object with remote_address, local_address and local_port.
 */

/* sources: rack/env.c rack/env_parts.c http/fields.c http/forwarded.c http/text.c net/networks.c net/address.c */

#include "http/fields.h"
#include "rack/env.h"

#include <arpa/inet.h>
#include <string.h>

/* In place of net/connection.c: here a connection has no socket. */
const heddle_address *heddle_connection_local(heddle_connection *connection)
{
    return &connection->local;
}

static VALUE call_method(VALUE object, const char *method)
{
    return rb_funcall(object, rb_intern(method), 0);
}

/* The bytes of a head, put together from Strings. */
typedef struct {
    char *bytes;
    uint32_t used;
} head_bytes;

static size_t size_of(VALUE text)
{
    return NIL_P(text) ? 0 : (size_t)RSTRING_LEN(text);
}

static heddle_slice append_text(head_bytes *to, VALUE text)
{
    heddle_slice slice = {.start = to->used, .size = (uint32_t)size_of(text)};
    if (slice.size)
        memcpy(to->bytes + slice.start, RSTRING_PTR(text), slice.size);
    to->used += slice.size;
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
        rb_raise(rb_eArgError, "%+" PRIsVALUE " is not an IP address", text);
    return address;
}

static VALUE env_of(VALUE builder, heddle_request_head *head, const char *bytes, VALUE connection)
{
    head->method_id = method_of(bytes + head->method.start, head->method.size);
    heddle_connection between = {
        .remote = address_of(call_method(connection, "remote_address"), Qnil),
        .local = address_of(call_method(connection, "local_address"), call_method(connection, "local_port")),
    };
    return heddle_rack_env(builder, head, bytes, &between);
}

enum { METHOD, TARGET, PATH, QUERY, AUTHORITY, HOST, PORT, TEXTS };

static VALUE build_env_of_objects(VALUE builder, VALUE given, VALUE connection)
{
    static const char *const names[] = {"method", "target", "path", "query", "authority", "host", "port"};
    VALUE texts[TEXTS], lines = rb_Array(call_method(given, "fields"));
    size_t size = 1;
    for (int i = 0; i < TEXTS; i++) {
        texts[i] = call_method(given, names[i]);
        size += NIL_P(texts[i]) ? 0 : (size_t)RSTRING_LEN(StringValue(texts[i]));
    }
    for (long i = 0; i < RARRAY_LEN(lines); i++)
        size += size_of(rb_ary_entry(lines, i));

    heddle_request_head head = {
        .minor = (uint8_t)NUM2UINT(call_method(given, "minor")),
        .has_host = !NIL_P(texts[HOST]),
        .upgrade = !NIL_P(call_method(given, "upgrade")),
        .field_count = (uint16_t)(RARRAY_LEN(lines) / 2),
    };
    VALUE bytes_room, fields_room;
    head_bytes to = {.bytes = ALLOCV_N(char, bytes_room, size)};
    head.fields = ALLOCV_N(heddle_field, fields_room, head.field_count);
    heddle_slice *const slices[TEXTS] = {&head.method,    &head.target, &head.path, &head.query,
                                         &head.authority, &head.host,   &head.port};
    for (int i = 0; i < TEXTS; i++)
        *slices[i] = append_text(&to, texts[i]);
    for (unsigned i = 0; i < head.field_count; i++) {
        heddle_field *field = &head.fields[i];
        field->name = append_text(&to, rb_ary_entry(lines, 2 * i));
        field->value = append_text(&to, rb_ary_entry(lines, 2 * i + 1));
        field->id = (uint16_t)heddle_field_find(to.bytes + field->name.start, field->name.size);
    }
    VALUE env = env_of(builder, &head, to.bytes, connection);
    ALLOCV_END(bytes_room);
    ALLOCV_END(fields_room);
    return env;
}

__attribute__((visibility("default"))) void Init_env_builders(void);

void Init_env_builders(void)
{
    VALUE module = rb_path2class("EnvBuilders");
    Init_heddle_env(module);
    rb_define_method(rb_path2class("EnvBuilders::EnvBuilder"), "build", build_env_of_objects, 2);
}
