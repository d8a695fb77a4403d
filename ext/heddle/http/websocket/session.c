/* The protocol of a connection after its upgrade to a WebSocket. */

#include "http/websocket/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    READS = 16, /* of the scratch's size in a row: then others have their turn */
};

heddle_websocket *heddle_websocket_new(heddle_engine *engine)
{
    heddle_websocket *socket = calloc(1, sizeof(*socket));
    if (!socket)
        return NULL;
    socket->work.operations = &heddle_websocket_work;
    socket->engine = engine;
    socket->last = &socket->first;
    heddle_websocket_reader_start(&socket->reader, true);
    return socket;
}

void heddle_websocket_free(heddle_websocket *socket)
{
    heddle_websocket_drop_messages(socket);
    heddle_websocket_reader_end(&socket->reader);
    free(socket);
}

/* -- states -------------------------------------------------------------------------------------------------------- */

static void enter(heddle_websocket *socket, heddle_websocket_state state)
{
    HEDDLE_ASSERT(heddle_websocket_may_enter(socket->state, state));
    socket->state = state;
}

void heddle_websocket_count_received(heddle_websocket *socket, uint64_t bytes)
{
    socket->engine->websockets.received++;
    socket->engine->websockets.received_bytes += bytes;
    socket->traffic.received++;
    socket->traffic.received_bytes += bytes;
}

void heddle_websocket_count_sent(heddle_websocket *socket, uint64_t bytes)
{
    socket->engine->websockets.sent++;
    socket->engine->websockets.sent_bytes += bytes;
    socket->traffic.sent++;
    socket->traffic.sent_bytes += bytes;
}

static void count_end(heddle_websocket *socket)
{
    socket->engine->websockets.open--;
    socket->engine->websockets.closes[heddle_websocket_code_slot(socket->code)]++;
}

/* No more frames are read or written: the handler learns it, after the messages that have come before. */
static void end_frames(heddle_websocket *socket, heddle_websocket_state state, unsigned code)
{
    if (socket->state <= HEDDLE_WEBSOCKET_CLOSING) {
        if (!socket->code)
            socket->code = (uint16_t)code;
        count_end(socket);
        heddle_websocket_note_due(socket, HEDDLE_WEBSOCKET_ON_CLOSE);
        heddle_websocket_wake(socket);
        heddle_websocket_end_subscriptions(socket);
    }
    enter(socket, state);
    heddle_connection_wake(socket->work.connection, HEDDLE_BROKEN); /* a fiber that writes */
}

void heddle_websocket_break_off(heddle_websocket *socket)
{
    if (socket->state == HEDDLE_WEBSOCKET_OVER)
        return;
    end_frames(socket, HEDDLE_WEBSOCKET_OVER, HEDDLE_WEBSOCKET_ABNORMAL);
    heddle_connection_drop_output(socket->work.connection);
}

static bool send_close(heddle_websocket *socket, unsigned code, const char *reason, size_t size)
{
    char payload[HEDDLE_WEBSOCKET_CONTROL];
    size_t used = heddle_websocket_write_close(payload, code, reason, size);
    return heddle_websocket_send_control(socket, HEDDLE_WEBSOCKET_CLOSE, payload, used);
}

static void due_in(heddle_websocket *socket, int64_t duration)
{
    heddle_connection_set_deadline(socket->work.connection, heddle_add_duration(heddle_clock_coarse(), duration));
}

/* How long the client has for its side. A server that stops does not wait for one that is gone. */
static int64_t closing_time(const heddle_websocket *socket)
{
    const heddle_engine *engine = socket->engine;
    bool stops = socket->retires && engine->linger_timeout < engine->websockets.timeout;
    return stops ? engine->linger_timeout : engine->websockets.timeout;
}

void heddle_websocket_begin_close(heddle_websocket *socket, unsigned code, const char *reason, size_t size)
{
    if (socket->state != HEDDLE_WEBSOCKET_OPEN)
        return;
    socket->code = (uint16_t)code;
    if (!send_close(socket, code, reason, size)) {
        heddle_websocket_break_off(socket);
        return;
    }
    enter(socket, HEDDLE_WEBSOCKET_CLOSING);
    socket->breathes |= socket->paused; /* its close frame is behind messages that nobody is going to see */
    socket->paused = false;
    due_in(socket, socket->breathes ? 0 : closing_time(socket));
}

/*
 * After our last frame. A socket that is closed with unread input resets the connection, and the reset can overtake
 * that frame: so the output ends first, and the input when the client has ended, too.
 */
static void linger(heddle_websocket *socket)
{
    heddle_connection *connection = socket->work.connection;
    ssize_t bytes;
    do {
        bytes = heddle_connection_receive(connection, heddle_sockets_scratch(connection->sockets), HEDDLE_SCRATCH);
        socket->lingered += bytes > 0 ? (uint64_t)bytes : 0;
    } while (bytes > 0 && socket->lingered < socket->engine->linger_limit);
    if (bytes == -EAGAIN)
        connection->sockets->set.operations->want(&connection->sockets->set, connection, HEDDLE_READING);
    else
        heddle_websocket_break_off(socket);
}

static void leave_on(heddle_websocket *socket)
{
    heddle_connection *connection = socket->work.connection;
    heddle_transport *transport = &connection->transport;
    if (!socket->lingers) {
        int result = heddle_connection_flush(connection);
        if (result == -EAGAIN)
            return;
        if (result != 0 || socket->engine->linger_timeout == 0 || transport->operations->shutdown(transport) < 0) {
            heddle_websocket_break_off(socket);
            return;
        }
        socket->lingers = true;
        due_in(socket, socket->engine->linger_timeout);
    }
    linger(socket);
}

static void begin_leaving(heddle_websocket *socket, unsigned code)
{
    heddle_connection *connection = socket->work.connection;
    end_frames(socket, HEDDLE_WEBSOCKET_LEAVING, code);
    heddle_connection_drop_input(connection);
    socket->breathes = false;
    due_in(socket, socket->engine->websockets.timeout);
    leave_on(socket);
}

void heddle_websocket_fail(heddle_websocket *socket, unsigned code, const char *reason)
{
    if (socket->state >= HEDDLE_WEBSOCKET_LEAVING)
        return;
    if (socket->state == HEDDLE_WEBSOCKET_OPEN && !send_close(socket, code, reason, strlen(reason)))
        heddle_websocket_break_off(socket);
    else
        begin_leaving(socket, code);
}

/* The client's close frame: it is answered with its own code (RFC 6455, section 5.5.1). */
static void answer_close(heddle_websocket *socket)
{
    bool ours = socket->state == HEDDLE_WEBSOCKET_CLOSING;
    unsigned code = socket->reader.code;
    socket->code = 0; /* what the client has said counts, if we began, too */
    if (!ours && !send_close(socket, code, NULL, 0))
        heddle_websocket_break_off(socket);
    else
        begin_leaving(socket, code);
}

/* -- input --------------------------------------------------------------------------------------------------------- */

static void handle_message(heddle_websocket *socket)
{
    heddle_websocket_message *message = heddle_websocket_take_message(&socket->reader);
    if (socket->state == HEDDLE_WEBSOCKET_OPEN) {
        heddle_websocket_count_received(socket, message->size);
        heddle_websocket_deliver(socket, message);
    } else {
        free(message); /* it is closed already, as far as the handler knows */
    }
}

static void handle_ping(heddle_websocket *socket)
{
    /* A client that sends pings and reads nothing gets no more pongs: the RFC allows to answer the latest one only. */
    if (socket->state == HEDDLE_WEBSOCKET_OPEN && heddle_websocket_pending(socket) < HEDDLE_OUTPUT_AT_ONCE &&
        !heddle_websocket_send_control(socket, HEDDLE_WEBSOCKET_PONG, socket->reader.control,
                                       socket->reader.control_size))
        heddle_websocket_break_off(socket);
}

/* Does the handler have to catch up first? What comes for a socket that closes is thrown away. */
static bool is_full(const heddle_websocket *socket)
{
    return socket->state == HEDDLE_WEBSOCKET_OPEN && heddle_websocket_is_full(socket);
}

/* Returns how many bytes were used: all, unless enough waits for the handler, or no more frames are read. */
static size_t feed(heddle_websocket *socket, char *bytes, size_t size)
{
    size_t used = 0;
    while (socket->state <= HEDDLE_WEBSOCKET_CLOSING && !is_full(socket)) {
        size_t step;
        heddle_websocket_event event = heddle_websocket_read(&socket->reader, &socket->engine->websockets.limits,
                                                             bytes + used, size - used, &step);
        used += step;
        switch (event) {
        case HEDDLE_WEBSOCKET_WANTS_MORE:
            return used;
        case HEDDLE_WEBSOCKET_HAS_MESSAGE:
            handle_message(socket);
            break;
        case HEDDLE_WEBSOCKET_HAS_PING:
            handle_ping(socket);
            break;
        case HEDDLE_WEBSOCKET_HAS_PONG:
            break;
        case HEDDLE_WEBSOCKET_HAS_CLOSE:
            answer_close(socket);
            break;
        case HEDDLE_WEBSOCKET_FAILED:
            socket->engine->websockets.failures++;
            heddle_websocket_fail(socket, socket->reader.code, socket->reader.failure);
            break;
        case HEDDLE_WEBSOCKET_NO_MEMORY:
            heddle_websocket_break_off(socket);
            break;
        }
    }
    return used;
}

/* Keeps what the handler's backlog leaves no room for. */
static void feed_scratch(heddle_websocket *socket, char *bytes, size_t size)
{
    heddle_connection *connection = socket->work.connection;
    size_t used = feed(socket, bytes, size);
    if (used == size || socket->state > HEDDLE_WEBSOCKET_CLOSING)
        return;
    char *room = heddle_connection_room(connection, size - used);
    if (!room) {
        heddle_websocket_break_off(socket);
        return;
    }
    memcpy(room, bytes + used, size - used);
    connection->input_end += (uint32_t)(size - used);
}

static void feed_buffered(heddle_websocket *socket)
{
    heddle_connection *connection = socket->work.connection;
    size_t used = feed(socket, connection->input + connection->input_start, heddle_connection_buffered(connection));
    if (socket->state <= HEDDLE_WEBSOCKET_CLOSING)
        heddle_connection_use_input(connection, used);
}

void heddle_websocket_read_on(heddle_websocket *socket)
{
    heddle_connection *connection = socket->work.connection;
    socket->paused = false;
    for (unsigned reads = 0; socket->state <= HEDDLE_WEBSOCKET_CLOSING;) {
        if (is_full(socket)) {
            socket->paused = true;
            return;
        }
        if (heddle_connection_buffered(connection)) {
            feed_buffered(socket);
            continue;
        }
        if (reads++ == READS) {
            socket->breathes = true;
            due_in(socket, 0);
            return;
        }
        char *scratch = heddle_sockets_scratch(connection->sockets);
        ssize_t bytes = heddle_connection_receive(connection, scratch, HEDDLE_SCRATCH);
        if (bytes == -EAGAIN) {
            connection->sockets->set.operations->want(&connection->sockets->set, connection, HEDDLE_READING);
            return;
        }
        if (bytes <= 0) { /* the end without a close frame is none in order */
            heddle_websocket_break_off(socket);
            return;
        }
        socket->heard = heddle_clock_coarse();
        feed_scratch(socket, scratch, (size_t)bytes);
    }
}

/* -- time limits --------------------------------------------------------------------------------------------------- */

/* The next time at which an open socket has to do something. */
static void set_deadline(heddle_websocket *socket)
{
    const heddle_websockets *all = &socket->engine->websockets;
    int64_t deadline = -1;
    if (socket->breathes) /* its turn comes first */
        deadline = heddle_clock_coarse();
    else if (socket->pinged)
        deadline = heddle_add_duration(socket->pinged_at, all->timeout);
    else if (all->ping > 0)
        deadline = heddle_add_duration(socket->heard, all->ping);
    if (socket->retires && (deadline < 0 || socket->retires_at < deadline))
        deadline = socket->retires_at;
    heddle_connection_set_deadline(socket->work.connection, deadline);
}

/* Has the kernel taken something since the last look? A full one does when the client has. */
static bool has_output_moved(heddle_websocket *socket, size_t pending)
{
    bool moved = pending < socket->unsent;
    socket->unsent = pending;
    return moved;
}

static void ask_for_life(heddle_websocket *socket, bool full)
{
    socket->pinged = true;
    socket->pinged_at = heddle_clock_coarse();
    socket->stalls = full; /* a ping would wait behind it: that has to move instead */
    if (!full && !heddle_websocket_send_control(socket, HEDDLE_WEBSOCKET_PING, NULL, 0))
        heddle_websocket_break_off(socket);
}

static void handle_time_when_open(heddle_websocket *socket)
{
    const heddle_websockets *all = &socket->engine->websockets;
    int64_t now = heddle_clock_coarse();
    bool notified = !((socket->due | socket->calling) & HEDDLE_WEBSOCKET_ON_SHUTDOWN);
    if (socket->retires && socket->retires_at <= now && !notified) {
        socket->retires_at = heddle_add_duration(now, HEDDLE_IDLE_WHEEL_TICK); /* what the handler has to say comes first */
    } else if (socket->retires && socket->retires_at <= now) {
        heddle_websocket_begin_close(socket, all->retire_code, NULL, 0);
        return;
    }
    size_t pending = heddle_websocket_pending(socket);
    bool full = pending >= HEDDLE_OUTPUT_AT_ONCE;
    bool moved = has_output_moved(socket, pending) && (full || socket->stalls);
    if (socket->paused || moved) /* we don't read, and nothing is known of the client; or it reads */
        socket->heard = now;
    if (socket->pinged && socket->heard >= socket->pinged_at)
        socket->pinged = socket->stalls = false;
    if (socket->pinged && heddle_add_duration(socket->pinged_at, all->timeout) <= now) {
        socket->engine->websockets.vanished++;
        heddle_transport_will_reset(&socket->work.connection->transport);
        heddle_websocket_break_off(socket);
        return;
    }
    if (!socket->pinged && all->ping > 0 && heddle_add_duration(socket->heard, all->ping) <= now)
        ask_for_life(socket, full);
    if (socket->state == HEDDLE_WEBSOCKET_OPEN)
        set_deadline(socket);
}

static void handle_deadline(heddle_connection *connection)
{
    heddle_websocket *socket = heddle_websocket_of(connection);
    heddle_websocket_hold(socket);
    if (socket->breathes) {
        socket->breathes = false;
        if (socket->state == HEDDLE_WEBSOCKET_OPEN)
            set_deadline(socket);
        else
            due_in(socket, closing_time(socket));
        if (!socket->paused)
            heddle_websocket_read_on(socket);
    } else if (socket->state == HEDDLE_WEBSOCKET_OPEN) {
        handle_time_when_open(socket);
    } else if (socket->state != HEDDLE_WEBSOCKET_OVER) { /* the client takes too long to close */
        if (!socket->lingers)
            heddle_transport_will_reset(&connection->transport);
        heddle_websocket_break_off(socket);
    }
    heddle_websocket_leave(socket);
}

/* -- as a protocol ------------------------------------------------------------------------------------------------- */

void heddle_websocket_leave(heddle_websocket *socket)
{
    heddle_connection *connection = socket->work.connection;
    if (--socket->depth > 0 || socket->running)
        return;
    if (connection && connection->sockets->loop->thread != rb_thread_current())
        return; /* the loop comes by: what was done has queued output */
    if (!connection)
        heddle_websocket_free(socket);
    else if (heddle_websocket_has_work(socket) && !socket->work.list)
        /* on_close is called, however many messages wait. */
        heddle_sockets_queue(connection->sockets, &socket->work, socket->due & HEDDLE_WEBSOCKET_ON_CLOSE);
    else if (socket->state == HEDDLE_WEBSOCKET_OVER && !socket->work.list)
        heddle_sockets_close_connection(connection);
}

static void begin(heddle_connection *connection)
{
    heddle_websocket *socket = heddle_websocket_of(connection);
    socket->work.connection = connection;
    socket->heard = socket->traffic.since = heddle_clock_coarse();
    socket->engine->websockets.open++;
    socket->engine->websockets.opened++;
    heddle_websocket_hold(socket);
    set_deadline(socket);
    heddle_websocket_note_due(socket, HEDDLE_WEBSOCKET_ON_OPEN);
    heddle_connection_flush_later(connection); /* the head of the response */
    heddle_websocket_read_on(socket);
    heddle_websocket_leave(socket);
}

void heddle_websocket_handle_drained(heddle_websocket *socket)
{
    heddle_output_clear(&socket->work.connection->output); /* an idle socket keeps no memory for output */
    heddle_websocket_note_due(socket, HEDDLE_WEBSOCKET_ON_DRAINED);
    heddle_websocket_catch_up(socket);
}

static void handle_event(heddle_connection *connection, uint8_t ready)
{
    heddle_websocket *socket = heddle_websocket_of(connection);
    heddle_websocket_hold(socket);
    if ((ready & HEDDLE_BROKEN) || connection->error) {
        heddle_websocket_break_off(socket);
    } else if ((ready & HEDDLE_HAS_ROOM) && connection->output.size && socket->state != HEDDLE_WEBSOCKET_LEAVING) {
        int result = heddle_connection_flush(connection);
        if (result == 0)
            heddle_websocket_handle_drained(socket);
        else if (result != -EAGAIN)
            heddle_websocket_break_off(socket);
    }
    heddle_connection_wake(connection, ready);
    if (socket->state == HEDDLE_WEBSOCKET_LEAVING)
        leave_on(socket);
    else if (socket->state != HEDDLE_WEBSOCKET_OVER && !socket->paused && !socket->breathes)
        heddle_websocket_read_on(socket);
    heddle_websocket_leave(socket);
}

static void flushed(heddle_connection *connection)
{
    heddle_websocket *socket = heddle_websocket_of(connection);
    heddle_websocket_hold(socket);
    if (socket->overrun) {
        heddle_websocket_end_slow(socket);
    } else {
        if (socket->overflowed && connection->output.size)
            heddle_websocket_check_pace(socket);
        if (!connection->output.size)
            heddle_websocket_handle_drained(socket);
    }
    socket->overflowed = false;
    heddle_websocket_leave(socket);
}

/* The server stops and on_shutdown has not been called yet: end_idle calls it in every state. */
static bool is_idle(const heddle_connection *connection)
{
    const heddle_websocket *socket = heddle_websocket_of(connection);
    return socket->engine->draining && socket->state == HEDDLE_WEBSOCKET_OPEN && !socket->retires;
}

/* Clients come back at once: so they don't leave all at once. */
static void end_idle(heddle_connection *connection)
{
    heddle_websocket *socket = heddle_websocket_of(connection);
    heddle_websockets *all = &socket->engine->websockets;
    heddle_websocket_hold(socket);
    socket->retires = true;
    uint64_t share = (uint64_t)(all->retired++) * UINT64_C(0x9e3779b97f4a7c15) >> 32; /* evenly, in no order */
    socket->retires_at = heddle_add_duration(heddle_clock_coarse(), (int64_t)((double)share / 4294967296.0 * (double)all->retire_time));
    heddle_websocket_note_due(socket, HEDDLE_WEBSOCKET_ON_SHUTDOWN);
    set_deadline(socket);
    heddle_websocket_leave(socket);
}

static int collect_input(const heddle_connection *connection, struct iovec *pieces)
{
    (void)connection;
    (void)pieces;
    return -1;
}

static void release(heddle_connection *connection)
{
    heddle_websocket *socket = heddle_websocket_of(connection);
    if (socket->state <= HEDDLE_WEBSOCKET_CLOSING) {
        socket->code = HEDDLE_WEBSOCKET_ABNORMAL;
        count_end(socket);
    }
    heddle_ready_list_remove(&socket->work);
    socket->work.connection = NULL;
    if (socket->wait && !connection->sockets->abandoned) {
        socket->wait->session = NULL;
        heddle_park_wake(&socket->wait->park);
    }
    socket->wait = NULL;
    heddle_websocket_free_subscriptions(socket);
    heddle_websocket_part(socket, connection->sockets->abandoned);
    if (!socket->running && socket->depth == 0)
        heddle_websocket_free(socket); /* else by the last one that uses it */
}

/* A child process: its fibers are gone. */
static void abandon(heddle_connection *connection)
{
    heddle_websocket *socket = heddle_websocket_of(connection);
    socket->work.connection = NULL;
    socket->wait = NULL;
    heddle_websocket_abandon_subscriptions(socket);
    heddle_websocket_part(socket, true);
}

const heddle_protocol heddle_websocket_protocol = {
    .name = "WebSocket",
    .stays = true, /* its handler is this process's */
    .begin = begin,
    .handle_event = handle_event,
    .handle_deadline = handle_deadline,
    .flushed = flushed,
    .is_idle = is_idle,
    .end_idle = end_idle,
    .collect_input = collect_input,
    .release = release,
    .abandon = abandon,
};
