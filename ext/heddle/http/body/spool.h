#pragma once

/*
 * A spool stores a request's body that is too large for memory: an unlinked temporary file with one write buffer. The
 * owner (HTTP/1.1: the connection; HTTP/2: the carrier) fills the buffer on the loop's thread. A native thread, the
 * writer (body/writer.c), creates, writes and closes the file, so the loop never waits for a disk. A spool uses no Ruby
 * and no connection, so every protocol can use it.
 *
 * The owner may use the buffer only in the state FILLING. heddle_body_spool_submit passes the buffer to the writer.
 * When the bytes are written, or the write has failed, the writer posts the spool's message to the owner's loop. When
 * the loop receives the message, the state becomes FILLING again.
 */

#include "http/body/disk.h"
#include "http/body/files.h"
#include "scheduler/inbox.h"

#include <sys/types.h>

/*
 * Buffer sizes in bytes. Each buffer that is passed to the writer costs two thread switches. So a large body gets a
 * larger buffer, as long as all larger buffers of the process together do not exceed HEDDLE_SPOOL_LARGE_BUFFERS. A body
 * that fits into such a buffer can stay in memory without a file: heddle_body_memory_acquire counts it against the same
 * limit.
 */
enum {
    HEDDLE_SPOOL_BUFFER = 65536,           /* the normal size of a buffer */
    HEDDLE_SPOOL_LARGE_BUFFER = 262144,    /* the largest size that heddle_body_spool_make_room allocates */
    HEDDLE_SPOOL_LARGE_BUFFERS = 16777216, /* limit for all buffers above HEDDLE_SPOOL_BUFFER together */
    /* at most this many bytes are counted on disk before they are received, see heddle_body_spool_submit */
    HEDDLE_SPOOL_AHEAD = 1048576,
};

typedef enum {
    HEDDLE_SPOOL_FILLING, /* used by the owner */
    HEDDLE_SPOOL_QUEUED,  /* queued for the writer */
    HEDDLE_SPOOL_WRITING, /* used by the writer */
    HEDDLE_SPOOL_WRITTEN, /* its message is posted to the owner's loop */
    HEDDLE_SPOOL_ENDING, /* no holder is left; the writer, or the loop that receives the message, frees the spool */
} heddle_spool_state;

typedef struct heddle_body_spool heddle_body_spool;

/* A spool's owner and its loop, and the functions that the spool calls. */
typedef struct {
    void *owner;
    /*
     * Called on the owner's loop: the buffer was written (`error` is 0), or the write has failed (`error` is an errno).
     */
    void (*written)(void *owner, int error);
    /* Posts the message to the loop. Called on the writer's thread. Must not block. */
    void (*post)(void *loop, heddle_loop_message *message);
    void *loop;
} heddle_spool_owner;

/* A job for the writer: to write the buffer of `spool`, or, if `spool` is NULL, to close `fd`. */
typedef struct heddle_body_job heddle_body_job;
struct heddle_body_job {
    heddle_body_job *next, *previous;
    heddle_body_spool *spool;
    int fd;
    uint16_t address; /* the number of the client's address, see files.h */
};

struct heddle_body_spool {
    heddle_loop_message message;
    heddle_body_job job;
    heddle_spool_owner owner;
    heddle_spool_state state; /* protected by the writer's lock, unless it is FILLING */
    bool inherited;           /* this record is a forked child's copy, which no writer uses */
    bool kept;                /* the application uses the spool, so a forked child keeps the file open */
    bool awaits_file;         /* its file is counted (files.h), but not open yet */
    bool ended;               /* its file is closed, or will be closed after the last read */
    int fd;                   /* the descriptor of its file; -1: none */
    int error;                /* the errno of the last write, or 0 */
    unsigned holders;         /* references: the exchange has one, the Ruby object another */
    unsigned readers;         /* reads that are running */
    char *buffer;             /* from malloc; NULL: empty */
    size_t used, room;
    size_t large;             /* the buffer's bytes that count against HEDDLE_SPOOL_LARGE_BUFFERS */
    uint64_t size;            /* bytes in the file */
    uint64_t length;          /* the body's announced length, or 0 */
    heddle_body_disk_count counted; /* the spool's bytes on disk; they are counted before they are written */
    heddle_body_spool *next, *previous; /* all spools of the process; protected by the writer's lock */
    char folder[];
};

/* -- for the owner, on the loop's thread -------------------------------------------------------------------------- */

/*
 * Creates a spool. Returns NULL with errno ENOMEM, or EMFILE if this process or the client's address has too many
 * files.
 */
heddle_body_spool *heddle_body_spool_new(const char *folder, const heddle_spool_owner *owner, uint16_t address);
/* The value of `expected` for a body of unknown length. */
#define HEDDLE_SPOOL_UNKNOWN UINT64_MAX
/*
 * Returns the address for the next bytes, and sets `*size` to the room there (0 if the buffer is full). Returns NULL if
 * no memory is left. The caller stores the bytes and adds their number to `used`. `expected`: the number of bytes still
 * to be received.
 */
char *heddle_body_spool_make_room(heddle_body_spool *spool, uint64_t expected, size_t *size);
/* Stores bytes in the buffer, which must be empty and grows to any size. Returns false if no memory is left. */
bool heddle_body_spool_put(heddle_body_spool *spool, const char *bytes, size_t size);
static inline bool heddle_body_spool_full(const heddle_body_spool *spool)
{
    return spool->buffer && spool->used >= spool->room;
}
/* Frees the buffer if it is empty: a client that sends nothing needs none. */
void heddle_body_spool_trim(heddle_body_spool *spool);
/*
 * Passes the buffer to the writer, and counts its bytes on disk. If `limit` allows it, also counts bytes that are not
 * received yet: as many as were received, but at most HEDDLE_SPOOL_AHEAD, and not beyond `length`. So most buffers
 * need not change the count that all processes share, and a client that only announces a large body reserves nothing.
 * Returns 0, -ENOBUFS if `limit` leaves no room for the bytes (heddle_body_disk_take), or -EAGAIN if the
 * writer's thread could not be started.
 */
int heddle_body_spool_submit(heddle_body_spool *spool, uint64_t limit);
/*
 * Called when the response is complete. From now on the body does not count against the limit, although its file exists
 * until the spool is closed. Does nothing while the spool is being written. Idempotent.
 */
void heddle_body_spool_uncount(heddle_body_spool *spool);
/*
 * Called when the file is no longer needed. The writer closes the file after the last read. If the spool is being
 * written, the last heddle_body_spool_release closes the file instead. Idempotent.
 */
void heddle_body_spool_close(heddle_body_spool *spool);
/* Releases one of the references that `holders` counts. The last release closes and frees the spool, in any state. */
void heddle_body_spool_release(heddle_body_spool *spool);

/* -- a complete spool, for its holders; with the GVL -------------------------------------------------------------- */

/* Keeps the file open until heddle_body_spool_end_read. Returns false if there is no file, or the spool was closed. */
static inline bool heddle_body_spool_begin_read(heddle_body_spool *spool)
{
    if (spool->ended || spool->fd < 0)
        return false;
    spool->readers++;
    return true;
}
void heddle_body_spool_end_read(heddle_body_spool *spool);
/*
 * Reads up to `size` bytes from `offset` on. Returns their number or -errno. The number is smaller than `size` only at
 * the end of the file. May be called with or without the GVL.
 */
ssize_t heddle_body_spool_read(const heddle_body_spool *spool, uint64_t offset, char *memory, size_t size);

/* -- all spools of this process ----------------------------------------------------------------------------------- */

/*
 * Counts the memory of large buffers, and of bodies in memory that are larger than body_buffer. Returns false and
 * counts nothing if the sum would exceed HEDDLE_SPOOL_LARGE_BUFFERS. May be called on any thread.
 */
bool heddle_body_memory_acquire(size_t bytes);
void heddle_body_memory_release(size_t bytes);

/* -- body/writer.c; any thread ------------------------------------------------------------------------------------ */

/* Add a spool to the list of all spools, or remove it. A forked child uses the list to close inherited files. */
void heddle_body_writer_add(heddle_body_spool *spool);
void heddle_body_writer_remove(heddle_body_spool *spool);
/* Queues the spool for the writer. Returns 0, or -EAGAIN if the writer's thread could not be started. */
int heddle_body_writer_submit(heddle_body_spool *spool);
/*
 * Called when the last holder has released the spool. If this returns true, the caller must free the spool. Otherwise
 * the writer or the loop frees it later.
 */
bool heddle_body_writer_withdraw(heddle_body_spool *spool);
/*
 * Queues a file (-1: none) that is no longer needed. The writer closes it, because freeing the blocks of a large file
 * takes time. The `counted` bytes are subtracted at once. The writer closes the file before it writes any buffer that
 * is queued later, so the process never uses more bytes on disk than it counts.
 */
void heddle_body_writer_close(int fd, heddle_body_disk_count counted);
/* Called when the loop receives the message of a spool. */
void heddle_body_writer_deliver(heddle_loop_message *message);
void heddle_body_spool_free(heddle_body_spool *spool);
