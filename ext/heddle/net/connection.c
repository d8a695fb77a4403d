/* A connection's local address and input, and the fibers that wait for the connection: see connection.h. */

#include "net/connection.h"

#include "net/sockets.h"

#include <ruby/io.h>

/* -- the local address -------------------------------------------------------------------------------------------- */

static bool is_any(const heddle_address *address)
{
    for (size_t i = 0; i < sizeof(address->bytes); i++) {
        if (address->bytes[i])
            return false;
    }
    return true;
}

const heddle_address *heddle_connection_local(heddle_connection *connection)
{
    /*
     * A listener may be bound to an unspecified address (0.0.0.0 or ::). Then only the kernel knows the connection's
     * local address.
     */
    heddle_address *local = &connection->local;
    if ((local->family == AF_INET || local->family == AF_INET6) && is_any(local)) {
        heddle_address found = heddle_address_of_socket(connection->transport.fd);
        if (found.family)
            *local = found;
    }
    return local;
}

ssize_t heddle_connection_receive(heddle_connection *connection, char *memory, size_t size)
{
    static const uint8_t pending_input = HEDDLE_HAS_INPUT | HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP | HEDDLE_BROKEN;
    heddle_transport *transport = &connection->transport;
    bool locked = heddle_transport_lock_wire(transport); /* receiving and sending share one TLS state */
    ssize_t result = -EAGAIN;
    bool reads = heddle_transport_has(transport, pending_input) || transport->operations->pending(transport);
    if (reads) {
        /* Cleared before the call, so that an event that is noted during the call is kept. */
        heddle_transport_forget(transport, HEDDLE_HAS_INPUT);
        result = transport->operations->recv(transport, memory, size);
    }
    if (locked)
        heddle_transport_unlock_wire(transport);
    if (!reads)
        return -EAGAIN;
    if (transport->tls && transport->tls->paused)
        heddle_turns_continue(connection);
    if (result == (ssize_t)size) {
        heddle_transport_note(transport, HEDDLE_HAS_INPUT);
    } else if (result == 0) {
        heddle_transport_note(transport, HEDDLE_INPUT_ENDS);
        if (connection->error)
            return -connection->error; /* the input ends because of the error of an earlier send */
    } else if (result == -EAGAIN) {
        if (connection->error)
            return -connection->error;
        /* recv has found neither data nor an end nor an error, so these events are outdated */
        heddle_transport_forget(transport, pending_input);
    } else if (result < 0) {
        connection->error = (int)-result;
        heddle_transport_note(transport, HEDDLE_BROKEN);
    }
    return result;
}

void heddle_connection_check_thread(const heddle_connection *connection)
{
    if (connection->sockets->loop->thread != rb_thread_current())
        rb_raise(rb_eThreadError, "this connection belongs to the loop of another thread: only that thread may use it");
}

/* -- waiting ----------------------------------------------------------------------------------------------------- */

heddle_wait_result heddle_connection_wait_for(heddle_connection *connection, heddle_direction direction,
                                              int64_t deadline)
{
    heddle_wait wait = {.slot = &connection->waits[direction], .deadline = deadline, .part = HEDDLE_SPENT_CLIENT};
    for (;;) {
        heddle_connection_want(connection, direction);
        heddle_wait_result result = heddle_wait_in_slot(
            connection->sockets->loop, wait,
            direction == HEDDLE_READING
                ? "another fiber is already reading this connection: only one fiber may read it at a time"
                : "another fiber is already writing to this connection: only one fiber may write at a time");
        if (result != HEDDLE_WAIT_TIMED_OUT || direction != HEDDLE_WRITING ||
            !heddle_turns_waits(connection, HEDDLE_TURN_SENDS))
            return result;
        wait.deadline = -1; /* the fiber waits for the connection's turn, not for the client: no time limit applies */
    }
}

void heddle_connection_wait_or_raise(heddle_connection *connection, heddle_direction direction, int64_t deadline,
                                     const char *timeout_message)
{
    switch (heddle_connection_wait_for(connection, direction, deadline)) {
    case HEDDLE_WAIT_READY:
        break;
    case HEDDLE_WAIT_TIMED_OUT:
        rb_raise(rb_eIOTimeoutError, "%s", timeout_message);
    case HEDDLE_WAIT_CLOSED:
        rb_raise(rb_eIOError, "the connection was closed while a fiber waited for it");
    }
}

void heddle_connection_wake(heddle_connection *connection, uint8_t ready)
{
    static const uint8_t reasons[] = {
        [HEDDLE_READING] = HEDDLE_HAS_INPUT | HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP | HEDDLE_BROKEN,
        [HEDDLE_WRITING] = HEDDLE_HAS_ROOM | HEDDLE_HUNG_UP | HEDDLE_BROKEN,
    };
    for (int direction = 0; direction < 2; direction++) {
        if (ready & reasons[direction])
            heddle_wait_wake(connection->waits[direction]);
    }
}

void heddle_connection_drop_waits(heddle_connection *connection)
{
    for (int direction = 0; direction < 2; direction++)
        heddle_wait_drop(&connection->waits[direction]);
}
