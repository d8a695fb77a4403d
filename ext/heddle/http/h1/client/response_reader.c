/*
 * Heddle::HTTP::H1::ResponseReader: reads responses for the HTTP client. response_head.c decides what ends a body: its
 * length, a last chunk, or the end of the connection. This file finds that end. If the connection ends before the body
 * does, that is an error (RFC 9112, 8).
 */

#include "binding.h"
#include "http/http.h"
#include "http/head_ruby.h"
#include "http/method.h"
#include "http/text.h"
#include "net/outbound.h"
#include "scheduler/loop.h"
#include "selector/assert.h"

enum {
    FILL = 16384, /* bytes; one read into the connection's buffer asks for this many */
    /* Bytes; the largest capacity of a String before bytes of the body have come: a Content-Length may be wrong. */
    STRING_STEP = 65536,
};

typedef enum {
    AT_HEAD,     /* the next bytes are a head */
    SIZED,       /* the next bytes belong to a body with a Content-Length */
    CHUNKED,     /* the next bytes belong to a chunked body */
    UNTIL_CLOSE, /* the next bytes belong to a body that ends with the connection */
    COMPLETE,    /* the response is complete */
    FAILED,      /* reading or parsing has failed; nothing more can be read from the connection */
    STATES,
} reader_state;

/* The states that may follow each state. */
static const bool transitions[STATES][STATES] = {
    [AT_HEAD] = {[AT_HEAD] = true, [SIZED] = true, [CHUNKED] = true, [UNTIL_CLOSE] = true, [COMPLETE] = true,
                 [FAILED] = true},
    [SIZED] = {[COMPLETE] = true, [FAILED] = true},
    [CHUNKED] = {[COMPLETE] = true, [FAILED] = true},
    [UNTIL_CLOSE] = {[COMPLETE] = true, [FAILED] = true},
    [COMPLETE] = {[AT_HEAD] = true},
};

typedef struct {
    VALUE connection; /* Net::OutboundConnection */
    heddle_http_limits limits;
    heddle_field *fields; /* room for limits.header_count fields */
    reader_state state;
    bool keep_alive;    /* false also after an upgrade */
    uint64_t remaining; /* bytes left of a sized body */
    size_t seen;        /* bytes of the incomplete head that were already parsed */
    heddle_chunked chunked;
} reader;

static void change_state(reader *reader, reader_state next)
{
    HEDDLE_ASSERT(transitions[reader->state][next]);
    reader->state = next;
}

/* -- the object ---------------------------------------------------------------------------------------------------- */

static void reader_free(void *data)
{
    xfree(((reader *)data)->fields);
    xfree(data);
}

static const rb_data_type_t reader_type =
    HEDDLE_TYPE("Heddle::HTTP::H1::ResponseReader", RUBY_TYPED_DECL_MARKING,
                .dmark = HEDDLE_REFERENCES(offsetof(reader, connection)),
                .dfree = reader_free);

HEDDLE_ALLOCATE(reader_allocate, reader, reader_type)

static reader *reader_of(VALUE object)
{
    reader *self = rb_check_typeddata(object, &reader_type);
    if (!self->fields)
        rb_raise(rb_eArgError, "the reader has not been initialized");
    return self;
}

/*
 * call-seq: new(connection, configuration)
 *
 * +connection+ is a Net::OutboundConnection, and +configuration+ an HTTP::Limits.
 */
static VALUE reader_initialize(VALUE object, VALUE connection, VALUE configuration)
{
    reader *self = rb_check_typeddata(object, &reader_type);
    heddle_outbound_of(connection);
    heddle_http_limits limits = heddle_http_limits_of(configuration);
    heddle_field *fields = ALLOC_N(heddle_field, limits.header_count);
    xfree(self->fields);
    self->limits = limits;
    self->fields = fields;
    RB_OBJ_WRITE(object, &self->connection, connection);
    self->state = COMPLETE;
    self->keep_alive = true;
    return object;
}

/* -- heads --------------------------------------------------------------------------------------------------------- */

static void follow_head(reader *self, const heddle_response_head *head)
{
    if (head->status < 200 && !head->upgrade) {
        change_state(self, AT_HEAD); /* another head follows an interim response */
        return;
    }
    self->keep_alive = head->keep_alive;
    if (head->until_close) {
        change_state(self, UNTIL_CLOSE);
    } else if (head->content_length == HEDDLE_CHUNKED_BODY) {
        heddle_chunked_start(&self->chunked, head->field_bytes, head->line_count);
        change_state(self, CHUNKED);
    } else if (head->content_length > 0) {
        self->remaining = (uint64_t)head->content_length;
        change_state(self, SIZED);
    } else {
        change_state(self, COMPLETE);
    }
}

/* Returns a ReceivedResponse, a Rejection, or Qundef if the head is incomplete. */
static VALUE parse_head(reader *self, heddle_outbound *connection, heddle_method method)
{
    heddle_response_head head = {.fields = self->fields, .field_room = (uint16_t)self->limits.header_count};
    heddle_rejection rejection;
    const char *bytes = heddle_bytes_first(&connection->input);
    size_t size = heddle_bytes_left(&connection->input);
    int result = heddle_response_head_parse(&head, method, bytes, size, self->seen, &self->limits, &rejection);
    if (result == 0) {
        self->seen = size;
        return Qundef;
    }
    self->seen = 0;
    if (result < 0) {
        change_state(self, FAILED);
        return heddle_rejection_object(&rejection);
    }
    VALUE response = heddle_received_response(bytes, &head);
    heddle_bytes_use(&connection->input, (size_t)result);
    follow_head(self, &head);
    return response;
}

NORETURN(static void raise_failure(reader *self, heddle_outbound *connection, ssize_t error))
{
    change_state(self, FAILED);
    heddle_outbound_fail(connection, error, "reading the response");
}

/*
 * call-seq: read_head(method, first_byte, between) -> ReceivedResponse, Rejection or nil
 *
 * Reads the next head of the response to a request with this method. The head may be that of an interim response (1xx).
 * +first_byte+ is the time limit for the head's first byte, and +between+ the time limit from each byte to the next.
 * Both are in seconds; nil means no limit. Returns a Rejection if the head is malformed, and nil if the connection ends
 * before the head begins. Raises IO::TimeoutError when a limit is exceeded, and EOFError when the connection ends
 * within the head.
 */
static VALUE reader_read_head(VALUE object, VALUE method_name, VALUE first_byte, VALUE between)
{
    reader *self = reader_of(object);
    const char *name = StringValueCStr(method_name);
    heddle_method method = heddle_method_find(name, (size_t)RSTRING_LEN(method_name));
    int64_t first = heddle_parse_duration(first_byte), next = heddle_parse_duration(between);
    if (self->state != AT_HEAD && self->state != COMPLETE)
        rb_raise(rb_eIOError, "the previous response was not read to its end");
    if (self->state == COMPLETE)
        change_state(self, AT_HEAD);
    for (;;) {
        heddle_outbound *connection = heddle_outbound_of(self->connection);
        if (heddle_bytes_left(&connection->input) > self->seen) {
            VALUE head = parse_head(self, connection, method);
            if (head != Qundef)
                return head;
        }
        ssize_t result = heddle_outbound_fill(connection, FILL);
        if (result > 0)
            continue;
        bool begun = heddle_bytes_left(&connection->input) > 0;
        if (result == 0) {
            change_state(self, FAILED);
            if (begun)
                rb_raise(rb_eEOFError, "the connection ended in the middle of the response's head");
            return Qnil;
        }
        if (result != -EAGAIN)
            raise_failure(self, connection, result);
        heddle_outbound_await_input(self->connection, begun ? next : first,
                                    begun ? "timed out in the middle of the response's head"
                                          : "timed out waiting for a response");
        RB_GC_GUARD(object);
    }
}

/* -- bodies -------------------------------------------------------------------------------------------------------- */

NORETURN(static void cut_short(reader *self))
{
    bool sized = self->state == SIZED;
    change_state(self, FAILED);
    if (sized)
        rb_raise(rb_eEOFError, "the connection ended %" PRIu64 " bytes before the end of the body", self->remaining);
    rb_raise(rb_eEOFError, "the connection ended before the end of the body");
}

/* Receives bytes of the body directly into the String, without the connection's buffer. */
static ssize_t receive_into(VALUE body, heddle_outbound *connection, size_t size)
{
    long length = RSTRING_LEN(body);
    if (rb_str_capacity(body) - (size_t)length < size)
        rb_str_modify_expand(body, (long)size > length ? (long)size : length); /* at least doubles the capacity */
    ssize_t result = heddle_outbound_receive(connection, RSTRING_PTR(body) + length, size);
    if (result > 0)
        rb_str_set_len(body, length + result);
    return result;
}

/* Adds at most `most` bytes to `body`: from the connection's buffer, or, if the buffer is empty, from the socket. */
static ssize_t take_bytes(VALUE body, heddle_outbound *connection, size_t most)
{
    size_t size = heddle_least(heddle_bytes_left(&connection->input), most);
    if (size == 0)
        return receive_into(body, connection, heddle_least(most, STRING_STEP));
    rb_str_cat(body, heddle_bytes_first(&connection->input), (long)size);
    heddle_bytes_use(&connection->input, size);
    return (ssize_t)size;
}

/*
 * read_sized, read_until_close and read_chunked add received bytes to `body`. They return 1 if bytes were added, 0 if
 * the body has ended, -EAGAIN if no bytes are available, or another -errno. They raise EOFError if the connection has
 * ended too early.
 */
static ssize_t read_sized(reader *self, heddle_outbound *connection, VALUE body, size_t most)
{
    ssize_t result = take_bytes(body, connection, self->remaining < most ? (size_t)self->remaining : most);
    if (result == 0)
        cut_short(self);
    if (result < 0)
        return result;
    self->remaining -= (uint64_t)result;
    if (self->remaining == 0)
        change_state(self, COMPLETE);
    return 1;
}

static ssize_t read_until_close(reader *self, heddle_outbound *connection, VALUE body, size_t most)
{
    ssize_t result = take_bytes(body, connection, most);
    if (result != 0)
        return result < 0 ? result : 1;
    if (!heddle_outbound_ended_properly(connection))
        cut_short(self);
    change_state(self, COMPLETE);
    return 0;
}

/* If the body is malformed, returns -EPROTO and sets `*rejected` to a Rejection. */
static ssize_t read_chunked(reader *self, heddle_outbound *connection, VALUE body, size_t most, VALUE *rejected)
{
    size_t buffered = heddle_bytes_left(&connection->input);
    if (!buffered) {
        ssize_t result = heddle_outbound_fill(connection, FILL);
        if (result == 0)
            cut_short(self);
        if (result < 0)
            return result;
        buffered = (size_t)result;
    }
    heddle_rejection rejection;
    size_t length = 0, size = buffered < most ? buffered : most;
    char *bytes = heddle_bytes_first(&connection->input);
    int64_t used = heddle_chunked_decode(&self->chunked, bytes, size, bytes, &length, &self->limits, &rejection);
    if (used < 0) {
        change_state(self, FAILED);
        *rejected = heddle_rejection_object(&rejection);
        return -EPROTO;
    }
    rb_str_cat(body, bytes, (long)length);
    heddle_bytes_use(&connection->input, (size_t)used);
    if (self->chunked.done)
        change_state(self, COMPLETE);
    return length ? 1 : self->chunked.done ? 0 : -EAGAIN;
}

/*
 * Waits for the next bytes of a body of any kind, and adds them to `body`. Returns 1; 0 if the body has ended; or
 * -EPROTO if the body is malformed.
 */
static ssize_t read_some(VALUE object, reader *self, VALUE body, size_t most, int64_t timeout, VALUE *rejected)
{
    for (;;) {
        heddle_outbound *connection = heddle_outbound_of(self->connection);
        ssize_t result = 0;
        switch (self->state) {
        case SIZED:
            result = read_sized(self, connection, body, most);
            break;
        case CHUNKED:
            result = read_chunked(self, connection, body, most, rejected);
            break;
        case UNTIL_CLOSE:
            result = read_until_close(self, connection, body, most);
            break;
        case FAILED:
            rb_raise(rb_eIOError, "the rest of the body can't be read: an earlier read of this response failed");
        default:
            return 0;
        }
        if (result >= 0 || !NIL_P(*rejected))
            return result;
        if (result != -EAGAIN)
            raise_failure(self, connection, result);
        if (!heddle_bytes_left(&connection->input))
            heddle_outbound_await_input(self->connection, timeout, "timed out in the middle of the response's body");
        RB_GC_GUARD(object);
    }
}

/*
 * call-seq: read_body(max, timeout) -> String, Rejection or nil
 *
 * Returns the next piece of the body, at most +max+ bytes. Returns nil when the body is complete, and a Rejection if it
 * is malformed. Raises IO::TimeoutError when no byte arrives for +timeout+ seconds (nil means no limit), EOFError when
 * the connection ends before the body is complete, and IOError if an earlier read of this response failed.
 */
static VALUE reader_read_body(VALUE object, VALUE max, VALUE timeout)
{
    reader *self = reader_of(object);
    long most = NUM2LONG(max);
    int64_t time = heddle_parse_duration(timeout);
    if (most <= 0)
        rb_raise(rb_eArgError, "the size to read must be at least 1 byte, not %ld", most);
    if (self->state == COMPLETE)
        return Qnil;
    VALUE body = rb_str_buf_new(0), rejected = Qnil;
    ssize_t result = read_some(object, self, body, (size_t)most, time, &rejected);
    if (!NIL_P(rejected))
        return rejected;
    RB_GC_GUARD(object);
    return result > 0 ? body : Qnil;
}

/*
 * call-seq: read_all(limit, timeout) -> String, Rejection or nil
 *
 * Returns the whole body, or nil if it is larger than +limit+ bytes. Returns a Rejection, or raises, in the same cases
 * as #read_body.
 */
static VALUE reader_read_all(VALUE object, VALUE limit, VALUE timeout)
{
    reader *self = reader_of(object);
    uint64_t most = NUM2ULL(limit);
    int64_t time = heddle_parse_duration(timeout);
    if (self->state == SIZED && self->remaining > most)
        return Qnil;
    uint64_t expected = self->state == SIZED ? self->remaining : 0;
    VALUE body = rb_str_buf_new((long)(expected < STRING_STEP ? expected : STRING_STEP)), rejected = Qnil;
    while (self->state != COMPLETE) {
        ssize_t result = read_some(object, self, body, STRING_STEP, time, &rejected);
        if (!NIL_P(rejected))
            return rejected;
        if ((uint64_t)RSTRING_LEN(body) > most)
            return Qnil;
        if (result == 0)
            break;
    }
    RB_GC_GUARD(object);
    return body;
}

/*
 * call-seq: complete? -> true or false
 *
 * Was the response read to its end?
 */
HEDDLE_DEFINE_METHOD(reader_complete_p, "complete?", reader_of(self)->state == COMPLETE ? Qtrue : Qfalse)

/*
 * call-seq: reusable? -> true or false
 *
 * May the connection be used for another request? Returns false if the response is not complete, if the server does not
 * keep the connection open, if bytes follow the response, or after an upgrade.
 */
static VALUE reader_reusable_p(VALUE object)
{
    reader *self = reader_of(object);
    bool reusable = self->state == COMPLETE && self->keep_alive &&
                    !heddle_bytes_left(&heddle_outbound_of(self->connection)->input);
    return reusable ? Qtrue : Qfalse;
}

/*
 * call-seq: begun? -> true or false
 *
 * Was a part of a head received, but not the whole head?
 */
HEDDLE_DEFINE_METHOD(reader_begun_p, "begun?", reader_of(self)->seen ? Qtrue : Qfalse)

void Init_heddle_response_reader(VALUE h1)
{
    VALUE class = heddle_define_class(h1, "ResponseReader", reader_allocate);
    rb_define_method(class, "initialize", reader_initialize, 2);
    rb_define_method(class, "read_head", reader_read_head, 3);
    rb_define_method(class, "read_body", reader_read_body, 2);
    rb_define_method(class, "read_all", reader_read_all, 2);
    rb_define_method(class, "complete?", reader_complete_p, 0);
    rb_define_method(class, "reusable?", reader_reusable_p, 0);
    rb_define_method(class, "begun?", reader_begun_p, 0);
}
