/* The time limits of a push session, and its end when the server stops. */

#include "http/push/session.h"

void heddle_push_set_time_limit(heddle_push_session *socket, int64_t duration)
{
    socket->carrier->set_deadline(socket, heddle_add_duration(heddle_clock_coarse(), duration));
}

int64_t heddle_push_closing_time(const heddle_push_session *socket)
{
    const heddle_engine *engine = socket->engine;
    bool stops = socket->retires && engine->linger_timeout < engine->websockets.timeout;
    return stops ? engine->linger_timeout : engine->websockets.timeout;
}

/* Sets the time at which an open socket must do something next. */
void heddle_push_set_deadline(heddle_push_session *socket)
{
    int64_t deadline = socket->framing->next_check(socket);
    if (socket->retires && (deadline < 0 || socket->retires_at < deadline))
        deadline = socket->retires_at;
    socket->carrier->set_deadline(socket, deadline);
}

bool heddle_push_has_output_moved(heddle_push_session *socket, size_t pending)
{
    uint64_t left = socket->written - pending;
    bool moved = left != socket->left;
    socket->left = left;
    return moved;
}

/* Is the client still reading the output before our close frame? Then it can't have answered that frame yet. */
static bool reads_before_close(heddle_push_session *socket)
{
    size_t pending = heddle_push_pending(socket);
    bool was_full = socket->stalls;
    socket->stalls = pending > 0;
    return heddle_push_has_output_moved(socket, pending) && (pending || was_full);
}

static void handle_time_when_open(heddle_push_session *socket)
{
    const heddle_websockets *all = &socket->engine->websockets;
    int64_t now = heddle_clock_coarse();
    bool notified = !((socket->due_callbacks | socket->calling) & HEDDLE_PUSH_ON_SHUTDOWN);
    if (socket->retires && socket->retires_at <= now && !notified && now < all->retire_end) {
        /* so that the messages of on_shutdown are sent first */
        socket->retires_at = heddle_add_duration(now, HEDDLE_DUE_INTERVAL);
    } else if (socket->retires && socket->retires_at <= now) {
        if (socket->handle && !NIL_P(socket->handle->farewell) &&
            !heddle_push_send_frame(socket, socket->handle->farewell, false))
            heddle_push_stop_carrier(socket);
        heddle_push_begin_close(socket, all->retire_code, NULL, 0);
        return;
    }
    socket->framing->check(socket, now);
    if (socket->state == HEDDLE_PUSH_OPEN)
        heddle_push_set_deadline(socket);
}

void heddle_push_handle_deadline(heddle_push_session *socket)
{
    if (socket->defers_reading) {
        socket->defers_reading = false;
        heddle_push_set_time_limit(socket, heddle_push_closing_time(socket));
        if (!socket->paused)
            heddle_push_resume_reading(socket);
    } else if (socket->state == HEDDLE_PUSH_OPEN) {
        handle_time_when_open(socket);
    } else if (!socket->framing->reads_frames && socket->state == HEDDLE_PUSH_CLOSING) {
        heddle_push_finish_output(socket, socket->code);
    } else if (socket->lingers) {
        heddle_push_stop_carrier(socket);
    } else if (socket->state == HEDDLE_PUSH_CLOSING && reads_before_close(socket)) {
        heddle_push_set_time_limit(socket, heddle_push_closing_time(socket));
    } else { /* the client takes too long to close */
        heddle_push_reset_carrier(socket);
    }
}

/* -- when the server stops ----------------------------------------------------------------------------------------- */

bool heddle_push_has_to_retire(const heddle_push_session *socket)
{
    bool ends = socket->engine->draining || !heddle_push_has_client(socket);
    return ends && socket->state == HEDDLE_PUSH_OPEN && !socket->retires;
}

/* Clients reconnect at once, so the sockets are closed one after another over some time. */
void heddle_push_retire(heddle_push_session *socket)
{
    heddle_websockets *all = &socket->engine->websockets;
    heddle_push_hold(socket);
    socket->retires = true;
    if (!heddle_push_has_client(socket)) {
        heddle_push_begin_close(socket, all->retire_code, NULL, 0);
        if (socket->state == HEDDLE_PUSH_CLOSING)
            heddle_push_finish_output(socket, socket->code);
        heddle_push_release_hold(socket);
        return;
    }
    /* spreads the sockets evenly over that time, in no order */
    uint64_t share = (uint64_t)(all->retired++) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    int64_t wait = (int64_t)((double)share / 4294967296.0 * (double)all->retire_time);
    socket->retires_at = heddle_add_duration(heddle_clock_coarse(), wait);
    heddle_push_queue_callback(socket, HEDDLE_PUSH_ON_SHUTDOWN);
    heddle_push_set_deadline(socket);
    heddle_push_release_hold(socket);
}
