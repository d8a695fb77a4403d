#include "http/h1_server.h"

#include "http/exchange_ruby.h"

#include "net/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    STREAK = 16,       /* pipelined requests that are answered in one go */
    LINGER_READS = 16, /* a turn */
    FIRST_READ = 8192, /* more than that is a body, which is better read to where it belongs */
};

/* What became of bytes that were offered. */
typedef enum {
    MORE,   /* all of it is used that can be, more is needed */
    READY,  /* a request is to be served */
    LEFT,   /* the connection is closed, or on its way there */
} progress;

heddle_engine *heddle_engine_of(heddle_connection *connection)
{
    heddle_protocol *protocol = connection->sockets->protocol;
    return protocol->operations == &heddle_h1_operations ? (heddle_engine *)protocol : NULL;
}

static heddle_engine *engine_of(heddle_connection *connection)
{
    return (heddle_engine *)connection->sockets->protocol;
}

static void close_now(heddle_connection *connection)
{
    heddle_sockets_close_idle(connection);
}

/* -- deadlines --------------------------------------------------------------------------------------------------- */

static void due_in(heddle_connection *connection, int64_t duration)
{
    heddle_connection_due(connection, heddle_coarse_now() + duration);
}

/* When the body is too slow, if no more of it comes. */
static int64_t body_deadline(const heddle_engine *engine, const heddle_h1 *h1)
{
    if (engine->body_rate == 0)
        return heddle_coarse_now() + engine->idle_timeout;
    return h1->since + engine->body_grace + (int64_t)((double)h1->taken / (double)engine->body_rate * 1e9);
}

static void body_due(heddle_connection *connection)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    int64_t deadline = body_deadline(engine, h1);
    /* Its length is not known and it may never end: a client that pauses may be waiting for the answer. */
    if (h1->stage == HEDDLE_H1_BODY && h1->left < 0) {
        int64_t pause = heddle_coarse_now() + engine->body_pause;
        deadline = pause < deadline ? pause : deadline;
    }
    heddle_connection_due(connection, deadline);
}

/* -- ending ------------------------------------------------------------------------------------------------------ */

static void read_on(heddle_connection *connection);
static void take_buffered(heddle_connection *connection);

static void linger(heddle_connection *connection)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    char *scratch = heddle_sockets_scratch(connection->sockets);
    for (int i = 0; scratch && i < LINGER_READS; i++) {
        ssize_t bytes = heddle_connection_receive(connection, scratch, HEDDLE_SCRATCH);
        if (bytes == -EAGAIN) {
            connection->sockets->set.operations->want(&connection->sockets->set, connection, HEDDLE_READING);
            return;
        }
        if (bytes <= 0)
            break;
        h1->taken += (uint64_t)bytes;
        if (h1->taken >= engine->linger_limit)
            break;
    }
    close_now(connection);
}

/* A socket that is closed with unread input resets the connection, and the reset can overtake the answer (RFC 9112,
 * 9.6). So: say that no more comes, and read on for a while. */
static void begin_to_linger(heddle_connection *connection)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_transport *transport = &connection->transport;
    if (engine->linger_timeout == 0 || h1->ended || transport->operations->shutdown(transport) < 0) {
        close_now(connection);
        return;
    }
    h1->stage = HEDDLE_H1_LINGER;
    h1->taken = 0;
    heddle_connection_drop_input(connection);
    due_in(connection, engine->linger_timeout);
    linger(connection);
}

static void begin_to_idle(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    h1->stage = HEDDLE_H1_IDLE;
    h1->seen = 0;
    heddle_output_clear(&connection->output);
    take_buffered(connection);
}

static void proceed(heddle_connection *connection)
{
    switch ((heddle_h1_sequel)heddle_h1_of(connection)->sequel) {
    case HEDDLE_H1_NEXT:
        begin_to_idle(connection);
        break;
    case HEDDLE_H1_THEN_LINGER:
        begin_to_linger(connection);
        break;
    case HEDDLE_H1_THEN_CLOSE:
        close_now(connection);
        break;
    }
}

static void after_output(heddle_connection *connection, heddle_h1_sequel sequel)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    h1->sequel = sequel;
    int result = heddle_connection_flush(connection);
    if (result == 0) {
        proceed(connection);
    } else if (result == -EAGAIN) {
        h1->stage = HEDDLE_H1_SENDING;
        due_in(connection, engine_of(connection)->write_timeout);
    } else {
        close_now(connection);
    }
}

static void send_more(heddle_connection *connection)
{
    size_t before = connection->output.size;
    int result = heddle_connection_flush(connection);
    if (result == 0)
        proceed(connection);
    else if (result != -EAGAIN)
        close_now(connection);
    else if (connection->output.size < before)
        due_in(connection, engine_of(connection)->write_timeout);
}

/* -- refusing ---------------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_connection *connection;
    const heddle_refusal *refusal;
} news;

static VALUE tell(VALUE data)
{
    news *one = (news *)data;
    VALUE arguments[] = {
        heddle_address_string(&one->connection->remote),
        INT2FIX(one->refusal->status),
        rb_str_new_cstr(one->refusal->reason),
    };
    return rb_proc_call_with_block(engine_of(one->connection)->on_refusal, 3, arguments, Qnil);
}

/* Answers by itself what never becomes a request of the application, and closes. */
static void refuse(heddle_connection *connection, const heddle_refusal *refusal, const char *more_fields)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    bool content = !h1->exchange || h1->exchange->head.method_id != HEDDLE_HEAD;
    if (h1->exchange)
        heddle_exchange_give_back(engine, h1->exchange);
    h1->exchange = NULL;
    engine->refused++;
    if (engine->marked && !NIL_P(engine->on_refusal)) {
        news one = {connection, refusal};
        int state = 0;
        rb_protect(tell, (VALUE)&one, &state);
        if (state)
            rb_set_errinfo(Qnil); /* a log that fails must not fail the server */
    }
    char bytes[1024];
    heddle_buffer answer = {.bytes = bytes, .room = sizeof(bytes)};
    heddle_refusal_answer(refusal, &answer, heddle_engine_date(engine), HEDDLE_DATE_LINE, content, more_fields);
    if (answer.used > answer.room || !heddle_output_add_bytes(&connection->output, bytes, answer.used)) {
        close_now(connection);
        return;
    }
    heddle_connection_has_output(connection);
    after_output(connection, HEDDLE_H1_THEN_LINGER);
}

static void refuse_late_head(heddle_connection *connection)
{
    heddle_refusal refusal;
    heddle_refuse(&refusal, 408, "the request head was not complete after %g s",
                  (double)engine_of(connection)->head_timeout / 1e9);
    refuse(connection, &refusal, NULL);
}

static void refuse_slow_body(heddle_connection *connection)
{
    heddle_refusal refusal;
    heddle_refuse(&refusal, 408, "the body came slower than %llu bytes a second",
                  (unsigned long long)engine_of(connection)->body_rate);
    refuse(connection, &refusal, NULL);
}

static void refuse_cut(heddle_connection *connection, const char *what)
{
    heddle_refusal refusal;
    heddle_refuse(&refusal, 400, "%s", what);
    refuse(connection, &refusal, NULL);
}

/* -- reading ----------------------------------------------------------------------------------------------------- */

/* A head is complete: does somebody have to come for it now, or once more of its body is here? */
static progress begin(heddle_connection *connection, const char *bytes)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_exchange *exchange = heddle_exchange_take(engine, &engine->head, bytes);
    if (!exchange) {
        close_now(connection);
        return LEFT;
    }
    int64_t length = exchange->head.content_length;
    engine->requests++;
    h1->exchange = exchange;
    h1->seen = 0;
    h1->received = length == HEDDLE_NO_BODY || length == 0;
    h1->expects = exchange->head.expects_continue && !h1->received;
    h1->left = length;
    if (h1->received)
        return READY;
    h1->since = exchange->arrived;
    h1->taken = 0;
    if (length == HEDDLE_CHUNKED_BODY)
        heddle_chunked_start(&h1->chunked, exchange->head.field_bytes, exchange->head.line_count);
    if (h1->expects || engine->body_buffer == 0 || length > (int64_t)engine->body_buffer)
        return READY;
    if (length > 0 && !heddle_exchange_body_room(engine, exchange, (size_t)length)) {
        close_now(connection);
        return LEFT;
    }
    h1->stage = HEDDLE_H1_BODY;
    return MORE;
}

static progress take_head(heddle_connection *connection, const char *bytes, size_t size, size_t *used)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_refusal refusal;
    int result = heddle_request_head_parse(&engine->head, bytes, size, h1->seen, &engine->limits, &refusal);
    if (result > 0) {
        *used = (size_t)result;
        return begin(connection, bytes);
    }
    if (result < 0) {
        refuse(connection, &refusal, NULL);
        return LEFT;
    }
    h1->seen = (uint32_t)size;
    *used = 0;
    return MORE;
}

static progress take_length(heddle_connection *connection, const char *bytes, size_t size, size_t *used)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_exchange *exchange = h1->exchange;
    *used = (int64_t)size < h1->left ? size : (size_t)h1->left;
    if (h1->stage == HEDDLE_H1_BODY) {
        char *room = RSTRING_PTR(exchange->body) + exchange->body_size;
        if (room != bytes)
            memcpy(room, bytes, *used);
        exchange->body_size += *used;
    }
    h1->left -= (int64_t)*used;
    h1->taken += *used;
    h1->received = h1->left == 0;
    return MORE;
}

static progress take_chunks(heddle_connection *connection, char *bytes, size_t size, size_t *used)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_refusal refusal;
    char *output = bytes; /* what is thrown away goes nowhere else */
    size_t length;
    if (h1->stage == HEDDLE_H1_BODY) {
        output = heddle_exchange_body_room(engine, h1->exchange, size);
        if (!output) {
            close_now(connection);
            return LEFT;
        }
    }
    int64_t result = heddle_chunked_decode(&h1->chunked, bytes, size, output, &length, &engine->limits, &refusal);
    if (result < 0) {
        if (h1->stage == HEDDLE_H1_BODY)
            refuse(connection, &refusal, NULL);
        else
            after_output(connection, HEDDLE_H1_THEN_CLOSE);
        return LEFT;
    }
    *used = (size_t)result;
    h1->taken += *used;
    h1->received = h1->chunked.done;
    if (h1->stage == HEDDLE_H1_BODY)
        h1->exchange->body_size += length;
    else if (h1->taken > engine->body_buffer) {
        after_output(connection, HEDDLE_H1_THEN_LINGER); /* more than the connection is worth */
        return LEFT;
    }
    return MORE;
}

static progress take_body(heddle_connection *connection, char *bytes, size_t size, size_t *used)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    bool chunked = h1->left < 0;
    progress result = chunked ? take_chunks(connection, bytes, size, used)
                              : take_length(connection, bytes, size, used);
    if (result == LEFT)
        return LEFT;
    bool complete = h1->received;
    if (h1->stage == HEDDLE_H1_BODY)
        return complete || (chunked && h1->exchange->body_size > engine->body_buffer) ? READY : MORE;
    if (complete)
        h1->stage = HEDDLE_H1_IDLE;
    return MORE;
}

/* `bytes` are ours to write on. `*used`: how many of them need not be kept. */
static progress take(heddle_connection *connection, char *bytes, size_t size, size_t *used)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    progress result = MORE;
    *used = 0;
    while (result == MORE && *used < size) {
        size_t step = 0;
        bool head = h1->stage == HEDDLE_H1_IDLE || h1->stage == HEDDLE_H1_HEAD;
        result = head ? take_head(connection, bytes + *used, size - *used, &step)
                      : take_body(connection, bytes + *used, size - *used, &step);
        if (result == LEFT)
            return LEFT;
        *used += step;
        if (step == 0)
            break;
    }
    return result;
}

static void serve(heddle_connection *connection, bool next)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    h1->stage = HEDDLE_H1_READY;
    h1->answered = false;
    heddle_connection_due(connection, -1);
    heddle_sockets_call_runner(connection->sockets, connection, next);
}

/* Line ends between requests are nothing. */
static bool has_begun(heddle_connection *connection)
{
    for (uint32_t i = connection->input_start; i < connection->input_end; i++) {
        if (connection->input[i] != '\r' && connection->input[i] != '\n')
            return true;
    }
    return false;
}

/* Nothing more is here for now: until when has there to be more? */
static void wait_for_more(heddle_connection *connection)
{
    heddle_engine *engine = engine_of(connection);
    heddle_sockets *sockets = connection->sockets;
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->stage == HEDDLE_H1_BODY || h1->stage == HEDDLE_H1_DISCARD) {
        body_due(connection);
    } else if (h1->stage == HEDDLE_H1_IDLE && heddle_connection_buffered(connection)) {
        h1->stage = HEDDLE_H1_HEAD;
        h1->since = heddle_coarse_now();
        due_in(connection, engine->head_timeout);
    } else if (h1->stage == HEDDLE_H1_IDLE) {
        if (sockets->draining) {
            close_now(connection);
            return;
        }
        due_in(connection, engine->idle_timeout);
    }
    sockets->set.operations->want(&sockets->set, connection, HEDDLE_READING);
}

static void end_of_input(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    h1->ended = true;
    if (h1->stage == HEDDLE_H1_BODY)
        refuse_cut(connection, "the request's body ended before it was complete");
    else if (h1->stage != HEDDLE_H1_DISCARD && has_begun(connection))
        refuse_cut(connection, "the request ended in its head");
    else
        after_output(connection, HEDDLE_H1_THEN_CLOSE);
}

/* Bytes go where they need not be moved again: into the body, behind what waits for more, or into the scratch. */
typedef enum {
    INTO_SCRATCH,
    INTO_INPUT,
    INTO_BODY,
} destination;

static char *make_room(heddle_connection *connection, destination *into, size_t *size)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (heddle_connection_buffered(connection)) {
        *into = INTO_INPUT;
        char *room = heddle_connection_room(connection, 1024);
        *size = connection->input_room - connection->input_end;
        return room;
    }
    if (h1->stage == HEDDLE_H1_BODY && h1->left > 0) {
        *into = INTO_BODY;
        *size = (size_t)h1->left;
        return heddle_exchange_body_room(engine_of(connection), h1->exchange, *size);
    }
    *into = INTO_SCRATCH;
    *size = h1->stage == HEDDLE_H1_IDLE ? FIRST_READ : HEDDLE_SCRATCH;
    return heddle_sockets_scratch(connection->sockets);
}

/* false: there is no memory to keep what is left. */
static bool keep(heddle_connection *connection, const char *bytes, size_t size)
{
    if (size == 0)
        return true;
    char *room = heddle_connection_room(connection, size);
    if (!room)
        return false;
    memcpy(room, bytes, size);
    connection->input_end += (uint32_t)size;
    return true;
}

/* Reads until a request is complete, or nothing more is there. */
static void read_on(heddle_connection *connection)
{
    for (;;) {
        destination into;
        size_t size, used;
        char *room = make_room(connection, &into, &size);
        if (!room) {
            close_now(connection);
            return;
        }
        ssize_t bytes = heddle_connection_receive(connection, room, size);
        if (bytes == -EAGAIN) {
            wait_for_more(connection);
            return;
        }
        if (bytes <= 0) {
            if (bytes == 0)
                end_of_input(connection);
            else
                close_now(connection);
            return;
        }
        progress result;
        if (into == INTO_INPUT) {
            connection->input_end += (uint32_t)bytes;
            result = take(connection, connection->input + connection->input_start,
                          heddle_connection_buffered(connection), &used);
            if (result != LEFT)
                heddle_connection_use_input(connection, used);
        } else {
            result = take(connection, room, (size_t)bytes, &used);
            if (result != LEFT && !keep(connection, room + used, (size_t)bytes - used)) {
                close_now(connection);
                return;
            }
        }
        if (result == READY)
            serve(connection, false);
        if (result != MORE)
            return;
        if ((size_t)bytes < size && !heddle_transport_has(&connection->transport, HEDDLE_HAS_INPUT | HEDDLE_INPUT_ENDS)) {
            wait_for_more(connection); /* that was all: asking again would only tell so */
            return;
        }
    }
}

/* What came ahead is looked at first. */
static void take_buffered(heddle_connection *connection)
{
    size_t buffered = heddle_connection_buffered(connection), used;
    if (buffered) {
        progress result = take(connection, connection->input + connection->input_start, buffered, &used);
        if (result == LEFT)
            return;
        heddle_connection_use_input(connection, used);
        if (result == READY) {
            serve(connection, false);
            return;
        }
    }
    read_on(connection);
}

/* -- what happens to it ------------------------------------------------------------------------------------------ */

static void event(heddle_connection *connection)
{
    switch ((heddle_h1_stage)heddle_h1_of(connection)->stage) {
    case HEDDLE_H1_IDLE:
    case HEDDLE_H1_HEAD:
    case HEDDLE_H1_BODY:
    case HEDDLE_H1_DISCARD:
        read_on(connection);
        break;
    case HEDDLE_H1_SENDING:
        if (heddle_transport_has(&connection->transport, HEDDLE_HUNG_UP))
            close_now(connection);
        else if (heddle_transport_has(&connection->transport, HEDDLE_HAS_ROOM))
            send_more(connection);
        break;
    case HEDDLE_H1_LINGER:
        linger(connection);
        break;
    case HEDDLE_H1_READY:
        break;
    }
}

static void expired(heddle_connection *connection)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    switch ((heddle_h1_stage)h1->stage) {
    case HEDDLE_H1_HEAD:
        if (has_begun(connection))
            refuse_late_head(connection);
        else
            close_now(connection);
        break;
    case HEDDLE_H1_BODY:
        if (h1->left < 0 && body_deadline(engine, h1) > heddle_coarse_now())
            serve(connection, false);
        else
            refuse_slow_body(connection);
        break;
    case HEDDLE_H1_READY:
        break;
    case HEDDLE_H1_DISCARD:
        after_output(connection, HEDDLE_H1_THEN_CLOSE);
        break;
    default:
        close_now(connection);
    }
}

/* One after the other, without a look at other connections and with one write for all, but not for ever. */
static bool take_pipelined(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    size_t buffered = heddle_connection_buffered(connection), used;
    if (!buffered || h1->streak >= STREAK || connection->output.size >= HEDDLE_OUTPUT_AT_ONCE)
        return false;
    h1->streak++;
    h1->stage = HEDDLE_H1_IDLE;
    progress result = take(connection, connection->input + connection->input_start, buffered, &used);
    if (result == LEFT)
        return true;
    heddle_connection_use_input(connection, used);
    if (result == MORE)
        return false;
    if (connection->output.size)
        heddle_connection_flush_later(connection); /* should its application wait */
    serve(connection, true);
    return true;
}

static void next_request(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (take_pipelined(connection))
        return;
    h1->streak = 0;
    if (h1->stage == HEDDLE_H1_BODY) { /* of a pipelined request: what was answered need not wait for it */
        if (connection->output.size)
            heddle_connection_flush_later(connection);
        read_on(connection);
        return;
    }
    after_output(connection, HEDDLE_H1_NEXT);
}

static void rest(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (!h1->answered) { /* it is new */
        read_on(connection);
        return;
    }
    h1->answered = false;
    h1->stage = HEDDLE_H1_IDLE;
    if (!h1->reusable) {
        bool unread = !h1->received || heddle_connection_buffered(connection) ||
                      heddle_transport_has(&connection->transport, HEDDLE_HAS_INPUT);
        after_output(connection, unread && !h1->ended ? HEDDLE_H1_THEN_LINGER : HEDDLE_H1_THEN_CLOSE);
    } else if (h1->received) {
        next_request(connection);
    } else {
        heddle_connection_flush_later(connection);
        h1->stage = HEDDLE_H1_DISCARD;
        h1->since = heddle_coarse_now();
        h1->taken = 0;
        take_buffered(connection);
    }
}

static bool at_rest(heddle_connection *connection)
{
    return heddle_h1_of(connection)->stage == HEDDLE_H1_IDLE && !connection->output.size &&
           !heddle_connection_buffered(connection);
}

static void release(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->exchange)
        heddle_exchange_give_back(engine_of(connection), h1->exchange);
    h1->exchange = NULL;
}

bool heddle_h1_discardable(const heddle_engine *engine, const heddle_h1 *h1)
{
    return h1->received || (!h1->expects && h1->left <= (int64_t)engine->body_buffer && engine->body_buffer > 0);
}

void heddle_h1_answered(heddle_connection *connection, bool reusable)
{
    heddle_engine *engine = engine_of(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    h1->answered = true;
    h1->reusable = reusable && !engine->draining && !connection->error && heddle_h1_discardable(engine, h1);
    heddle_sockets_rest(connection);
}

void heddle_h1_refused(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    h1->received = false; /* whatever it is: somebody still sends */
    heddle_h1_answered(connection, false);
}

const heddle_protocol_operations heddle_h1_operations = {
    .name = "HTTP/1",
    .state_size = sizeof(heddle_h1),
    .event = event,
    .expired = expired,
    .rest = rest,
    .at_rest = at_rest,
    .release = release,
    .object = heddle_exchange_object,
    .served = heddle_exchange_served,
};
