#pragma once

/*
 * The watch thread: one native thread for each process, which samples the heartbeats of the loops every few
 * milliseconds while one of them is not idle, and sleeps otherwise. It never has the GVL and never calls Ruby; with
 * `ask` it makes a loop's thread examine itself. It runs only while it has a purpose.
 */

#include "scheduler/heartbeat.h"
#include "scheduler/layer_hooks.h"

enum {
    HEDDLE_WATCH_PREEMPT = 1,
    HEDDLE_WATCH_STALLS = 2,
    HEDDLE_WATCH_HANDOFF = 4,
};

typedef struct {
    int64_t slice;     /* how long a fiber may run while others wait, ns */
    int64_t threshold; /* how long a heartbeat may last before it counts as a stall, ns */
    int64_t handoff;   /* how long a heartbeat may last before rescues run, ns */
    bool (*collects)(void); /* is Ruby collecting garbage? From any thread, without the GVL */
    void (*ask)(void); /* makes the thread that holds the GVL examine itself; from any thread, without the GVL */
} heddle_watch_settings;

/*
 * Sets the purposes for which the thread runs; 0 ends it. Called with the GVL. Returns 0, or -errno if no thread could
 * be started.
 */
int heddle_watch_set_purposes(int wants, const heddle_watch_settings *settings);
/* The current purposes; 0 while it is paused. */
int heddle_watch_purposes(void);
/*
 * With true, ends the thread; then heddle_watch_set_purposes has no effect until a call with false. Called with the
 * GVL. Returns 0 or -errno.
 */
int heddle_watch_pause(bool paused);
bool heddle_watch_paused(void);

/* Returns a record for a loop that begins to run on this thread (a VALUE); NULL if out of memory. */
heddle_heartbeat *heddle_heartbeat_acquire(void *loop, uintptr_t thread);
void heddle_heartbeat_release(heddle_heartbeat *heartbeat);

/*
 * A rescue acts for a loop while the loop is stuck. Both functions are called on the watch thread, under its lock, so
 * that no fork comes in between; they must be quick, must not wait for the GVL, and must not call Ruby.
 */
typedef struct heddle_rescue heddle_rescue;
struct heddle_rescue {
    void *loop;
    void (*on_stuck)(heddle_rescue *rescue); /* called again and again while the loop is stuck */
    void (*on_recovered)(heddle_rescue *rescue);
    int64_t since;  /* since when the loop is stuck, CLOCK_MONOTONIC ns */
    uint32_t label; /* the label of the request that blocks the loop, if it is a request of this loop; 0: unknown */
    bool collecting; /* Ruby collects garbage now */
    bool under_way;
    heddle_rescue *next, *previous;
};

void heddle_watch_add(heddle_rescue *rescue);
/* Removes the rescue: it is no longer called. First calls `on_recovered` if its loop was stuck. */
void heddle_watch_remove(heddle_rescue *rescue);
unsigned heddle_watch_count_rescues(void);

/* Wakes the watch thread, which sleeps while all loops are idle: see heddle_watch_asleep. */
void heddle_watch_rouse(void);

/* The lowest two bits of a heartbeat's `gvl`; the other bits count changes. */
enum {
    HEDDLE_GVL_HELD,
    HEDDLE_GVL_WANTED,
    HEDDLE_GVL_FREE,
};

/*
 * The activity of the record's thread, as far as the GVL shows it; HEDDLE_ACTIVITY_NATIVE_GVL stands for every thread
 * that holds the GVL.
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

/* Starts or stops following the holder of the GVL. */
void heddle_watch_follow_gvl(bool follow);
