#include "http/body_rules.h"

#include <errno.h>
#include <string.h>

int64_t heddle_body_deadline(const heddle_engine *engine, int64_t since, uint64_t taken, int64_t last)
{
    if (engine->body_rate == 0)
        return heddle_add_duration(last, engine->idle_timeout);
    double owed = (double)taken / (double)engine->body_rate * 1e9;
    return heddle_add_duration(heddle_add_duration(since, engine->body_grace), owed < 1e18 ? (int64_t)owed : INT64_MAX);
}

void heddle_body_reject_slow(const heddle_engine *engine, heddle_rejection *rejection)
{
    heddle_reject(rejection, 408, "the body came slower than %llu bytes a second",
                  (unsigned long long)engine->body_rate);
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

/*
 * How many bytes of a body may stay in memory. Above body_buffer that is the size of an upload's buffer anyway: without
 * a file the body needs no thread switches. With body_buffer 0 every body goes to a file.
 */
static uint64_t find_body_memory(const heddle_engine *engine)
{
    uint64_t bytes = engine->body_buffer < HEDDLE_SPOOL_BUFFER ? engine->body_buffer * 4 : HEDDLE_SPOOL_LARGE_BUFFER;
    if (bytes > engine->body_disk_limit) /* the response to a body above the limit must not depend on other bodies */
        bytes = engine->body_disk_limit;
    return bytes > engine->body_buffer ? bytes : engine->body_buffer;
}

bool heddle_body_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, uint64_t length)
{
    return length <= engine->body_buffer ||
           (length <= find_body_memory(engine) && heddle_exchange_reserve_memory(exchange, (size_t)length));
}

bool heddle_body_still_fits_memory(const heddle_engine *engine, heddle_exchange *exchange, bool complete)
{
    uint64_t size = exchange->body_size, most = complete ? size : find_body_memory(engine);
    return size <= engine->body_buffer ||
           (size <= find_body_memory(engine) && heddle_exchange_reserve_memory(exchange, (size_t)most));
}

/* -- the file ------------------------------------------------------------------------------------------------------ */

static void post_to_loop(void *loop, heddle_loop_message *message)
{
    heddle_inbox_post(&((heddle_loop *)loop)->inbox, message);
    heddle_loop_wake(loop);
}

bool heddle_body_begin_spool(heddle_engine *engine, heddle_exchange *exchange, heddle_loop *loop, void *owner,
                             void (*written)(void *owner, int error))
{
    heddle_spool_owner ownership = {.owner = owner, .written = written, .post = post_to_loop, .loop = loop};
    exchange->spool = heddle_body_spool_new(engine->body_folder, &ownership);
    if (!exchange->spool)
        return false;
    engine->spooled++;
    return true;
}

/* -- refused bodies ------------------------------------------------------------------------------------------------ */

const char *heddle_body_reject_large(const heddle_engine *engine, heddle_rejection *rejection)
{
    heddle_reject(rejection, 413, "the body is larger than the %llu bytes that this server keeps of all bodies",
                  (unsigned long long)engine->body_disk_limit);
    return NULL;
}

const char *heddle_body_make_rejection(const heddle_engine *engine, const heddle_exchange *exchange, int error,
                                  heddle_rejection *rejection)
{
    const heddle_body_spool *spool = exchange->spool;
    if (spool && spool->size + spool->used > engine->body_disk_limit)
        return heddle_body_reject_large(engine, rejection);
    if (error == ENOBUFS)
        heddle_reject(rejection, 503, "the bodies of other requests fill the %llu bytes that this server keeps of them",
                      (unsigned long long)engine->body_disk_limit);
    else
        heddle_reject(rejection, 503, "the server could not write the body to its disk: %s", strerror(error));
    return "1";
}
