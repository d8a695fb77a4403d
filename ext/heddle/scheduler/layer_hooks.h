#pragma once

/*
 * Hooks that the layers above fill in when they are initialized, before there is a loop. So the scheduler includes
 * nothing of watch/, preempt/ and offload/.
 */

#include "scheduler/heartbeat.h"

typedef struct heddle_loop heddle_loop;
typedef struct heddle_fiber heddle_fiber;

typedef struct {
    /* -- watch: whether a loop is late, and why -- */
    bool (*is_watching)(void);
    /* Returns a heartbeat for a loop that begins to run on this thread; NULL if out of memory. */
    heddle_heartbeat *(*acquire_heartbeat)(void *loop, uintptr_t thread);
    void (*release_heartbeat)(heddle_heartbeat *heartbeat);
    void (*rouse_watch)(void);
    /* Calls Ruby to report the stalls that were noted. */
    void (*announce_stalls)(heddle_loop *loop);
    /* Called before the current fiber waits in place in a callback of this library. */
    void (*begin_wait_in_place)(heddle_loop *loop, const char *library);
    void (*prolong_wait_in_place)(heddle_loop *loop);
    /* Called before a switch from the calling fiber while callbacks are reported. Never raises. */
    void (*report_callback)(heddle_loop *loop);

    /* -- preempt: a fiber that computes beyond its slice -- */
    /* Called before a loop runs on this thread. */
    void (*prepare_preemption)(void);
    /* Starts or stops following the switches of this loop's fibers. */
    void (*follow_switches)(heddle_loop *loop, bool follow);
    /* Raises the exception of a preemption that Thread.handle_interrupt has delayed in the calling fiber. */
    void (*raise_delivered_error)(heddle_fiber *fiber);
    /*
     * Takes that exception back from the thread: before a switch, or when the fiber or the time limit's block ends. The
     * exception stays due.
     */
    void (*take_back_error)(heddle_fiber *fiber);
    /* Raises a kill of the loop's thread in the loop's fiber, where no other code can raise it. */
    void (*raise_kill)(heddle_loop *loop);
    /* Called before a preempted fiber continues; when the program ends, no such fiber continues. */
    void (*end_preempted)(heddle_loop *loop);

    /* -- offload -- */
    /* Returns the number of threads for native calls if all of them are idle, or -1 if some run a call. */
    long (*count_idle_threads)(void);
} heddle_layer_hooks;

extern heddle_layer_hooks heddle_hooks;

/* Variables that the loop reads in each tick. Written by the layers above, with the GVL (except the first one). */
/* the watch thread sleeps: a loop that stops being idle wakes it, after it has written its heartbeat */
extern _Atomic int heddle_watch_asleep;
extern bool heddle_stalls_pending;       /* stalls were noted and not yet announced */
extern bool heddle_preempting;          /* preemption is on */
extern bool heddle_reporting_callbacks; /* `report_callback` is to be called at each switch of fibers */
