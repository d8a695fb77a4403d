#ifndef HEDDLE_PUBSUB_FANOUT_WAIT_H
#define HEDDLE_PUBSUB_FANOUT_WAIT_H

/*
 * How a loop learns that the history has a new message: all processes have the same eventfd, and each has it, edge-triggered, in
 * an epoll set of its own, so that nobody has to read it. Where there is no epoll, publishing wakes the loops of this
 * process only.
 */

#include "net/fork_guard.h"
#include "scheduler/loop.h"

typedef struct heddle_fanout_wait heddle_fanout_wait;
/* In the loop, with the GVL; it must look until there is nothing more, or ask to come back. */
typedef void heddle_fanout_wait_fn(heddle_fanout_wait *wait);

typedef struct heddle_fanout_message heddle_fanout_message;

struct heddle_fanout_wait {
    heddle_waiter waiter;
    heddle_fork_guard guard;
    heddle_loop *loop;
    heddle_fanout_wait_fn *fn;
    heddle_fanout_message *message; /* makes the loop come back in its next tick */
    int epoll_fd;   /* -1: closed */
    bool abandoned; /* it is the parent process's */
};

void heddle_fanout_wait_init(heddle_fanout_wait *wait);
/* 0 or -errno. */
int heddle_fanout_wait_open(heddle_fanout_wait *wait, heddle_loop *loop, int wake_fd, heddle_fanout_wait_fn *fn);
void heddle_fanout_wait_come_back(heddle_fanout_wait *wait);
void heddle_fanout_wait_close(heddle_fanout_wait *wait); /* idempotent */
/* The loop may be gone already. Idempotent. */
void heddle_fanout_wait_abandon(heddle_fanout_wait *wait);

#endif
