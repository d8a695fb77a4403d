/* The states of a WebSocket, and its client's messages. */

#include "http/push/event_stream.h"
#include "http/push/session.h"

#include <stdlib.h>
#include <string.h>

enum {
    DISCARDED = 65536, /* bytes that the client of an event stream may send, which are discarded */
};

heddle_websocket *heddle_websocket_new(heddle_engine *engine, const heddle_websocket_carrier *carrier)
{
    heddle_websocket *socket = calloc(1, sizeof(*socket));
    if (!socket)
        return NULL;
    socket->work.operations = &heddle_websocket_work;
    socket->engine = engine;
    socket->carrier = carrier;
    socket->last = &socket->first;
    heddle_websocket_reader_start(&socket->reader, true);
    return socket;
}

void heddle_websocket_free(heddle_websocket *socket)
{
    heddle_websocket_drop_messages(socket);
    heddle_websocket_reader_end(&socket->reader);
    free(socket->pong);
    free(socket);
}

/* -- states -------------------------------------------------------------------------------------------------------- */

static void enter_state(heddle_websocket *socket, heddle_websocket_state state)
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

/* Ends sending and receiving of frames. on_close is called after the messages that came before. */
static void end_frames(heddle_websocket *socket, heddle_websocket_state state, unsigned code)
{
    if (socket->state <= HEDDLE_WEBSOCKET_CLOSING) {
        if (!socket->code)
            socket->code = (uint16_t)code;
        count_end(socket);
        heddle_websocket_queue_callback(socket, HEDDLE_WEBSOCKET_ON_CLOSE);
        heddle_websocket_wake_receiver(socket);
        heddle_websocket_end_subscriptions(socket);
    }
    enter_state(socket, state);
    socket->carrier->wake_writer(socket);
}

static void stop_transport(heddle_websocket *socket, bool abrupt)
{
    if (socket->state == HEDDLE_WEBSOCKET_OVER)
        return;
    end_frames(socket, HEDDLE_WEBSOCKET_OVER, HEDDLE_WEBSOCKET_ABNORMAL);
    socket->carrier->stop(socket, abrupt);
}

void heddle_websocket_stop_carrier(heddle_websocket *socket)
{
    stop_transport(socket, false);
}

void heddle_websocket_reset_carrier(heddle_websocket *socket)
{
    stop_transport(socket, true);
}

void heddle_websocket_finish_handoff(heddle_websocket *socket)
{
    socket->engine->websockets.open--;
    heddle_websocket_end_subscriptions(socket);
    enter_state(socket, HEDDLE_WEBSOCKET_OVER);
}

/* When the server stops, clients come back at random times. */
static bool write_farewell(heddle_websocket *socket)
{
    char text[64];
    size_t size = heddle_events_farewell(text, sizeof(text));
    socket->written += size;
    return socket->carrier->write(socket, text, size, 0);
}

static bool send_close(heddle_websocket *socket, unsigned code, const char *reason, size_t size)
{
    char payload[HEDDLE_WEBSOCKET_CONTROL];
    if (socket->events) /* the end of the content says it; the comment wakes the loop where another thread closes */
        return socket->retires ? write_farewell(socket) : heddle_websocket_send_comment(socket);
    size_t used = heddle_websocket_write_close(payload, code, reason, size);
    return heddle_websocket_send_control(socket, HEDDLE_WEBSOCKET_CLOSE, payload, used);
}

void heddle_websocket_begin_close(heddle_websocket *socket, unsigned code, const char *reason, size_t size)
{
    if (socket->state != HEDDLE_WEBSOCKET_OPEN)
        return;
    socket->code = (uint16_t)code;
    if (!send_close(socket, code, reason, size)) {
        heddle_websocket_stop_carrier(socket);
        return;
    }
    enter_state(socket, HEDDLE_WEBSOCKET_CLOSING);
    size_t pending = heddle_websocket_pending(socket);
    socket->left = socket->written - pending;
    socket->stalls = pending >= HEDDLE_OUTPUT_AT_ONCE;
    /* A paused socket reads on, to find the client's close frame behind messages that the handler no longer gets. */
    socket->defers_reading |= socket->paused;
    socket->paused = false;
    /* An event stream has no close handshake: the loop ends its output at once. */
    bool at_once = socket->defers_reading || socket->events;
    heddle_websocket_set_time_limit(socket, at_once ? 0 : heddle_websocket_closing_time(socket));
}

void heddle_websocket_finish_output(heddle_websocket *socket, unsigned code)
{
    end_frames(socket, HEDDLE_WEBSOCKET_FINISHING, code);
    socket->defers_reading = false;
    heddle_websocket_set_time_limit(socket, socket->engine->websockets.timeout);
    socket->carrier->end(socket);
}

void heddle_websocket_fail_session(heddle_websocket *socket, unsigned code, const char *reason)
{
    if (socket->state >= HEDDLE_WEBSOCKET_FINISHING)
        return;
    if (socket->state == HEDDLE_WEBSOCKET_OPEN && !send_close(socket, code, reason, strlen(reason)))
        heddle_websocket_stop_carrier(socket);
    else
        heddle_websocket_finish_output(socket, code);
}

/* Answers the client's close frame with its own code (RFC 6455, section 5.5.1). */
static void answer_close(heddle_websocket *socket)
{
    bool ours = socket->state == HEDDLE_WEBSOCKET_CLOSING;
    unsigned code = socket->reader.code;
    socket->code = 0; /* the client's code is reported, even if we sent the first close frame */
    if (!ours && !send_close(socket, code, NULL, 0))
        heddle_websocket_stop_carrier(socket);
    else
        heddle_websocket_finish_output(socket, code);
}

/* -- input --------------------------------------------------------------------------------------------------------- */

static void handle_message(heddle_websocket *socket)
{
    heddle_websocket_message *message = heddle_websocket_take_message(&socket->reader);
    if (socket->state == HEDDLE_WEBSOCKET_OPEN) {
        heddle_websocket_count_received(socket, message->size);
        heddle_websocket_deliver(socket, message);
    } else {
        free(message); /* the handler knows already that it is closed */
    }
}

static void handle_ping(heddle_websocket *socket)
{
    if (socket->state == HEDDLE_WEBSOCKET_OPEN &&
        !heddle_websocket_answer_ping(socket, socket->reader.control, socket->reader.control_size))
        heddle_websocket_stop_carrier(socket);
}

/* Input of a socket that closes is discarded. */
bool heddle_websocket_must_pause(const heddle_websocket *socket)
{
    return socket->state == HEDDLE_WEBSOCKET_OPEN && heddle_websocket_is_full(socket);
}

size_t heddle_websocket_feed_bytes(heddle_websocket *socket, char *bytes, size_t size)
{
    size_t used = 0;
    if (socket->events) {
        socket->lingered += size;
        if (socket->lingered > DISCARDED)
            heddle_websocket_stop_carrier(socket);
        return size;
    }
    while (socket->state <= HEDDLE_WEBSOCKET_CLOSING && !heddle_websocket_must_pause(socket)) {
        size_t step;
        heddle_websocket_event event = heddle_websocket_read(&socket->reader, &socket->engine->websockets.limits,
                                                             bytes + used, size - used, &step);
        used += step;
        /* A socket that closes discards its messages. */
        if (event == HEDDLE_WEBSOCKET_HAS_MESSAGE && socket->reader.message->compressed &&
            socket->state == HEDDLE_WEBSOCKET_OPEN)
            event = heddle_websocket_inflate(&socket->engine->websockets.deflater, &socket->reader,
                                             &socket->engine->websockets.limits);
        switch (event) {
        case HEDDLE_WEBSOCKET_NO_EVENT:
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
            heddle_websocket_fail_session(socket, socket->reader.code, socket->reader.failure);
            break;
        case HEDDLE_WEBSOCKET_NO_MEMORY:
            heddle_websocket_stop_carrier(socket);
            break;
        }
    }
    return used;
}

void heddle_websocket_resume_reading(heddle_websocket *socket)
{
    socket->paused = false;
    socket->carrier->read(socket);
}

void heddle_websocket_handle_drained(heddle_websocket *socket)
{
    heddle_websocket_update_pong(socket);
    heddle_websocket_queue_callback(socket, HEDDLE_WEBSOCKET_ON_DRAINED);
    heddle_websocket_catch_up(socket);
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

void heddle_websocket_begin_session(heddle_websocket *socket, heddle_connection *connection)
{
    socket->work.connection = connection;
    socket->heard = socket->pinged_at = socket->traffic.since = heddle_clock_coarse();
    socket->engine->websockets.open++;
    socket->engine->websockets.opened++;
    heddle_websocket_hold(socket);
    heddle_websocket_set_deadline(socket);
    heddle_websocket_queue_callback(socket, HEDDLE_WEBSOCKET_ON_OPEN);
    heddle_websocket_resume_reading(socket);
    heddle_websocket_release_hold(socket);
}

void heddle_websocket_release_hold(heddle_websocket *socket)
{
    heddle_connection *connection = socket->work.connection;
    if (--socket->depth > 0 || socket->running)
        return;
    if (connection && !heddle_websocket_is_in_loop(socket))
        return; /* another thread has called this: its output wakes the loop, which does the rest */
    if (!connection)
        heddle_websocket_free(socket);
    else if (heddle_websocket_has_work(socket) && !socket->work.list)
        /* on_close is queued first, however many items wait. */
        heddle_sockets_queue(connection->sockets, &socket->work, socket->due_callbacks & HEDDLE_WEBSOCKET_ON_CLOSE);
    else if (socket->state == HEDDLE_WEBSOCKET_OVER && !socket->work.list)
        socket->carrier->close(socket);
}

void heddle_websocket_drop_carrier(heddle_websocket *socket)
{
    bool abandoned = socket->work.connection->sockets->abandoned;
    if (socket->state <= HEDDLE_WEBSOCKET_CLOSING) {
        socket->code = HEDDLE_WEBSOCKET_ABNORMAL;
        count_end(socket);
    }
    heddle_ready_list_remove(&socket->work);
    socket->work.connection = NULL;
    if (socket->wait && !abandoned) {
        socket->wait->session = NULL;
        heddle_park_wake(&socket->wait->park);
    }
    socket->wait = NULL;
    heddle_websocket_free_subscriptions(socket);
    heddle_websocket_drop_client(socket, abandoned);
    if (!socket->running && socket->depth == 0)
        heddle_websocket_free(socket); /* otherwise by the last function that uses it */
}

void heddle_websocket_abandon(heddle_websocket *socket)
{
    socket->work.connection = NULL;
    socket->wait = NULL;
    heddle_websocket_abandon_subscriptions(socket);
    heddle_websocket_drop_client(socket, true);
}
