#ifndef HEDDLE_HTTP_BODY_SPOOL_H
#define HEDDLE_HTTP_BODY_SPOOL_H

/*
 * A request's body that is too large for memory: an unlinked temporary file, and one buffer on its way there. The
 * owner fills the buffer on the loop's thread. A native thread (body_writer.c) creates the file, writes and closes it:
 * the loop never waits for a disk. No Ruby and no connection here, so that every protocol can use it.
 *
 * The owner may touch a spool in the state FILLING only. Submitting its buffer passes it to the writer, which posts the
 * spool's message to the owner's loop when the bytes are written; opening that message makes it the owner's again.
 */

#include "http/body_files.h"
#include "scheduler/inbox.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The memory that uploads cost, in bytes. Each buffer that the writer is passed costs two thread switches, so a body
 * that is known to be large has a larger buffer, while the large buffers of this process stay below their limit. A body
 * that is complete in one of them needs no file: heddle_body_memory_acquire counts it against the same limit.
 */
enum {
    HEDDLE_SPOOL_BUFFER = 65536,           /* an upload's, whatever the others have */
    HEDDLE_SPOOL_LARGE_BUFFER = 262144,    /* an upload's at most */
    HEDDLE_SPOOL_LARGE_BUFFERS = 16777216, /* all buffers above HEDDLE_SPOOL_BUFFER together */
};

typedef enum {
    HEDDLE_SPOOL_FILLING, /* the owner's */
    HEDDLE_SPOOL_QUEUED,  /* waits for the writer */
    HEDDLE_SPOOL_WRITING, /* the writer's */
    HEDDLE_SPOOL_WRITTEN, /* its message is on the way to the owner's loop */
    HEDDLE_SPOOL_ENDING,  /* has lost its owner meanwhile: freed by the writer, or when its message is opened */
} heddle_spool_state;

typedef struct heddle_body_spool heddle_body_spool;

/* A spool's owner provides these. */
typedef struct {
    void *owner;
    /* On the owner's loop: the buffer is written, or that failed (`error`: an errno; else 0). */
    void (*written)(void *owner, int error);
    /* On the writer's thread: has the loop open the message. Must not wait. */
    void (*post)(void *loop, heddle_loop_message *message);
    void *loop;
} heddle_spool_owner;

/* A task of the writer: it writes a spool's buffer, or (spool NULL) closes a file. */
typedef struct heddle_body_job heddle_body_job;
struct heddle_body_job {
    heddle_body_job *next;
    heddle_body_spool *spool;
    heddle_body_file *file;
    uint64_t counted;
};

struct heddle_body_spool {
    heddle_loop_message message;
    heddle_body_job job;
    heddle_spool_owner owner;
    heddle_spool_state state; /* under the writer's lock unless it is FILLING */
    bool inherited;           /* a forked child's copy: the writer never had it */
    bool kept;                /* the application has it: a forked child keeps the file, too */
    bool ended;               /* its file is closed, or will be once nobody reads it */
    heddle_body_file *file;   /* NULL: none */
    int error;                /* of the last write: an errno or 0 */
    unsigned holders;         /* the exchange, and its Ruby object */
    unsigned readers;         /* threads that are in a read */
    char *buffer;             /* from malloc; NULL: nothing is buffered */
    size_t used, room;
    size_t large;             /* bytes of the buffer that count against HEDDLE_SPOOL_LARGE_BUFFERS */
    uint64_t size;            /* bytes in the file */
    uint64_t counted;         /* bytes that count against the limit of the process */
    heddle_body_spool *next, *previous; /* of all of the process; under the writer's lock */
    char folder[];
};

/* -- the owner's: on the loop's thread ---------------------------------------------------------------------------- */

/* NULL without memory. */
heddle_body_spool *heddle_body_spool_new(const char *folder, const heddle_spool_owner *owner);
/* `expected` of a body whose length is not known. */
#define HEDDLE_SPOOL_UNKNOWN UINT64_MAX
/*
 * Where the next bytes go, `*size` of them; NULL without memory. Never empty unless the buffer is full. `expected`: how
 * many bytes are still to come.
 */
char *heddle_body_spool_room(heddle_body_spool *spool, uint64_t expected, size_t *size);
/* So many bytes were put there. */
void heddle_body_spool_added(heddle_body_spool *spool, size_t size);
/* Puts these bytes, any number of them, into an empty buffer. False without memory. */
bool heddle_body_spool_put(heddle_body_spool *spool, const char *bytes, size_t size);
static inline bool heddle_body_spool_full(const heddle_body_spool *spool)
{
    return spool->buffer && spool->used >= spool->room;
}
/* An empty buffer need not exist while nothing comes. */
void heddle_body_spool_trim(heddle_body_spool *spool);
/*
 * Passes the buffer to the writer. 0; -ENOBUFS: the spooled bodies of this process would have more than `limit` bytes;
 * -EAGAIN: there is no thread to be had.
 */
int heddle_body_spool_submit(heddle_body_spool *spool, uint64_t limit);
/* The file is not needed any more: the writer closes it, once nobody reads it. Idempotent; in the state FILLING. */
void heddle_body_spool_close(heddle_body_spool *spool);
/* Another holder, who releases it. */
void heddle_body_spool_hold(heddle_body_spool *spool);
/* The last one closes and frees it, whatever its state. */
void heddle_body_spool_release(heddle_body_spool *spool);

/* -- whoever has it once it is complete; with the GVL ------------------------------------------------------------- */

/* Between these two the file stays open. */
static inline bool heddle_body_spool_begin_read(heddle_body_spool *spool)
{
    if (spool->ended || !spool->file)
        return false;
    spool->readers++;
    return true;
}
void heddle_body_spool_end_read(heddle_body_spool *spool);
/* Bytes from `offset` on, fewer at the end only, or -errno. Without the GVL, too. */
ssize_t heddle_body_spool_read(const heddle_body_spool *spool, uint64_t offset, char *memory, size_t size);

/* -- all of this process ------------------------------------------------------------------------------------------ */

/* Bytes of memory that its large buffers have, and its bodies above body_buffer that have no file. */
size_t heddle_body_large_buffers(void);
/* Counts so many bytes among them. False: that would be more than HEDDLE_SPOOL_LARGE_BUFFERS. Any thread. */
bool heddle_body_memory_acquire(size_t bytes);
void heddle_body_memory_release(size_t bytes);

/* -- body_writer.c; any thread ------------------------------------------------------------------------------------ */

/* These two know all spools, for the sake of forked children. */
void heddle_body_writer_add(heddle_body_spool *spool);
void heddle_body_writer_remove(heddle_body_spool *spool);
/* Puts it into the queue; -EAGAIN without a thread. */
int heddle_body_writer_submit(heddle_body_spool *spool);
/* Its owner is gone. true: nobody else has it; false: whoever has it frees it. */
bool heddle_body_writer_withdraw(heddle_body_spool *spool);
/* A file is not needed any more, and its bytes do not count: to give back the blocks of a large one takes its time. */
void heddle_body_writer_close(heddle_body_file *file, uint64_t counted);
/* Called when the loop opens the message of a spool. */
void heddle_body_writer_deliver(heddle_loop_message *message);
void heddle_body_spool_free(heddle_body_spool *spool);

#endif
