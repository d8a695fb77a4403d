/* The work item of an exchange: how a runner serves it. */

#include "http/engine.h"
#include "http/exchange_ruby.h"
#include "http/forwarded.h"
#include "http/request_label.h"
#include "net/networks.h"

/*
 * A client that has shut down its side of the connection may still read, so it normally gets its response. But if its
 * request has also waited for this many ns, such a client has nearly always closed its socket. Then the request is
 * rejected with 503, and the application is not called.
 */
static const int64_t ABANDONED_AFTER = INT64_C(1000) * 1000 * 1000;

/* Begins the time account of the request, which sums how its time is spent (scheduler/account.h). */
static void begin_account(heddle_exchange *exchange)
{
    const heddle_fiber *fiber = exchange->work.connection->sockets->loop->current;
    if (!fiber || !heddle_spender_counts(&fiber->spender))
        return;
    int64_t began = exchange->began ? exchange->began : exchange->arrived;
    exchange->account = fiber->spender.account;
    heddle_account_arrived(exchange->account, began, exchange->queued);
    int64_t delay = heddle_forwarded_delay(&exchange->head, exchange->bytes, began);
    bool trusted = delay && heddle_networks_include(exchange->engine->proxies, &exchange->work.connection->remote);
    exchange->account->parts[HEDDLE_SPENT_PROXY] = trusted ? delay : 0;
}

static void count_endpoint(heddle_exchange *exchange, const int64_t parts[HEDDLE_SPENT_PARTS], int64_t other)
{
    heddle_engine *engine = exchange->engine;
    heddle_slice method = exchange->head.method, target = exchange->head.target;
    if (!engine->endpoints)
        engine->endpoints = calloc(1, sizeof(*engine->endpoints));
    if (engine->endpoints)
        heddle_endpoints_count(engine->endpoints, exchange->bytes + method.start, method.size,
                               exchange->bytes + target.start, target.size, parts, other);
}

static void end_account(heddle_exchange *exchange)
{
    heddle_account *account = exchange->account;
    if (!account)
        return;
    int64_t other, total = heddle_account_end(account, heddle_clock_now(), &other);
    heddle_latency *spent = exchange->engine->spent;
    for (int part = 0; part < (account->waited ? HEDDLE_SPENT_PARTS : HEDDLE_SPENT_GC + 1); part++) {
        if (account->parts[part])
            heddle_latency_add(&spent[part], account->parts[part]);
    }
    if (other)
        heddle_latency_add(&spent[HEDDLE_SPENT_PARTS], other);
    if (total - account->parts[HEDDLE_SPENT_QUEUED] >= HEDDLE_ENDPOINT_LEAST)
        count_endpoint(exchange, account->parts, other);
    exchange->account = NULL;
}

static VALUE object_of(heddle_work *work)
{
    heddle_exchange *exchange = heddle_exchange_of_work(work);
    begin_account(exchange);
    heddle_exchange_enter(exchange, HEDDLE_EXCHANGE_RUNNING);
    VALUE object = heddle_exchange_object(exchange);
    if (exchange->operations->taken)
        exchange->operations->taken(exchange);
    return object;
}

static void note_served(heddle_work *work, VALUE object)
{
    heddle_exchange *exchange = heddle_exchange_of_work(work);
    if (work->connection)
        exchange->operations->abandon(exchange);
    end_account(exchange);
    if (exchange->handle)
        exchange->handle->exchange = NULL;
    heddle_exchange_free(exchange);
    RB_GC_GUARD(object);
}

static bool is_abandoned(heddle_work *work, int64_t now)
{
    heddle_exchange *exchange = heddle_exchange_of_work(work);
    return now - exchange->queued >= ABANDONED_AFTER && exchange->operations->watch_disconnect(exchange);
}

static void reject_work(heddle_work *work, heddle_overload why)
{
    heddle_exchange *exchange = heddle_exchange_of_work(work);
    heddle_rejection rejection;
    heddle_reject_overload(&rejection, why, work->connection->sockets->admission.queue_timeout);
    rejection.unlogged = work->probe;
    exchange->operations->reject(exchange, &rejection, HEDDLE_RETRY_AFTER);
}

static uint32_t label_of(const heddle_work *work)
{
    const heddle_exchange *exchange = HEDDLE_CONTAINER_OF(work, heddle_exchange, work);
    heddle_slice method = exchange->head.method, target = exchange->head.target;
    return heddle_request_label_hash(exchange->bytes + method.start, method.size, exchange->bytes + target.start,
                                     target.size);
}

/* Writes the method and the path. Omits the query, which may contain secrets. */
static size_t summarize_request(VALUE object, char *text, size_t size)
{
    const heddle_exchange *exchange = heddle_exchange_handle_of(object)->exchange;
    if (!exchange)
        return 0;
    heddle_slice method = exchange->head.method, target = exchange->head.target;
    const char *start = exchange->bytes + target.start, *query = memchr(start, '?', target.size);
    int path = (int)(query ? query - start : target.size);
    int written = snprintf(text, size, "%.*s %.*s", (int)method.size, exchange->bytes + method.start, path, start);
    return written < 0 ? 0 : (size_t)written < size ? (size_t)written : size - 1;
}

const heddle_work_operations heddle_exchange_work = {
    .waits_at_gate = true,
    .object = object_of,
    .served = note_served,
    .is_abandoned = is_abandoned,
    .reject = reject_work,
    .label = label_of,
    .describe = heddle_exchange_describe,
    .summarize = summarize_request,
};
