/* Sends streamed content, chunks and files over HTTP/1.1. complete_response.c sends complete responses. */

#include "http/h1/server/exchange.h"

#include "net/sendfile.h"
#include "net/sockets.h"

#include <ruby/io.h>

void heddle_h1_flush(heddle_connection *connection)
{
    int result = heddle_connection_flush(connection);
    if (result != 0 && result != -EAGAIN)
        heddle_exchange_raise_gone("the client left before it had the response", -result);
}

/*
 * Waits until the kernel accepts more output. Returns false if it accepts none within `timeout` ns. Raises IOError if
 * the connection is closed during the wait.
 */
static bool wait_for_room(heddle_connection *connection, int64_t timeout)
{
    switch (heddle_connection_wait_for(connection, HEDDLE_WRITING, heddle_deadline_after(timeout))) {
    case HEDDLE_WAIT_READY:
        return true;
    case HEDDLE_WAIT_TIMED_OUT:
        return false;
    default:
        rb_raise(rb_eIOError, "the connection was closed while a fiber waited to write to it");
    }
}

/* Sends a part of the output now, or in the connection's next turn (net/io_turns.h). Raises ClientGoneError. */
static heddle_connection *send_in_turn(heddle_exchange_handle *handle)
{
    heddle_connection *connection = heddle_exchange_writable_connection(handle);
    /*
     * If the client ends its side before the turn, heddle_turns_hang_up moves the connection from the queue for sending
     * to the queue for hang-ups. When the hang-up is handled, continue_exchange (server.c) queues the connection for
     * sending again, but only if HEDDLE_HAS_ROOM is noted.
     */
    heddle_transport_note(&connection->transport, HEDDLE_HAS_ROOM);
    heddle_turns_take(connection, HEDDLE_TURN_SENDS);
    return heddle_exchange_writable_connection(handle);
}

void heddle_h1_drain(heddle_exchange_handle *handle, size_t low)
{
    for (;;) {
        size_t before = heddle_exchange_writable_connection(handle)->output.size;
        if (before <= low)
            return;
        heddle_connection *connection = send_in_turn(handle);
        if (connection->output.size <= low)
            return;
        int64_t timeout = handle->engine->write_timeout;
        if (wait_for_room(connection, timeout) || connection->output.size < before)
            continue;
        connection = heddle_exchange_writable_connection(handle);
        heddle_transport_will_reset(&connection->transport);
        heddle_sockets_close_connection(connection);
        VALUE message = rb_sprintf("the client read nothing of the response for %g s", (double)timeout / 1e9);
        rb_exc_raise(rb_exc_new_str(rb_path2class("Heddle::ClientGoneError"), message));
    }
}

/* Lets the loop send the queued output. If much is queued, sends a part now, and may wait. Raises ClientGoneError. */
static void schedule_flush(heddle_exchange_handle *handle, heddle_connection *connection)
{
    if (connection->output.size < HEDDLE_OUTPUT_AT_ONCE) {
        heddle_connection_flush_later(connection);
        return;
    }
    heddle_connection_has_output(connection);
    if (send_in_turn(handle)->output.size > HEDDLE_OUTPUT_FULL)
        heddle_h1_drain(handle, HEDDLE_OUTPUT_LOW);
}

/*
 * Returns the connection. Raises IOError if another fiber is writing. Must be called before output is queued, so that
 * nothing is sent if this raises.
 */
static heddle_connection *check_single_writer(heddle_exchange_handle *handle)
{
    heddle_connection *connection = heddle_exchange_writable_connection(handle);
    if (connection->waits[HEDDLE_WRITING])
        rb_raise(rb_eIOError, "another fiber is writing this response already");
    return connection;
}

static void add_string(heddle_connection *connection, VALUE string)
{
    if (RSTRING_LEN(string) > HEDDLE_OUTPUT_COPIED)
        string = rb_str_new_frozen(string);
    if (!heddle_output_add_string(&connection->output, string, 0))
        rb_memerror();
    heddle_connection_has_output(connection);
    RB_GC_GUARD(string);
}

/* Queues the data, which the loop sends in its next tick. If much output is queued, sends a part now, and may wait. */
void heddle_h1_write(heddle_exchange_handle *handle, VALUE data)
{
    heddle_connection *connection = check_single_writer(handle);
    if (RB_TYPE_P(data, T_ARRAY)) {
        for (long i = 0; i < RARRAY_LEN(data); i++)
            Check_Type(RARRAY_AREF(data, i), T_STRING); /* all elements are checked before the first is queued */
        for (long i = 0; i < RARRAY_LEN(data); i++)
            add_string(connection, RARRAY_AREF(data, i));
    } else {
        Check_Type(data, T_STRING);
        add_string(connection, data);
    }
    schedule_flush(handle, connection);
}

/*
 * call-seq: rewrite(old, new) -> true or false
 *
 * Replaces the last written bytes, if they are equal to +old+, none of them has been sent, and +new+ has at most
 * HEDDLE_OUTPUT_COPIED bytes. Otherwise changes nothing and returns false.
 */
static VALUE exchange_rewrite(VALUE self, VALUE old, VALUE new)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_connection *connection = check_single_writer(handle);
    Check_Type(old, T_STRING);
    Check_Type(new, T_STRING);
    if (!connection->flush_scheduled || RSTRING_LEN(new) > HEDDLE_OUTPUT_COPIED ||
        !heddle_output_take_back(&connection->output, RSTRING_PTR(old), (size_t)RSTRING_LEN(old)))
        return Qfalse;
    add_string(connection, new);
    schedule_flush(handle, connection);
    return Qtrue;
}

/*
 * call-seq: withdraw(bytes) -> true or false
 *
 * Removes the last written bytes, if they are equal to +bytes+ and none of them has been sent. Otherwise changes
 * nothing and returns false.
 */
static VALUE exchange_withdraw(VALUE self, VALUE bytes)
{
    heddle_connection *connection = heddle_exchange_connection(heddle_exchange_handle_of(self));
    Check_Type(bytes, T_STRING);
    return connection && connection->flush_scheduled && !connection->error &&
                   heddle_output_take_back(&connection->output, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes))
               ? Qtrue
               : Qfalse;
}

/*
 * call-seq: write_chunk(string) -> self
 *
 * Sends the string, which must not be empty, as one chunk of a chunked body (RFC 9112, 7.1). Waits and raises like
 * #write.
 */
static VALUE exchange_write_chunk(VALUE self, VALUE string)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_connection *connection = check_single_writer(handle);
    Check_Type(string, T_STRING);
    size_t size = (size_t)RSTRING_LEN(string);
    char *head = heddle_output_reserve(&connection->output, 18);
    if (!head)
        rb_memerror();
    heddle_output_added(&connection->output, heddle_chunk_head(head, size));
    add_string(connection, string);
    if (!heddle_output_add_bytes(&connection->output, "\r\n", 2))
        rb_memerror();
    schedule_flush(handle, connection);
    return self;
}

bool heddle_h1_write_piece(heddle_exchange_handle *handle, VALUE string)
{
    heddle_connection *connection = heddle_exchange_connection(handle);
    if (!connection || !RB_TYPE_P(string, T_STRING) || connection->error || connection->waits[HEDDLE_WRITING] ||
        connection->sockets->loop->thread != rb_thread_current())
        return false;
    size_t size = (size_t)RSTRING_LEN(string);
    heddle_output *output = &connection->output;
    if (size == 0 || size > HEDDLE_OUTPUT_COPIED || output->size + size + 20 > HEDDLE_OUTPUT_AT_ONCE)
        return false;
    char *bytes = heddle_output_reserve(output, size + 20);
    if (!bytes)
        return false;
    size_t head = heddle_chunk_head(bytes, size);
    memcpy(bytes + head, RSTRING_PTR(string), size);
    memcpy(bytes + head + size, "\r\n", 2);
    heddle_output_added(output, head + size + 2);
    heddle_connection_flush_later(connection);
    handle->sent += size;
    return true;
}

/*
 * call-seq: drain -> nil
 *
 * Waits until the kernel has accepted all output. Raises ClientGoneError.
 */
static VALUE exchange_drain(VALUE self)
{
    heddle_h1_drain(heddle_exchange_handle_of(self), 0);
    return Qnil;
}

/*
 * call-seq: send_file_part(io, offset, length, timeout) -> Integer
 *
 * Sends +length+ bytes of a file, starting at +offset+, and returns +length+. Uses sendfile where possible. Does not
 * change the file's position. +timeout+ is the maximum time without progress, in seconds. Raises EOFError if the file
 * ends too early, and the same exceptions as #write.
 */
static VALUE exchange_send_file_part(VALUE self, VALUE io, VALUE offset, VALUE length, VALUE timeout)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(self);
    heddle_exchange_open_connection(handle);
    heddle_sendfile_all(&handle->exchange->work.connection, rb_io_get_io(io), NUM2OFFT(offset), NUM2SIZET(length),
                           heddle_parse_duration(timeout));
    RB_GC_GUARD(self);
    return length;
}

void Init_heddle_h1_sending(VALUE exchange_class)
{
    rb_define_method(exchange_class, "rewrite", exchange_rewrite, 2);
    rb_define_method(exchange_class, "withdraw", exchange_withdraw, 1);
    rb_define_method(exchange_class, "write_chunk", exchange_write_chunk, 1);
    rb_define_method(exchange_class, "drain", exchange_drain, 0);
    rb_define_private_method(exchange_class, "send_file_part", exchange_send_file_part, 4);
}
