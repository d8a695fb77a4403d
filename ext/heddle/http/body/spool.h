#pragma once

/*
 * A spool: a request's body that is too large for memory, in an unlinked temporary file, behind one buffer. The owner
 * fills the buffer on the loop's thread. A native thread (body/writer.c) creates, writes and closes the file, so the
 * loop never waits for a disk. A spool uses no Ruby and no connection, so every protocol can use it.
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
    HEDDLE_SPOOL_BUFFER = 65536,           /* the size of each upload's normal buffer */
    HEDDLE_SPOOL_LARGE_BUFFER = 262144,    /* the largest buffer of an upload */
    HEDDLE_SPOOL_LARGE_BUFFERS = 16777216, /* limit of all buffers above HEDDLE_SPOOL_BUFFER together */
    /* how many bytes may be counted on disk beyond those received, see heddle_body_spool_submit */
    HEDDLE_SPOOL_AHEAD = 1048576,
};

typedef enum {
    HEDDLE_SPOOL_FILLING, /* used by the owner */
    HEDDLE_SPOOL_QUEUED,  /* queued for the writer */
    HEDDLE_SPOOL_WRITING, /* used by the writer */
    HEDDLE_SPOOL_WRITTEN, /* its message was posted to the owner's loop */
    HEDDLE_SPOOL_ENDING, /* the owner is gone; the writer frees the spool, or the loop when it opens the message */
} heddle_spool_state;

typedef struct heddle_body_spool heddle_body_spool;

/* The functions of a spool's owner. */
typedef struct {
    void *owner;
    /*
     * Called on the owner's loop: the buffer was written (`error` is 0), or the write has failed (`error` is an errno).
     */
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
    int fd;
    uint16_t address; /* whose file it is: see files.h */
};

struct heddle_body_spool {
    heddle_loop_message message;
    heddle_body_job job;
    heddle_spool_owner owner;
    heddle_spool_state state; /* protected by the writer's lock, unless it is FILLING */
    bool inherited;           /* a forked child's copy, which no writer uses */
    bool kept;                /* the application has the spool, so a forked child keeps its file */
    bool awaits_file;         /* its file was counted (files.h), but is not open yet */
    bool ended;               /* its file is closed, or will be when the last read has ended */
    int fd;                   /* of its file; -1: none */
    int error;                /* of the last write, an errno or 0 */
    unsigned holders;         /* references: the exchange, and its Ruby object */
    unsigned readers;         /* threads that read the file now */
    char *buffer;             /* from malloc; NULL: empty */
    size_t used, room;
    size_t large;             /* the buffer's bytes that count against HEDDLE_SPOOL_LARGE_BUFFERS */
    uint64_t size;            /* bytes in the file */
    uint64_t length;          /* the body's announced length, or 0 */
    heddle_body_disk_count counted; /* raised before the bytes are written */
    heddle_body_spool *next, *previous; /* all spools of the process; protected by the writer's lock */
    char folder[];
};

/* -- calls of the owner, on the loop's thread --------------------------------------------------------------------- */

/* NULL without memory; NULL with errno EMFILE if this process or the client's address has too many files. */
heddle_body_spool *heddle_body_spool_new(const char *folder, const heddle_spool_owner *owner, uint16_t address);
/* The value of `expected` for a body of unknown length. */
#define HEDDLE_SPOOL_UNKNOWN UINT64_MAX
/*
 * Returns where the next bytes must be stored, and sets `*size` to the room there, which is 0 only when the buffer is
 * full. Returns NULL without memory. The caller stores the bytes and adds their number to `used`. `expected`: how many
 * bytes are still to come.
 */
char *heddle_body_spool_make_room(heddle_body_spool *spool, uint64_t expected, size_t *size);
/* Stores any number of bytes in an empty buffer. Returns false without memory. */
bool heddle_body_spool_put(heddle_body_spool *spool, const char *bytes, size_t size);
static inline bool heddle_body_spool_full(const heddle_body_spool *spool)
{
    return spool->buffer && spool->used >= spool->room;
}
/* Frees an empty buffer while no bytes come. */
void heddle_body_spool_trim(heddle_body_spool *spool);
/*
 * Passes the buffer to the writer, and counts its bytes on disk. While there is room it counts up to twice the received
 * bytes, but at most `length`. So not every buffer changes the count that all processes share, and a client that only
 * announces a large body occupies nothing. Returns 0, -ENOBUFS if heddle_body_disk_take has returned false, or -EAGAIN
 * if no thread could be started.
 */
int heddle_body_spool_submit(heddle_body_spool *spool, uint64_t limit);
/*
 * Called when the response is complete. From now on the body does not count against the limit, although its file stays
 * until the spool is closed. Idempotent.
 */
void heddle_body_spool_uncount(heddle_body_spool *spool);
/*
 * Called when the file is no longer needed. The writer closes it when the last read has ended. While the spool is being
 * written, the file is closed with the spool's last release. Idempotent.
 */
void heddle_body_spool_close(heddle_body_spool *spool);
/* Releases one of the `holders`; the last one closes and frees the spool, in any state. */
void heddle_body_spool_release(heddle_body_spool *spool);

/* -- a complete spool, for its holders; with the GVL -------------------------------------------------------------- */

/* The file stays open from this call to heddle_body_spool_end_read. */
static inline bool heddle_body_spool_begin_read(heddle_body_spool *spool)
{
    if (spool->ended || spool->fd < 0)
        return false;
    spool->readers++;
    return true;
}
void heddle_body_spool_end_read(heddle_body_spool *spool);
/*
 * Reads from `offset` on: returns the number of bytes, fewer than asked for only at the end, or -errno. May be called
 * with or without the GVL.
 */
ssize_t heddle_body_spool_read(const heddle_body_spool *spool, uint64_t offset, char *memory, size_t size);

/* -- all spools of this process ----------------------------------------------------------------------------------- */

/*
 * Counts bytes of memory in large buffers, and in bodies above body_buffer that have no file. Returns false if there
 * would be more than HEDDLE_SPOOL_LARGE_BUFFERS. May be called on any thread.
 */
bool heddle_body_memory_acquire(size_t bytes);
void heddle_body_memory_release(size_t bytes);

/* -- body/writer.c; any thread ------------------------------------------------------------------------------------ */

/* These functions add and remove a spool in the list of all spools, which forked children need. */
void heddle_body_writer_add(heddle_body_spool *spool);
void heddle_body_writer_remove(heddle_body_spool *spool);
/* Queues the spool for the writer; -EAGAIN without a thread. */
int heddle_body_writer_submit(heddle_body_spool *spool);
/*
 * Called when the owner is gone. If it returns true, the caller must free the spool; otherwise the writer or the loop
 * frees it.
 */
bool heddle_body_writer_withdraw(heddle_body_spool *spool);
/*
 * Queues a file (or -1) that is no longer needed; the writer closes it, because freeing the blocks of a large file
 * takes time. Its `counted` bytes stop counting at once. The writer closes the file before it writes any buffer that is
 * queued later, so the process never has more bytes on disk than it counts.
 */
void heddle_body_writer_close(int fd, heddle_body_disk_count counted);
/* Called when the loop opens the message of a spool. */
void heddle_body_writer_deliver(heddle_loop_message *message);
void heddle_body_spool_free(heddle_body_spool *spool);
