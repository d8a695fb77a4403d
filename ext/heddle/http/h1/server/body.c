/*
 * The body of a request over HTTP/1.1. Unless the application streams the body, the body is complete before the
 * application is called: in memory, or in a spool (a file with a buffer). So the application never waits for the client
 * when it reads such a body, and reading never switches fibers.
 */

#include "http/body_deadline.h"
#include "http/body_storage.h"
#include "http/h1/server/states.h"

/* -- time limits -------------------------------------------------------------------------------------------------- */

void heddle_h1_await_body(heddle_connection *connection)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    int64_t deadline = h1->body_deadline;
    if (h1->stage == HEDDLE_H1_BODY && h1->exchange->spool)
        heddle_body_spool_trim(h1->exchange->spool);
    /*
     * A client that pauses in a streamed body of unknown length may be waiting for the response. So the application is
     * called when the pause has lasted body_pause.
     */
    if (h1->stage == HEDDLE_H1_BODY && h1->streams_body && h1->left < 0) {
        int64_t pause = heddle_add_duration(heddle_clock_coarse(), engine->body_pause);
        deadline = pause < deadline ? pause : deadline;
    }
    heddle_connection_set_deadline(connection, deadline);
}

/* -- rejections --------------------------------------------------------------------------------------------------- */

/* Rejects a request whose body can't be written to a file. `error`: see heddle_body_reject. */
static heddle_h1_progress reject_unwritten(heddle_connection *connection, int error)
{
    heddle_body_reject(heddle_h1_of(connection)->exchange, error);
    return HEDDLE_H1_ENDED;
}

/* -- the beginning of a body -------------------------------------------------------------------------------------- */

static bool send_continue(heddle_connection *connection)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
    heddle_h1_of(connection)->expects = false;
    if (!heddle_output_add_bytes(&connection->output, line, sizeof(line) - 1))
        return false;
    heddle_connection_has_output(connection);
    int result = heddle_connection_flush(connection);
    return result == 0 || result == -EAGAIN;
}

static void handle_written(void *owner, int error);

/* Returns 0 or -errno. */
static int begin_to_spool(heddle_connection *connection)
{
    return heddle_body_begin_spool(connection, heddle_h1_of(connection)->exchange, connection, handle_written, 0);
}

heddle_h1_progress heddle_h1_begin_body(heddle_connection *connection, bool begun)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_exchange *exchange = h1->exchange;
    const heddle_request_head *head = &exchange->head;
    int64_t length = head->content_length;
    bool large = length > (int64_t)engine->body_buffer;
    h1->body_deadline = heddle_body_first_deadline(engine, exchange->arrived);
    h1->body_heard = exchange->arrived;
    h1->taken = 0;
    h1->streams_body = heddle_path_option_applies(&engine->stream_bodies, exchange);
    if (length == HEDDLE_CHUNKED_BODY)
        heddle_chunked_start(&h1->chunked, head->field_bytes, head->line_count);
    if (h1->streams_body && (h1->expects || engine->body_buffer == 0 || large))
        return HEDDLE_H1_SERVE;
    bool spools = large && !heddle_body_fits_memory(engine, exchange, (uint64_t)length);
    int error = spools ? begin_to_spool(connection) : 0;
    if (error)
        return reject_unwritten(connection, -error);
    bool continues = spools || length < 0 || heddle_exchange_make_body_room(exchange, (size_t)length);
    /* 100 Continue is not sent when the client has already begun to send the body (RFC 9110, section 10.1.1). */
    if (continues && h1->expects && !begun)
        continues = send_continue(connection);
    h1->expects = false;
    if (!continues)
        return heddle_h1_give_up(connection);
    heddle_h1_enter(h1, HEDDLE_H1_BODY);
    return HEDDLE_H1_MORE;
}

/* -- bodies in files ---------------------------------------------------------------------------------------------- */

static HEDDLE_MUST_CHECK heddle_h1_progress write_buffer(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    int result = heddle_body_spool_submit(h1->exchange->spool, h1->exchange->engine->body_disk_limit);
    if (result < 0)
        return reject_unwritten(connection, -result);
    heddle_h1_enter(h1, HEDDLE_H1_SPOOLING);
    h1->writing_since = heddle_clock_now();
    heddle_connection_set_deadline(connection, -1);
    return HEDDLE_H1_SPOOLS;
}

static void handle_written(void *owner, int error)
{
    heddle_connection *connection = owner;
    heddle_h1 *h1 = heddle_h1_of(connection);
    /* the time that the disk took does not count against the client */
    h1->body_deadline += heddle_clock_now() - h1->writing_since;
    heddle_h1_enter(h1, HEDDLE_H1_BODY);
    if (error)
        reject_unwritten(connection, error);
    else if (h1->received) {
        /* Frees the buffer now. Otherwise the body's Ruby object could keep it until the next garbage collection. */
        heddle_body_spool_trim(h1->exchange->spool);
        heddle_h1_queue_request(connection, false);
    } else {
        connection->protocol->begin(connection); /* parses the bytes that are already received */
    }
}

/* Called when a body of unknown length has become too large for memory. */
static HEDDLE_MUST_CHECK heddle_h1_progress move_to_file(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_exchange *exchange = h1->exchange;
    heddle_exchange_reserve_memory(exchange, 0); /* the spool counts its own buffer */
    int error = begin_to_spool(connection);
    if (error)
        return reject_unwritten(connection, -error);
    if (!heddle_body_spool_put(exchange->spool, RSTRING_PTR(exchange->body), exchange->body_size))
        return heddle_h1_give_up(connection);
    heddle_exchange_drop_body(exchange);
    return write_buffer(connection);
}

/* Called when a part of the body is stored: decides how to continue. */
static HEDDLE_MUST_CHECK heddle_h1_progress proceed_reading(heddle_connection *connection)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_exchange *exchange = h1->exchange;
    heddle_engine *engine = heddle_engine_of_connection(connection);
    if (h1->streams_body) {
        bool fills_buffer = h1->left < 0 && exchange->body_size > engine->body_buffer;
        return h1->received || fills_buffer ? HEDDLE_H1_SERVE : HEDDLE_H1_MORE;
    }
    if (h1->left < 0 && !exchange->spool && !heddle_body_still_fits_memory(engine, exchange, h1->received))
        return move_to_file(connection);
    if (exchange->spool && exchange->spool->used && (h1->received || heddle_body_spool_full(exchange->spool)))
        return write_buffer(connection);
    if (!h1->received)
        return HEDDLE_H1_MORE;
    if (exchange->spool)
        /* frees the buffer that was allocated for the last chunk, which has no data */
        heddle_body_spool_trim(exchange->spool);
    return HEDDLE_H1_SERVE;
}

/* -- receiving ---------------------------------------------------------------------------------------------------- */

char *heddle_h1_find_body_room(heddle_connection *connection, size_t *size)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (!h1->exchange->spool) {
        *size = (size_t)h1->left;
        return heddle_exchange_make_body_room(h1->exchange, *size);
    }
    char *room = heddle_body_spool_make_room(h1->exchange->spool, (uint64_t)h1->left, size);
    if ((int64_t)*size > h1->left)
        *size = (size_t)h1->left;
    return room;
}

static HEDDLE_MUST_CHECK heddle_h1_progress take_length(heddle_connection *connection, const char *bytes, size_t size,
                                                        size_t *used)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_exchange *exchange = h1->exchange;
    *used = (int64_t)size < h1->left ? size : (size_t)h1->left;
    if (h1->stage == HEDDLE_H1_BODY) {
        size_t space;
        char *room = heddle_h1_find_body_room(connection, &space);
        if (!room)
            return heddle_h1_give_up(connection);
        if (*used > space)
            *used = space;
        if (room != bytes)
            memcpy(room, bytes, *used);
        if (exchange->spool)
            exchange->spool->used += *used;
        else
            exchange->body_size += *used;
    }
    h1->left -= (int64_t)*used;
    h1->taken += *used;
    h1->received = h1->left == 0;
    return HEDDLE_H1_MORE;
}

/*
 * Returns the memory into which `*size` bytes of chunks must be decoded. If there is room for fewer bytes only, reduces
 * `*size` to that room. Returns NULL if memory can't be allocated.
 */
static char *find_chunk_room(heddle_connection *connection, char *bytes, size_t *size)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    if (h1->stage != HEDDLE_H1_BODY)
        return bytes; /* discarded bytes are decoded in place */
    if (!h1->exchange->spool)
        return heddle_exchange_make_body_room(h1->exchange, *size);
    size_t space;
    char *room = heddle_body_spool_make_room(h1->exchange->spool, HEDDLE_SPOOL_UNKNOWN, &space);
    if (*size > space)
        *size = space;
    return room;
}

static HEDDLE_MUST_CHECK heddle_h1_progress take_chunks(heddle_connection *connection, char *bytes, size_t size,
                                                        size_t *used)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_rejection rejection;
    size_t length;
    char *output = find_chunk_room(connection, bytes, &size);
    if (!output)
        return heddle_h1_give_up(connection);
    int64_t result = heddle_chunked_decode(&h1->chunked, bytes, size, output, &length, &engine->limits, &rejection);
    if (result < 0) {
        if (h1->stage == HEDDLE_H1_BODY)
            heddle_h1_reject(connection, &rejection, NULL);
        else
            heddle_h1_send_rest(connection, HEDDLE_H1_THEN_LINGER);
        return HEDDLE_H1_ENDED;
    }
    *used = (size_t)result;
    h1->taken += *used;
    h1->received = h1->chunked.done;
    if (h1->stage != HEDDLE_H1_BODY) {
        if (h1->taken <= engine->body_buffer)
            return HEDDLE_H1_MORE;
        /* discarding more than body_buffer bytes costs more than a new connection */
        heddle_h1_send_rest(connection, HEDDLE_H1_THEN_LINGER);
        return HEDDLE_H1_ENDED;
    }
    if (h1->exchange->spool)
        h1->exchange->spool->used += length;
    else
        h1->exchange->body_size += length;
    return HEDDLE_H1_MORE;
}

heddle_h1_progress heddle_h1_parse_body(heddle_connection *connection, char *bytes, size_t size, size_t *used)
{
    heddle_h1 *h1 = heddle_h1_of(connection);
    heddle_h1_progress result = h1->left < 0 ? take_chunks(connection, bytes, size, used)
                                             : take_length(connection, bytes, size, used);
    if (result == HEDDLE_H1_ENDED)
        return result;
    if (!h1->received) {
        const heddle_engine *engine = heddle_engine_of_connection(connection);
        h1->body_heard = heddle_clock_coarse();
        h1->body_deadline = heddle_body_next_deadline(engine, h1->body_deadline, *used);
    }
    if (h1->stage == HEDDLE_H1_BODY)
        return proceed_reading(connection);
    return h1->received ? HEDDLE_H1_DISCARDED : HEDDLE_H1_MORE;
}
