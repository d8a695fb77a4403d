/* A complete response over HTTP/1.1: one write, if the kernel takes all of it. */

#include "http/response_head_ruby.h"
#include "http/h1/exchange.h"
#include "net/sockets.h"

#include <errno.h>

enum {
    COPIED = 16384, /* content up to this size is copied behind its head */
    PIECES = 64,
};

static void copy_body(heddle_buffer *out, VALUE body)
{
    for (long i = 0; i < RARRAY_LEN(body); i++) {
        VALUE string = RARRAY_AREF(body, i);
        memcpy(out->bytes + out->used, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
        out->used += (size_t)RSTRING_LEN(string);
    }
}

/* Queues the rest: `sent` bytes of the head and the content were sent. */
static void queue_rest(heddle_connection *connection, const char *head, size_t head_size, VALUE body, size_t sent)
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

/* Sends once, as much as the kernel takes. */
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
    heddle_connection *connection = heddle_exchange_connection(handle);
    ssize_t sent = 0;
    /* The responses to pipelined requests are sent together. */
    if (!connection->output.size && !heddle_connection_buffered(connection)) {
        sent = send_now(connection, head, head_size, body);
        connection->output.sent += sent > 0 ? (uint64_t)sent : 0;
        if (sent == (ssize_t)total)
            return;
        if (sent < 0 && sent != -EAGAIN) {
            connection->error = (int)-sent;
            heddle_exchange_writable_connection(handle); /* raises */
        }
    }
    queue_rest(connection, head, head_size, body, sent < 0 ? 0 : (size_t)sent);
}

bool heddle_h1_respond(heddle_exchange_handle *handle, VALUE status_value, VALUE headers, VALUE body, int64_t size,
                       bool wait)
{
    heddle_engine *engine = handle->engine;
    if (heddle_exchange_of(handle)->head.method_id == HEDDLE_CONNECT)
        return false;
    int status = heddle_response_status(status_value); /* may run the application's code */
    heddle_connection *connection = heddle_exchange_writable_connection(handle);
    const heddle_request_head *request = &heddle_exchange_of(handle)->head;
    heddle_head_writer head = {
        .request = request->method_id,
        .minor = request->minor,
        .status = status,
        .keep_alive = request->keep_alive && heddle_h1_may_persist(connection),
        .length = heddle_content_length_of(request, size),
    };
    heddle_buffer *out = &engine->out;
    size_t start = out->used;
    heddle_response_head_write(&head, out, headers, Qnil, heddle_engine_date(engine), HEDDLE_DATE_LINE);
    bool content = head.framing == HEDDLE_CONTENT_BY_LENGTH;
    /* Application code may have run. */
    if (!heddle_exchange_connection(handle) || head.has_internal || head.declared_chunked ||
        head.framing > HEDDLE_CONTENT_BY_LENGTH || heddle_content_size(body) != size) {
        out->used = start;
        return false;
    }
    if (!content || size == 0) {
        body = Qnil;
        size = 0;
    } else if (size <= COPIED) {
        heddle_buffer_reserve(out, (size_t)size);
        copy_body(out, body);
        body = Qnil;
    }
    size_t head_size = out->used - start;
    out->used = start; /* the buffer is not needed after a wait, and send does not wait */
    handle->status = head.status; /* first: without memory for the rest, no other response is sent */
    handle->sent = (uint64_t)size;
    /* Before the client has the response: its next request may go to another worker at once. */
    if (!wait && heddle_exchange_of(handle)->spool)
        heddle_body_spool_uncount(heddle_exchange_of(handle)->spool);
    send_answer(handle, out->bytes + start, head_size, body, head_size + (NIL_P(body) ? 0 : (size_t)size));
    if (wait) {
        heddle_h1_drain(handle, 0);
        heddle_exchange_writable_connection(handle);
    }
    heddle_h1_complete_response(heddle_exchange_connection(handle), head.keep_alive, head.status);
    return true;
}
