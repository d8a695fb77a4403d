/*
 * A push session as a work item: which callbacks of its handler are due, and how a runner (a pooled fiber) calls them.
 */

#include "http/push/session.h"

enum {
    WAITING_SIZE = 65536, /* reading pauses when this many bytes of messages wait for the handler … */
    WAITING_COUNT = 128,  /* … or this many messages */
};

/* -- due work ------------------------------------------------------------------------------------------------------ */

void heddle_push_queue_callback(heddle_push_session *session, uint8_t callback)
{
    /* on_close is due even if the handler has none: heddle_push_call then keeps the close code and reports the end. */
    if (session->wanted & callback || (callback == HEDDLE_PUSH_ON_CLOSE && heddle_push_has_client(session)))
        session->due_callbacks |= callback;
}

bool heddle_push_is_full(const heddle_push_session *session)
{
    return session->waiting_size >= WAITING_SIZE || session->waiting_count >= WAITING_COUNT;
}

bool heddle_push_has_work(const heddle_push_session *session)
{
    return session->due_callbacks || session->first;
}

/*
 * Adds `change`, which may be negative, to three counts of the bytes that wait for handlers: those of the session, of
 * its client's address, and of the engine.
 */
static void count_waiting(heddle_push_session *session, size_t change)
{
    heddle_address_share *share = heddle_address_share_of(session->work.connection);
    session->waiting_size += change;
    session->engine->websockets.waiting += change;
    if (share)
        share->messages += change;
}

void heddle_push_deliver(heddle_push_session *session, heddle_websocket_message *message)
{
    if (!(session->wanted & (message->published ? HEDDLE_PUSH_ON_PUBLICATION : HEDDLE_PUSH_ON_MESSAGE))) {
        free(message);
        return;
    }
    message->next = NULL;
    *session->last = message;
    session->last = &message->next;
    session->waiting_count++;
    count_waiting(session, message->size);
    heddle_wait_wake(session->wait);
}

heddle_websocket_message *heddle_push_pop_message(heddle_push_session *session)
{
    heddle_websocket_message *message = session->first;
    if (!message)
        return NULL;
    session->first = message->next;
    if (!session->first)
        session->last = &session->first;
    session->waiting_count--;
    count_waiting(session, -message->size);
    return message;
}

void heddle_push_drop_messages(heddle_push_session *session)
{
    heddle_websocket_message *message;
    while ((message = heddle_push_pop_message(session)))
        free(message);
}

/* -- the runner ---------------------------------------------------------------------------------------------------- */

static VALUE create_object(heddle_work *work)
{
    heddle_push_session *session = heddle_push_session_of_work(work);
    session->running = true;
    return heddle_push_client(session);
}

/* Calls only one callback, so that other sockets get their turns. */
static VALUE serve_socket(heddle_work *work, VALUE client)
{
    static const uint8_t AFTER_MESSAGES[] = {HEDDLE_PUSH_ON_WAKE, HEDDLE_PUSH_ON_RESET, HEDDLE_PUSH_ON_DRAINED,
                                             HEDDLE_PUSH_ON_SHUTDOWN, HEDDLE_PUSH_ON_CLOSE};
    heddle_push_session *session = heddle_push_session_of_work(work);
    uint8_t next = session->due_callbacks & HEDDLE_PUSH_ON_OPEN;
    heddle_websocket_message *message = next ? NULL : heddle_push_pop_message(session);
    if (message)
        next = message->published ? HEDDLE_PUSH_ON_PUBLICATION : HEDDLE_PUSH_ON_MESSAGE;
    for (size_t i = 0; !next && i < sizeof(AFTER_MESSAGES); i++)
        next = session->due_callbacks & AFTER_MESSAGES[i];
    if (!next)
        return Qnil; /* meanwhile, a fiber has received the message by #receive */
    session->due_callbacks &= (uint8_t)~next;
    session->calling = next;
    if (next == HEDDLE_PUSH_ON_RESET && heddle_push_count_resets(session) > 1)
        session->due_callbacks |= next; /* each call handles one topic */
    return heddle_push_call(session, client, next, message);
}

static void note_served(heddle_work *work, VALUE client)
{
    heddle_push_session *session = heddle_push_session_of_work(work);
    heddle_push_hold(session);
    session->running = false;
    if (session->calling == HEDDLE_PUSH_ON_PUBLICATION)
        heddle_push_catch_up(session);
    session->calling = 0;
    if (work->connection) {
        heddle_connection_end_work(work->connection);
        if (session->paused && !heddle_push_is_full(session))
            heddle_push_resume_reading(session);
    }
    heddle_push_release_hold(session);
    RB_GC_GUARD(client);
}

static void reject_work(heddle_work *work, heddle_overload why)
{
    heddle_push_session *session = heddle_push_session_of_work(work);
    if (why == HEDDLE_QUEUE_ENDS) { /* all sockets are being closed: their callbacks are not called */
        heddle_sockets_close_connection(work->connection);
        return;
    }
    heddle_push_hold(session);
    heddle_push_fail_session(session, HEDDLE_WEBSOCKET_TRY_AGAIN, "the server is busy");
    heddle_push_release_hold(session);
}

const heddle_work_operations heddle_push_work = {
    .object = create_object,
    .serve = serve_socket,
    .served = note_served,
    .reject = reject_work,
};
