/* State that the WebSockets of an engine share, and their table for the engine. */

#include "http/push/session.h"

static void configure_shared(heddle_engine *engine, VALUE configuration)
{
    heddle_websockets *sockets = &engine->websockets;
    sockets->limits.message = NUM2ULL(heddle_engine_option(configuration, "websocket_message_limit"));
    sockets->limits.fragments = NUM2UINT(heddle_engine_option(configuration, "websocket_fragment_limit"));
    sockets->output_limit = NUM2ULL(heddle_engine_option(configuration, "websocket_output_limit"));
    sockets->ping = heddle_parse_duration(heddle_engine_option(configuration, "websocket_ping"));
    sockets->timeout = heddle_parse_duration(heddle_engine_option(configuration, "websocket_timeout"));
    sockets->retire_code = HEDDLE_WEBSOCKET_GOING_AWAY;
}

static void mark_shared(const heddle_engine *engine)
{
    rb_gc_mark(engine->websockets.clients);
    rb_gc_mark(engine->websockets.loader);
}

static void release_shared(heddle_engine *engine)
{
    heddle_deflater_free(engine->websockets.deflater);
}

/* A WebSocket begins with the response to a request. */
const heddle_http_protocol heddle_websocket_http_protocol = {
    .load = heddle_websocket_load,
    .resume = heddle_websocket_resume,
    .configure = configure_shared,
    .mark = mark_shared,
    .release = release_shared,
};
