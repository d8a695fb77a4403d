#ifndef HEDDLE_LOOP_HOOKS_H
#define HEDDLE_LOOP_HOOKS_H

/*
 * Hooks of the layers above at points of a loop. Each layer fills in its own part when it is initialized, before there
 * is a loop. So the scheduler includes nothing of watch/, preempt/ and offload/.
 */

#include "scheduler/heartbeat.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct heddle_loop heddle_loop;
typedef struct heddle_fiber heddle_fiber;

typedef struct {
    /* -- watch: whether a loop is late, and why -- */
    bool (*is_watching)(void);
    /* A heartbeat for a loop that begins to run on this thread; NULL without memory. */
    heddle_heartbeat *(*acquire_heartbeat)(void *loop, uintptr_t thread);
    void (*release_heartbeat)(heddle_heartbeat *heartbeat);
    void (*rouse_watch)(void);
    /* Stalls were noted: Ruby reports them. */
    void (*announce_stalls)(heddle_loop *loop);
    /* The current fiber is about to wait in place, in a callback of this library; it has waited until now. */
    void (*begin_wait_in_place)(heddle_loop *loop, const char *library);
    void (*prolong_wait_in_place)(heddle_loop *loop);
    /* The calling fiber is about to be left for another one, while a report of callbacks is wanted. Never raises. */
    void (*report_callback)(heddle_loop *loop);

    /* -- preempt: a fiber that computes beyond its slice -- */
    /* A loop is about to run on this thread. */
    void (*prepare_preemption)(void);
    /* Follows the switches of this loop's fibers, or stops. */
    void (*follow_switches)(heddle_loop *loop, bool follow);
    /* Raises what was delivered to the calling fiber, if Thread.handle_interrupt has kept it until now. */
    void (*raise_delivered)(heddle_fiber *fiber);
    /* It is not to be raised here. */
    void (*take_back_delivered)(heddle_fiber *fiber);
    /* Raises, in the loop, for a kill of its thread that nothing else can give effect to. */
    void (*raise_kill)(heddle_loop *loop);

    /* -- offload -- */
    /* How many threads there are for native calls; -1: some have a call. */
    long (*count_idle_threads)(void);
} heddle_loop_hooks;

extern heddle_loop_hooks heddle_hooks;

/* The fields that the loop reads in each tick. Written by the layers above, with the GVL but for the first. */
extern _Atomic int heddle_watch_asleep; /* a loop that stops being idle rouses the watch, after its heartbeat */
extern bool heddle_stalls_pending;       /* stalls were noted, and not announced */
extern bool heddle_preempting;          /* preemption is on */
extern bool heddle_reporting_callbacks; /* each switch of fibers is to be looked at */

#endif
