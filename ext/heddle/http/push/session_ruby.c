/* Heddle::HTTP::WebSocket::Session: the Ruby object of a WebSocket or an event stream, which its handler uses. */

#include "binding.h"
#include "http/push/subscriptions.h"
#include "http/websocket/codec_ruby.h"

static ID callback_ids[HEDDLE_PUSH_CALLBACKS]; /* index: the number of the callback's bit */

/* -- the object ---------------------------------------------------------------------------------------------------- */

static void handle_mark(void *data)
{
    heddle_push_handle *handle = data;
    rb_gc_mark_movable(handle->handler);
    rb_gc_mark_movable(handle->caller);
    rb_gc_mark_movable(handle->reason);
    rb_gc_mark_movable(handle->label);
    rb_gc_mark_movable(handle->farewell);
    if (handle->session)
        heddle_push_mark_subscriptions(handle->session);
}

static void handle_compact(void *data)
{
    heddle_push_handle *handle = data;
    handle->handler = rb_gc_location(handle->handler);
    handle->caller = rb_gc_location(handle->caller);
    handle->reason = rb_gc_location(handle->reason);
    handle->label = rb_gc_location(handle->label);
    handle->farewell = rb_gc_location(handle->farewell);
}

static void handle_free(void *data)
{
    heddle_push_handle *handle = data;
    if (handle->session)
        handle->session->handle = NULL;
    xfree(handle);
}

static const rb_data_type_t client_type =
    HEDDLE_TYPE("Heddle::HTTP::WebSocket::Session", RUBY_TYPED_WB_PROTECTED, .dmark = handle_mark, .dfree = handle_free,
                .dcompact = handle_compact);

heddle_push_handle *heddle_push_handle_of(VALUE self)
{
    return rb_check_typeddata(self, &client_type);
}

/* -- the list of an engine's sessions ------------------------------------------------------------------------------ */

static uint32_t list_client(heddle_websockets *all, VALUE client)
{
    if (!all->clients) {
        all->clients = rb_ary_new();
        all->free_slot = HEDDLE_PUSH_NO_CLIENT;
    }
    uint32_t slot = all->free_slot;
    if (slot == HEDDLE_PUSH_NO_CLIENT) {
        rb_ary_push(all->clients, client);
        return all->slot_count++;
    }
    all->free_slot = NUM2UINT(RARRAY_AREF(all->clients, slot));
    rb_ary_store(all->clients, slot, client);
    return slot;
}

static void unlist_client(heddle_websockets *all, uint32_t slot)
{
    rb_ary_store(all->clients, slot, UINT2NUM(all->free_slot)); /* links the free slots */
    all->free_slot = slot;
}

VALUE heddle_push_client(const heddle_push_session *session)
{
    return RARRAY_AREF(session->engine->websockets.clients, session->slot);
}

void heddle_push_drop_client(heddle_push_session *session, bool abandoned)
{
    if (session->handle)
        session->handle->session = NULL;
    session->handle = NULL;
    bool listed = heddle_push_has_client(session) && session->engine->has_object;
    if (listed && !abandoned) /* without has_object, the list no longer exists */
        unlist_client(&session->engine->websockets, session->slot);
}

/* -- callbacks ----------------------------------------------------------------------------------------------------- */

void heddle_push_keep_end(heddle_push_session *session, VALUE client)
{
    heddle_push_handle *handle = session->handle;
    if (!handle || handle->code)
        return;
    handle->code = session->code;
    if (!session->framing->reads_frames)
        return;
    const heddle_websocket_reader *reader = session->reader;
    if (reader->code == session->code && !reader->failure && reader->control_size > 2)
        RB_OBJ_WRITE(client, &handle->reason, rb_utf8_str_new(reader->control + 2, reader->control_size - 2));
    else if (reader->failure)
        RB_OBJ_WRITE(client, &handle->reason, rb_utf8_str_new_cstr(reader->failure));
}

/* Returns [label, seconds, close code, messages received, their bytes, messages sent, their bytes] for the log. */
static VALUE summarize_socket(const heddle_push_session *session, const heddle_push_handle *handle)
{
    const heddle_push_traffic *traffic = &session->traffic;
    double seconds = (double)(heddle_clock_coarse() - traffic->since) / 1e9;
    return rb_ary_new_from_args(7, handle->label, DBL2NUM(seconds < 0 ? 0 : seconds), UINT2NUM(handle->code),
                                ULL2NUM(traffic->received), ULL2NUM(traffic->received_bytes), ULL2NUM(traffic->sent),
                                ULL2NUM(traffic->sent_bytes));
}

VALUE heddle_push_call(heddle_push_session *session, VALUE client, uint8_t callback, heddle_websocket_message *message)
{
    heddle_push_handle *handle = heddle_push_handle_of(client);
    VALUE data = message ? heddle_websocket_message_string(message) : Qnil;
    if (callback == HEDDLE_PUSH_ON_RESET)
        data = heddle_push_take_reset(session);
    if (callback == HEDDLE_PUSH_ON_RESET && NIL_P(data)) /* the subscription has already ended */
        return Qnil;
    if (callback == HEDDLE_PUSH_ON_CLOSE) {
        heddle_push_keep_end(session, client);
        if (!NIL_P(handle->label))
            rb_funcall(handle->caller, rb_intern("ended"), 1, summarize_socket(session, handle));
        if (!(session->wanted & callback))
            return Qnil;
    }
    VALUE name = ID2SYM(callback_ids[__builtin_ctz(callback)]);
    return rb_funcall(handle->caller, rb_intern("call"), 4, handle->handler, name, client, data);
}

/* -- the upgrade --------------------------------------------------------------------------------------------------- */

static uint8_t callbacks_of(VALUE handler)
{
    uint8_t callbacks = 0;
    for (unsigned number = 0; number < HEDDLE_PUSH_CALLBACKS; number++) {
        if (rb_respond_to(handler, callback_ids[number]))
            callbacks |= (uint8_t)(1 << number);
    }
    return callbacks;
}

static VALUE class_of_socket(VALUE handler)
{
    ID name = rb_intern("heddle_socket_class");
    return rb_respond_to(handler, name) ? rb_funcall(handler, name, 0)
                                        : rb_path2class("Heddle::WebSocket::ServerSocket");
}

enum {
    LABEL_TARGET = 200, /* bytes of a target that are kept for the log */
};

/* Returns "target\0client\0proxy\0request ID": values for the log line at the end of the socket. */
static VALUE label_of(VALUE exchange, const heddle_exchange_handle *handle)
{
    const heddle_exchange *request = handle->exchange;
    heddle_slice target = request->head.target;
    char remote[HEDDLE_ADDRESS_ROOM], behind[HEDDLE_ADDRESS_ROOM];
    heddle_address client;
    const char *peer = heddle_address_text(&handle->remote, remote), *proxy = NULL;
    VALUE id = rb_attr_get(exchange, rb_intern("@request_id"));
    if (heddle_exchange_client(handle, &client)) {
        proxy = peer;
        peer = heddle_address_text(&client, behind);
    }
    VALUE label = rb_str_new(request->bytes + target.start, target.size > LABEL_TARGET ? LABEL_TARGET : target.size);
    rb_str_catf(label, "%c%s%c%s%c", 0, peer ? peer : "", 0, proxy ? proxy : "", 0);
    if (RB_TYPE_P(id, T_STRING))
        rb_str_append(label, id);
    return rb_str_freeze(rb_str_resize(label, RSTRING_LEN(label)));
}

heddle_push_handler heddle_push_examine(VALUE object, VALUE caller)
{
    return (heddle_push_handler){object, caller, class_of_socket(object), callbacks_of(object)};
}

VALUE heddle_push_new_client(heddle_engine *engine, const heddle_push_carrier *carrier,
                             const heddle_push_framing *framing, const heddle_push_handler *handler, VALUE label,
                             heddle_push_session **result)
{
    heddle_push_handle *handle;
    VALUE client = TypedData_Make_Struct(handler->socket_class, heddle_push_handle, &client_type, handle);
    handle->handler = handle->caller = handle->reason = handle->label = handle->farewell = Qnil;
    RB_OBJ_WRITE(client, &handle->handler, handler->object);
    RB_OBJ_WRITE(client, &handle->caller, handler->caller);
    RB_OBJ_WRITE(client, &handle->label, label);
    heddle_push_session *session = heddle_push_session_new(engine, carrier, framing);
    *result = session;
    if (!session)
        return Qnil;
    session->wanted = handler->wanted;
    session->slot = list_client(&engine->websockets, client);
    session->handle = handle;
    handle->session = session;
    return client;
}

const heddle_push_carrier *heddle_push_carrier_of(const heddle_exchange_handle *exchange)
{
    return exchange->exchange->operations == heddle_push_h1_carrier.exchanges ? &heddle_push_h1_carrier
                                                                              : &heddle_push_h2_carrier;
}

/*
 * call-seq: open_websocket(handler, caller, logged, early, kind) -> Heddle::WebSocket::ServerSocket
 *
 * Turns the connection or the stream into a WebSocket or an event stream. Called when the head of the response was
 * written; its status is 101, or 200 for event streams and over HTTP/2. `kind`: :plain, :deflated (a WebSocket with
 * permessage-deflate) or :events (an event stream). `caller.call` is called for each callback, with the handler, the
 * callback's name, the socket, and nil or the callback's second argument: a message, or the topic of on_reset. With
 * `logged`, `caller.ended` is called once with the values for the log (summarize_socket). `early`: frames that the
 * client has sent with the request over HTTP/2, a String or nil.
 */
static VALUE open_websocket(VALUE self, VALUE object, VALUE caller, VALUE logged, VALUE early, VALUE kind)
{
    heddle_exchange_handle *exchange = heddle_exchange_handle_of(self);
    heddle_push_handler handler = heddle_push_examine(object, caller);
    heddle_exchange_writable_connection(exchange);
    const heddle_push_carrier *carrier = heddle_push_carrier_of(exchange);
    carrier->is_free(exchange); /* called only because it raises if the HTTP/2 stream has ended */
    const heddle_push_framing *framing = kind == ID2SYM(rb_intern("events")) ? &heddle_push_events
                                                                             : &heddle_push_frames;
    VALUE label = RTEST(logged) ? label_of(self, exchange) : Qnil;
    heddle_push_session *session;
    VALUE client = heddle_push_new_client(exchange->engine, carrier, framing, &handler, label, &session);
    if (!session)
        rb_memerror();
    if (framing->reads_frames)
        session->reader->allows_deflate = kind == ID2SYM(rb_intern("deflated"));
    int status = framing->reads_frames && carrier == &heddle_push_h1_carrier ? 101 : 200;
    carrier->begin(session, exchange, status, early);
    return client;
}

void Init_heddle_push(VALUE http)
{
    static const char *const names[] = {"on_open",  "on_message", "on_drained",     "on_shutdown",
                                        "on_close", "on_reset",   "on_publication", "on_wake"};
    VALUE module = rb_define_module_under(http, "WebSocket");
    for (unsigned number = 0; number < HEDDLE_PUSH_CALLBACKS; number++)
        callback_ids[number] = rb_intern(names[number]);
    VALUE session_class = heddle_define_class(module, "Session", NULL);
    Init_heddle_push_methods(module, session_class);
    Init_heddle_push_handoff(session_class);
    Init_heddle_websocket_codec(module);
    rb_define_const(module, "DEFLATE", heddle_deflate_is_available() ? Qtrue : Qfalse); /* built with zlib? */
    rb_define_method(rb_path2class("Heddle::HTTP::Exchange"), "open_websocket", open_websocket, 5);
}
