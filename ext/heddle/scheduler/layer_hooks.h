#pragma once

/*
 * Hooks that higher layers set when they are initialized, before any loop exists. So the scheduler needs no header of
 * watch/, preempt/ or offload/.
 */

#include "scheduler/heartbeat.h"

typedef struct heddle_loop heddle_loop;
typedef struct heddle_fiber heddle_fiber;

typedef struct {
    /* -- watch: detects that a loop is late, and why -- */
    bool (*is_watching)(void);
    /* Returns a heartbeat for a loop that begins to run on this thread; NULL if out of memory. */
    heddle_heartbeat *(*acquire_heartbeat)(void *loop, uintptr_t thread);
    void (*release_heartbeat)(heddle_heartbeat *heartbeat);
    void (*rouse_watch)(void);
    /* Reports the recorded stalls; calls Ruby code. */
    void (*announce_stalls)(heddle_loop *loop);
    /*
     * Called before the current fiber waits in place (it blocks the loop's thread: wait_in_place.h), in a callback from
     * `library`: a path, or "" if the library is unknown.
     */
    void (*begin_wait_in_place)(heddle_loop *loop, const char *library);
    void (*prolong_wait_in_place)(heddle_loop *loop);
    /*
     * Called before the calling fiber switches to another one, if callbacks from native code are reported. Never
     * raises.
     */
    void (*report_callback)(heddle_loop *loop);

    /* -- preempt: interrupts a fiber that computes for longer than its time slice -- */
    /* Called before a loop runs on this thread. */
    void (*prepare_preemption)(void);
    /* Adds or removes the hook that records each switch of this loop's fibers. */
    void (*follow_switches)(heddle_loop *loop, bool follow);
    /*
     * Raises the fiber's `delivered_error`: an exception that arrived during a preemption of the fiber, and that is now
     * a pending interrupt of the thread because Thread.handle_interrupt delays it. Called in that fiber.
     */
    void (*raise_delivered_error)(heddle_fiber *fiber);
    /*
     * Removes `delivered_error` from the thread's pending interrupts, so that no other fiber raises it, and keeps it
     * for the fiber. Called before a switch, and when the fiber or the block of a time limit ends.
     */
    void (*take_back_error)(heddle_fiber *fiber);
    /*
     * Raises Heddle::Cancelled in the loop's fiber, after the loop's thread was killed while C code caught all
     * exceptions (`preempt.killed`).
     */
    void (*raise_kill)(heddle_loop *loop);
    /*
     * Called before a preempted fiber continues. If the program has ended, abandons all preempted fibers: one that
     * computes endlessly would keep the process from exiting.
     */
    void (*end_preempted)(heddle_loop *loop);

    /* -- offload -- */
    /* Returns the number of offload threads if all of them are idle, or -1 if any runs a call. */
    long (*count_idle_threads)(void);
} heddle_layer_hooks;

extern heddle_layer_hooks heddle_hooks;

/* Variables that the loop reads in each tick. Higher layers write them, with the GVL (except heddle_watch_asleep). */
/* the watch thread sleeps: a loop that stops being idle writes its heartbeat and then wakes the watch thread */
extern _Atomic int heddle_watch_asleep;
extern bool heddle_stalls_pending;       /* stalls were recorded and are not reported yet */
extern bool heddle_preempting;          /* preemption is on */
extern bool heddle_reporting_callbacks; /* `report_callback` must be called before each switch of fibers */
