/*
 * Preloaded into a server: makes one call that heddle.so makes fail, once, as the system might.
 *
 * The test and the shim share a page, the file that HEDDLE_TORTURE names. The shim counts the calls of each function
 * that come from heddle.so; the one that the test has asked for, by function and number, does what the test says.
 * Calls of Ruby and of the C library pass untouched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* In the order of FUNCTIONS in shim.rb. */
enum function {
    FN_MALLOC, FN_CALLOC, FN_REALLOC, FN_ACCEPT4, FN_RECV, FN_RECVMSG, FN_READ, FN_READV, FN_SEND, FN_SENDMSG,
    FN_WRITEV, FN_SENDFILE, FN_EPOLL_CTL, FN_EPOLL_WAIT, FN_EPOLL_CREATE1, FN_EVENTFD, FN_GETSOCKNAME, FN_SETSOCKOPT,
    FN_SHUTDOWN, FN_SYSCALL, FN_COUNT
};

/* What the call does in place of what it should: an errno, or no more than one byte. */
#define SHORT (-1)

struct control {
    _Atomic uint32_t counting; /* calls are only counted, and fail, while this is set */
    _Atomic uint32_t function;
    _Atomic uint32_t number; /* the first is 1; with 0 none fails */
    _Atomic int32_t failure;
    _Atomic uint32_t fired;
    _Atomic uint32_t calls[FN_COUNT];
};

static struct control *control;
static uintptr_t low, high; /* where heddle.so's code is */

__attribute__((constructor)) static void
open_control(void)
{
    const char *path = getenv("HEDDLE_TORTURE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    control = page == MAP_FAILED ? NULL : page;
    close(fd);
}

static int
find_bounds(struct dl_phdr_info *info, size_t size, void *unused)
{
    const char *name = strrchr(info->dlpi_name ? info->dlpi_name : "", '/');

    (void)size, (void)unused;
    if (!name || strcmp(name, "/heddle.so") != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            low = info->dlpi_addr + part->p_vaddr;
            high = low + part->p_memsz;
        }
    }
    return 1;
}

/* Whether this call is the one that fails. Answers 0, an errno or SHORT. */
static int
failure_of(enum function function, const void *caller)
{
    if (!control || !atomic_load_explicit(&control->counting, memory_order_relaxed))
        return 0;
    if (!high)
        dl_iterate_phdr(find_bounds, NULL);
    if ((uintptr_t)caller < low || (uintptr_t)caller >= high)
        return 0;

    uint32_t number = atomic_fetch_add(&control->calls[function], 1) + 1;
    if (function != control->function || number != control->number)
        return 0;
    atomic_store(&control->fired, 1);
    return control->failure;
}

#define CALLER __builtin_return_address(0)

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* Allocation is needed to look symbols up: glibc has these by another name. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

void *
malloc(size_t size)
{
    int failure = failure_of(FN_MALLOC, CALLER);

    if (!failure)
        return __libc_malloc(size);
    errno = failure;
    return NULL;
}

void *
calloc(size_t count, size_t size)
{
    int failure = failure_of(FN_CALLOC, CALLER);

    if (!failure)
        return __libc_calloc(count, size);
    errno = failure;
    return NULL;
}

void *
realloc(void *memory, size_t size)
{
    int failure = failure_of(FN_REALLOC, CALLER);

    if (!failure)
        return __libc_realloc(memory, size);
    errno = failure;
    return NULL;
}

/*
 * Descriptors in epoll sets, as heddle.so has added them. Readiness that was not used up is not told again by an
 * edge-triggered set: where the shim makes a call stop early, it brings the edge that the system would bring.
 */
enum { MOST = 65536 };
static struct watched {
    int set; /* plus one */
    struct epoll_event event;
} watched[MOST];

static void
bring_edge(int fd)
{
    if (fd < 0 || fd >= MOST || !watched[fd].set)
        return;
    REAL(epoll_ctl);
    int saved = errno, set = watched[fd].set - 1;
    struct epoll_event event = watched[fd].event;
    if (event.events & EPOLLEXCLUSIVE) {
        /* Which can't be changed. */
        real(set, EPOLL_CTL_DEL, fd, &event);
        real(set, EPOLL_CTL_ADD, fd, &event);
    } else {
        real(set, EPOLL_CTL_MOD, fd, &event);
    }
    errno = saved;
}

int
epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
    REAL(epoll_ctl);
    int failure = operation == EPOLL_CTL_DEL ? 0 : failure_of(FN_EPOLL_CTL, CALLER);

    if (failure) {
        errno = failure;
        return -1;
    }
    int result = real(set, operation, fd, event);
    if (result == 0 && fd >= 0 && fd < MOST) {
        if (operation == EPOLL_CTL_DEL) {
            watched[fd].set = 0;
        } else if (event) {
            watched[fd].event = *event;
            watched[fd].set = set + 1;
        }
    }
    return result;
}

int
epoll_wait(int set, struct epoll_event *events, int most, int timeout)
{
    REAL(epoll_wait);
    /* One that does not wait is not interrupted. */
    int failure = timeout == 0 ? 0 : failure_of(FN_EPOLL_WAIT, CALLER);

    if (failure == SHORT)
        return 0;
    if (failure) {
        errno = failure;
        return -1;
    }
    return real(set, events, most, timeout);
}

int
epoll_create1(int flags)
{
    REAL(epoll_create1);
    int failure = failure_of(FN_EPOLL_CREATE1, CALLER);

    if (failure) {
        errno = failure;
        return -1;
    }
    return real(flags);
}

int
eventfd(unsigned count, int flags)
{
    REAL(eventfd);
    int failure = failure_of(FN_EVENTFD, CALLER);

    if (failure) {
        errno = failure;
        return -1;
    }
    return real(count, flags);
}

int
accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    REAL(accept4);
    int failure = failure_of(FN_ACCEPT4, CALLER);

    if (failure) {
        errno = failure;
        bring_edge(fd);
        return -1;
    }
    int result = real(fd, address, size, flags);
    if (result >= 0 && result < MOST)
        watched[result].set = 0; /* what an earlier holder of the number was in is gone */
    return result;
}

/* Calls that move bytes: `rest` is the call with one byte in place of all. */
#define TRANSFER(function, fd, whole, rest) \
    int failure = failure_of(function, CALLER); \
    if (failure == 0) \
        return whole; \
    bring_edge(fd); \
    if (failure == SHORT) \
        return rest; \
    errno = failure; \
    return -1

ssize_t
recv(int fd, void *data, size_t size, int flags)
{
    REAL(recv);
    TRANSFER(FN_RECV, fd, real(fd, data, size, flags), real(fd, data, size ? 1 : 0, flags));
}

ssize_t
read(int fd, void *data, size_t size)
{
    REAL(read);
    /* An eventfd gives all or nothing. */
    TRANSFER(FN_READ, fd, real(fd, data, size), real(fd, data, size));
}

ssize_t
send(int fd, const void *data, size_t size, int flags)
{
    REAL(send);
    TRANSFER(FN_SEND, fd, real(fd, data, size, flags), real(fd, data, size ? 1 : 0, flags));
}

ssize_t
sendfile(int to, int from, off_t *offset, size_t size)
{
    REAL(sendfile);
    TRANSFER(FN_SENDFILE, to, real(to, from, offset, size), real(to, from, offset, size ? 1 : 0));
}

/* The first byte of several pieces. */
static struct iovec
first_byte(const struct iovec *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].iov_len > 0)
            return (struct iovec){pieces[i].iov_base, 1};
    }
    return (struct iovec){NULL, 0};
}

ssize_t
readv(int fd, const struct iovec *pieces, int count)
{
    REAL(readv);
    struct iovec one = first_byte(pieces, (size_t)count);
    TRANSFER(FN_READV, fd, real(fd, pieces, count), real(fd, &one, 1));
}

ssize_t
writev(int fd, const struct iovec *pieces, int count)
{
    REAL(writev);
    struct iovec one = first_byte(pieces, (size_t)count);
    TRANSFER(FN_WRITEV, fd, real(fd, pieces, count), real(fd, &one, 1));
}

ssize_t
recvmsg(int fd, struct msghdr *message, int flags)
{
    REAL(recvmsg);
    struct iovec one = first_byte(message->msg_iov, message->msg_iovlen);
    struct msghdr small = {.msg_iov = &one, .msg_iovlen = 1};
    TRANSFER(FN_RECVMSG, fd, real(fd, message, flags), real(fd, &small, flags));
}

ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
    REAL(sendmsg);
    struct iovec one = first_byte(message->msg_iov, message->msg_iovlen);
    struct msghdr small = {.msg_iov = &one, .msg_iovlen = 1};
    TRANSFER(FN_SENDMSG, fd, real(fd, message, flags), real(fd, &small, flags));
}

int
getsockname(int fd, struct sockaddr *restrict address, socklen_t *restrict size)
{
    REAL(getsockname);
    int failure = failure_of(FN_GETSOCKNAME, CALLER);

    if (failure) {
        errno = failure;
        return -1;
    }
    return real(fd, address, size);
}

int
setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    REAL(setsockopt);
    int failure = failure_of(FN_SETSOCKOPT, CALLER);

    if (failure) {
        errno = failure;
        return -1;
    }
    return real(fd, level, name, value, size);
}

int
shutdown(int fd, int how)
{
    REAL(shutdown);
    int failure = failure_of(FN_SHUTDOWN, CALLER);

    if (failure) {
        errno = failure;
        return -1;
    }
    return real(fd, how);
}

/* The selectors' own waiting: epoll_pwait2, and io_uring_enter where it submits nothing. */
long
syscall(long number, ...)
{
    REAL(syscall);
    const void *caller = CALLER;
    long arguments[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);

    bool waits = false;
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2) {
        const struct timespec *limit = (const struct timespec *)(uintptr_t)arguments[3];
        waits = !limit || limit->tv_sec > 0 || limit->tv_nsec > 0;
    }
#endif
#ifdef SYS_io_uring_enter
    if (number == SYS_io_uring_enter)
        waits = arguments[1] == 0 && arguments[2] > 0;
#endif
    int failure = waits ? failure_of(FN_SYSCALL, caller) : 0;

    if (failure) {
        errno = failure;
        return -1;
    }
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
