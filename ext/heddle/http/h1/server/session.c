/*
 * The steps of an HTTP/1.1 session that reading.c, body.c and server.c share: they queue a request, send the rest of a
 * response, reject a request, and linger.
 */

#include "http/h1/server/states.h"

/* -- queueing ----------------------------------------------------------------------------------------------------- */

/* Estimates how many further requests the received bytes contain, assuming that each is as long as this one. */
static uint32_t estimate_buffered_requests(const heddle_connection *connection)
{
    const heddle_h1 *h1 = heddle_h1_of(connection);
    const heddle_request_head *head = &h1->exchange->head;
    size_t buffered = heddle_bytes_left(&connection->input);
    if (!buffered || !h1->received)
        return 0;
    size_t followers = buffered / (head->size + (head->content_length > 0 ? (size_t)head->content_length : 0));
    return followers < HEDDLE_LONGEST_TURN ? (uint32_t)followers : HEDDLE_LONGEST_TURN;
}

/*
 * The time limit in the queue counts from when the head was complete. If the body came later, it counts from now,
 * because the body may have taken long.
 */
void heddle_h1_queue_request(heddle_connection *connection, bool at_front)
{
    heddle_sockets *sockets = connection->sockets;
    heddle_h1 *h1 = heddle_h1_of(connection);
    int64_t since = h1->stage == HEDDLE_H1_BODY ? heddle_clock_now() : h1->exchange->arrived;
    h1->exchange->queued = since;
    heddle_admission_limit_probe(sockets, &h1->exchange->work);
    heddle_connection_set_deadline(connection, heddle_admission_deadline(sockets, &h1->exchange->work, since));
    heddle_h1_enter(h1, HEDDLE_H1_READY);
    /*
     * Reports the length of the whole pipeline, not what is left of it. The smallest number that any connection
     * reports limits the turns of all connections (net/work_turn_length.h).
     */
    if (!at_front)
        heddle_connection_set_further(connection, h1->pipelined + estimate_buffered_requests(connection));
    /* a pipelined request that could not be served in the same turn as the request before it */
    if (h1->pipelined && !at_front)
        heddle_sockets_queue_in_turn(sockets, &h1->exchange->work);
    else
        heddle_sockets_queue(sockets, &h1->exchange->work, at_front);
}

/* -- ending ------------------------------------------------------------------------------------------------------ */

void heddle_h1_linger(heddle_connection *connection)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    if (heddle_linger_read(connection, &heddle_h1_of(connection)->taken, engine->linger_limit, UINT_MAX) != -EAGAIN)
        heddle_sockets_close_idle(connection);
}

/* Ends the output, and discards input for a while, so that the client can receive the response: see net/linger.c. */
static void begin_linger(heddle_connection *connection)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->ended || !heddle_linger_begin(connection, engine->linger_timeout)) {
        heddle_sockets_close_idle(connection);
        return;
    }
    heddle_h1_enter(h1, HEDDLE_H1_LINGER);
    h1->taken = 0;
    heddle_h1_linger(connection);
}

static void become_idle(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_h1_enter(h1, HEDDLE_H1_IDLE);
    h1->seen = 0;
    heddle_output_clear(&connection->output);
    connection->protocol->begin(connection); /* parses the next request, if it is buffered */
}

void heddle_h1_proceed(heddle_connection *connection)
{
    switch ((heddle_h1_next)heddle_h1_of(connection)->after_sending) {
    case HEDDLE_H1_THEN_IDLE:
        become_idle(connection);
        break;
    case HEDDLE_H1_THEN_LINGER:
        begin_linger(connection);
        break;
    case HEDDLE_H1_THEN_CLOSE:
        heddle_sockets_close_idle(connection);
        break;
    }
}

void heddle_h1_send_rest(heddle_connection *connection, heddle_h1_next next)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    h1->after_sending = next;
    int result = heddle_connection_flush(connection);
    if (result == 0) {
        heddle_h1_proceed(connection);
    } else if (result == -EAGAIN) {
        heddle_h1_enter(h1, HEDDLE_H1_SENDING);
        heddle_connection_set_time_limit(connection, heddle_engine_of_connection(connection)->write_timeout);
    } else {
        heddle_sockets_close_idle(connection);
    }
}

/* -- rejecting --------------------------------------------------------------------------------------------------- */

bool heddle_h1_add_rejection(heddle_connection *connection, const heddle_rejection *rejection, bool content,
                             const char *retry_after)
{
    char bytes[1024];
    heddle_buffer answer = {.bytes = bytes, .room = sizeof(bytes)};
    const char *date = heddle_engine_date(heddle_engine_of_connection(connection));
    heddle_rejection_write(rejection, &answer, date, HEDDLE_DATE_LINE, content, retry_after);
    if (answer.used > answer.room || !heddle_output_add_bytes(&connection->output, bytes, answer.used))
        return false;
    heddle_connection_has_output(connection);
    return true;
}

void heddle_h1_reject(heddle_connection *connection, const heddle_rejection *rejection, const char *retry_after)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    bool content = h1->exchange ? h1->exchange->head.method_id != HEDDLE_HEAD : !h1->asks_for_head;
    if (h1->exchange)
        heddle_exchange_leave_session(h1->exchange);
    h1->exchange = NULL;
    if (!heddle_engine_count_rejection(connection, rejection))
        return;
    if (heddle_h1_add_rejection(connection, rejection, content, retry_after))
        heddle_h1_send_rest(connection, HEDDLE_H1_THEN_LINGER);
    else
        heddle_sockets_close_idle(connection);
}
