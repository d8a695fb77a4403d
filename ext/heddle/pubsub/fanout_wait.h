#pragma once

/*
 * Notifies a loop of new messages. All processes share an eventfd. Each loop watches it, edge-triggered, through its
 * own epoll descriptor, so that no loop needs to read it. Without epoll, heddle_fanout_wait_open fails.
 */

#include "net/fork_guard.h"
#include "net/next_tick_call.h"
#include "scheduler/loop.h"

typedef struct heddle_fanout_wait heddle_fanout_wait;
/* Called in the loop, with the GVL. It must read all new messages, or ask to be called again. */
typedef void heddle_fanout_wait_fn(heddle_fanout_wait *wait);

struct heddle_fanout_wait {
    heddle_waiter waiter;
    heddle_fork_guard guard;
    heddle_loop *loop;
    heddle_fanout_wait_fn *fn;
    heddle_next_tick_call *message; /* makes the loop call `fn` in its next tick */
    int epoll_fd;   /* -1: closed */
    bool abandoned; /* this is a forked child, and the record belongs to the parent */
};

void heddle_fanout_wait_init(heddle_fanout_wait *wait);
/* Begins to call `fn` when messages are published. `wake_fd`: the history's eventfd. Returns 0 or -errno. */
int heddle_fanout_wait_open(heddle_fanout_wait *wait, heddle_loop *loop, int wake_fd, heddle_fanout_wait_fn *fn);
/* Makes the loop call `fn` in its next tick, without an event. */
void heddle_fanout_wait_call_again(heddle_fanout_wait *wait);
void heddle_fanout_wait_close(heddle_fanout_wait *wait); /* idempotent */
/* Closes the record without using the loop, which may already be freed. Idempotent. */
void heddle_fanout_wait_abandon(heddle_fanout_wait *wait);
