#include "http/body/spool.h"

heddle_body_spool *heddle_body_spool_new(const char *folder, const heddle_spool_owner *owner, uint16_t address)
{
    size_t length = strlen(folder) + 1;
    if (!heddle_body_files_count(address)) {
        errno = EMFILE;
        return NULL;
    }
    heddle_body_spool *spool = calloc(1, sizeof(*spool) + length);
    if (!spool) {
        heddle_body_files_uncount(address);
        errno = ENOMEM;
        return NULL;
    }
    spool->fd = -1;
    spool->awaits_file = true;
    spool->message.open = heddle_body_writer_deliver;
    spool->job.spool = spool;
    spool->owner = *owner;
    spool->counted.address = address;
    spool->holders = 1;
    memcpy(spool->folder, folder, length);
    heddle_body_writer_add(spool);
    return spool;
}

/* -- the buffer --------------------------------------------------------------------------------------------------- */

static _Atomic size_t large_buffers; /* total bytes of large buffers in this process */

bool heddle_body_memory_acquire(size_t bytes)
{
    size_t taken = atomic_load(&large_buffers);
    do {
        if (bytes > HEDDLE_SPOOL_LARGE_BUFFERS - taken)
            return false;
    } while (!atomic_compare_exchange_weak(&large_buffers, &taken, taken + bytes));
    return true;
}

void heddle_body_memory_release(size_t bytes)
{
    atomic_fetch_sub(&large_buffers, bytes);
}

static void free_buffer(heddle_body_spool *spool)
{
    free(spool->buffer);
    heddle_body_memory_release(spool->large);
    spool->buffer = NULL;
    spool->used = spool->room = spool->large = 0;
}

static bool allocate_buffer(heddle_body_spool *spool, uint64_t expected)
{
    if (expected == HEDDLE_SPOOL_UNKNOWN) /* the buffer grows with the file */
        expected = spool->size;
    if (expected > HEDDLE_SPOOL_LARGE_BUFFER)
        expected = HEDDLE_SPOOL_LARGE_BUFFER;
    if (expected > HEDDLE_SPOOL_BUFFER && heddle_body_memory_acquire((size_t)expected))
        spool->large = (size_t)expected;
    spool->room = spool->large ? spool->large : HEDDLE_SPOOL_BUFFER;
    spool->buffer = malloc(spool->room);
    if (!spool->buffer)
        free_buffer(spool);
    return spool->buffer != NULL;
}

char *heddle_body_spool_make_room(heddle_body_spool *spool, uint64_t expected, size_t *size)
{
    if (!spool->buffer && !allocate_buffer(spool, expected))
        return NULL;
    *size = spool->room - spool->used;
    return spool->buffer + spool->used;
}

bool heddle_body_spool_put(heddle_body_spool *spool, const char *bytes, size_t size)
{
    char *buffer = malloc(size);
    if (!buffer)
        return false;
    memcpy(buffer, bytes, size);
    free_buffer(spool);
    spool->buffer = buffer;
    spool->used = spool->room = size;
    if (size > HEDDLE_SPOOL_BUFFER && heddle_body_memory_acquire(size))
        spool->large = size;
    return true;
}

void heddle_body_spool_trim(heddle_body_spool *spool)
{
    if (!spool->used)
        free_buffer(spool);
}

static bool count_on_disk(heddle_body_spool *spool, uint64_t limit)
{
    uint64_t bytes = spool->size + spool->used;
    uint64_t ahead = bytes + (bytes < HEDDLE_SPOOL_AHEAD ? bytes : HEDDLE_SPOOL_AHEAD);
    if (spool->length >= bytes && ahead > spool->length)
        ahead = spool->length;
    return bytes <= spool->counted.bytes || heddle_body_disk_take(&spool->counted, ahead, limit) ||
           heddle_body_disk_take(&spool->counted, bytes, limit);
}

int heddle_body_spool_submit(heddle_body_spool *spool, uint64_t limit)
{
    return count_on_disk(spool, limit) ? heddle_body_writer_submit(spool) : -ENOBUFS;
}

/* -- release ------------------------------------------------------------------------------------------------------ */

static void close_file(heddle_body_spool *spool)
{
    int fd = spool->fd;
    heddle_body_disk_count counted = spool->counted;
    spool->fd = -1;
    spool->counted.bytes = 0;
    if (!spool->inherited)
        heddle_body_writer_close(fd, counted);
    else if (fd >= 0)
        heddle_body_file_close(fd, counted.address);
}

void heddle_body_spool_uncount(heddle_body_spool *spool)
{
    if (spool->state != HEDDLE_SPOOL_FILLING) /* the writer may be writing the buffer to the file */
        return;
    heddle_body_disk_release(spool->counted);
    spool->counted.bytes = 0;
}

void heddle_body_spool_close(heddle_body_spool *spool)
{
    spool->ended = true;
    if (!spool->readers && spool->state == HEDDLE_SPOOL_FILLING)
        close_file(spool);
}

void heddle_body_spool_end_read(heddle_body_spool *spool)
{
    if (--spool->readers == 0 && spool->ended)
        close_file(spool);
}

void heddle_body_spool_free(heddle_body_spool *spool)
{
    heddle_body_writer_remove(spool);
    close_file(spool);
    if (spool->awaits_file)
        heddle_body_files_uncount(spool->counted.address);
    free_buffer(spool);
    free(spool);
}

void heddle_body_spool_release(heddle_body_spool *spool)
{
    if (--spool->holders == 0 && heddle_body_writer_withdraw(spool))
        heddle_body_spool_free(spool);
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

ssize_t heddle_body_spool_read(const heddle_body_spool *spool, uint64_t offset, char *memory, size_t size)
{
    size_t done = 0;
    if (offset >= spool->size)
        return 0;
    if (size > spool->size - offset)
        size = (size_t)(spool->size - offset);
    while (done < size) {
        ssize_t bytes = pread(spool->fd, memory + done, size - done, (off_t)(offset + done));
        if (bytes == 0)
            break;
        if (bytes < 0 && errno != EINTR)
            return -errno;
        if (bytes > 0)
            done += (size_t)bytes;
    }
    return (ssize_t)done;
}
