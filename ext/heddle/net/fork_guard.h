#pragma once

/*
 * Closes descriptors in a forked child before fork returns there. Otherwise the child's copy of a descriptor would keep
 * the connection open after the parent has closed it. Uses no Ruby.
 */

typedef struct heddle_fork_guard heddle_fork_guard;
struct heddle_fork_guard {
    void (*in_child)(heddle_fork_guard *guard); /* may call only async-signal-safe functions */
    heddle_fork_guard *next, *previous;
};

void heddle_fork_guard_add(heddle_fork_guard *guard);
void heddle_fork_guard_remove(heddle_fork_guard *guard); /* idempotent */

/*
 * For use in `in_child`. Makes the descriptor refer to /dev/null: the child's copy of the socket is closed, but the
 * descriptor's number remains in use, because Ruby's IO object closes this number later.
 */
void heddle_fork_guard_replace(int fd);
