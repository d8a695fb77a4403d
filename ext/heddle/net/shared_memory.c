/* Memory that several processes share: see shared_memory.h. */

#include "net/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int map_memory(heddle_shared_memory *memory, size_t size)
{
    int flags = memory->fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, memory->fd, 0);
    if (start == MAP_FAILED)
        return -errno;
    memory->start = start;
    memory->size = size;
    return 0;
}

int heddle_shared_memory_create(heddle_shared_memory *memory, const char *name, size_t size)
{
    int result = 0;
    *memory = (heddle_shared_memory){.fd = -1};
#ifdef HAVE_MEMFD_CREATE
    memory->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory->fd >= 0 && ftruncate(memory->fd, (off_t)size) != 0)
        result = -errno;
    /*
     * The memory is sealed. Otherwise a process with the descriptor could shrink the memory, and SIGBUS would kill the
     * other processes.
     */
    if (memory->fd >= 0 && result == 0)
        fcntl(memory->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
#endif
    if (result == 0)
        result = map_memory(memory, size);
    if (result < 0)
        heddle_shared_memory_close(memory);
    return result;
}

int heddle_shared_memory_open(heddle_shared_memory *memory, int fd, size_t least)
{
    struct stat status;
    *memory = (heddle_shared_memory){.fd = fd};
    int result = fstat(fd, &status) == 0 ? 0 : -errno;
    if (result == 0 && (size_t)status.st_size < least)
        result = -EPROTO;
    if (result == 0)
        result = map_memory(memory, (size_t)status.st_size);
    if (result < 0)
        heddle_shared_memory_close(memory);
    return result;
}

void heddle_shared_memory_close(heddle_shared_memory *memory)
{
    if (memory->start)
        munmap(memory->start, memory->size);
    if (memory->fd >= 0)
        close(memory->fd);
    *memory = (heddle_shared_memory){.fd = -1};
}
