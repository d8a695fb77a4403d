/* A protocol without framing: a runner gets a connection when it is readable. */

#include "net/raw_protocol.h"

#include "net/sockets.h"

#include <sys/socket.h>

typedef enum {
    NOTHING_YET,
    SOMETHING,
    THE_END, /* the end of input, or an error */
} prospect;

/* The result that the next recv would have. */
static prospect probe_input(heddle_connection *connection)
{
    char byte;
    ssize_t result;
    if (connection->transport.operations == &heddle_tls_transport) {
        result = heddle_tls_peek(&connection->transport);
    } else {
        result = recv(connection->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (result < 0)
            result = errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
    }
    return result > 0 ? SOMETHING : result == -EAGAIN ? NOTHING_YET : THE_END;
}

/* The session of a connection with this protocol. */
typedef struct {
    heddle_work work;
    bool running; /* the block has been called */
} session;

static session *session_of(const heddle_connection *connection)
{
    return connection->session;
}

static session *session_of_work(heddle_work *work)
{
    return HEDDLE_CONTAINER_OF(work, session, work);
}

static void want_input(heddle_connection *connection)
{
    heddle_connection_want(connection, HEDDLE_READING);
    heddle_connection_release(connection);
}

static void queue_connection(heddle_connection *connection)
{
    heddle_sockets_queue(connection->sockets, &session_of(connection)->work, false);
}

static void read_more(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    if (!heddle_transport_has(transport, HEDDLE_HAS_INPUT | HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP))
        return;
    /* The peer may have closed the connection. A runner is needed only if it has sent bytes before. */
    bool ending = heddle_transport_has(transport, HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP) ||
                  connection->sockets->set.operations->hides_input_end;
    prospect next = ending ? probe_input(connection) : SOMETHING;
    if (next == SOMETHING)
        queue_connection(connection);
    else if (next == THE_END)
        heddle_sockets_close_idle(connection);
    else
        want_input(connection);
}

static void handle_event(heddle_connection *connection, uint8_t ready)
{
    session *raw = session_of(connection);
    if (raw->running || raw->work.list) {
        heddle_connection_wake(connection, ready);
        if (heddle_rounds_have_listed(connection->sockets, &raw->work))
            heddle_connection_release(connection);
    } else if (ready & HEDDLE_BROKEN) {
        heddle_sockets_close_idle(connection);
    } else {
        read_more(connection);
    }
}

static void handle_deadline(heddle_connection *connection)
{
    session *raw = session_of(connection);
    if (raw->work.list)
        heddle_connection_set_time_limit(connection, connection->sockets->idle_timeout);
    else if (!raw->running)
        heddle_sockets_close_idle(connection);
}

/*
 * A fiber that has received exactly as many bytes as it asked for does not know whether there are more. So this
 * function peeks, and no runner is started in vain.
 */
static bool has_input(heddle_connection *connection)
{
    heddle_transport *transport = &connection->transport;
    if (heddle_connection_buffered(connection) || transport->operations->pending(transport))
        return true;
    if (!heddle_transport_has(transport, HEDDLE_HAS_INPUT))
        return false;
    heddle_transport_forget(transport, HEDDLE_HAS_INPUT); /* forgotten before peeking, so that later events are kept */
    prospect next = probe_input(connection);
    if (next == SOMETHING)
        heddle_transport_note(transport, HEDDLE_HAS_INPUT);
    else if (next == THE_END)
        heddle_transport_note(transport, HEDDLE_INPUT_ENDS);
    return next == SOMETHING;
}

static void await_input(heddle_connection *connection)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_transport *transport = &connection->transport;
    heddle_connection_set_time_limit(connection, sockets->idle_timeout);
    if (has_input(connection))
        queue_connection(connection);
    else if (sockets->draining || heddle_transport_has(transport, HEDDLE_INPUT_ENDS | HEDDLE_HUNG_UP | HEDDLE_BROKEN))
        heddle_sockets_close_idle(connection);
    else
        want_input(connection);
}

static void begin_session(heddle_connection *connection)
{
    if (connection->sockets->at_once)
        queue_connection(connection);
    else
        await_input(connection);
}

void heddle_raw_make_idle(heddle_connection *connection)
{
    session *raw = session_of(connection);
    heddle_connection_drop_handle(connection);
    /*
     * The connection gets a new session, because the runner that still holds this work item must not end the next one.
     */
    session *fresh = malloc(sizeof(*fresh));
    if (!fresh) {
        heddle_sockets_close_connection(connection);
        return;
    }
    *fresh = (session){.work = {.operations = raw->work.operations, .connection = connection}};
    raw->work.connection = NULL;
    connection->session = fresh;
    heddle_connection_end_work(connection);
    await_input(connection);
}

static bool is_idle(const heddle_connection *connection)
{
    const session *raw = session_of(connection);
    return !raw->running && !raw->work.list;
}

static int64_t idle_since(const heddle_connection *connection)
{
    return heddle_connection_limited_since(connection, connection->sockets->idle_timeout);
}

static void release_session(heddle_connection *connection)
{
    session *raw = session_of(connection);
    heddle_ready_list_remove(&raw->work);
    raw->work.connection = NULL;
    if (!raw->running)
        free(raw); /* otherwise the session is freed when the block has returned */
}

static void abandon_session(heddle_connection *connection)
{
    session_of(connection)->work.connection = NULL;
}

const heddle_protocol heddle_raw_protocol = {
    .begin = begin_session,
    .handle_event = handle_event,
    .handle_deadline = handle_deadline,
    .is_idle = is_idle,
    .idle_since = idle_since,
    .collect_input = heddle_connection_input_piece,
    .release = release_session,
    .abandon = abandon_session,
};

/* -- work items ---------------------------------------------------------------------------------------------------- */

static VALUE object_of(heddle_work *work)
{
    session_of_work(work)->running = true;
    return heddle_connection_object(work->connection);
}

static void note_served(heddle_work *work, VALUE object)
{
    session *raw = session_of_work(work);
    raw->running = false;
    if (work->connection)
        heddle_sockets_close_connection(work->connection);
    else
        free(raw);
}

/* A raw connection has no response to send. */
static void reject_work(heddle_work *work, heddle_overload why)
{
    heddle_sockets_close_idle(work->connection);
}

static const heddle_work_operations work_operations = {
    .object = object_of, .served = note_served, .reject = reject_work};

/* -- the service --------------------------------------------------------------------------------------------------- */

static void choose_protocol(heddle_connection *connection)
{
    session *raw = malloc(sizeof(*raw));
    if (!raw) {
        heddle_sockets_close_idle(connection);
        return;
    }
    *raw = (session){.work = {.operations = &work_operations, .connection = connection}};
    heddle_connection_start(connection, &heddle_raw_protocol, raw);
}

/* A raw connection has no response to send. */
static void reject_handshake(heddle_connection *connection, heddle_handshake_error error)
{
    heddle_sockets_close_idle(connection);
}

static const heddle_service_operations service_operations = {
    .choose_protocol = choose_protocol,
    .reject_handshake = reject_handshake,
};

heddle_service heddle_raw_service = {.operations = &service_operations};
