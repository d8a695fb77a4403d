/* Rack's view of an exchange (a request and its response): its env, plain responses in one call, and Stream#write. */

#include "binding.h"
#include "http/exchange_ruby.h"
#include "rack/env.h"
#include "rack/env_parts.h"

static VALUE websocket_symbol, sse_symbol;

/*
 * Is the Rack response only a status, fields and content? An Array has no `close`, but a subclass of Array may.
 */
static bool is_plain(VALUE answer)
{
    if (!RB_TYPE_P(answer, T_ARRAY) || RARRAY_LEN(answer) != 3)
        return false;
    VALUE status = RARRAY_AREF(answer, 0), headers = RARRAY_AREF(answer, 1), body = RARRAY_AREF(answer, 2);
    return FIXNUM_P(status) && status != INT2FIX(101) && RB_TYPE_P(headers, T_HASH) && RB_TYPE_P(body, T_ARRAY) &&
           RBASIC_CLASS(body) == rb_cArray;
}

/*
 * call-seq: Heddle::Rack.respond(exchange, answer, wait) -> true or false
 *
 * Sends a plain Rack response (+answer+): its headers are a Hash without Rack's own headers (such as rack.hijack), and
 * its body is an Array of Strings. Returns false, and sends nothing, for any other response, after a hijack, and if the
 * request allows an upgrade to a WebSocket or an event stream. The loop later sends the bytes that can't be sent at
 * once. With +wait+, returns only after the last byte was sent. Raises InvalidResponseError and ClientGoneError.
 */
static VALUE rack_respond(VALUE self, VALUE object, VALUE answer, VALUE wait)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    if (!heddle_exchange_connection(handle) || handle->upgradable || !is_plain(answer))
        return Qfalse; /* the application may have hijacked the connection; or the response may be an upgrade */
    VALUE headers = RARRAY_AREF(answer, 1), body = RARRAY_AREF(answer, 2);
    int64_t size = heddle_content_size(body);
    bool sent = size >= 0 && heddle_exchange_respond(handle, RARRAY_AREF(answer, 0), headers, body, size, RTEST(wait));
    RB_GC_GUARD(answer);
    return sent ? Qtrue : Qfalse;
}

/* Does the client request a WebSocket (RFC 6455, section 4.1; RFC 8441, section 5)? */
static bool asks_for_websocket(const heddle_exchange *exchange)
{
    const heddle_request_head *head = &exchange->head;
    bool asked = false, key = false;
    if (head->protocol.size > 0) /* RFC 8441 */
        return head->protocol.size == 9 && memcmp(exchange->bytes + head->protocol.start, "websocket", 9) == 0;
    if (head->method_id != HEDDLE_GET || head->content_length > 0 || head->content_length == HEDDLE_CHUNKED_BODY)
        return false;
    for (unsigned i = 0; i < head->field_count; i++) {
        const heddle_field *field = &head->fields[i];
        if (field->id == HEDDLE_FIELD_UPGRADE)
            asked |= field->value.size == 9 && strncasecmp(exchange->bytes + field->value.start, "websocket", 9) == 0;
        else if (field->id == HEDDLE_FIELD_SEC_WEBSOCKET_KEY)
            key = true;
    }
    return asked && key;
}

/* Does the client request server-sent events, as a browser's EventSource does? */
static bool asks_for_events(const heddle_exchange *exchange)
{
    static const char type[] = "text/event-stream";
    enum { SIZE = sizeof(type) - 1 };
    const heddle_request_head *head = &exchange->head;
    if (head->method_id != HEDDLE_GET || head->content_length > 0 || head->content_length == HEDDLE_CHUNKED_BODY)
        return false;
    for (unsigned i = 0; i < head->field_count; i++) {
        const heddle_field *field = &head->fields[i];
        if (field->id != HEDDLE_FIELD_ACCEPT || field->value.size < SIZE)
            continue;
        const char *value = exchange->bytes + field->value.start;
        if (strncasecmp(value, type, SIZE) == 0 && (field->value.size == SIZE || strchr(",; \t", value[SIZE])))
            return true;
    }
    return false;
}

/*
 * call-seq: Heddle::Rack.env(builder, exchange, finished) -> Hash
 *
 * Returns the env of a request, without rack.early_hints. Its rack.input is empty; if the request has a body, the
 * caller replaces rack.input. `finished`: the Array for rack.response_finished.
 */
static VALUE rack_env(VALUE self, VALUE builder, VALUE object, VALUE finished)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    heddle_exchange *exchange = heddle_exchange_of(handle);
    VALUE env = heddle_rack_env(builder, &exchange->head, exchange->bytes, heddle_exchange_open_connection(handle));
    handle->env = env;
    rb_hash_aset(env, heddle_env_key.hijack, object);
    if (!exchange->operations->takes_over)
        rb_hash_aset(env, heddle_env_key.can_hijack, Qfalse);
    if (exchange->operations->version)
        rb_hash_aset(env, heddle_env_key.server_protocol, rb_interned_str_cstr(exchange->operations->version));
    rb_hash_aset(env, heddle_env_key.finished, finished);
    rb_hash_aset(env, heddle_env_key.after_reply, finished); /* Puma's name for the same list, see Handler#notify */
    if (exchange->head.content_length > 0 || exchange->head.content_length == HEDDLE_CHUNKED_BODY) {
        /* ms in which the client has sent the body; tools that compute the time in queues subtract it */
        int64_t wait = exchange->queued > exchange->arrived ? exchange->queued - exchange->arrived : 0;
        rb_hash_aset(env, heddle_env_key.body_wait, DBL2NUM((double)wait / 1e6));
    }
    heddle_slice protocol = exchange->head.protocol;
    if (protocol.size > 0) {
        VALUE name = rb_str_new(exchange->bytes + protocol.start, protocol.size);
        rb_hash_aset(env, heddle_env_key.rack_protocol, rb_ary_new_from_args(1, name));
    }
    if ((exchange->head.upgrade || protocol.size > 0) && asks_for_websocket(exchange)) {
        handle->upgradable = true;
        rb_hash_aset(env, heddle_env_key.upgrade, websocket_symbol);
    } else if (asks_for_events(exchange)) {
        handle->upgradable = true;
        rb_hash_aset(env, heddle_env_key.upgrade, sse_symbol);
    }
    return env;
}

/* Heddle::Rack::Stream#write, documented in lib/heddle/rack/stream.rb. */
static VALUE stream_write(int argc, VALUE *argv, VALUE self)
{
    /* reads only one instance variable, because each look-up takes as long as the write itself */
    heddle_exchange_handle *handle = heddle_exchange_handle_of(rb_ivar_get(self, rb_intern("@exchange")));
    if (argc == 1 && !RTEST(rb_mutex_locked_p(handle->lock)) && heddle_exchange_write_piece(handle, argv[0]))
        return LONG2NUM(RSTRING_LEN(argv[0]));
    return rb_funcallv(self, rb_intern("write_all"), argc, argv);
}

void Init_heddle_rack(VALUE heddle)
{
    VALUE rack = rb_define_module_under(heddle, "Rack");
    Init_heddle_env(rack);
    sse_symbol = ID2SYM(rb_intern("sse"));
    websocket_symbol = ID2SYM(rb_intern("websocket"));
    rb_define_singleton_method(rack, "env", rack_env, 3);
    rb_define_singleton_method(rack, "respond", rack_respond, 3);
    rb_define_method(rb_define_class_under(rack, "Stream", rb_cObject), "write", stream_write, -1);
}
