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
    /* Called before the current fiber waits in place in a callback from `library` (a path, or ""). */
    void (*begin_wait_in_place)(heddle_loop *loop, const char *library);
    void (*prolong_wait_in_place)(heddle_loop *loop);
    /* Called before a switch from the calling fiber while callbacks are reported. Never raises. */
    void (*report_callback)(heddle_loop *loop);

    /* -- preempt: a fiber that computes beyond its slice -- */
    /* Called before a loop runs on this thread. */
    void (*prepare_preemption)(void);
    /* Starts or stops following the switches of this loop's fibers. */
    void (*follow_switches)(heddle_loop *loop, bool follow);
    /*
     * `delivered_error` is an exception that came for a fiber during a preemption, and that Thread.handle_interrupt
     * delays. Raises it in the calling fiber.
     */
    void (*raise_delivered_error)(heddle_fiber *fiber);
    /*
     * Called before a switch, and when the fiber, or the block of a time limit, ends. Removes that exception from the
     * thread's queue, so that no other fiber raises it, and keeps it for the fiber.
     */
    void (*take_back_error)(heddle_fiber *fiber);
    /*
     * The loop's thread was killed while C code caught exceptions (`preempt.killed`). Raises Heddle::Cancelled for
     * that, in the loop's fiber.
     */
    void (*raise_kill)(heddle_loop *loop);
    /*
     * Called before a preempted fiber continues. When the program has ended, abandons all preempted fibers, because one
     * that computes endlessly would block the end.
     */
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
