/* The state that the WebSockets of an engine share, and the table by which the engine uses their protocol. */

#include "http/push/session.h"

enum {
    FRAGMENTS = 1000,            /* frames that a message may always have; browsers send one */
    BYTES_PER_FRAGMENT = 1024,   /* websocket_message_limit / BYTES_PER_FRAGMENT frames are allowed, if that is more */
    /* bytes that all unfinished messages, and all messages that wait for their handlers, may always have */
    MESSAGES_BYTES = 16777216,
    MESSAGES = 4,                /* websocket_message_limit * MESSAGES bytes are allowed, if that is more */
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
    uint64_t messages = sockets->limits.message * MESSAGES;
    sockets->messages_limit = messages > MESSAGES_BYTES ? messages : MESSAGES_BYTES;
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

/* There is no `begin`, because a WebSocket begins with the response to a request. */
const heddle_http_protocol heddle_push_http_protocol = {
    .load = heddle_push_load,
    .resume = heddle_push_resume,
    .configure = configure_shared,
    .mark = mark_shared,
    .release = release_shared,
};
