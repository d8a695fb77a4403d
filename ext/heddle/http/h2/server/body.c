/*
 * The body of a request over HTTP/2. Unless the application streams the body, the body is complete before the
 * application is called, as over HTTP/1.1. A large body goes into a spool: a file with a buffer. Bytes are
 * credited to the client's windows as soon as they are in memory or in the spool's buffer, with two exceptions. While
 * the application streams the body, the stream's window gets no credit until the application has read the bytes. And
 * bytes that arrive while the buffer is being written to the file wait in memory without credit. In both cases, the
 * client's windows limit the bytes.
 */

#include "http/body/files.h"
#include "http/body_deadline.h"
#include "http/body_storage.h"
#include "http/h2/server/server.h"
#include "http/request_limits.h"

/*
 * While this process has at most 64 files of bodies, a stream whose body goes into a file gets about the same window as
 * the connection. Thus bytes that wait for a slow disk use at most 64 MiB of memory.
 */
enum { WIDE_STREAMS = 64, WIDENING = (1 << 20) - 65536 };

static void handle_written(void *owner, int error);

static heddle_engine *engine_of(const heddle_h2_carrier *carrier)
{
    return carrier->exchange->engine;
}

/*
 * Rejects a body that has become too large and has no content-length. A content-length that is too large is rejected
 * when the head is complete.
 */
static void reject_too_large(heddle_h2_carrier *carrier)
{
    heddle_exchange *exchange = carrier->exchange;
    heddle_rejection rejection;
    heddle_reject_large_body(&rejection, engine_of(carrier)->limits.body);
    if (heddle_exchange_is_running(exchange))
        heddle_h2_reset_exchange(carrier);
    else
        exchange->operations->reject(exchange, &rejection, NULL);
}

static bool is_writing(const heddle_exchange *exchange)
{
    return exchange->spool && exchange->spool->state != HEDDLE_SPOOL_FILLING;
}

/* -- time limits --------------------------------------------------------------------------------------------------- */

static void check_rate(heddle_due *due)
{
    heddle_h2_carrier *carrier = HEDDLE_CONTAINER_OF(due, heddle_h2_carrier, due);
    heddle_exchange *exchange = carrier->exchange;
    int64_t now = heddle_clock_coarse(), deadline = carrier->body_deadline;
    if (is_writing(exchange)) /* no time limit: the disk is slow, not the client */
        deadline = heddle_add_duration(now, engine_of(carrier)->body_grace);
    if (deadline > now) {
        heddle_due_set(carrier->server->connection->sockets, due, deadline);
        return;
    }
    heddle_body_reject_slow(exchange);
}

void heddle_h2_begin_body(heddle_h2_carrier *carrier)
{
    carrier->body_deadline = heddle_body_first_deadline(engine_of(carrier), heddle_clock_coarse());
    carrier->due.passed = check_rate;
    heddle_due_set(carrier->server->connection->sockets, &carrier->due, carrier->body_deadline);
}

/* -- storage ------------------------------------------------------------------------------------------------------- */

void heddle_h2_count_body(heddle_h2_carrier *carrier, ssize_t change)
{
    carrier->body_memory += (size_t)change;
    carrier->server->body_memory += (size_t)change;
    heddle_h2_count_memory(carrier->server, change);
}

/* Copies bytes into the exchange's body. Returns false when out of memory. */
static bool keep_in_memory(heddle_exchange *exchange, const char *bytes, size_t size)
{
    char *room = heddle_exchange_make_body_room(exchange, size);
    if (!room)
        return false;
    memcpy(room, bytes, size);
    exchange->body_size += size;
    return true;
}

/* Copies bytes into the spool's buffer until it is full or memory is exhausted. Returns how many bytes were copied. */
static size_t fill_buffer(heddle_body_spool *spool, const char *bytes, size_t size)
{
    size_t used = 0;
    while (used < size && !heddle_body_spool_full(spool)) {
        size_t space;
        char *room = heddle_body_spool_make_room(spool, HEDDLE_SPOOL_UNKNOWN, &space);
        if (!room)
            break;
        if (space > size - used)
            space = size - used;
        memcpy(room, bytes + used, space);
        spool->used += space;
        used += space;
    }
    return used;
}

/* Passes the spool's buffer to the thread that writes it, if it is full or the body is complete. */
static HEDDLE_FATE write_buffer(heddle_h2_carrier *carrier)
{
    heddle_body_spool *spool = carrier->exchange->spool;
    carrier->writing_since = heddle_clock_now();
    if (!spool->used || !(carrier->received || heddle_body_spool_full(spool)))
        return HEDDLE_ALIVE;
    int result = heddle_body_spool_submit(spool, engine_of(carrier)->body_disk_limit);
    if (result < 0)
        heddle_body_reject(carrier->exchange, -result);
    return result == 0 ? HEDDLE_ALIVE : HEDDLE_GONE;
}

/* Moves bytes that wait in memory into the spool's buffer, as far as there is room. */
static HEDDLE_FATE move_waiting(heddle_h2_carrier *carrier)
{
    heddle_exchange *exchange = carrier->exchange;
    size_t waiting = exchange->body_size;
    if (!waiting)
        return HEDDLE_ALIVE;
    char *bytes = RSTRING_PTR(exchange->body);
    size_t used = fill_buffer(exchange->spool, bytes, waiting);
    if (used == 0) {
        heddle_body_reject(exchange, ENOMEM);
        return HEDDLE_GONE;
    }
    if (used == waiting) {
        heddle_exchange_drop_body(exchange);
    } else {
        memmove(bytes, bytes + used, waiting - used);
        exchange->body_size -= used;
    }
    if (carrier->uncredited) {
        size_t credit = used < carrier->uncredited ? used : carrier->uncredited;
        carrier->uncredited -= credit;
        heddle_h2_consume(carrier->server->session, carrier->stream, credit);
    }
    return carrier->gone ? HEDDLE_GONE : write_buffer(carrier);
}

/* Are all received bytes in their final place: in memory, or in the file? */
static bool is_settled(const heddle_exchange *exchange)
{
    return !exchange->spool || (!is_writing(exchange) && !exchange->spool->used && !exchange->body_size);
}

static void handle_written(void *owner, int error)
{
    heddle_h2_carrier *carrier = owner;
    heddle_h2_server *server = carrier->server;
    heddle_h2_enter_session(server);
    carrier->body_deadline += heddle_clock_now() - carrier->writing_since;
    if (error && !carrier->gone)
        heddle_body_reject(carrier->exchange, error);
    else if (!carrier->gone && move_waiting(carrier) && is_settled(carrier->exchange)) {
        heddle_body_spool_trim(carrier->exchange->spool);
        if (carrier->received)
            heddle_h2_queue(carrier);
    }
    heddle_h2_end_call(server);
}

static unsigned count_spools(const heddle_h2_server *server)
{
    unsigned count = 0;
    for (const heddle_h2_carrier *carrier = heddle_h2_first_carrier(server); carrier;
         carrier = heddle_h2_next_carrier(carrier))
        count += carrier->exchange->spool != NULL;
    return count;
}

static HEDDLE_FATE move_to_file(heddle_h2_carrier *carrier)
{
    heddle_exchange *exchange = carrier->exchange;
    heddle_exchange_reserve_memory(exchange, 0);
    heddle_h2_count_body(carrier, -(ssize_t)carrier->body_memory);
    int error = heddle_body_begin_spool(carrier->server->connection, exchange, carrier, handle_written,
                                        count_spools(carrier->server));
    if (error) {
        heddle_body_reject(carrier->exchange, -error);
        return HEDDLE_GONE;
    }
    if (heddle_body_files_open() <= WIDE_STREAMS)
        heddle_h2_widen_window(carrier->server->session, carrier->stream, WIDENING);
    return carrier->gone ? HEDDLE_GONE : move_waiting(carrier);
}

void heddle_h2_take_data(heddle_h2_carrier *carrier, const char *bytes, size_t size)
{
    heddle_exchange *exchange = carrier->exchange;
    carrier->taken += size;
    carrier->body_deadline = heddle_body_next_deadline(engine_of(carrier), carrier->body_deadline, size);
    if (carrier->taken > engine_of(carrier)->limits.body) {
        reject_too_large(carrier);
        return;
    }
    if (!keep_in_memory(exchange, bytes, size)) {
        heddle_body_reject(carrier->exchange, ENOMEM);
        return;
    }
    if (carrier->at_head) {
        /* until the application reads the bytes, they block their own stream, and others only if memory is short */
        if (!heddle_h2_holds_too_much_data(carrier->server)) {
            heddle_h2_count_body(carrier, (ssize_t)size);
            heddle_h2_keep(carrier->server->session, carrier->stream, size);
        }
        return;
    }
    if (is_writing(exchange)) {
        carrier->uncredited += size;
        return;
    }
    heddle_h2_consume(carrier->server->session, carrier->stream, size);
    if (carrier->gone || carrier->streams_body)
        return; /* gone: the connection has failed, because there was no memory for WINDOW_UPDATE */
    if (exchange->spool) {
        heddle_last_use(move_waiting(carrier));
        return;
    }
    heddle_h2_count_body(carrier, (ssize_t)size);
    /* This limit is needed because the client's windows don't limit credited bytes. */
    if (carrier->server->body_memory > engine_of(carrier)->h2->limits.connection_window ||
        heddle_h2_holds_too_much_data(carrier->server) ||
        !heddle_body_still_fits_memory(engine_of(carrier), exchange, carrier->received))
        heddle_last_use(move_to_file(carrier));
}

void heddle_h2_end_body(heddle_h2_carrier *carrier)
{
    carrier->received = true;
    if (!carrier->exchange->spool || carrier->streams_body) {
        heddle_h2_queue(carrier);
        return;
    }
    if (!is_writing(carrier->exchange) && write_buffer(carrier) && is_settled(carrier->exchange))
        heddle_h2_queue(carrier);
}
