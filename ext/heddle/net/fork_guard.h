#ifndef HEDDLE_FORK_GUARD_H
#define HEDDLE_FORK_GUARD_H

/*
 * For records with descriptors that a forked child must not keep: it closes them before other code runs. A
 * copy in a child would hold the connection open when the parent closes it. No Ruby here.
 */

typedef struct heddle_fork_guard heddle_fork_guard;
struct heddle_fork_guard {
    void (*in_child)(heddle_fork_guard *guard); /* only async-signal-safe calls */
    heddle_fork_guard *next, *previous;
};

void heddle_fork_guard_add(heddle_fork_guard *guard);
void heddle_fork_guard_remove(heddle_fork_guard *guard); /* idempotent */

#endif
