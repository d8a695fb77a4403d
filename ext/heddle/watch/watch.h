#pragma once

/*
 * The watch thread: a native thread that finds loops which run for too long. A process has one such thread at most.
 * While any loop is busy, the thread samples the heartbeats of all loops (scheduler/heartbeat.h) every few
 * milliseconds; otherwise it sleeps. It never holds the GVL and never calls Ruby. To learn what the thread with the GVL
 * does, it calls `ask` (heddle_watch_settings), which makes that thread examine itself. The watch thread exists only
 * while it has a purpose.
 */

#include "scheduler/heartbeat.h"
#include "scheduler/layer_hooks.h"

/* The purposes of the watch thread. */
enum {
    HEDDLE_WATCH_PREEMPT = 1, /* interrupts fibers that compute for longer than a slice */
    HEDDLE_WATCH_STALLS = 2,  /* finds stalls */
    HEDDLE_WATCH_HANDOFF = 4, /* runs rescues, which hand off the connections of stuck loops */
};

typedef struct {
    int64_t slice;     /* how long a fiber may run while others wait, ns */
    int64_t threshold; /* how long a busy loop's heartbeat may stay unchanged before this counts as a stall, ns */
    int64_t handoff;   /* how long a busy loop's heartbeat may stay unchanged before rescues run, ns */
    bool (*collects)(void); /* returns whether Ruby is collecting garbage; any thread may call it, without the GVL */
    void (*ask)(void); /* makes the thread that holds the GVL examine itself; any thread may call it, without the GVL */
} heddle_watch_settings;

/*
 * Sets the purposes for which the watch thread runs; 0 ends it. If `settings` is NULL, the settings don't change.
 * Called with the GVL. Returns 0, or -errno if no thread could be started.
 */
int heddle_watch_set_purposes(int wants, const heddle_watch_settings *settings);
/* Returns the current purposes, or 0 while the watch thread is paused. */
int heddle_watch_purposes(void);
/*
 * Pauses the watch thread by ending it, or starts it again. While it is paused, new purposes are stored and take effect
 * only afterwards. Called with the GVL. Returns 0 or -errno.
 */
int heddle_watch_pause(bool paused);
bool heddle_watch_paused(void);

/*
 * Returns a heartbeat for a loop that begins to run on this Ruby thread (`thread`, a VALUE), or NULL if memory is
 * exhausted.
 */
heddle_heartbeat *heddle_heartbeat_acquire(void *loop, uintptr_t thread);
void heddle_heartbeat_release(heddle_heartbeat *heartbeat);

/*
 * A rescue acts for a loop while the loop is stuck, for example by handing off the loop's connections. `on_stuck` and
 * `on_recovered` are called with the watch thread's mutex held, so that no fork happens meanwhile. They must be quick,
 * must not wait for the GVL, and must not call Ruby.
 */
typedef struct heddle_rescue heddle_rescue;
struct heddle_rescue {
    void *loop;
    void (*on_stuck)(heddle_rescue *rescue); /* called by the watch thread every ms while the loop is stuck */
    void (*on_recovered)(heddle_rescue *rescue);
    int64_t since; /* when the stuck loop last made progress, plus its lost time (lost_time.h); CLOCK_MONOTONIC, ns */
    /*
     * the label (method and path without IDs) of the request of this loop that blocks the loop; 0 if no such request is
     * known
     */
    uint32_t label;
    bool collecting; /* Ruby is collecting garbage now */
    bool under_way; /* `on_stuck` was called, and `on_recovered` was not called since */
    heddle_rescue *next, *previous;
};

void heddle_watch_add(heddle_rescue *rescue);
/* Removes the rescue. Calls `on_recovered` first if the rescue is under way. */
void heddle_watch_remove(heddle_rescue *rescue);
unsigned heddle_watch_count_rescues(void);

/* Wakes the watch thread if it sleeps because all loops are idle (heddle_watch_asleep). */
void heddle_watch_rouse(void);

/*
 * Whether a loop's thread holds the GVL, waits for it or has released it: the lowest two bits of a heartbeat's `gvl`.
 * The other bits count changes.
 */
enum {
    HEDDLE_GVL_HELD,
    HEDDLE_GVL_WANTED,
    HEDDLE_GVL_FREE,
};

/*
 * Returns the activity of a loop's thread, as far as its heartbeat's `gvl` shows it. Returns HEDDLE_ACTIVITY_NATIVE_GVL
 * for every thread that holds the GVL, even if it runs Ruby code.
 */
static inline heddle_activity heddle_gvl_activity(uint32_t word)
{
    switch (word & 3) {
    case HEDDLE_GVL_WANTED:
        return HEDDLE_ACTIVITY_NONE;
    case HEDDLE_GVL_FREE:
        return HEDDLE_ACTIVITY_NATIVE_NO_GVL;
    default:
        return HEDDLE_ACTIVITY_NATIVE_GVL;
    }
}

/* Starts or stops keeping the `gvl` of all heartbeats up to date. */
void heddle_watch_follow_gvl(bool follow);
