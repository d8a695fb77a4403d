#include "http/h1_states.h"

#include <errno.h>
#include <string.h>

/* … or for so long: an application that computes must not do it for one connection alone. */
static const int64_t STREAK_TIME = 1000000;

enum {
    STREAK = 16,       /* pipelined requests that are answered in one go */
    FIRST_READ = 8192, /* more than that is a body, which is better read to where it belongs */
};

/* What became of bytes that were offered. */
typedef enum {
    MORE,  /* all of it is used that can be, more is needed */
    READY, /* a request is to be served */
    OVER,  /* a body that nobody wanted has ended: what answered it leaves before the next request is looked at */
    LEFT,  /* the connection is closed, or on its way there */
} progress;

/* -- how long a body may take ------------------------------------------------------------------------------------- */

/* When the body is too slow, if no more of it comes. */
int64_t heddle_h1_body_deadline(const heddle_engine *engine, const heddle_h1 *h1)
{
    if (engine->body_rate == 0)
        return heddle_later(heddle_coarse_now(), engine->idle_timeout);
    double owed = (double)h1->taken / (double)engine->body_rate * 1e9;
    return heddle_later(heddle_later(h1->since, engine->body_grace), owed < 1e18 ? (int64_t)owed : INT64_MAX);
}

static void body_due(heddle_connection *connection)
{
    heddle_engine *engine = heddle_h1_engine(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    int64_t deadline = heddle_h1_body_deadline(engine, h1);
    /* Its length is not known and it may never end: a client that pauses may be waiting for the answer. */
    if (h1->stage == HEDDLE_H1_BODY && h1->left < 0) {
        int64_t pause = heddle_later(heddle_coarse_now(), engine->body_pause);
        deadline = pause < deadline ? pause : deadline;
    }
    heddle_connection_due(connection, deadline);
}

/* -- reading ----------------------------------------------------------------------------------------------------- */

/* A head is complete: does somebody have to come for it now, or once more of its body is here? */
static progress begin(heddle_connection *connection, const char *bytes)
{
    heddle_engine *engine = heddle_h1_engine(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_exchange *exchange = heddle_exchange_take(engine, &engine->head, bytes);
    if (!exchange) {
        heddle_h1_close(connection);
        return LEFT;
    }
    int64_t length = exchange->head.content_length;
    engine->requests++;
    h1->exchange = exchange;
    h1->seen = 0;
    h1->persists = exchange->head.keep_alive;
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
        heddle_h1_close(connection);
        return LEFT;
    }
    h1->stage = HEDDLE_H1_BODY;
    return MORE;
}

static progress take_head(heddle_connection *connection, const char *bytes, size_t size, size_t *used)
{
    heddle_engine *engine = heddle_h1_engine(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_refusal refusal;
    int result = heddle_request_head_parse(&engine->head, bytes, size, h1->seen, &engine->limits, &refusal);
    if (result > 0) {
        *used = (size_t)result;
        return begin(connection, bytes);
    }
    if (result < 0) {
        heddle_h1_refuse(connection, &refusal, NULL);
        return LEFT;
    }
    h1->seen = (uint32_t)size;
    *used = 0;
    return MORE;
}

static void take_length(heddle_connection *connection, const char *bytes, size_t size, size_t *used)
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
}

static progress take_chunks(heddle_connection *connection, char *bytes, size_t size, size_t *used)
{
    heddle_engine *engine = heddle_h1_engine(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_refusal refusal;
    char *output = bytes; /* what is thrown away goes nowhere else */
    size_t length;
    if (h1->stage == HEDDLE_H1_BODY) {
        output = heddle_exchange_body_room(engine, h1->exchange, size);
        if (!output) {
            heddle_h1_close(connection);
            return LEFT;
        }
    }
    int64_t result = heddle_chunked_decode(&h1->chunked, bytes, size, output, &length, &engine->limits, &refusal);
    if (result < 0) {
        if (h1->stage == HEDDLE_H1_BODY)
            heddle_h1_refuse(connection, &refusal, NULL);
        else
            heddle_h1_after_output(connection, HEDDLE_H1_THEN_LINGER);
        return LEFT;
    }
    *used = (size_t)result;
    h1->taken += *used;
    h1->received = h1->chunked.done;
    if (h1->stage == HEDDLE_H1_BODY)
        h1->exchange->body_size += length;
    else if (h1->taken > engine->body_buffer) {
        heddle_h1_after_output(connection, HEDDLE_H1_THEN_LINGER); /* more than the connection is worth */
        return LEFT;
    }
    return MORE;
}

static progress take_body(heddle_connection *connection, char *bytes, size_t size, size_t *used)
{
    heddle_engine *engine = heddle_h1_engine(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    bool chunked = h1->left < 0;
    if (!chunked)
        take_length(connection, bytes, size, used);
    else if (take_chunks(connection, bytes, size, used) == LEFT)
        return LEFT;
    if (h1->stage == HEDDLE_H1_BODY)
        return h1->received || (chunked && h1->exchange->body_size > engine->body_buffer) ? READY : MORE;
    return h1->received ? OVER : MORE;
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

void heddle_h1_serve(heddle_connection *connection, bool next)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_h1 *h1 = heddle_h1_of(connection);
    int64_t timeout = sockets->admission.queue_timeout;
    if (timeout >= 0) /* its body may have taken long */
        timeout = heddle_later(h1->stage == HEDDLE_H1_BODY ? heddle_coarse_now() : h1->exchange->arrived, timeout);
    heddle_connection_due(connection, timeout);
    h1->stage = HEDDLE_H1_READY;
    h1->answered = false;
    heddle_sockets_call_runner(sockets, connection, next);
}

static void go_on(heddle_connection *connection, progress result)
{
    if (result == READY)
        heddle_h1_serve(connection, false);
    else if (result == OVER)
        heddle_h1_after_output(connection, HEDDLE_H1_NEXT);
}

/* Line ends between requests are nothing. */
bool heddle_h1_has_begun(const heddle_connection *connection)
{
    for (uint32_t i = connection->input_start; i < connection->input_end; i++) {
        if (connection->input[i] != '\r' && connection->input[i] != '\n')
            return true;
    }
    return false;
}

static void refuse_cut(heddle_connection *connection, const char *what)
{
    heddle_refusal refusal;
    heddle_refuse(&refusal, 400, "%s", what);
    heddle_h1_refuse(connection, &refusal, NULL);
}

/* Nothing more is here for now: until when has there to be more? */
static void wait_for_more(heddle_connection *connection)
{
    heddle_engine *engine = heddle_h1_engine(connection);
    heddle_sockets *sockets = connection->sockets;
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->stage == HEDDLE_H1_BODY || h1->stage == HEDDLE_H1_DISCARD) {
        body_due(connection);
    } else if (h1->stage == HEDDLE_H1_IDLE && heddle_connection_buffered(connection)) {
        h1->stage = HEDDLE_H1_HEAD;
        heddle_h1_due_in(connection, engine->head_timeout);
    } else if (h1->stage == HEDDLE_H1_IDLE) {
        if (sockets->draining) {
            heddle_h1_close(connection);
            return;
        }
        heddle_h1_due_in(connection, engine->idle_timeout);
    }
    sockets->set.operations->want(&sockets->set, connection, HEDDLE_READING);
    heddle_connection_at_rest(connection);
}

static void end_of_input(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    h1->ended = true;
    if (h1->stage == HEDDLE_H1_BODY)
        refuse_cut(connection, "the request's body ended before it was complete");
    else if (h1->stage != HEDDLE_H1_DISCARD && heddle_h1_has_begun(connection))
        refuse_cut(connection, "the request ended in its head");
    else
        heddle_h1_after_output(connection, HEDDLE_H1_THEN_CLOSE);
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
        return heddle_exchange_body_room(heddle_h1_engine(connection), h1->exchange, *size);
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
void heddle_h1_read_on(heddle_connection *connection)
{
    for (;;) {
        destination into;
        size_t size, used;
        char *room = make_room(connection, &into, &size);
        if (!room) {
            heddle_h1_close(connection);
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
                heddle_h1_close(connection);
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
                heddle_h1_close(connection);
                return;
            }
        }
        if (result != MORE) {
            go_on(connection, result);
            return;
        }
        if ((size_t)bytes < size && !heddle_transport_has(&connection->transport, HEDDLE_HAS_INPUT | HEDDLE_INPUT_ENDS)) {
            wait_for_more(connection); /* that was all: asking again would only tell so */
            return;
        }
    }
}

/* What came ahead is looked at first. */
void heddle_h1_take_buffered(heddle_connection *connection)
{
    size_t buffered = heddle_connection_buffered(connection), used;
    if (buffered) {
        progress result = take(connection, connection->input + connection->input_start, buffered, &used);
        if (result == LEFT)
            return;
        heddle_connection_use_input(connection, used);
        if (result != MORE) {
            go_on(connection, result);
            return;
        }
    }
    heddle_h1_read_on(connection);
}

/* One after the other, without a look at other connections and with one write for all, but not for ever. */
bool heddle_h1_take_pipelined(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    size_t buffered = heddle_connection_buffered(connection), used;
    if (!buffered || h1->streak >= STREAK || connection->output.size >= HEDDLE_OUTPUT_AT_ONCE ||
        heddle_admission_contended(connection->sockets) ||
        heddle_coarse_now() - connection->sockets->turn_began >= STREAK_TIME)
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
    heddle_h1_serve(connection, true);
    return true;
}
