/* Heddle::HTTP::H2::ClientConnection: an HTTP/2 session (h2/session.h) over an outbound connection. */

#include "http/h2/client/client.h"

#include "binding.h"
#include "net/outbound.h"
#include "scheduler/loop.h"

enum {
    AT_ONCE = 65536,  /* bytes; frames are pulled from the session until this many bytes wait to be sent */
    FILL = 16384,     /* bytes that one read requests */
    PSEUDO_FIELDS = 4,
};

/* -- the object ---------------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_h2_client *client;
    VALUE connection; /* Net::OutboundConnection */
} client_object;

void heddle_h2_client_release(heddle_h2_client *client)
{
    if (--client->references > 0)
        return;
    if (client->session)
        heddle_h2_session_free(client->session);
    heddle_h2_workspace_free(&client->workspace);
    heddle_bytes_reset(&client->outgoing, 0);
    free(client);
}

static void client_free(void *data)
{
    client_object *self = data;
    if (self->client)
        heddle_h2_client_release(self->client);
    xfree(self);
}

static const rb_data_type_t client_type =
    HEDDLE_TYPE("Heddle::HTTP::H2::ClientConnection", RUBY_TYPED_DECL_MARKING,
                .dmark = HEDDLE_REFERENCES(offsetof(client_object, connection)),
                .dfree = client_free);

HEDDLE_ALLOCATE(client_allocate, client_object, client_type)

static client_object *object_of(VALUE object)
{
    client_object *self = rb_check_typeddata(object, &client_type);
    if (!self->client)
        rb_raise(rb_eArgError, "the connection has not been initialized");
    return self;
}

/*
 * call-seq: new(connection)
 *
 * +connection+ is a Net::OutboundConnection on which nothing was sent. The preface is sent with the first request.
 */
static VALUE client_initialize(VALUE object, VALUE connection)
{
    client_object *self = rb_check_typeddata(object, &client_type);
    if (self->client)
        rb_raise(rb_eArgError, "the connection has been initialized already");
    heddle_outbound_of(connection);
    heddle_h2_client *client = calloc(1, sizeof(*client));
    if (!client)
        rb_memerror();
    client->references = 1;
    heddle_link_init_head(&client->ready);
    client->limits = heddle_h2_client_limits();
    self->client = client;
    RB_OBJ_WRITE(object, &self->connection, connection);
    client->session = heddle_h2_session_new(&heddle_h2_client_operations, &client->limits, &client->workspace, client,
                                            heddle_clock_now(), true);
    if (!client->session)
        rb_memerror();
    return object;
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

static heddle_h2_field field_of(const char *name, size_t name_size, VALUE value)
{
    StringValue(value);
    return (heddle_h2_field){name, RSTRING_PTR(value), (uint32_t)name_size, (uint32_t)RSTRING_LEN(value)};
}

/*
 * Adds fields after the pseudo-header fields. A Host field replaces the authority. Returns the number of all fields.
 */
static size_t add_fields(VALUE list, heddle_h2_field *fields, size_t count, heddle_h2_field *authority)
{
    for (long i = 0; i + 1 < RARRAY_LEN(list); i += 2) {
        VALUE name = RARRAY_AREF(list, i);
        StringValue(name);
        heddle_h2_field field = field_of(RSTRING_PTR(name), (size_t)RSTRING_LEN(name), RARRAY_AREF(list, i + 1));
        if (field.name_size == 4 && strncasecmp(field.name, "host", 4) == 0) {
            authority->value = field.value;
            authority->value_size = field.value_size;
        } else {
            fields[count++] = field;
        }
    }
    return count;
}

static VALUE begin_stream(VALUE object, const heddle_h2_field *fields, size_t count, bool end, bool expects_body)
{
    VALUE created = heddle_h2_client_stream_object(object); /* made first: nothing may raise once the stream is open */
    heddle_h2_client_stream *stream = heddle_h2_client_stream_of(created);
    heddle_h2_client *client = object_of(object)->client;
    heddle_h2_stream *opened;
    client->session->now = heddle_clock_now();
    switch (heddle_h2_open_stream(client->session, fields, count, end, expects_body, &opened)) {
    case HEDDLE_H2_WRITTEN:
        stream->client = client;
        client->references++;
        stream->stream = opened;
        heddle_h2_client_enter(stream, HEDDLE_H2_CLIENT_SENT);
        opened->owner = stream;
        return created;
    case HEDDLE_H2_GONE:
        return Qnil;
    default:
        rb_raise(rb_eArgError, "a field of the request has a name or a value that HTTP/2 does not allow");
    }
}

/*
 * call-seq: open(method, scheme, authority, path, fields, end) -> ClientStream or nil
 *
 * Begins a request. +fields+ are Strings: name, value, name, value. A Host field replaces +authority+. +end+ is true if
 * the request has no body. Returns nil if no request can begin now, because the server's limit is reached or the
 * connection is closing. Raises ArgumentError if HTTP/2 does not allow a field.
 */
static VALUE client_open(int argc, VALUE *argv, VALUE object)
{
    rb_check_arity(argc, 6, 6);
    VALUE list = rb_Array(argv[4]);
    VALUE buffer;
    heddle_h2_field *fields = ALLOCV_N(heddle_h2_field, buffer, RARRAY_LEN(list) / 2 + PSEUDO_FIELDS);
    fields[0] = field_of(":method", 7, argv[0]);
    fields[1] = field_of(":scheme", 7, argv[1]);
    fields[2] = field_of(":authority", 10, argv[2]);
    fields[3] = field_of(":path", 5, argv[3]);
    size_t count = add_fields(list, fields, PSEUDO_FIELDS, &fields[2]);
    bool is_head = RSTRING_LEN(argv[0]) == 4 && memcmp(RSTRING_PTR(argv[0]), "HEAD", 4) == 0;
    VALUE stream = begin_stream(object, fields, count, RTEST(argv[5]), !is_head);
    ALLOCV_END(buffer);
    for (int i = 0; i < argc; i++)
        RB_GC_GUARD(argv[i]);
    RB_GC_GUARD(list);
    return stream;
}

/* -- output -------------------------------------------------------------------------------------------------------- */

static void lose_connection(heddle_h2_client *client)
{
    client->lost = true;
    heddle_bytes_reset(&client->outgoing, 0);
    heddle_h2_abort(client->session, heddle_clock_now(), HEDDLE_H2_NO_ERROR);
}

/* Moves frames from the session to `outgoing`, up to a limit. Returns false when out of memory. */
static bool pull_output(heddle_h2_client *client)
{
    heddle_bytes *outgoing = &client->outgoing;
    while (heddle_bytes_left(outgoing) < AT_ONCE && heddle_h2_has_output(client->session)) {
        if (!heddle_bytes_reserve(outgoing, HEDDLE_H2_PULL_ROOM))
            return false;
        size_t size = heddle_h2_pull(client->session, heddle_clock_now(), outgoing->bytes + outgoing->size,
                                     outgoing->room - outgoing->size);
        outgoing->size += size;
        if (size == 0)
            break;
    }
    return true;
}

/*
 * Sends as much as the kernel accepts. Returns -EAGAIN if output is left, or another -errno if sending has failed.
 * Otherwise returns 0: all output was sent, the connection was lost before, or another fiber or thread is using the
 * connection and will send all output.
 */
static int send_output(client_object *self)
{
    heddle_h2_client *client = self->client;
    if (client->busy || client->lost)
        return 0;
    for (;;) {
        if (!pull_output(client))
            rb_memerror();
        size_t left = heddle_bytes_left(&client->outgoing);
        if (left == 0)
            return 0;
        heddle_outbound *connection = heddle_outbound_of(self->connection);
        struct iovec piece = {client->outgoing.bytes + client->outgoing.start, left};
        client->busy = true;
        ssize_t result = connection->transport.operations->send(&connection->transport, &piece, 1);
        client->busy = false;
        if (result == -EAGAIN)
            return -EAGAIN;
        if (result < 0) { /* the streams don't fail yet: input that came before the error must be read first */
            heddle_bytes_reset(&client->outgoing, 0);
            return (int)result;
        }
        connection->sent += (uint64_t)result;
        client->outgoing.start += (size_t)result;
        if (heddle_bytes_left(&client->outgoing) == 0)
            heddle_bytes_reset(&client->outgoing, 0);
    }
}

/*
 * call-seq: await_room(deadline) -> nil
 *
 * Waits until the kernel accepts more output. +deadline+ is in seconds of CLOCK_MONOTONIC; nil means no deadline.
 * Raises IO::TimeoutError.
 */
static VALUE client_await_room(VALUE object, VALUE deadline)
{
    VALUE connection = object_of(object)->connection;
    const heddle_tls *tls = heddle_outbound_of(connection)->transport.tls;
    int events = tls && tls->write_wants_input ? HEDDLE_READABLE : HEDDLE_WRITABLE;
    heddle_outbound_await(connection, events, heddle_parse_duration(deadline),
                          "timed out sending the request: the server reads nothing");
    return Qnil;
}

/* -- input --------------------------------------------------------------------------------------------------------- */

/* Feeds received bytes to the session. Returns false if the session accepts no more before its output is sent. */
static bool feed_buffered(client_object *self)
{
    heddle_outbound *connection = heddle_outbound_of(self->connection);
    size_t buffered = heddle_bytes_left(&connection->input);
    if (buffered == 0)
        return true;
    size_t used = heddle_h2_feed(self->client->session, heddle_clock_now(), heddle_bytes_first(&connection->input),
                                 buffered);
    heddle_bytes_use(&connection->input, used);
    return used == buffered;
}

/*
 * Receives without waiting. Returns 1 if bytes were received, -EAGAIN if none are available, and 0 or another -errno if
 * the connection has ended.
 */
static ssize_t receive_some(client_object *self)
{
    heddle_outbound *connection = heddle_outbound_of(self->connection);
    if (self->client->busy)
        return -EAGAIN;
    self->client->busy = true;
    ssize_t result = heddle_outbound_fill(connection, FILL);
    self->client->busy = false;
    if (result == -EAGAIN)
        return -EAGAIN;
    if (result <= 0) {
        lose_connection(self->client);
        return result;
    }
    feed_buffered(self);
    return 1;
}

/*
 * Returns the waiters of streams with new events, or nil if there are none. `take`: also empties the list of streams.
 */
static VALUE collect_waiters(heddle_h2_client *client, bool take)
{
    heddle_link *link, *next;
    long count = 0;
    for (link = heddle_link_first(&client->ready); link; link = heddle_link_after(&client->ready, link))
        count += !NIL_P(HEDDLE_CONTAINER_OF(link, heddle_h2_client_stream, ready)->waiter);
    /* allocated before the list is read, because a garbage collection may remove streams from the list */
    VALUE waiters = count ? rb_ary_new_capa(count) : Qnil;
    for (link = heddle_link_first(&client->ready); link; link = next) {
        VALUE waiter = HEDDLE_CONTAINER_OF(link, heddle_h2_client_stream, ready)->waiter;
        next = heddle_link_after(&client->ready, link);
        if (!NIL_P(waiter))
            rb_ary_push(waiters, waiter);
        if (take)
            heddle_link_remove(link);
    }
    return waiters;
}

/*
 * Sends and receives once. Returns true if input was received, a stream has new events, or the connection has ended.
 * Otherwise waits for input or room, if `waits` is set, and returns false.
 */
static bool step_input(client_object *self, int64_t deadline, bool waits)
{
    heddle_h2_client *client = self->client;
    bool all_fed = feed_buffered(self);
    int sent = send_output(self);
    ssize_t result = all_fed ? receive_some(self) : -EAGAIN;
    if (result != -EAGAIN) {
        send_output(self);
        return true;
    }
    if (heddle_link_first(&client->ready) || client->lost || !heddle_h2_is_open(client->session))
        return true;
    if (!waits)
        return false;
    const heddle_tls *tls = heddle_outbound_of(self->connection)->transport.tls;
    int events = sent == -EAGAIN || (tls && tls->read_wants_room) ? HEDDLE_WRITABLE : 0;
    if (all_fed)
        events |= HEDDLE_READABLE;
    heddle_outbound_await(self->connection, events ? events : HEDDLE_READABLE, deadline,
                          "the server sent nothing in time");
    return false;
}

/*
 * call-seq: receive(deadline) -> Array or nil
 *
 * Waits until input has arrived, a stream has new events, or the connection has ended. Sends output meanwhile. Returns
 * the waiters of streams with new events, which the caller must wake, or nil if there are none. Only one fiber or
 * thread may call this method at a time. +deadline+ is in seconds of CLOCK_MONOTONIC; nil means no deadline. Raises
 * IO::TimeoutError.
 */
static VALUE client_receive(VALUE object, VALUE deadline)
{
    client_object *self = object_of(object);
    int64_t until = heddle_parse_duration(deadline);
    while (!step_input(self, until, true))
        ;
    RB_GC_GUARD(object);
    return collect_waiters(self->client, true);
}

/*
 * call-seq: attend -> Array or nil
 *
 * The same as #receive, but does not wait. Called for a connection that no fiber reads, so that PING is acknowledged
 * and GOAWAY is handled.
 */
static VALUE client_attend(VALUE object)
{
    client_object *self = object_of(object);
    for (unsigned i = 0; i < 64 && step_input(self, -1, false) && !self->client->lost; i++)
        ;
    return collect_waiters(self->client, true);
}

/*
 * Reading and sending are roles: only one fiber or thread has each role at a time. Returns true if the caller gets the
 * role.
 */
static VALUE take_role(bool *taken)
{
    if (*taken)
        return Qfalse;
    *taken = true;
    return Qtrue;
}

#define METHODS(X)                                                                                                     \
    /* The maximum number of requests in progress: the lower of both sides' limits. */                                 \
    X(client_stream_limit, "stream_limit", UINT2NUM(heddle_h2_stream_limit(object_of(self)->client->session)))         \
    /* Sends as much as the kernel accepts. Returns false if output is left: then call #await_room. Otherwise returns  \
     * true, even if the connection has failed, or if another fiber or thread uses it: that one sends the output. */   \
    X(client_flush, "flush", send_output(object_of(self)) == -EAGAIN ? Qfalse : Qtrue)                                 \
    /* The waiters of streams with new events, for example room after a flush, or nil. Unlike #receive, does not empty \
     * the list of these streams. */                                                                                   \
    X(client_waiters, "waiters", collect_waiters(object_of(self)->client, false))                                      \
    /* If this returns true, only the caller may call #receive, until it calls #end_reading. */                        \
    X(client_begin_reading, "begin_reading", take_role(&object_of(self)->client->has_reader))                          \
    /* Has a fiber or thread called #begin_reading, and not #end_reading? */                                           \
    X(client_reading_p, "reading?", object_of(self)->client->has_reader ? Qtrue : Qfalse)                              \
    /* If this returns true, only the caller may call #await_room, until it calls #end_sending. */                     \
    X(client_begin_sending, "begin_sending", take_role(&object_of(self)->client->has_sender))                          \
    /* Returns true if no further request can begin on this connection. */                                             \
    X(client_leaving_p, "leaving?",                                                                                    \
      object_of(self)->client->lost || heddle_h2_is_leaving(object_of(self)->client->session) ? Qtrue : Qfalse)        \
    X(client_end_reading, "end_reading", (object_of(self)->client->has_reader = false, Qnil))                          \
    X(client_end_sending, "end_sending", (object_of(self)->client->has_sender = false, Qnil))                          \
    /* Returns false if the connection has ended or failed. */                                                         \
    X(client_open_p, "open?",                                                                                          \
      object_of(self)->client->lost || !heddle_h2_is_open(object_of(self)->client->session) ? Qfalse : Qtrue)
METHODS(HEDDLE_DEFINE_METHOD)

/*
 * call-seq: close -> Array or nil
 *
 * Sends GOAWAY, if the kernel accepts it, and closes the connection. Returns the waiters of the streams that have
 * failed, or nil if there are none. The caller must wake them.
 */
static VALUE client_close(VALUE object)
{
    client_object *self = object_of(object);
    heddle_h2_client *client = self->client;
    heddle_h2_abort(client->session, heddle_clock_now(), HEDDLE_H2_NO_ERROR);
    if (!RTEST(rb_funcall(self->connection, rb_intern("closed?"), 0))) {
        send_output(self);
        rb_funcall(self->connection, rb_intern("close"), 0);
    }
    client->lost = true;
    heddle_bytes_reset(&client->outgoing, 0);
    return collect_waiters(client, true);
}

void Init_heddle_h2_client(VALUE h2)
{
    VALUE class = heddle_define_class(h2, "ClientConnection", client_allocate);
    rb_define_method(class, "initialize", client_initialize, 1);
    rb_define_method(class, "open", client_open, -1);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "await_room", client_await_room, 1);
    rb_define_method(class, "receive", client_receive, 1);
    rb_define_method(class, "attend", client_attend, 0);
    rb_define_method(class, "close", client_close, 0);
    Init_heddle_h2_client_stream(h2);
}
