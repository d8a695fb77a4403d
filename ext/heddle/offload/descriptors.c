#include "offload/descriptors.h"

#include "selector/list.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static heddle_descriptor_call *calls;
static _Atomic unsigned call_count; /* the length of `calls`; while this is 0, closing a descriptor needs no search */
static pid_t process;

static heddle_descriptor_call *find_call(int fd)
{
    heddle_descriptor_call *call = calls;
    while (call && call->fd != fd)
        call = call->next;
    return call;
}

static void unlink_call(heddle_descriptor_call *call)
{
    HEDDLE_LIST_REMOVE(calls, call);
    atomic_fetch_sub(&call_count, 1);
    call->entered = false;
}

bool heddle_descriptor_enter(heddle_descriptor_call *call)
{
    pthread_mutex_lock(&lock);
    heddle_descriptor_call *other = find_call(call->fd);
    bool open = !other || !other->closed;
    if (open) {
        call->entered = true;
        HEDDLE_LIST_ADD(calls, call);
        atomic_fetch_add(&call_count, 1);
    }
    pthread_mutex_unlock(&lock);
    return open;
}

bool heddle_descriptor_leave(heddle_descriptor_call *call)
{
    if (!call->entered)
        return call->closed;
    pthread_mutex_lock(&lock);
    unlink_call(call);
    bool last = call->closed && !find_call(call->fd);
    pthread_mutex_unlock(&lock);
    /* heddle_descriptor_close has already returned 0, so an error can't be reported */
    if (last)
        close(call->fd);
    return call->closed;
}

bool heddle_descriptor_in_use(int fd)
{
    if (atomic_load(&call_count) == 0)
        return false;
    pthread_mutex_lock(&lock);
    bool used = find_call(fd);
    pthread_mutex_unlock(&lock);
    return used;
}

int heddle_descriptor_close(int fd)
{
    /*
     * A child process after vfork has its own descriptors, but shares the parent's memory. So the list contains the
     * parent's calls.
     */
    if (atomic_load(&call_count) == 0 || getpid() != process)
        return close(fd);
    pthread_mutex_lock(&lock);
    heddle_descriptor_call *first = find_call(fd);
    bool closed_already = first && first->closed;
    for (heddle_descriptor_call *call = closed_already ? NULL : first; call; call = call->next) {
        if (call->fd != fd)
            continue;
        call->closed = true;
        call->notify(call);
    }
    pthread_mutex_unlock(&lock);
    if (!first)
        return close(fd);
    if (!closed_already)
        return 0;
    errno = EBADF;
    return -1;
}

/*
 * Called in a forked child, where no call continues. Closes the descriptors that Ruby has closed, but that calls of the
 * parent have kept open.
 */
static void forget_calls(void)
{
    pthread_mutex_init(&lock, NULL);
    process = getpid();
    while (calls) {
        heddle_descriptor_call *call = calls;
        unlink_call(call);
        if (call->closed && !find_call(call->fd))
            close(call->fd);
    }
}

void heddle_descriptors_setup(void)
{
    process = getpid();
    pthread_atfork(NULL, NULL, forget_calls);
}
