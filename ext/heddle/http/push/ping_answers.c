/* Answers the pings of a client, which may read slowly or not at all. */

#include "http/push/session.h"

/* A pong that was queued behind much output, and the latest ping that came after it. */
struct heddle_push_pong {
    uint64_t end; /* the pong has been sent once the session has sent this many bytes */
    bool pinged;  /* another ping has come since; its payload follows */
    uint8_t size;
    char payload[HEDDLE_WEBSOCKET_CONTROL];
};

/*
 * While little output waits, each ping is answered. Behind much output, only one pong is queued at a time. So a client
 * that sends pings and reads nothing can't make the output grow.
 */
bool heddle_push_answer_ping(heddle_push_session *session, const char *payload, size_t size)
{
    heddle_push_pong *pong = NULL;
    heddle_push_update_pong(session);
    if (session->state != HEDDLE_PUSH_OPEN)
        return true;
    if (session->pong) {
        session->pong->pinged = true;
        session->pong->size = (uint8_t)size;
        memcpy(session->pong->payload, payload, size);
        return true;
    }
    if (heddle_push_pending(session) >= HEDDLE_OUTPUT_AT_ONCE && !(pong = calloc(1, sizeof(*pong))))
        return false;
    bool written = heddle_push_send_control(session, HEDDLE_WEBSOCKET_PONG, payload, size);
    if (pong)
        pong->end = session->written;
    session->pong = pong;
    return written;
}

void heddle_push_update_pong(heddle_push_session *session)
{
    heddle_push_pong *pong = session->pong;
    /* `written` does not count the head of an HTTP/1.1 response: the difference may be negative until that is sent. */
    if (!pong || (int64_t)(session->written - heddle_push_pending(session) - pong->end) < 0)
        return;
    session->pong = NULL;
    if (pong->pinged && session->state == HEDDLE_PUSH_OPEN &&
        !heddle_push_answer_ping(session, pong->payload, pong->size))
        heddle_push_stop_carrier(session);
    free(pong);
}
