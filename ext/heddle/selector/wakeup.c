/* A descriptor that wakes a selector from another thread: see wakeup.h. */

#include "wakeup.h"

#include "system.h"

#include <fcntl.h>

#if defined(__linux__) && !defined(HEDDLE_LIBKQUEUE) /* libkqueue has no filter for an eventfd */
#define HEDDLE_EVENTFD 1
#include <sys/eventfd.h>
#endif

int heddle_wakeup_open(heddle_wakeup *wakeup)
{
#ifdef HEDDLE_EVENTFD
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    wakeup->read_fd = wakeup->write_fd = fd;
#else
    int fds[2];
    if (pipe(fds) != 0)
        return -errno;
    for (int i = 0; i < 2; i++) {
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
    }
    wakeup->read_fd = fds[0];
    wakeup->write_fd = fds[1];
#endif
    return 0;
}

void heddle_wakeup_close(heddle_wakeup *wakeup)
{
    if (wakeup->read_fd >= 0)
        close(wakeup->read_fd);
    if (wakeup->write_fd >= 0 && wakeup->write_fd != wakeup->read_fd)
        close(wakeup->write_fd);
    wakeup->read_fd = wakeup->write_fd = -1;
}

void heddle_wakeup_signal(heddle_wakeup *wakeup)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t written;

    /* EAGAIN is not an error: the counter or the pipe is full, so a wake-up is pending already. */
    HEDDLE_RETRY(written, write(wakeup->write_fd, &one, sizeof(one)));
    errno = saved;
}

void heddle_wakeup_drain(heddle_wakeup *wakeup)
{
    uint64_t buffer[16];
    ssize_t got;

    do {
        got = read(wakeup->read_fd, buffer, sizeof(buffer));
    } while (got == (ssize_t)sizeof(buffer) || (got < 0 && errno == EINTR));
}
