/* Sends a complete response over HTTP/1.1, in one write if the kernel accepts all of it. */

#include "http/h1/server/exchange.h"
#include "http/response_head_ruby.h"
#include "net/sockets.h"

enum {
    COPIED = 16384, /* bytes; content up to this size is copied behind its head */
    PIECES = 64,    /* the maximum number of pieces that one write sends */
};

static void copy_body(heddle_buffer *out, VALUE body)
{
    for (long i = 0; i < RARRAY_LEN(body); i++) {
        VALUE string = RARRAY_AREF(body, i);
        memcpy(out->bytes + out->used, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
        out->used += (size_t)RSTRING_LEN(string);
    }
}

/* Queues the head and the content, except the first `sent` bytes, which the kernel has already accepted. */
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
        heddle_connection_has_output(connection); /* from now on, the garbage collector marks the string */
    }
    if (!added)
        rb_memerror();
    heddle_connection_has_output(connection);
}

/*
 * Tries once to send the head and at most HEDDLE_OUTPUT_PART bytes of the content. Returns the number of sent bytes, or
 * -errno.
 */
static ssize_t send_now(heddle_connection *connection, const char *head, size_t head_size, VALUE body)
{
    struct iovec pieces[PIECES] = {{.iov_base = (char *)head, .iov_len = head_size}};
    size_t left = HEDDLE_OUTPUT_PART;
    int count = 1;
    for (long i = 0; !NIL_P(body) && i < RARRAY_LEN(body) && count < PIECES && left; i++) {
        VALUE string = RARRAY_AREF(body, i);
        size_t size = (size_t)RSTRING_LEN(string) < left ? (size_t)RSTRING_LEN(string) : left;
        if (size)
            pieces[count++] = (struct iovec){.iov_base = RSTRING_PTR(string), .iov_len = size};
        left -= size;
    }
    heddle_transport_forget(&connection->transport, HEDDLE_HAS_ROOM);
    return connection->transport.operations->send(&connection->transport, pieces, count);
}

static void send_answer(heddle_exchange_handle *handle, const char *head, size_t head_size, VALUE body, size_t total)
{
    heddle_connection *connection = heddle_exchange_connection(handle);
    ssize_t sent = 0;
    /* If further pipelined requests are buffered, this response is sent later, together with theirs. */
    if (!connection->output.size && !heddle_bytes_left(&connection->input)) {
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

void heddle_h1_begin_head(heddle_exchange_handle *handle, heddle_head_writer *head)
{
    heddle_connection *connection = heddle_exchange_writable_connection(handle);
    const heddle_request_head *request = &handle->exchange->head;
    head->minor = request->minor;
    head->upgrade = request->upgrade;
    head->keep_alive = request->keep_alive && heddle_h1_may_persist(connection);
}

bool heddle_h1_send_response(heddle_exchange_handle *handle, const heddle_head_writer *head, heddle_buffer *out,
                             size_t start, VALUE body, size_t size, bool wait)
{
    if (size == 0) {
        body = Qnil;
    } else if (size <= COPIED) {
        heddle_buffer_reserve(out, size);
        copy_body(out, body);
        body = Qnil;
    }
    size_t head_size = out->used - start;
    out->used = start; /* others may use `out` again, because this function sends or copies the head before it waits */
    /* Set before sending: if queueing the rest raises NoMemoryError, Ruby code must not send a second response. */
    handle->status = head->status;
    handle->sent = size;
    /*
     * The spool (the file of the request's body) stops counting against the disk limit before the client gets the
     * response, because the client may send its next request to another worker at once.
     */
    if (!wait && handle->exchange->spool)
        heddle_body_spool_uncount(handle->exchange->spool);
    send_answer(handle, out->bytes + start, head_size, body, head_size + (NIL_P(body) ? 0 : size));
    if (wait) {
        heddle_h1_drain(handle, 0);
        heddle_exchange_writable_connection(handle);
    }
    heddle_h1_complete_response(heddle_exchange_connection(handle), head->keep_alive, head->status);
    return true;
}
