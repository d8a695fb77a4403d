#include "http/body/files.h"

#include <fcntl.h>
#include <sys/resource.h>

/*
 * How many files are open or about to be opened: in total, and for each address number (heddle_address_find_number).
 * Index 0 counts the files of clients without a limit, and the files that a forked child has inherited.
 */
static _Atomic unsigned counted;
static _Atomic unsigned by_number[HEDDLE_ADDRESS_BUCKETS + 1];

unsigned heddle_body_files_limit(uint64_t descriptors)
{
    uint64_t share = descriptors / HEDDLE_BODY_FILES_SHARE;
    return share < HEDDLE_BODY_FILES_MOST ? (unsigned)share : HEDDLE_BODY_FILES_MOST;
}

unsigned heddle_body_files_most(void)
{
    struct rlimit limit;
    return heddle_body_files_limit(getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : UINT64_MAX);
}

bool heddle_body_files_count(uint16_t address)
{
    unsigned most = heddle_body_files_most(), of_address = atomic_fetch_add(&by_number[address], 1);
    unsigned room = address && of_address >= HEDDLE_BODY_FILES_FEW ? most - most / 4 : most;
    if (atomic_fetch_add(&counted, 1) < room && (!address || !of_address || of_address < most / 2))
        return true;
    heddle_body_files_uncount(address);
    return false;
}

void heddle_body_files_uncount(uint16_t address)
{
    atomic_fetch_sub(&by_number[address], 1);
    atomic_fetch_sub(&counted, 1);
}

unsigned heddle_body_files_open(void)
{
    return atomic_load(&counted);
}

/* The file has no name: no other process can open it, and the kernel removes it even if this process crashes. */
int heddle_body_file_open(const char *folder)
{
#ifdef O_TMPFILE
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT))
        return fd >= 0 ? fd : -errno;
#endif
    /* NFS, and overlayfs in old kernels, do not support O_TMPFILE. */
    char *name = NULL;
    if (asprintf(&name, "%s/heddle-body-XXXXXX", folder) < 0)
        return -ENOMEM;
    int named = mkostemp(name, O_CLOEXEC);
    int result = named >= 0 ? named : -errno;
    if (named >= 0)
        unlink(name);
    free(name);
    return result;
}

void heddle_body_file_close(int fd, uint16_t address)
{
    close(fd);
    heddle_body_files_uncount(address);
}

void heddle_body_files_after_fork(unsigned inherited)
{
    atomic_store(&counted, inherited);
    memset(by_number, 0, sizeof(by_number));
    atomic_store(&by_number[0], inherited);
}
