#include "offload/libc_hooks.h"

#include "offload/call.h"
#include "offload/caller.h"
#include "native_code/import_table.h"
#include "offload/policy.h"
#include "offload/replacements.h"

#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>

int ruby_thread_has_gvl_p(void); /* Ruby exports it, but no header declares it */

/* -- one call ------------------------------------------------------------------------------------------------------ */

/*
 * Returns the loop of the calling fiber if its calls may be offloaded. Returns NULL otherwise, for example without the
 * GVL, or on a thread that has no loop or that Ruby has not created. The library then waits as without Heddle.
 */
static heddle_loop *current_loop(void)
{
    return heddle_offload_on() && ruby_thread_has_gvl_p() ? heddle_offload_find_loop() : NULL;
}

typedef struct {
    intptr_t arguments[5];
    intptr_t result;
} libc_call;

/*
 * Makes the call on an offload thread, or else in place. The call never ends early, because the library does not expect
 * an exception from a function of libc.
 */
static intptr_t offload_call(heddle_loop *loop, void *(*function)(void *), libc_call *call)
{
    int saved = errno;
    heddle_job job = {.function = function, .data = call};
    heddle_function *record = heddle_function_record((void *)function);
    if (!heddle_offload_run(loop, &job, record, HEDDLE_CALL_CONTINUES)) {
        errno = saved;
        function(call);
    } else if (call->result != -1) {
        errno = saved;
    }
    return call->result;
}

#define ARGUMENTS(...) {.arguments = {__VA_ARGS__}}

/* Defines run_<name>, which runs on an offload thread and calls the function `name` with the call's arguments. */
#define DEFINE_CALL(name, ...)                                                                                         \
    static void *run_##name(void *data)                                                                                \
    {                                                                                                                  \
        intptr_t *at = ((libc_call *)data)->arguments;                                                                 \
        ((libc_call *)data)->result = name(__VA_ARGS__);                                                               \
        return NULL;                                                                                                   \
    }

DEFINE_CALL(poll, (struct pollfd *)at[0], (nfds_t)at[1], (int)at[2])

static int hooked_poll(struct pollfd *descriptors, nfds_t count, int timeout)
{
    heddle_loop *loop = timeout == 0 ? NULL : current_loop();
    if (!loop)
        return poll(descriptors, count, timeout);
    int now = poll(descriptors, count, 0);
    if (now != 0)
        return now;
    libc_call call = ARGUMENTS((intptr_t)descriptors, (intptr_t)count, timeout);
    return (int)offload_call(loop, run_poll, &call);
}

/* Replaces __poll_chk, which code that was compiled with glibc's fortified headers calls instead of poll. */
static int hooked_poll_chk(struct pollfd *descriptors, nfds_t count, int timeout, size_t size)
{
    if (size / sizeof(*descriptors) < count)
        abort();
    return hooked_poll(descriptors, count, timeout);
}

DEFINE_CALL(select, (int)at[0], (fd_set *)at[1], (fd_set *)at[2], (fd_set *)at[3], (struct timeval *)at[4])

static int hooked_select(int count, fd_set *readable, fd_set *writable, fd_set *failing, struct timeval *timeout)
{
    heddle_loop *loop = timeout && timeout->tv_sec == 0 && timeout->tv_usec == 0 ? NULL : current_loop();
    if (!loop)
        return select(count, readable, writable, failing, timeout);
    libc_call call = ARGUMENTS(count, (intptr_t)readable, (intptr_t)writable, (intptr_t)failing, (intptr_t)timeout);
    return (int)offload_call(loop, run_select, &call);
}

DEFINE_CALL(nanosleep, (const struct timespec *)at[0], (struct timespec *)at[1])

static int hooked_nanosleep(const struct timespec *duration, struct timespec *rest)
{
    heddle_loop *loop = current_loop();
    if (!loop)
        return nanosleep(duration, rest);
    libc_call call = ARGUMENTS((intptr_t)duration, (intptr_t)rest);
    return (int)offload_call(loop, run_nanosleep, &call);
}

static int hooked_usleep(useconds_t duration)
{
    struct timespec time = {.tv_sec = duration / 1000000, .tv_nsec = (long)(duration % 1000000) * 1000};
    return hooked_nanosleep(&time, NULL);
}

static unsigned hooked_sleep(unsigned seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds}, rest = {0};
    if (hooked_nanosleep(&time, &rest) == 0)
        return 0;
    return (unsigned)rest.tv_sec + (rest.tv_nsec >= 500000000);
}

DEFINE_CALL(connect, (int)at[0], (const struct sockaddr *)at[1], (socklen_t)at[2])

/* Also offloads connect for a non-blocking socket, which costs one unnecessary offload for each connection. */
static int hooked_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    heddle_loop *loop = current_loop();
    if (!loop)
        return connect(fd, address, length);
    libc_call call = ARGUMENTS(fd, (intptr_t)address, (intptr_t)length);
    return (int)offload_call(loop, run_connect, &call);
}

DEFINE_CALL(recv, (int)at[0], (void *)at[1], (size_t)at[2], (int)at[3])

/* First tries without waiting, because only a call that would wait needs an offload thread. */
static ssize_t hooked_recv(int fd, void *buffer, size_t length, int flags)
{
    heddle_loop *loop = flags & MSG_DONTWAIT ? NULL : current_loop();
    if (!loop)
        return recv(fd, buffer, length, flags);
    if (!(flags & MSG_WAITALL)) {
        ssize_t now = recv(fd, buffer, length, flags | MSG_DONTWAIT);
        if (now >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
            return now;
    }
    libc_call call = ARGUMENTS(fd, (intptr_t)buffer, (intptr_t)length, flags);
    return (ssize_t)offload_call(loop, run_recv, &call);
}

static ssize_t hooked_recv_chk(int fd, void *buffer, size_t length, size_t size, int flags)
{
    if (size < length)
        abort();
    return hooked_recv(fd, buffer, length, flags);
}

/* -- the libraries that are hooked --------------------------------------------------------------- */

static const heddle_import hooks[] = {
    {"poll", NULL, (void *)hooked_poll},
    {"__poll_chk", NULL, (void *)hooked_poll_chk},
    {"select", NULL, (void *)hooked_select},
    {"nanosleep", NULL, (void *)hooked_nanosleep},
    {"usleep", NULL, (void *)hooked_usleep},
    {"sleep", NULL, (void *)hooked_sleep},
    {"connect", NULL, (void *)hooked_connect},
    {"recv", NULL, (void *)hooked_recv},
    {"__recv_chk", NULL, (void *)hooked_recv_chk},
};

static pthread_mutex_t intercepting = PTHREAD_MUTEX_INITIALIZER;
static char **intercepted;
static size_t intercepted_count;

static bool intercept_object(heddle_object *object, void *data)
{
    const char *path = object->path;
    if (!heddle_policy_is_listed(HEDDLE_LIST_LIBC, path) || heddle_policy_is_listed(HEDDLE_LIST_DENIED, path) ||
        heddle_object_contains(object, (void *)intercept_object))
        return false;
    /* Also done if `intercepted` contains the library: it may have been unloaded and loaded again since. */
    if (heddle_object_intercept(object, hooks, sizeof(hooks) / sizeof(hooks[0])) <= 0)
        return false;
    for (size_t i = 0; i < intercepted_count; i++) {
        if (strcmp(intercepted[i], path) == 0)
            return false;
    }
    char **more = realloc(intercepted, (intercepted_count + 1) * sizeof(*more)), *copy = strdup(path);
    if (more)
        intercepted = more;
    if (more && copy)
        intercepted[intercepted_count++] = copy;
    else
        free(copy);
    return false;
}

void heddle_libc_intercept(void)
{
    pthread_mutex_lock(&intercepting);
    heddle_objects_each(intercept_object, NULL);
    pthread_mutex_unlock(&intercepting);
}

size_t heddle_libc_count(void)
{
    return intercepted_count;
}

const char *heddle_libc_library(size_t index)
{
    return index < intercepted_count ? intercepted[index] : NULL;
}
