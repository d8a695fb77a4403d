/*
 * The time limits of an open WebSocket: when it pings its client, gives up on it, or closes because the server stops.
 */

#include "http/push/event_stream.h"
#include "http/push/session.h"

void heddle_websocket_set_time_limit(heddle_websocket *socket, int64_t duration)
{
    socket->carrier->set_deadline(socket, heddle_add_duration(heddle_clock_coarse(), duration));
}

int64_t heddle_websocket_closing_time(const heddle_websocket *socket)
{
    const heddle_engine *engine = socket->engine;
    bool stops = socket->retires && engine->linger_timeout < engine->websockets.timeout;
    return stops ? engine->linger_timeout : engine->websockets.timeout;
}

/* Sets the time at which an open socket must do something next. */
void heddle_websocket_set_deadline(heddle_websocket *socket)
{
    const heddle_websockets *all = &socket->engine->websockets;
    int64_t deadline = -1;
    if (socket->defers_reading) /* its turn to read comes first */
        deadline = heddle_clock_coarse();
    else if (socket->events)
        deadline = heddle_add_duration(socket->pinged_at, HEDDLE_EVENTS_COMMENT);
    else if (socket->pinged)
        deadline = heddle_add_duration(socket->pinged_at, all->timeout);
    else if (all->ping > 0)
        deadline = heddle_add_duration(socket->heard, all->ping);
    if (socket->retires && (deadline < 0 || socket->retires_at < deadline))
        deadline = socket->retires_at;
    socket->carrier->set_deadline(socket, deadline);
}

/* Has the kernel taken output since the last check? A full send buffer means that the client has. */
static bool has_output_moved(heddle_websocket *socket, size_t pending)
{
    uint64_t left = socket->written - pending;
    bool moved = left != socket->left;
    socket->left = left;
    return moved;
}

/* Does the client still take what was queued before our close frame? Until then it can't answer that frame. */
static bool reads_before_close(heddle_websocket *socket)
{
    size_t pending = heddle_websocket_pending(socket);
    bool was_full = socket->stalls;
    socket->stalls = pending > 0;
    return has_output_moved(socket, pending) && (pending || was_full);
}

static void send_ping(heddle_websocket *socket, bool full)
{
    socket->pinged = true;
    socket->pinged_at = heddle_clock_coarse();
    socket->stalls = full; /* a ping would be queued behind the output, so that has to move instead */
    if (!full && !heddle_websocket_send_control(socket, HEDDLE_WEBSOCKET_PING, NULL, 0))
        heddle_websocket_stop_carrier(socket);
}

/* Sends a comment, which keeps proxies from closing the stream. A client that takes nothing for too long is cut off. */
static void keep_events_alive(heddle_websocket *socket, int64_t now)
{
    int64_t timeout = socket->engine->write_timeout;
    size_t pending = heddle_websocket_pending(socket);
    if (has_output_moved(socket, pending) || !pending)
        socket->heard = now;
    else if (timeout >= 0 && heddle_add_duration(socket->heard, timeout) <= now) {
        heddle_websocket_reset_carrier(socket);
        return;
    }
    if (heddle_add_duration(socket->pinged_at, HEDDLE_EVENTS_COMMENT) <= now) {
        socket->pinged_at = now;
        if (!pending && !heddle_websocket_send_comment(socket))
            heddle_websocket_stop_carrier(socket);
    }
    if (socket->state == HEDDLE_WEBSOCKET_OPEN)
        heddle_websocket_set_deadline(socket);
}

static void handle_time_when_open(heddle_websocket *socket)
{
    const heddle_websockets *all = &socket->engine->websockets;
    int64_t now = heddle_clock_coarse();
    bool notified = !((socket->due_callbacks | socket->calling) & HEDDLE_WEBSOCKET_ON_SHUTDOWN);
    if (socket->retires && socket->retires_at <= now && !notified && now < all->retire_end) {
        /* the handler's messages of on_shutdown come first */
        socket->retires_at = heddle_add_duration(now, HEDDLE_IDLE_WHEEL_TICK);
    } else if (socket->retires && socket->retires_at <= now) {
        if (socket->handle && !NIL_P(socket->handle->farewell) &&
            !heddle_websocket_send_frame(socket, socket->handle->farewell, false))
            heddle_websocket_stop_carrier(socket);
        heddle_websocket_begin_close(socket, all->retire_code, NULL, 0);
        return;
    }
    if (socket->events) {
        keep_events_alive(socket, now);
        return;
    }
    size_t pending = heddle_websocket_pending(socket);
    bool full = pending >= HEDDLE_OUTPUT_AT_ONCE;
    bool moved = has_output_moved(socket, pending) && (full || socket->stalls);
    if (socket->paused || moved) /* paused: unread input says nothing about the client; moved: the client reads */
        socket->heard = now;
    if (socket->pinged && socket->heard >= socket->pinged_at)
        socket->pinged = socket->stalls = false;
    if (socket->pinged && heddle_add_duration(socket->pinged_at, all->timeout) <= now) {
        socket->engine->websockets.vanished++;
        heddle_websocket_reset_carrier(socket);
        return;
    }
    if (!socket->pinged && all->ping > 0 && heddle_add_duration(socket->heard, all->ping) <= now)
        send_ping(socket, full);
    if (socket->state == HEDDLE_WEBSOCKET_OPEN)
        heddle_websocket_set_deadline(socket);
}

void heddle_websocket_handle_deadline(heddle_websocket *socket)
{
    if (socket->defers_reading) {
        socket->defers_reading = false;
        if (socket->state == HEDDLE_WEBSOCKET_OPEN)
            heddle_websocket_set_deadline(socket);
        else
            heddle_websocket_set_time_limit(socket, heddle_websocket_closing_time(socket));
        if (!socket->paused)
            heddle_websocket_resume_reading(socket);
    } else if (socket->state == HEDDLE_WEBSOCKET_OPEN) {
        handle_time_when_open(socket);
    } else if (socket->events && socket->state == HEDDLE_WEBSOCKET_CLOSING) {
        heddle_websocket_finish_output(socket, socket->code);
    } else if (socket->lingers) {
        heddle_websocket_stop_carrier(socket);
    } else if (socket->state == HEDDLE_WEBSOCKET_CLOSING && reads_before_close(socket)) {
        heddle_websocket_set_time_limit(socket, heddle_websocket_closing_time(socket));
    } else { /* the client takes too long to close */
        heddle_websocket_reset_carrier(socket);
    }
}

/* -- when the server stops ----------------------------------------------------------------------------------------- */

bool heddle_websocket_has_to_retire(const heddle_websocket *socket)
{
    return socket->engine->draining && socket->state == HEDDLE_WEBSOCKET_OPEN && !socket->retires;
}

/* Clients reconnect at once, so the sockets are closed over some time. */
void heddle_websocket_retire(heddle_websocket *socket)
{
    heddle_websockets *all = &socket->engine->websockets;
    heddle_websocket_hold(socket);
    socket->retires = true;
    /* evenly distributed, in no order */
    uint64_t share = (uint64_t)(all->retired++) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    int64_t wait = (int64_t)((double)share / 4294967296.0 * (double)all->retire_time);
    socket->retires_at = heddle_add_duration(heddle_clock_coarse(), wait);
    heddle_websocket_queue_callback(socket, HEDDLE_WEBSOCKET_ON_SHUTDOWN);
    heddle_websocket_set_deadline(socket);
    heddle_websocket_release_hold(socket);
}
