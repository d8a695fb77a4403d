#include "http/h2/server/tunnel.h"

#include "http/h2/server/server.h"

static heddle_h2_tunnel *tunnel_at(heddle_link *link)
{
    return link ? HEDDLE_CONTAINER_OF(link, heddle_h2_tunnel, link) : NULL;
}

heddle_h2_tunnel *heddle_h2_first_tunnel(const heddle_h2_server *server)
{
    return tunnel_at(heddle_link_first(&server->tunnels));
}

static heddle_h2_tunnel *find_next_tunnel(const heddle_h2_tunnel *tunnel)
{
    return tunnel_at(heddle_link_after(&tunnel->server->tunnels, &tunnel->link));
}

heddle_h2_tunnel *heddle_h2_tunnel_of(const heddle_h2_stream *stream)
{
    return stream->tunnel ? stream->owner : NULL;
}

/* -- called by the owner ------------------------------------------------------------------------------------------- */

void heddle_h2_tunnel_begin(heddle_h2_tunnel *tunnel, heddle_exchange *exchange)
{
    heddle_h2_carrier *carrier = heddle_h2_carrier_of(exchange);
    tunnel->server = carrier->server;
    tunnel->stream = carrier->stream;
    tunnel->due.at = -1;
    heddle_link_push_last(&tunnel->server->tunnels, &tunnel->link);
    tunnel->stream->owner = tunnel;
    tunnel->stream->tunnel = true;
    heddle_h2_transfer_stream(carrier);
}

bool heddle_h2_tunnel_write(heddle_h2_tunnel *tunnel, const char *bytes, size_t size, const char *more,
                            size_t more_size)
{
    heddle_h2_session *session = tunnel->server->session;
    heddle_connection *connection = tunnel->server->connection;
    session->now = heddle_clock_coarse();
    if (!heddle_h2_write_whole(session, tunnel->stream, bytes, size, more, more_size))
        return false;
    tunnel->flushed_due |= connection->sockets->loop->thread != rb_thread_current();
    heddle_connection_flush_later(connection);
    return true;
}

bool heddle_h2_tunnel_is_full(const heddle_h2_tunnel *tunnel, uint64_t limit)
{
    tunnel->server->session->now = heddle_clock_coarse();
    return tunnel->stream->queued > limit || heddle_h2_exceeds_share(tunnel->server->session, tunnel->stream);
}

void heddle_h2_tunnel_consume(heddle_h2_tunnel *tunnel, size_t size)
{
    if (size == 0)
        return;
    heddle_h2_consume(tunnel->server->session, tunnel->stream, size);
    heddle_connection_flush_later(tunnel->server->connection);
}

void heddle_h2_tunnel_keep(heddle_h2_tunnel *tunnel, size_t size)
{
    heddle_h2_keep(tunnel->server->session, tunnel->stream, size);
    heddle_connection_flush_later(tunnel->server->connection);
}

void heddle_h2_tunnel_finish(heddle_h2_tunnel *tunnel)
{
    tunnel->server->session->now = heddle_clock_coarse();
    heddle_h2_finish(tunnel->server->session, tunnel->stream);
    heddle_connection_flush_later(tunnel->server->connection);
}

static void detach_tunnel(heddle_h2_tunnel *tunnel)
{
    tunnel->stream->owner = NULL;
    heddle_link_remove(&tunnel->link);
    heddle_due_remove(tunnel->server->connection->sockets, &tunnel->due);
}

void heddle_h2_tunnel_close(heddle_h2_tunnel *tunnel, bool abrupt)
{
    heddle_h2_server *server = tunnel->server;
    heddle_h2_enter_session(server);
    /* the reset may exceed the limit of resets: then all streams end, and this one must not be closed twice */
    tunnel->closing = true;
    heddle_h2_end_tunnel(server->session, tunnel->stream, abrupt);
    detach_tunnel(tunnel);
    heddle_h2_release(server->session, tunnel->stream);
    heddle_connection_flush_later(tunnel->server->connection);
    tunnel->operations->release(tunnel);
    heddle_last_use(heddle_h2_leave_session(server));
}

void heddle_h2_tunnel_set_deadline(heddle_h2_tunnel *tunnel, int64_t at)
{
    heddle_due_set(tunnel->server->connection->sockets, &tunnel->due, at);
}

/* -- called by the server ------------------------------------------------------------------------------------------ */

/* Returns the first tunnel for which `applies` returns true, or NULL. */
static heddle_h2_tunnel *find_tunnel(const heddle_h2_server *server, bool (*applies)(const heddle_h2_tunnel *))
{
    heddle_h2_tunnel *tunnel = heddle_h2_first_tunnel(server);
    while (tunnel && !applies(tunnel))
        tunnel = find_next_tunnel(tunnel);
    return tunnel;
}

static bool is_flushed_due(const heddle_h2_tunnel *tunnel)
{
    return tunnel->flushed_due;
}

void heddle_h2_tunnels_handle_flushed(heddle_h2_server *server)
{
    heddle_h2_tunnel *tunnel;
    while (server->connection && (tunnel = find_tunnel(server, is_flushed_due))) {
        tunnel->flushed_due = false;
        tunnel->operations->flushed(tunnel);
    }
}

static bool has_input(const heddle_h2_tunnel *tunnel)
{
    return !tunnel->input_ended;
}

/*
 * Closing a tunnel may exceed the limit of resets, which closes all other tunnels, too. So each search begins at the
 * start of the list.
 */
void heddle_h2_tunnels_end_input(heddle_h2_server *server)
{
    heddle_h2_tunnel *tunnel;
    while (server->connection && (tunnel = find_tunnel(server, has_input))) {
        tunnel->input_ended = true;
        tunnel->operations->end_input(tunnel);
    }
}

static bool has_to_retire(const heddle_h2_tunnel *tunnel)
{
    return tunnel->operations->has_to_retire(tunnel);
}

bool heddle_h2_tunnels_have_to_retire(const heddle_h2_server *server)
{
    return find_tunnel(server, has_to_retire) != NULL;
}

void heddle_h2_tunnels_retire(heddle_h2_server *server)
{
    heddle_h2_tunnel *tunnel;
    while (server->connection && (tunnel = find_tunnel(server, has_to_retire)))
        tunnel->operations->retire(tunnel);
}

void heddle_h2_tunnels_release(heddle_h2_server *server)
{
    heddle_h2_tunnel *tunnel;
    while ((tunnel = heddle_h2_first_tunnel(server))) {
        detach_tunnel(tunnel);
        tunnel->operations->release(tunnel);
    }
}

void heddle_h2_tunnels_abandon(heddle_h2_server *server)
{
    for (heddle_h2_tunnel *tunnel = heddle_h2_first_tunnel(server); tunnel; tunnel = find_next_tunnel(tunnel))
        tunnel->operations->abandon(tunnel);
}
