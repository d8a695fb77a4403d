#include "http/push/subscriptions.h"

#include "http/push/event_text.h"

/* -- encoding, once for all sockets -------------------------------------------------------------------------------- */

static VALUE join_frame(heddle_websocket_opcode opcode, bool compressed, const char *bytes, size_t size)
{
    char head[HEDDLE_WEBSOCKET_HEAD];
    size_t used = heddle_websocket_write_head(head, opcode, compressed, size, NULL);
    VALUE frame = rb_str_buf_new((long)(used + size));
    rb_str_cat(frame, head, (long)used);
    rb_str_cat(frame, bytes, (long)size);
    return rb_obj_freeze(frame);
}

/* `deflater`: NULL for sockets without permessage-deflate. */
static VALUE make_frame(heddle_websocket_opcode opcode, const char *bytes, size_t size, heddle_deflater **deflater)
{
    if (!deflater || !heddle_deflate_is_worthwhile(size))
        return join_frame(opcode, false, bytes, size);
    VALUE room = rb_str_buf_new((long)size);
    size_t deflated = heddle_websocket_deflate(deflater, bytes, size, RSTRING_PTR(room));
    VALUE frame = deflated ? join_frame(opcode, true, RSTRING_PTR(room), deflated)
                           : join_frame(opcode, false, bytes, size);
    rb_str_resize(room, 0);
    return frame;
}

static VALUE encode_text(heddle_message *message, VALUE envelope, void *deflater)
{
    const char *bytes = RSTRING_PTR(message->payload);
    size_t size = (size_t)RSTRING_LEN(message->payload);
    bool text = heddle_utf8_is_valid(bytes, size);
    return make_frame(text ? HEDDLE_WEBSOCKET_TEXT : HEDDLE_WEBSOCKET_BINARY, bytes, size, deflater);
}

static VALUE encode_binary(heddle_message *message, VALUE envelope, void *deflater)
{
    return make_frame(HEDDLE_WEBSOCKET_BINARY, RSTRING_PTR(message->payload), (size_t)RSTRING_LEN(message->payload),
                      deflater);
}

/* If the text is not valid UTF-8, each byte above ASCII becomes U+FFFD, so valid characters are replaced, too. */
void heddle_push_add_json(VALUE json, const char *bytes, size_t size)
{
    bool valid = heddle_utf8_is_valid(bytes, size);
    size_t plain = 0;
    rb_str_cat(json, "\"", 1);
    for (size_t i = 0; i <= size; i++) {
        uint8_t byte = i < size ? (uint8_t)bytes[i] : 0;
        if (i < size && byte >= 0x20 && byte != '"' && byte != '\\' && (byte < 0x80 || valid))
            continue;
        rb_str_cat(json, bytes + plain, (long)(i - plain));
        plain = i + 1;
        if (i == size)
            break;
        char escaped[8];
        int length = byte >= 0x80                    ? snprintf(escaped, sizeof(escaped), "\\ufffd")
                     : byte == '"' || byte == '\\' ? snprintf(escaped, sizeof(escaped), "\\%c", byte)
                                                   : snprintf(escaped, sizeof(escaped), "\\u%04x", byte);
        rb_str_cat(json, escaped, length);
    }
    rb_str_cat(json, "\"", 1);
}

VALUE heddle_push_text_frame(VALUE text, heddle_deflater **deflater)
{
    VALUE frame = make_frame(HEDDLE_WEBSOCKET_TEXT, RSTRING_PTR(text), (size_t)RSTRING_LEN(text), deflater);
    RB_GC_GUARD(text);
    return frame;
}

static VALUE encode_json(heddle_message *message, VALUE envelope, void *deflater)
{
    char position[HEDDLE_POSITION_SIZE];
    size_t length = heddle_position_write(message->epoch, message->offset, position);
    VALUE json = rb_str_buf_new(message->reset ? 128 : RSTRING_LEN(message->payload) + 128);
    rb_str_cat_cstr(json, "{\"topic\":");
    heddle_push_add_json(json, message->topic, message->topic_size);
    rb_str_cat_cstr(json, ",\"position\":");
    heddle_push_add_json(json, position, length);
    if (message->reset) {
        rb_str_cat_cstr(json, ",\"reset\":true}");
    } else {
        rb_str_cat_cstr(json, ",\"data\":");
        heddle_push_add_json(json, RSTRING_PTR(message->payload), (size_t)RSTRING_LEN(message->payload));
        rb_str_cat_cstr(json, "}");
    }
    return heddle_push_text_frame(json, deflater);
}

static const heddle_push_form_definition
    as_text = {.name = "text", .encode = encode_text},
    as_binary = {.name = "binary", .encode = encode_binary},
    as_json = {.name = "json", .sends_reset = true, .encode = encode_json},
    to_handler = {.name = "handler"},
    as_event = {.sends_reset = true, .encode = heddle_event_encode},
    as_event_chunk = {.sends_reset = true, .encode = heddle_event_encode_chunk};

static const heddle_push_form_definition *forms[HEDDLE_PUSH_MOST_FORMS] = {
    [HEDDLE_PUSH_AS_TEXT] = &as_text,
    [HEDDLE_PUSH_AS_BINARY] = &as_binary,
    [HEDDLE_PUSH_AS_JSON] = &as_json,
    [HEDDLE_PUSH_TO_HANDLER] = &to_handler,
    [HEDDLE_PUSH_AS_EVENT] = &as_event,
    [HEDDLE_PUSH_AS_EVENT_CHUNK] = &as_event_chunk,
};
static unsigned form_count = HEDDLE_PUSH_FORMS;

void heddle_push_register_form(const heddle_push_form_definition *form)
{
    HEDDLE_ASSERT(form_count < HEDDLE_PUSH_MOST_FORMS);
    forms[form_count++] = form;
}

int heddle_push_find_form(const char *name, size_t size)
{
    for (unsigned i = 0; i < form_count; i++) {
        if (forms[i]->name && strlen(forms[i]->name) == size && memcmp(forms[i]->name, name, size) == 0)
            return (int)i;
    }
    return -1;
}

const heddle_push_form_definition *heddle_push_form_of(unsigned form)
{
    return forms[form];
}

/*
 * A message that is never compressed (a reset, or a payload that is too short or too long) is encoded only once, for
 * sockets with and without permessage-deflate.
 */
static VALUE encode_message(const heddle_push_subscription *subscription, heddle_message *message)
{
    heddle_push_session *session = subscription->session;
    bool deflated = !message->reset && heddle_deflate_is_worthwhile((size_t)RSTRING_LEN(message->payload)) &&
                    heddle_push_deflates(session);
    VALUE envelope = NIL_P(subscription->envelope) ? 0 : subscription->envelope;
    return heddle_message_encoded(message, forms[subscription->form]->encode, envelope,
                                  deflated ? &session->engine->websockets.deflater : NULL);
}

/* -- as a subscriber ----------------------------------------------------------------------------------------------- */

static heddle_push_subscription *subscription_of(const heddle_subscriber *subscriber)
{
    return HEDDLE_CONTAINER_OF(subscriber, heddle_push_subscription, subscriber);
}

/* Queues the message for the handler. Returns false when out of memory. */
static bool queue_publication(heddle_push_session *session, const heddle_message *message)
{
    size_t payload = (size_t)RSTRING_LEN(message->payload);
    heddle_websocket_message *copy = malloc(sizeof(*copy) + message->topic_size + payload);
    if (!copy)
        return false;
    *copy = (heddle_websocket_message){
        .size = message->topic_size + payload, .published = true, .topic_size = (uint32_t)message->topic_size,
        .text = heddle_utf8_is_valid(RSTRING_PTR(message->payload), payload),
    };
    memcpy(copy->bytes, message->topic, message->topic_size);
    memcpy(copy->bytes + message->topic_size, RSTRING_PTR(message->payload), payload);
    heddle_push_deliver(session, copy);
    return true;
}

static bool send_encoded(const heddle_push_subscription *subscription, heddle_message *message)
{
    heddle_push_session *session = subscription->session;
    size_t lines = message->reset ? 0 : subscription->lines_size;
    VALUE frame = encode_message(subscription, message);
    if (frame && lines) {
        session->written += lines;
        if (!session->carrier->write(session, subscription->name + subscription->size, lines, 0))
            return false;
    }
    return frame && heddle_push_send_frame(session, frame, message->newest && !lines);
}

static void deliver_message(heddle_subscriber *subscriber, heddle_message *message)
{
    heddle_push_subscription *subscription = subscription_of(subscriber);
    heddle_push_session *session = subscription->session;
    if (session->state != HEDDLE_PUSH_OPEN)
        return;
    heddle_push_hold(session);
    bool delivered = true;
    if (message->reset && !forms[subscription->form]->sends_reset) {
        subscription->reset_due = true;
        heddle_push_queue_callback(session, HEDDLE_PUSH_ON_RESET);
    } else if (subscription->form == HEDDLE_PUSH_TO_HANDLER) {
        delivered = queue_publication(session, message);
    } else {
        subscription->was_reset |= message->reset;
        delivered = send_encoded(subscription, message);
    }
    if (!delivered)
        /* ends the socket: the client must notice that a message is lost */
        heddle_push_stop_carrier(session);
    heddle_push_release_hold(session);
}

static bool is_full(const heddle_subscriber *subscriber)
{
    heddle_push_session *session = subscription_of(subscriber)->session;
    if (subscription_of(subscriber)->form == HEDDLE_PUSH_TO_HANDLER)
        return session->waiting_size > session->engine->websockets.output_limit;
    if (heddle_push_exceeds_output(session))
        session->carrier->flush(session); /* the kernel may accept output; an event will report a failure */
    return heddle_push_exceeds_output(session);
}

static void end_slow_socket(heddle_subscriber *subscriber)
{
    heddle_push_session *session = subscription_of(subscriber)->session;
    heddle_push_hold(session);
    if (subscription_of(subscriber)->form != HEDDLE_PUSH_TO_HANDLER)
        heddle_push_end_slow(session);
    else if (session->state == HEDDLE_PUSH_OPEN)
        heddle_push_fail_session(session, HEDDLE_WEBSOCKET_POLICY, "too many messages wait for the handler");
    heddle_push_release_hold(session);
}

static void prefetch_socket(const heddle_subscriber *subscriber, bool is_next)
{
    const heddle_push_session *session = subscription_of(subscriber)->session;
    if (is_next)
        heddle_connection_prefetch(session->work.connection);
    else
        heddle_prefetch(session, offsetof(heddle_push_session, sent_at_check));
}

static const heddle_subscriber_operations operations = {
    .deliver = deliver_message,
    .is_full = is_full,
    .too_slow = end_slow_socket,
    .prefetch = prefetch_socket,
};

/* -- subscribing --------------------------------------------------------------------------------------------------- */

heddle_push_subscription *heddle_push_find_subscription(const heddle_push_session *session, const char *name,
                                                        size_t size, VALUE envelope)
{
    heddle_push_subscription *subscription = session->subscriptions;
    while (subscription && (subscription->size != size || subscription->envelope != envelope ||
                            memcmp(subscription->name, name, size) != 0))
        subscription = subscription->next;
    return subscription;
}

heddle_subscribe_result heddle_push_subscribe(heddle_push_session *session, heddle_fanout *fanout,
                                              const heddle_push_topic *topic, heddle_position since)
{
    if (topic->size > HEDDLE_TOPIC_LIMIT)
        return HEDDLE_TOPIC_TOO_LONG;
    heddle_push_unsubscribe(session, topic->name, topic->size, topic->envelope);
    heddle_push_subscription *subscription = calloc(1, sizeof(*subscription) + topic->size + topic->lines_size);
    if (!subscription)
        return HEDDLE_SUBSCRIBE_FAILED;
    subscription->subscriber.operations = &operations;
    subscription->subscriber.policy = (uint8_t)topic->policy;
    subscription->session = session;
    subscription->form = (uint8_t)topic->form;
    subscription->envelope = topic->envelope;
    subscription->size = (uint32_t)topic->size;
    subscription->lines_size = (uint16_t)topic->lines_size;
    memcpy(subscription->name, topic->name, topic->size);
    if (topic->lines_size)
        memcpy(subscription->name + topic->size, topic->lines, topic->lines_size);
    subscription->next = session->subscriptions;
    session->subscriptions = subscription;
    heddle_subscribe_result result =
        heddle_subscribe(fanout, &subscription->subscriber, subscription->name, topic->size, since);
    if (result != HEDDLE_SUBSCRIBED)
        heddle_push_unsubscribe(session, topic->name, topic->size, topic->envelope);
    return result;
}

bool heddle_push_unsubscribe(heddle_push_session *session, const char *name, size_t size, VALUE envelope)
{
    heddle_push_subscription *subscription = heddle_push_find_subscription(session, name, size, envelope);
    if (!subscription)
        return false;
    heddle_push_subscription **place = &session->subscriptions;
    while (*place != subscription)
        place = &(*place)->next;
    *place = subscription->next;
    heddle_unsubscribe(&subscription->subscriber);
    free(subscription);
    return true;
}

void heddle_push_end_subscriptions(heddle_push_session *session)
{
    for (heddle_push_subscription *one = session->subscriptions; one; one = one->next)
        heddle_unsubscribe(&one->subscriber);
}

void heddle_push_free_subscriptions(heddle_push_session *session)
{
    heddle_push_subscription *one;
    while ((one = session->subscriptions)) {
        session->subscriptions = one->next;
        heddle_unsubscribe(&one->subscriber);
        free(one);
    }
}

void heddle_push_abandon_subscriptions(heddle_push_session *session)
{
    for (heddle_push_subscription *one = session->subscriptions; one; one = one->next)
        heddle_subscriber_abandon(&one->subscriber);
}

void heddle_push_catch_up(heddle_push_session *session)
{
    /* A delivery frees no subscription, so the list does not change meanwhile. */
    for (heddle_push_subscription *one = session->subscriptions; one; one = one->next)
        heddle_subscriber_drained(&one->subscriber);
}

void heddle_push_mark_subscriptions(const heddle_push_session *session)
{
    for (const heddle_push_subscription *one = session->subscriptions; one; one = one->next)
        rb_gc_mark(one->envelope);
}

unsigned heddle_push_count_resets(const heddle_push_session *session)
{
    unsigned count = 0;
    for (const heddle_push_subscription *one = session->subscriptions; one; one = one->next)
        count += one->reset_due;
    return count;
}

VALUE heddle_push_take_reset(heddle_push_session *session)
{
    for (heddle_push_subscription *one = session->subscriptions; one; one = one->next) {
        if (!one->reset_due)
            continue;
        one->reset_due = false;
        return rb_utf8_str_new(one->name, one->size);
    }
    return Qnil;
}
