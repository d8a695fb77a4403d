/* The work item of an exchange: how a runner serves it. */

#include "http/engine.h"
#include "http/exchange_ruby.h"
#include "http/request_label.h"

#include <stdio.h>
#include <string.h>

static VALUE object_of(heddle_work *work)
{
    heddle_exchange *exchange = heddle_exchange_of_work(work);
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
    if (exchange->handle)
        exchange->handle->exchange = NULL;
    heddle_exchange_free(exchange);
    RB_GC_GUARD(object);
}

static void reject_work(heddle_work *work, heddle_overload why)
{
    heddle_exchange *exchange = heddle_exchange_of_work(work);
    const heddle_admission *admission = &work->connection->sockets->admission;
    heddle_rejection rejection;
    switch (why) {
    case HEDDLE_QUEUE_FULL:
        heddle_reject(&rejection, 503, "the server is busy, and %zu requests wait already", admission->queue_limit);
        break;
    case HEDDLE_QUEUED_TOO_LONG:
        heddle_reject(&rejection, 503, "the server is busy, and the request waited for %g s",
                      (double)admission->queue_timeout / 1e9);
        break;
    case HEDDLE_QUEUE_ENDS:
        heddle_reject(&rejection, 503, "the server stops");
        break;
    }
    rejection.by_admission = true;
    rejection.unlogged = work->probe;
    exchange->operations->reject(exchange, &rejection, "1");
}

static uint32_t label_of(const heddle_work *work)
{
    const heddle_exchange *exchange = HEDDLE_CONTAINER_OF(work, heddle_exchange, work);
    heddle_slice method = exchange->head.method, target = exchange->head.target;
    return heddle_request_label_hash(exchange->bytes + method.start, method.size, exchange->bytes + target.start,
                                     target.size);
}

/* Method and path, without the query, which may contain secrets. */
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
    .reject = reject_work,
    .label = label_of,
    .describe = heddle_exchange_describe,
    .summarize = summarize_request,
};
