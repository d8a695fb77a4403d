/* Heddle::HTTP::H2::ClientStream: a request of the HTTP/2 client, and the received part of its response. */

#include "http/h2/client/client.h"

#include "binding.h"
#include "http/head_ruby.h"
#include "scheduler/loop.h"

/* -- called by the session ----------------------------------------------------------------------------------------- */

/* Adds the stream to the list of streams with new events. */
static void note_ready(heddle_h2_client_stream *stream)
{
    if (!heddle_link_is_listed(&stream->ready))
        heddle_link_push_last(&stream->client->ready, &stream->ready);
}

static void fail_stream(heddle_h2_client_stream *stream, heddle_h2_failure failure, heddle_h2_error error)
{
    heddle_h2_client_enter(stream, HEDDLE_H2_CLIENT_FAILED);
    stream->failure = failure;
    stream->error = error;
    stream->reason = stream->client->session->reason;
    note_ready(stream);
}

/* Copies the fields and their bytes into one block. Uses no Ruby, because no exception may pass through the session. */
static heddle_field *copy_fields(const heddle_h2_response *response)
{
    size_t size = response->field_count * sizeof(heddle_field);
    heddle_field *copy = malloc(size + response->size + 1);
    if (!copy)
        return NULL;
    if (response->field_count > 0)
        memcpy(copy, response->fields, size);
    if (response->size > 0)
        memcpy((char *)copy + size, response->bytes, response->size);
    return copy;
}

/*
 * Returns the client's record of this stream. Returns NULL if the stream has failed or was closed: then its response is
 * not wanted any more.
 */
static heddle_h2_client_stream *find_owner(const heddle_h2_stream *at)
{
    heddle_h2_client_stream *stream = at->owner;
    return stream && stream->stage != HEDDLE_H2_CLIENT_FAILED ? stream : NULL;
}

static void on_response(heddle_h2_session *session, heddle_h2_stream *at, const heddle_h2_response *response)
{
    enum { FIRST_FINAL_STATUS = 200 };
    heddle_h2_client_stream *stream = find_owner(at);
    if (!stream || (response->status > 0 && response->status < FIRST_FINAL_STATUS))
        return;
    heddle_field *copy = copy_fields(response);
    if (!copy) {
        fail_stream(stream, HEDDLE_H2_ANSWER_REJECTED, HEDDLE_H2_INTERNAL_ERROR);
        return;
    }
    if (response->status == 0) {
        free(stream->trailers);
        stream->trailers = copy;
        stream->trailer_count = response->field_count;
        return;
    }
    heddle_h2_client_enter(stream, HEDDLE_H2_CLIENT_ANSWERED);
    stream->head = copy;
    stream->head_count = response->field_count;
    stream->status = response->status;
    stream->ended_with_head = response->ended;
    note_ready(stream);
}

static void on_data(heddle_h2_session *session, heddle_h2_stream *at, const char *bytes, size_t size)
{
    heddle_h2_client_stream *stream = find_owner(at);
    if (stream && heddle_bytes_add(&stream->body, bytes, size)) {
        note_ready(stream);
        return;
    }
    heddle_h2_consume(session, at, size);
    if (stream)
        fail_stream(stream, HEDDLE_H2_ANSWER_REJECTED, HEDDLE_H2_INTERNAL_ERROR);
}

static void on_end(heddle_h2_session *session, heddle_h2_stream *at)
{
    heddle_h2_client_stream *stream = find_owner(at);
    if (!stream)
        return;
    heddle_h2_client_enter(stream, HEDDLE_H2_CLIENT_COMPLETE);
    note_ready(stream);
}

static void on_reset(heddle_h2_session *session, heddle_h2_stream *at, heddle_h2_error error)
{
    heddle_h2_client_stream *stream = find_owner(at);
    /* After a complete response, a reset only means that the server needs no more of the request (RFC 9113, 8.1). */
    if (!stream || stream->stage == HEDDLE_H2_CLIENT_COMPLETE)
        return;
    heddle_h2_failure failure = HEDDLE_H2_ANSWER_REJECTED;
    if (at->state == HEDDLE_H2_RESET_BY_PEER)
        failure = error == HEDDLE_H2_REFUSED_STREAM ? HEDDLE_H2_STREAM_REFUSED : HEDDLE_H2_STREAM_RESET;
    else if (!heddle_h2_is_open(session))
        failure = stream->client->lost ? HEDDLE_H2_CONNECTION_LOST : HEDDLE_H2_CONNECTION_FAILED;
    fail_stream(stream, failure, error);
}

static void on_window(heddle_h2_session *session, heddle_h2_stream *at)
{
    heddle_h2_client_stream *stream = at->owner;
    if (!stream)
        return;
    stream->has_room = true;
    note_ready(stream);
}

const heddle_h2_operations heddle_h2_client_operations = {
    .on_data = on_data, .on_end = on_end, .on_reset = on_reset, .on_window = on_window,
    .on_response = on_response,
};

/* -- the object ---------------------------------------------------------------------------------------------------- */

/* Resets the stream unless it is complete, and releases it. */
static void close_stream(heddle_h2_client_stream *stream)
{
    if (!stream->stream)
        return;
    heddle_h2_session *session = stream->client->session;
    heddle_h2_stream *at = stream->stream;
    stream->stream = NULL;
    if (heddle_h2_client_may_enter(stream->stage, HEDDLE_H2_CLIENT_ABANDONED))
        heddle_h2_client_enter(stream, HEDDLE_H2_CLIENT_ABANDONED);
    heddle_link_remove(&stream->ready);
    at->owner = NULL;
    heddle_h2_reset(session, at, HEDDLE_H2_CANCEL);
    heddle_h2_release(session, at);
}

static void stream_free(void *data)
{
    heddle_h2_client_stream *stream = data;
    close_stream(stream);
    if (stream->client)
        heddle_h2_client_release(stream->client);
    free(stream->head);
    free(stream->trailers);
    heddle_bytes_reset(&stream->body, 0);
    xfree(stream);
}

static const rb_data_type_t stream_type =
    HEDDLE_TYPE("Heddle::HTTP::H2::ClientStream", RUBY_TYPED_DECL_MARKING,
                .dmark = HEDDLE_REFERENCES(offsetof(heddle_h2_client_stream, connection),
                                           offsetof(heddle_h2_client_stream, waiter)),
                .dfree = stream_free);

static VALUE stream_class;

VALUE heddle_h2_client_stream_object(VALUE connection)
{
    heddle_h2_client_stream *stream;
    VALUE object = TypedData_Make_Struct(stream_class, heddle_h2_client_stream, &stream_type, stream);
    stream->connection = connection;
    stream->waiter = Qnil;
    return object;
}

heddle_h2_client_stream *heddle_h2_client_stream_of(VALUE object)
{
    return rb_check_typeddata(object, &stream_type);
}

/* -- the response -------------------------------------------------------------------------------------------------- */

static VALUE fields_of(const heddle_field *fields, uint32_t count)
{
    return heddle_fields_array((const char *)(fields + count), fields, count, false);
}

/*
 * call-seq: take_head -> Array or nil
 *
 * Returns the fields of the final head: name, value, name, value. Returns nil until the head is received, and after the
 * first call that has returned the fields.
 */
static VALUE stream_take_head(VALUE self)
{
    heddle_h2_client_stream *stream = heddle_h2_client_stream_of(self);
    if (!stream->head)
        return Qnil;
    VALUE fields = fields_of(stream->head, stream->head_count);
    free(stream->head);
    stream->head = NULL;
    return fields;
}

/*
 * call-seq: trailers -> Array or nil
 *
 * Returns the trailer fields in the same form as #take_head, or nil if none were received.
 */
static VALUE stream_trailers(VALUE self)
{
    heddle_h2_client_stream *stream = heddle_h2_client_stream_of(self);
    return stream->trailers ? fields_of(stream->trailers, stream->trailer_count) : Qnil;
}

/*
 * call-seq: read(max) -> String or nil
 *
 * Returns received bytes of the body, at most +max+, or nil if there are none. Credits them to the windows of flow
 * control, so that the server can send more.
 */
static VALUE stream_read(VALUE self, VALUE max)
{
    heddle_h2_client_stream *stream = heddle_h2_client_stream_of(self);
    size_t most = NUM2SIZET(max), size = heddle_bytes_left(&stream->body);
    if (size == 0)
        return Qnil;
    if (size > most)
        size = most;
    VALUE bytes = rb_str_new(stream->body.bytes + stream->body.start, (long)size);
    stream->body.start += size;
    if (heddle_bytes_left(&stream->body) == 0)
        heddle_bytes_reset(&stream->body, 0);
    if (stream->stream)
        heddle_h2_consume(stream->client->session, stream->stream, size);
    return bytes;
}

/*
 * call-seq: failure -> Array or nil
 *
 * Returns why the stream has ended early: one of :refused, :reset, :rejected, :failed and :lost; the error code of
 * HTTP/2; and a text, or nil. Returns nil if the stream has not failed.
 */
static VALUE stream_failure(VALUE self)
{
    static const char *const names[] = {
        [HEDDLE_H2_STREAM_REFUSED] = "refused", [HEDDLE_H2_STREAM_RESET] = "reset",
        [HEDDLE_H2_ANSWER_REJECTED] = "rejected", [HEDDLE_H2_CONNECTION_FAILED] = "failed",
        [HEDDLE_H2_CONNECTION_LOST] = "lost",
    };
    const heddle_h2_client_stream *stream = heddle_h2_client_stream_of(self);
    if (stream->stage != HEDDLE_H2_CLIENT_FAILED)
        return Qnil;
    VALUE reason = stream->reason ? rb_usascii_str_new_cstr(stream->reason) : Qnil;
    return rb_ary_new_from_args(3, ID2SYM(rb_intern(names[stream->failure])), UINT2NUM(stream->error), reason);
}

/* -- the request --------------------------------------------------------------------------------------------------- */

/*
 * call-seq: write(data, offset) -> Integer
 *
 * Queues the bytes of +data+ from +offset+ on, as a part of the request's body, and returns how many were queued. If
 * these are not all, the caller must wait until #room? returns true, and call this method again.
 */
static VALUE stream_write(VALUE self, VALUE data, VALUE offset)
{
    heddle_h2_client_stream *stream = heddle_h2_client_stream_of(self);
    StringValue(data);
    size_t size = (size_t)RSTRING_LEN(data), from = NUM2SIZET(offset);
    if (!stream->stream || from >= size)
        return INT2FIX(0);
    stream->has_room = false;
    stream->client->session->now = heddle_clock_now();
    size_t taken = heddle_h2_write(stream->client->session, stream->stream, RSTRING_PTR(data) + from, size - from);
    RB_GC_GUARD(data);
    return SIZET2NUM(taken);
}

#define METHODS(X)                                                                                                     \
    /* Has the response ended with its head, so that there is no body? */                                              \
    X(stream_head_only_p, "head_only?", heddle_h2_client_stream_of(self)->ended_with_head ? Qtrue : Qfalse)            \
    /* Was the response received completely? Some of it may be unread. */                                              \
    X(stream_ended_p, "ended?", heddle_h2_client_stream_of(self)->stage == HEDDLE_H2_CLIENT_COMPLETE ? Qtrue : Qfalse) \
    /* The number of bytes of the body that were received and not read. */                                             \
    X(stream_buffered, "buffered", SIZET2NUM(heddle_bytes_left(&heddle_h2_client_stream_of(self)->body)))              \
    X(stream_failed_p, "failed?", heddle_h2_client_stream_of(self)->stage == HEDDLE_H2_CLIENT_FAILED ? Qtrue : Qfalse) \
    /* Is there room again, after #write has queued only a part of its bytes? */                                       \
    X(stream_room_p, "room?", heddle_h2_client_stream_of(self)->has_room ? Qtrue : Qfalse)                             \
    /* The status of the final head; nil until the head is received. */                                                \
    X(stream_status, "status",                                                                                         \
      heddle_h2_client_stream_of(self)->status ? INT2FIX(heddle_h2_client_stream_of(self)->status) : Qnil)             \
    /* Resets the stream unless it is complete. */                                                                     \
    X(stream_close, "close", (close_stream(heddle_h2_client_stream_of(self)), Qnil))
METHODS(HEDDLE_DEFINE_METHOD)

/*
 * call-seq: finish -> nil
 *
 * Ends the request's body.
 */
static VALUE stream_finish(VALUE self)
{
    heddle_h2_client_stream *stream = heddle_h2_client_stream_of(self);
    if (stream->stream)
        heddle_h2_finish(stream->client->session, stream->stream);
    return Qnil;
}

/*
 * call-seq: waiter = queue
 *
 * Sets the stream's waiter, a Queue. When the stream has new events, the Array that ClientConnection#receive returns
 * contains the waiter. nil removes the waiter.
 */
static VALUE stream_set_waiter(VALUE self, VALUE waiter)
{
    RB_OBJ_WRITE(self, &heddle_h2_client_stream_of(self)->waiter, waiter);
    return waiter;
}

void Init_heddle_h2_client_stream(VALUE h2)
{
    VALUE class = stream_class = heddle_define_class(h2, "ClientStream", NULL);
    rb_define_method(class, "take_head", stream_take_head, 0);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "trailers", stream_trailers, 0);
    rb_define_method(class, "read", stream_read, 1);
    rb_define_method(class, "failure", stream_failure, 0);
    rb_define_method(class, "write", stream_write, 2);
    rb_define_method(class, "finish", stream_finish, 0);
    rb_define_method(class, "waiter=", stream_set_waiter, 1);
}
