/* The state that the WebSockets of an engine share, and their protocol table for the engine. */

#include "http/push/session.h"

enum {
    FRAGMENTS = 1000,            /* the limit of the frames in a message is at least this; browsers send one frame */
    BYTES_PER_FRAGMENT = 1024,   /* bytes of websocket_message_limit that allow one more frame */
    UNFINISHED_BYTES = 16777216, /* the limit of the bytes of all incomplete messages is at least this */
    UNFINISHED = 4,              /* … or this many times websocket_message_limit, if that is more */
};

static void configure_shared(heddle_engine *engine, VALUE configuration)
{
    heddle_websockets *sockets = &engine->websockets;
    sockets->limits.message = NUM2ULL(heddle_engine_option(configuration, "websocket_message_limit"));
    uint64_t fragments = sockets->limits.message / BYTES_PER_FRAGMENT;
    sockets->limits.fragments = (uint32_t)(fragments > FRAGMENTS ? fragments : FRAGMENTS);
    sockets->output_limit = NUM2ULL(heddle_engine_option(configuration, "websocket_output_limit"));
    sockets->ping = heddle_parse_duration(heddle_engine_option(configuration, "websocket_ping"));
    sockets->timeout = heddle_parse_duration(heddle_engine_option(configuration, "websocket_timeout"));
    uint64_t messages = sockets->limits.message * UNFINISHED;
    sockets->unfinished_limit = messages > UNFINISHED_BYTES ? messages : UNFINISHED_BYTES;
    heddle_link_init_head(&engine->receiving);
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

/* Without `begin`: a WebSocket begins with the response to a request. */
const heddle_http_protocol heddle_push_http_protocol = {
    .load = heddle_push_load,
    .resume = heddle_push_resume,
    .configure = configure_shared,
    .mark = mark_shared,
    .release = release_shared,
};
