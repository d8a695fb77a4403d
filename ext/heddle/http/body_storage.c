#include "http/body_storage.h"

/* -- memory -------------------------------------------------------------------------------------------------------- */

/*
 * Returns the maximum size of a body in memory: four times body_buffer, but at most HEDDLE_SPOOL_LARGE_BUFFER and at
 * most body_disk_limit; never less than body_buffer. Writing such a body to a file would save no memory, because the
 * spool's buffer would be about as large as the body, and would cost thread switches. With body_buffer 0, every body
 * goes to a file.
 */
static uint64_t find_body_memory(const heddle_engine *engine)
{
    uint64_t bytes = engine->body_buffer < HEDDLE_SPOOL_BUFFER ? engine->body_buffer * 4 : HEDDLE_SPOOL_LARGE_BUFFER;
    if (bytes > engine->body_disk_limit) /* larger bodies are rejected even if there is memory for them */
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

int heddle_body_begin_spool(heddle_connection *connection, heddle_exchange *exchange, void *owner,
                            void (*written)(void *owner, int error), unsigned others)
{
    heddle_engine *engine = exchange->engine;
    heddle_sockets *sockets = connection->sockets;
    heddle_spool_owner ownership = {.owner = owner, .written = written, .post = post_to_loop, .loop = sockets->loop};
    int64_t length = exchange->head.content_length;
    if (others && others >= heddle_body_files_most() / HEDDLE_BODY_FILES_CONNECTION_SHARE)
        return -EMFILE;
    heddle_body_spool *spool = heddle_body_spool_new(engine->body_folder, &ownership,
                                                     heddle_address_find_number(sockets, &connection->remote));
    if (!spool)
        return -errno;
    spool->length = length > 0 ? (uint64_t)length : 0;
    if (length > 0 && !heddle_body_disk_has_room(&spool->counted, spool->length, engine->body_disk_limit)) {
        heddle_body_spool_release(spool);
        return -ENOBUFS;
    }
    exchange->spool = spool;
    engine->spooled++;
    return 0;
}

/* -- rejection ----------------------------------------------------------------------------------------------------- */

void heddle_body_reject(heddle_exchange *exchange, int error)
{
    const heddle_body_spool *spool = exchange->spool;
    uint64_t limit = exchange->engine->body_disk_limit;
    int64_t length = exchange->head.content_length;
    bool never_fits = (length > 0 && (uint64_t)length > limit) || (spool && spool->size + spool->used > limit);
    heddle_rejection rejection;
    if (never_fits)
        heddle_reject(&rejection, 413, "the body is larger than %llu bytes, the limit for all request bodies on disk",
                      (unsigned long long)limit);
    else if (error == ENOBUFS)
        heddle_reject(&rejection, 503, "the limit of %llu bytes for all request bodies on disk leaves no room now",
                      (unsigned long long)limit);
    else if (error == EMFILE)
        heddle_reject(&rejection, 503, "too many request bodies are stored in files, from this client or in total");
    else
        heddle_reject(&rejection, 503, "the server could not write the body to its disk: %s", strerror(error));
    exchange->operations->reject(exchange, &rejection, never_fits ? NULL : HEDDLE_RETRY_AFTER);
}
