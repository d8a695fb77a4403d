#pragma once

/*
 * Closes descriptors in a forked child before other code runs there. Otherwise the child's copy would keep the
 * connection open after the parent has closed it. Uses no Ruby.
 */

typedef struct heddle_fork_guard heddle_fork_guard;
struct heddle_fork_guard {
    void (*in_child)(heddle_fork_guard *guard); /* may make only async-signal-safe calls */
    heddle_fork_guard *next, *previous;
};

void heddle_fork_guard_add(heddle_fork_guard *guard);
void heddle_fork_guard_remove(heddle_fork_guard *guard); /* idempotent */

/*
 * For use in in_child: makes the descriptor refer to /dev/null. Its number stays in use, because Ruby's IO closes it
 * later; the socket itself remains only in the parent.
 */
void heddle_fork_guard_replace(int fd);
