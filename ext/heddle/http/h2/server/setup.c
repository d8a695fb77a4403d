/* Begins HTTP/2 on a connection: sets limits and a socket option, and creates the session. */

#include "http/h2/server/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static void configure_shared(heddle_engine *engine, VALUE configuration)
{
    if (!engine->h2)
        engine->h2 = calloc(1, sizeof(*engine->h2));
    if (!engine->h2)
        rb_memerror();
    heddle_link_init_head(&engine->h2->loans);
    heddle_h2_limits *limits = &engine->h2->limits;
    *limits = heddle_h2_default_limits();
    limits->header_limit = (uint32_t)(engine->limits.header < 1 << 20 ? engine->limits.header : 1 << 20);
    limits->header_count = engine->limits.header_count;
    limits->body_limit = engine->limits.body;
    limits->keep_underscores = engine->limits.keep_underscores;
    limits->write_timeout = engine->write_timeout;
    limits->head_timeout = engine->head_timeout;
    limits->idle_timeout = engine->idle_timeout;
    limits->connect_protocol = RTEST(heddle_engine_option(configuration, "http2_websockets"));
    limits->max_streams = NUM2UINT(heddle_engine_option(configuration, "http2_streams"));
    /*
     * These limits grow with the options http2_streams and header_limit: a proxy may reset the streams of many users at
     * once, and large heads need more frames.
     */
    if (limits->max_streams > limits->reset_burst) {
        limits->reset_burst = limits->refused_burst = limits->max_streams;
        limits->reset_rate = limits->max_streams / 3;
    }
    if (limits->continuations < limits->header_limit / HEDDLE_H2_FRAME_SIZE + 2)
        limits->continuations = limits->header_limit / HEDDLE_H2_FRAME_SIZE + 2;
    engine->h2->memory = NUM2ULL(heddle_engine_option(configuration, "http2_memory"));
}

/*
 * Limits the unsent bytes that the kernel queues, because streams of higher priority can't overtake them. Only TCP
 * sockets have this limit.
 */
static void limit_unsent(heddle_connection *connection)
{
#ifdef TCP_NOTSENT_LOWAT
    int most = HEDDLE_H2_AT_ONCE;
    setsockopt(connection->transport.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof(most));
#endif
}

static void begin_session(heddle_connection *connection)
{
    limit_unsent(connection);
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h2_server *server = calloc(1, sizeof(*server));
    if (server) {
        server->connection = connection;
        server->write_deadline = INT64_MAX;
        heddle_link_init_head(&server->carriers);
        heddle_link_init_head(&server->waiting);
        heddle_link_init_head(&server->tunnels);
        server->session = heddle_h2_session_new(&heddle_h2_carrier_operations, &engine->h2->limits,
                                                &engine->h2->workspace, server, heddle_clock_coarse(), false);
    }
    if (!server || !server->session) {
        free(server);
        heddle_sockets_close_connection(connection);
        return;
    }
    heddle_connection_start(connection, &heddle_h2_protocol, server);
}

static void release_shared(heddle_engine *engine)
{
    if (engine->h2)
        heddle_h2_workspace_free(&engine->h2->workspace);
    free(engine->h2);
}

const heddle_http_protocol heddle_h2_http_protocol = {
    .begin = begin_session,
    .configure = configure_shared,
    .mark = heddle_h2_mark_loans,
    .release = release_shared,
};
