/* Writes frames of a WebSocket into the output of its carrier. */

#include "http/push/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t heddle_websocket_pending(const heddle_websocket *socket)
{
    return socket->work.connection ? socket->carrier->pending(socket) : 0;
}

bool heddle_websocket_exceeds_output(const heddle_websocket *socket)
{
    return socket->work.connection && socket->carrier->is_full(socket, socket->engine->websockets.output_limit);
}

bool heddle_websocket_send_control(heddle_websocket *socket, heddle_websocket_opcode opcode, const char *payload,
                                   size_t size)
{
    char frame[HEDDLE_WEBSOCKET_HEAD + HEDDLE_WEBSOCKET_CONTROL];
    size_t used = heddle_websocket_write_head(frame, opcode, false, size, NULL);
    if (size)
        memcpy(frame + used, payload, size);
    socket->written += used + size;
    return socket->carrier->write(socket, frame, used + size, 0);
}

bool heddle_websocket_send_comment(heddle_websocket *socket)
{
    static const char comment[] = ":\n\n";
    socket->written += sizeof(comment) - 1;
    return socket->carrier->write(socket, comment, sizeof(comment) - 1, 0);
}

bool heddle_websocket_check_pace(heddle_websocket *socket)
{
    if (!heddle_websocket_exceeds_output(socket))
        return true;
    if (!heddle_websocket_is_in_loop(socket)) {
        /*
         * Only the loop can flush. If another thread has queued far too much, its message is dropped and the socket
         * ends.
         */
        bool far_ahead = heddle_websocket_pending(socket) / 4 > socket->engine->websockets.output_limit;
        socket->overflowed = true;
        socket->overrun |= far_ahead;
        heddle_connection_flush_later(socket->work.connection);
        return !far_ahead;
    }
    int result = socket->carrier->flush(socket); /* the kernel may have room for it */
    if (result != 0 && result != -EAGAIN)
        heddle_websocket_stop_carrier(socket);
    if (!heddle_websocket_exceeds_output(socket))
        return socket->state == HEDDLE_WEBSOCKET_OPEN;
    heddle_websocket_end_slow(socket);
    return false;
}

void heddle_websocket_end_slow(heddle_websocket *socket)
{
    if (socket->state != HEDDLE_WEBSOCKET_OPEN)
        return;
    socket->engine->websockets.too_slow++;
    heddle_websocket_fail_session(socket, HEDDLE_WEBSOCKET_POLICY, "the client reads too slowly");
}

void heddle_websocket_check_overflow(heddle_websocket *socket)
{
    if (socket->overrun)
        heddle_websocket_end_slow(socket);
    else if (socket->overflowed && heddle_websocket_pending(socket))
        heddle_websocket_check_pace(socket);
    socket->overflowed = false;
}

bool heddle_websocket_send_frame(heddle_websocket *socket, VALUE frame, bool at_once)
{
    if (!(at_once ? socket->carrier->send(socket, frame) : socket->carrier->write(socket, NULL, 0, frame)))
        return false;
    heddle_websocket_count_sent(socket, (uint64_t)RSTRING_LEN(frame));
    socket->written += (uint64_t)RSTRING_LEN(frame);
    return true;
}

/* Returns the size of the frame; 0: it must be sent uncompressed, or the carrier was broken off for lack of memory. */
static size_t write_deflated(heddle_websocket *socket, heddle_websocket_opcode opcode, const char *bytes, size_t size)
{
    char head[HEDDLE_WEBSOCKET_HEAD];
    if (size < HEDDLE_DEFLATE_LEAST || size > HEDDLE_DEFLATE_MOST)
        return 0;
    char *frame = malloc(HEDDLE_WEBSOCKET_HEAD + size), *payload = frame + HEDDLE_WEBSOCKET_HEAD;
    size_t deflated = frame ? heddle_websocket_deflate(&socket->engine->websockets.deflater, bytes, size, payload) : 0;
    if (!deflated) {
        free(frame);
        return 0;
    }
    size_t used = heddle_websocket_write_head(head, opcode, true, deflated, NULL);
    memcpy(payload - used, head, used);
    bool written = socket->carrier->write(socket, payload - used, used + deflated, 0);
    free(frame);
    if (written)
        return used + deflated;
    heddle_websocket_stop_carrier(socket);
    return 0;
}

bool heddle_websocket_send(heddle_websocket *socket, heddle_websocket_opcode opcode, VALUE string)
{
    char head[HEDDLE_WEBSOCKET_HEAD];
    size_t size = (size_t)RSTRING_LEN(string);
    if (socket->state != HEDDLE_WEBSOCKET_OPEN || !heddle_websocket_check_pace(socket))
        return false;
    size_t sent = socket->reader.allows_deflate ? write_deflated(socket, opcode, RSTRING_PTR(string), size) : 0;
    size_t used = sent || socket->events ? 0 : heddle_websocket_write_head(head, opcode, false, size, NULL);
    if (socket->state != HEDDLE_WEBSOCKET_OPEN)
        return false;
    if (!sent && !socket->carrier->write(socket, head, used, string)) {
        heddle_websocket_stop_carrier(socket); /* no memory, and the output ends within a frame */
        return false;
    }
    heddle_websocket_count_sent(socket, size);
    socket->written += sent ? sent : used + size;
    return true;
}
