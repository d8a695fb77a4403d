/* What an exchange is for an application: its env, and the common answers in one write. */

#include "http/answer_ruby.h"
#include "http/exchange_ruby.h"
#include "net/sockets.h"
#include "rack/env.h"
#include "rack/exchange.h"

#include <errno.h>
#include <ruby/encoding.h>
#include <string.h>

enum {
    COPIED = 16384, /* content up to this size leaves in one piece with its head */
    PIECES = 64,
};

static VALUE hijack_key, protocol_key, finished_key;
static ID id_lock, id_exchange, id_write_all;

/* Bytes, or -1: it is no array of strings. */
static int64_t content_size(VALUE body)
{
    int64_t size = 0;
    for (long i = 0; i < RARRAY_LEN(body); i++) {
        VALUE string = RARRAY_AREF(body, i);
        if (!RB_TYPE_P(string, T_STRING))
            return -1;
        size += RSTRING_LEN(string);
    }
    return size;
}

/* Is it nothing but a status, fields and content? */
static bool is_plain(VALUE answer)
{
    if (!RB_TYPE_P(answer, T_ARRAY) || RARRAY_LEN(answer) != 3)
        return false;
    VALUE headers = RARRAY_AREF(answer, 1), body = RARRAY_AREF(answer, 2);
    if (!RB_TYPE_P(headers, T_HASH) || !RB_TYPE_P(body, T_ARRAY) || RARRAY_AREF(answer, 0) == INT2FIX(101))
        return false;
    return RHASH_EMPTY_P(headers) || (rb_hash_lookup2(headers, hijack_key, Qundef) == Qundef &&
                                      rb_hash_lookup2(headers, protocol_key, Qundef) == Qundef);
}

static void copy(heddle_buffer *out, VALUE body)
{
    for (long i = 0; i < RARRAY_LEN(body); i++) {
        VALUE string = RARRAY_AREF(body, i);
        memcpy(out->bytes + out->used, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
        out->used += (size_t)RSTRING_LEN(string);
    }
}

/* What was not sent yet: `sent` bytes of the head and the content were. */
static void put_aside(heddle_connection *connection, const char *head, size_t head_size, VALUE body, size_t sent)
{
    heddle_output *output = &connection->output;
    bool added = sent >= head_size || heddle_output_add_bytes(output, head + sent, head_size - sent);
    sent = sent > head_size ? sent - head_size : 0;
    for (long i = 0; added && !NIL_P(body) && i < RARRAY_LEN(body); i++) {
        VALUE string = RARRAY_AREF(body, i);
        size_t size = (size_t)RSTRING_LEN(string);
        if (sent < size)
            added = heddle_output_add_string(output, rb_str_new_frozen(string), sent);
        sent = sent > size ? sent - size : 0;
        heddle_connection_has_output(connection); /* at once: from here on the string is marked */
    }
    if (!added)
        rb_memerror();
    heddle_connection_has_output(connection);
}

/* One attempt, as much as the kernel takes. */
static ssize_t send_now(heddle_connection *connection, const char *head, size_t head_size, VALUE body)
{
    struct iovec pieces[PIECES] = {{.iov_base = (char *)head, .iov_len = head_size}};
    int count = 1;
    for (long i = 0; !NIL_P(body) && i < RARRAY_LEN(body) && count < PIECES; i++) {
        VALUE string = RARRAY_AREF(body, i);
        if (RSTRING_LEN(string))
            pieces[count++] =
                (struct iovec){.iov_base = RSTRING_PTR(string), .iov_len = (size_t)RSTRING_LEN(string)};
    }
    heddle_transport_forget(&connection->transport, HEDDLE_HAS_ROOM);
    return connection->transport.operations->send(&connection->transport, pieces, count);
}

static void send_answer(heddle_exchange_handle *handle, const char *head, size_t head_size, VALUE body, size_t total)
{
    heddle_connection *connection = handle->base.connection;
    ssize_t sent = 0;
    /* The answers to pipelined requests leave together. */
    if (!connection->output.size && !heddle_connection_buffered(connection)) {
        sent = send_now(connection, head, head_size, body);
        if (sent == (ssize_t)total)
            return;
        if (sent < 0 && sent != -EAGAIN) {
            connection->error = (int)-sent;
            heddle_exchange_writable(handle); /* raises */
        }
    }
    put_aside(connection, head, head_size, body, sent < 0 ? 0 : (size_t)sent);
}

/*
 * call-seq: Heddle::Rack.respond(exchange, answer, wait) -> true or false
 *
 * Sends a plain answer: a Hash of headers, an Array of Strings. false, and nothing is sent, when it is of another
 * kind. What the client does not take at once goes out by itself, unless +wait+ says that somebody wants to know how
 * that ends. Raises InvalidResponse, and ClientGone.
 */
static VALUE respond(VALUE self, VALUE object, VALUE answer, VALUE wait)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    heddle_engine *engine = handle->engine;
    if (!handle->base.connection || !is_plain(answer))
        return Qfalse; /* taken over, maybe */
    VALUE headers = RARRAY_AREF(answer, 1), body = RARRAY_AREF(answer, 2);
    int64_t size = content_size(body);
    const heddle_request_head *request = &heddle_exchange_of(handle)->head;
    if (size < 0 || request->method_id == HEDDLE_CONNECT)
        return Qfalse;
    int status = heddle_answer_status(RARRAY_AREF(answer, 0)); /* may run the application's code */
    heddle_connection *connection = heddle_exchange_writable(handle);
    request = &heddle_exchange_of(handle)->head;
    heddle_answer head = {
        .request = request->method_id,
        .minor = request->minor,
        .status = status,
        .keep_alive = request->keep_alive && !engine->draining &&
                      heddle_h1_discardable(engine, heddle_h1_of(connection)),
        .length = request->method_id == HEDDLE_HEAD ? -1 : size,
    };
    heddle_buffer *out = &engine->out;
    size_t start = out->used;
    heddle_answer_head(&head, out, headers, Qnil, heddle_engine_date(engine), HEDDLE_DATE_LINE);
    bool content = head.framing == HEDDLE_CONTENT_BY_LENGTH;
    /* Application code may have run. */
    connection = handle->base.connection;
    if (!connection || head.told_chunked || head.framing > HEDDLE_CONTENT_BY_LENGTH || content_size(body) != size) {
        out->used = start;
        return Qfalse;
    }
    if (!content || size == 0) {
        body = Qnil;
        size = 0;
    } else if (size <= COPIED) {
        heddle_buffer_reserve(out, (size_t)size);
        copy(out, body);
        body = Qnil;
    }
    size_t head_size = out->used - start;
    out->used = start; /* nothing of it is needed after a wait, and send does not wait */
    handle->status = head.status; /* first: should there be no memory for the rest, nothing else is answered */
    handle->sent = (uint64_t)size;
    send_answer(handle, out->bytes + start, head_size, body, head_size + (NIL_P(body) ? 0 : (size_t)size));
    if (RTEST(wait)) {
        heddle_exchange_drain(handle, 0);
        connection = heddle_exchange_writable(handle);
    }
    heddle_h1_answered(connection, head.keep_alive, head.status);
    RB_GC_GUARD(answer);
    return Qtrue;
}

/*
 * call-seq: Heddle::Rack.env(builder, exchange) -> Hash
 *
 * The env of a request, without rack.input and rack.early_hints.
 */
static VALUE env(VALUE self, VALUE builder, VALUE object)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    heddle_exchange *exchange = heddle_exchange_of(handle);
    VALUE env = heddle_rack_env(builder, &exchange->head, exchange->bytes, heddle_connection_open(&handle->base));
    rb_hash_aset(env, hijack_key, object);
    rb_hash_aset(env, finished_key, rb_ary_new());
    return env;
}

/* Heddle::Rack::Stream#write; the documentation is there. */
static VALUE stream_write(int argc, VALUE *argv, VALUE self)
{
    if (argc == 1 && !RTEST(rb_mutex_locked_p(rb_ivar_get(self, id_lock))) &&
        heddle_exchange_chunk(heddle_exchange_handle_of(rb_ivar_get(self, id_exchange)), argv[0]))
        return LONG2NUM(RSTRING_LEN(argv[0]));
    return rb_funcallv(self, id_write_all, argc, argv);
}

static VALUE made_key(const char *text)
{
    VALUE key = rb_enc_interned_str_cstr(text, rb_utf8_encoding());
    rb_gc_register_mark_object(key);
    return key;
}

void Init_heddle_rack_exchange(VALUE rack)
{
    hijack_key = made_key("rack.hijack");
    protocol_key = made_key("rack.protocol");
    finished_key = made_key("rack.response_finished");
    rb_define_singleton_method(rack, "env", env, 2);
    rb_define_singleton_method(rack, "respond", respond, 3);
    id_lock = rb_intern("@lock");
    id_exchange = rb_intern("@exchange");
    id_write_all = rb_intern("write_all");
    rb_define_method(rb_define_class_under(rack, "Stream", rb_cObject), "write", stream_write, -1);
}
