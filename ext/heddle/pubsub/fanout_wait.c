#include "pubsub/fanout_wait.h"

#include "net/link.h"

#ifdef HAVE_SYS_EPOLL_H
#include <sys/epoll.h>
#endif

void heddle_fanout_wait_init(heddle_fanout_wait *wait)
{
    *wait = (heddle_fanout_wait){.epoll_fd = -1};
}

static void call_fn(void *owner)
{
    heddle_fanout_wait *wait = owner;
    wait->fn(wait);
}

void heddle_fanout_wait_call_again(heddle_fanout_wait *wait)
{
    heddle_next_tick_call_post(wait->message, &wait->loop->inbox);
}

static void abandon_in_child(heddle_fork_guard *guard)
{
    heddle_fanout_wait *wait = HEDDLE_CONTAINER_OF(guard, heddle_fanout_wait, guard);
    wait->abandoned = true;
    if (wait->epoll_fd >= 0)
        close(wait->epoll_fd);
    wait->epoll_fd = -1;
}

#ifdef HAVE_SYS_EPOLL_H

static void handle_ready(heddle_waiter *waiter, int result, uint32_t flags)
{
    heddle_fanout_wait *wait = HEDDLE_CONTAINER_OF(waiter, heddle_fanout_wait, waiter);
    struct epoll_event event;
    if (!(flags & HEDDLE_MORE)) { /* io_uring drops a persistent waiter when its queue overflows */
        heddle_loop_count_disarmed(wait->loop);
        heddle_loop_arm(wait->loop, waiter);
    }
    /* Clears the event before `fn` reads: a message that is published meanwhile causes another event. */
    while (epoll_wait(wait->epoll_fd, &event, 1, 0) > 0) {
    }
    wait->fn(wait);
}

static int watch_eventfd(heddle_fanout_wait *wait, int wake_fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    wait->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (wait->epoll_fd < 0)
        return -errno;
    if (epoll_ctl(wait->epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) != 0)
        return -errno;
    wait->waiter = (heddle_waiter){
        .fn = handle_ready, .fd = wait->epoll_fd, .events = HEDDLE_READABLE, .mode = HEDDLE_PERSISTENT};
    int result = heddle_loop_arm(wait->loop, &wait->waiter);
    if (result > 0) /* some selectors report at once instead of arming */
        wait->waiter.fn(&wait->waiter, result, 0);
    return result < 0 ? result : 0;
}

#else

/* Fails, because without epoll nothing would wake the loop. */
static int watch_eventfd(heddle_fanout_wait *wait, int wake_fd)
{
    return -ENOSYS;
}

#endif

int heddle_fanout_wait_open(heddle_fanout_wait *wait, heddle_loop *loop, int wake_fd, heddle_fanout_wait_fn *fn)
{
    wait->loop = loop;
    wait->fn = fn;
    wait->message = heddle_next_tick_call_new(call_fn, wait);
    if (!wait->message)
        return -ENOMEM;
    wait->guard.in_child = abandon_in_child;
    int result = watch_eventfd(wait, wake_fd);
    if (result == 0)
        heddle_fork_guard_add(&wait->guard);
    else
        heddle_fanout_wait_abandon(wait);
    return result;
}

void heddle_fanout_wait_close(heddle_fanout_wait *wait)
{
    if (wait->waiter.fn && wait->epoll_fd >= 0 && !wait->abandoned && !heddle_loop_is_closed(wait->loop))
        heddle_loop_disarm(wait->loop, &wait->waiter);
    heddle_fanout_wait_abandon(wait);
}

void heddle_fanout_wait_abandon(heddle_fanout_wait *wait)
{
    if (wait->guard.in_child)
        heddle_fork_guard_remove(&wait->guard);
    if (wait->epoll_fd >= 0)
        close(wait->epoll_fd);
    wait->epoll_fd = -1;
    heddle_next_tick_call_drop(&wait->message);
}
