#include "http/body/files.h"

#include <fcntl.h>
#include <sys/resource.h>

/* Only the writer thread opens and releases files. The lock protects the list from forks and tests. */
static struct {
    pthread_mutex_t lock;
    heddle_body_file *first;
    unsigned count;
    uint64_t bytes;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic unsigned counted; /* open files of bodies, without the kept ones … */
static _Atomic unsigned by_number[HEDDLE_ADDRESS_BUCKETS + 1]; /* … and by address; 0: clients without a limit */

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
    if (atomic_fetch_add(&counted, 1) < most && (!address || !of_address || of_address < most / 2))
        return true;
    heddle_body_files_uncount(address);
    return false;
}

void heddle_body_files_uncount(uint16_t address)
{
    atomic_fetch_sub(&by_number[address], 1);
    atomic_fetch_sub(&counted, 1);
}

/* No other process can open the file, and the kernel removes it however this process ends. */
static int open_unnamed(const char *folder)
{
#ifdef O_TMPFILE
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT))
        return fd >= 0 ? fd : -errno;
#endif
    /* Some file systems have no O_TMPFILE: NFS, and overlayfs in old kernels. */
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

static heddle_body_file *take_spare(const char *folder)
{
    heddle_body_file *found = NULL;
    pthread_mutex_lock(&spare.lock);
    for (heddle_body_file **one = &spare.first; *one; one = &(*one)->next) {
        if (strcmp((*one)->folder, folder) != 0)
            continue;
        found = *one;
        *one = found->next;
        spare.count--;
        spare.bytes -= found->size;
        break;
    }
    pthread_mutex_unlock(&spare.lock);
    return found;
}

int heddle_body_file_open(const char *folder, heddle_body_file **file)
{
    size_t length = strlen(folder) + 1;
    *file = take_spare(folder);
    if (*file)
        return 0;
    heddle_body_file *made = calloc(1, sizeof(*made) + length);
    if (!made)
        return ENOMEM;
    memcpy(made->folder, folder, length);
    made->fd = open_unnamed(folder);
    if (made->fd < 0) {
        int error = -made->fd;
        free(made);
        return error;
    }
    *file = made;
    return 0;
}

static void close_file(heddle_body_file *file)
{
    close(file->fd);
    free(file);
}

void heddle_body_file_close(heddle_body_file *file)
{
    uint16_t address = file->address;
    close_file(file);
    heddle_body_files_uncount(address);
}

void heddle_body_file_release(heddle_body_file *file)
{
    uint16_t address = file->address;
    pthread_mutex_lock(&spare.lock);
    bool kept = !file->shared && !file->failed && spare.count < HEDDLE_BODY_FILES_SPARE &&
                spare.bytes + file->size <= HEDDLE_BODY_FILES_SPARE_BYTES &&
                spare.count + atomic_load(&counted) <= heddle_body_files_most();
    if (kept) {
        file->next = spare.first;
        spare.first = file;
        spare.count++;
        spare.bytes += file->size;
    }
    pthread_mutex_unlock(&spare.lock);
    if (kept)
        heddle_body_files_uncount(address);
    else
        heddle_body_file_close(file);
}

bool heddle_body_files_any_spare(void)
{
    pthread_mutex_lock(&spare.lock);
    bool any = spare.first != NULL;
    pthread_mutex_unlock(&spare.lock);
    return any;
}

/* Called with the lock held, or while there is no other thread. */
static heddle_body_file *take_all(void)
{
    heddle_body_file *all = spare.first;
    spare.first = NULL;
    spare.count = 0;
    spare.bytes = 0;
    return all;
}

void heddle_body_files_close_spares(void)
{
    pthread_mutex_lock(&spare.lock);
    heddle_body_file *file = take_all();
    pthread_mutex_unlock(&spare.lock);
    while (file) {
        heddle_body_file *next = file->next;
        close_file(file);
        file = next;
    }
}

void heddle_body_files_before_fork(void)
{
    pthread_mutex_lock(&spare.lock);
}

void heddle_body_files_after_fork(bool in_child, unsigned inherited)
{
    if (!in_child) {
        pthread_mutex_unlock(&spare.lock);
        return;
    }
    for (heddle_body_file *file = take_all(); file; file = file->next)
        close(file->fd); /* the record leaks: a child must not call free here */
    atomic_store(&counted, inherited);
    memset(by_number, 0, sizeof(by_number));
    atomic_store(&by_number[0], inherited);
    pthread_mutex_init(&spare.lock, NULL);
}
