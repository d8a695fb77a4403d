#pragma once

/*
 * A spool: a request's body that is too large for memory, in an unlinked temporary file, behind one buffer. The owner
 * fills the buffer on the loop's thread. A native thread (body/writer.c) creates, writes and closes the file, so the
 * loop never waits for a disk. It uses no Ruby and no connection, so every protocol can use it.
 *
 * The owner may use a spool only in the state FILLING. heddle_body_spool_submit passes the buffer to the writer, which
 * posts the spool's message to the owner's loop when the bytes are written; when the loop opens the message, the state
 * is FILLING again.
 */

#include "http/body/disk.h"
#include "http/body/files.h"
#include "scheduler/inbox.h"

#include <sys/types.h>

/*
 * The memory that uploads use, in bytes. Each buffer that is passed to the writer costs two thread switches. So a body
 * that is known to be large gets a larger buffer, while the large buffers of this process stay below their limit. A
 * body that fits into one of them needs no file: heddle_body_memory_acquire counts it against the same limit.
 */
enum {
    HEDDLE_SPOOL_BUFFER = 65536,           /* each upload may have this */
    HEDDLE_SPOOL_LARGE_BUFFER = 262144,    /* the largest buffer of an upload */
    HEDDLE_SPOOL_LARGE_BUFFERS = 16777216, /* all buffers above HEDDLE_SPOOL_BUFFER together */
    HEDDLE_SPOOL_AHEAD = 1048576,          /* how much more is counted on disk than was received; see below */
};

typedef enum {
    HEDDLE_SPOOL_FILLING, /* used by the owner */
    HEDDLE_SPOOL_QUEUED,  /* queued for the writer */
    HEDDLE_SPOOL_WRITING, /* used by the writer */
    HEDDLE_SPOOL_WRITTEN, /* its message was posted to the owner's loop */
    HEDDLE_SPOOL_ENDING,  /* the owner is gone: the writer frees it, or the loop when it opens the message */
} heddle_spool_state;

typedef struct heddle_body_spool heddle_body_spool;

/* The functions of a spool's owner. */
typedef struct {
    void *owner;
    /* Called on the owner's loop: the buffer was written, or that failed (`error`: an errno; else 0). */
    void (*written)(void *owner, int error);
    /* Called on the writer's thread: posts the message to the loop. Must not wait. */
    void (*post)(void *loop, heddle_loop_message *message);
    void *loop;
} heddle_spool_owner;

/* A task of the writer: to write a spool's buffer, or (spool NULL) to close a file. */
typedef struct heddle_body_job heddle_body_job;
struct heddle_body_job {
    heddle_body_job *next, *previous;
    heddle_body_spool *spool;
    heddle_body_file *file;
};

struct heddle_body_spool {
    heddle_loop_message message;
    heddle_body_job job;
    heddle_spool_owner owner;
    heddle_spool_state state; /* protected by the writer's lock unless it is FILLING */
    bool inherited;           /* a forked child's copy, which no writer uses */
    bool kept;                /* the application has it: a forked child keeps the file, too */
    bool awaits_file;         /* its file is counted (files.h), and not open yet */
    bool ended;               /* its file is closed, or will be when the last read has ended */
    heddle_body_file *file;   /* NULL: no file yet */
    int error;                /* of the last write, an errno or 0 */
    unsigned holders;         /* references: the exchange, and its Ruby object */
    unsigned readers;         /* threads that read the file now */
    char *buffer;             /* from malloc; NULL: empty */
    size_t used, room;
    size_t large;             /* the buffer's bytes that count against HEDDLE_SPOOL_LARGE_BUFFERS */
    uint64_t size;            /* bytes in the file */
    uint64_t length;          /* the body's announced length, or 0 */
    heddle_body_disk_count counted; /* before the bytes are on disk */
    heddle_body_spool *next, *previous; /* all spools of the process; protected by the writer's lock */
    char folder[];
};

/* -- the owner's: on the loop's thread ---------------------------------------------------------------------------- */

/* NULL without memory; NULL and EMFILE in errno if this process or the client's address has too many files. */
heddle_body_spool *heddle_body_spool_new(const char *folder, const heddle_spool_owner *owner, uint16_t address);
/* The value of `expected` for a body of unknown length. */
#define HEDDLE_SPOOL_UNKNOWN UINT64_MAX
/*
 * Returns where the next bytes must be stored, `*size` of them at most, which is 0 only when the buffer is full; NULL
 * without memory. `expected`: how many bytes are still to come.
 */
char *heddle_body_spool_make_room(heddle_body_spool *spool, uint64_t expected, size_t *size);
/* Called after `size` bytes were stored there. */
void heddle_body_spool_count_added(heddle_body_spool *spool, size_t size);
/* Stores any number of bytes in an empty buffer. False without memory. */
bool heddle_body_spool_put(heddle_body_spool *spool, const char *bytes, size_t size);
static inline bool heddle_body_spool_full(const heddle_body_spool *spool)
{
    return spool->buffer && spool->used >= spool->room;
}
/* Frees an empty buffer while no bytes come. */
void heddle_body_spool_trim(heddle_body_spool *spool);
/*
 * Passes the buffer to the writer, and counts its bytes on disk. Where there is room it counts up to twice the
 * received bytes, but not beyond `length`: so not every buffer has to ask the other processes, and a client that only
 * announces a large body holds nothing. 0; -ENOBUFS: as of heddle_body_disk_take; -EAGAIN: no thread could be started.
 */
int heddle_body_spool_submit(heddle_body_spool *spool, uint64_t limit);
/*
 * The complete body counts against the limit no more, though its file stays until the spool is closed: its request is
 * answered. Idempotent.
 */
void heddle_body_spool_uncount(heddle_body_spool *spool);
/*
 * The file is no longer needed: the writer closes it when the last read has ended. Idempotent. While the spool is being
 * written this only notes it, and the spool's last release closes the file.
 */
void heddle_body_spool_close(heddle_body_spool *spool);
/* Adds a reference, to be released. */
void heddle_body_spool_hold(heddle_body_spool *spool);
/* Releases a reference; the last one closes and frees the spool, in any state. */
void heddle_body_spool_release(heddle_body_spool *spool);

/* -- a complete spool, for its holders; with the GVL -------------------------------------------------------------- */

/* The file stays open between these two calls. */
static inline bool heddle_body_spool_begin_read(heddle_body_spool *spool)
{
    if (spool->ended || !spool->file)
        return false;
    spool->readers++;
    return true;
}
void heddle_body_spool_end_read(heddle_body_spool *spool);
/*
 * Reads from `offset` on: returns the number of bytes, fewer than asked for only at the end, or -errno. With or without
 * the GVL.
 */
ssize_t heddle_body_spool_read(const heddle_body_spool *spool, uint64_t offset, char *memory, size_t size);

/* -- all of this process ------------------------------------------------------------------------------------------ */

/*
 * Counts bytes of memory in large buffers, and in bodies above body_buffer that have no file. False: there would be
 * more than HEDDLE_SPOOL_LARGE_BUFFERS. On any thread.
 */
bool heddle_body_memory_acquire(size_t bytes);
void heddle_body_memory_release(size_t bytes);

/* -- body/writer.c; any thread ------------------------------------------------------------------------------------ */

/* Add and remove a spool in the list of all spools, which forked children need. */
void heddle_body_writer_add(heddle_body_spool *spool);
void heddle_body_writer_remove(heddle_body_spool *spool);
/* Queues the spool for the writer; -EAGAIN without a thread. */
int heddle_body_writer_submit(heddle_body_spool *spool);
/* The owner is gone. True: the caller may free the spool; false: the writer or the loop will. */
bool heddle_body_writer_withdraw(heddle_body_spool *spool);
/*
 * Queues a file that is no longer needed (NULL: none) to be closed, as to free the blocks of a large file takes time.
 * Its `counted` bytes are counted no more at once. The writer closes the file before it writes what is queued later, so
 * this process has no more on disk than it counts.
 */
void heddle_body_writer_close(heddle_body_file *file, heddle_body_disk_count counted);
/* Called when the loop opens the message of a spool. */
void heddle_body_writer_deliver(heddle_loop_message *message);
void heddle_body_spool_free(heddle_body_spool *spool);
