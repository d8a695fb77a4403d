#ifndef HEDDLE_WATCH_H
#define HEDDLE_WATCH_H

/*
 * One native thread a process that looks at the heartbeats of the loops every few milliseconds, as long as one of them
 * does something, and sleeps otherwise. It has no GVL and calls no Ruby; it asks a loop's thread to look after itself
 * by `ask`. It runs only while somebody wants it.
 */

#include "scheduler/heartbeat.h"
#include "scheduler/loop_hooks.h"

enum {
    HEDDLE_WATCH_PREEMPT = 1,
    HEDDLE_WATCH_STALLS = 2,
    HEDDLE_WATCH_HANDOFF = 4,
};

typedef struct {
    int64_t slice;     /* ns that a fiber may run while others wait */
    int64_t threshold; /* ns that a heartbeat may take before it is a stall */
    int64_t handoff;   /* ns that a heartbeat may take before others look after what is the loop's */
    bool (*collects)(void); /* whether Ruby collects garbage; from any thread, without the GVL */
    void (*ask)(void); /* makes the thread that runs Ruby call back; from any thread, without the GVL */
} heddle_watch_settings;

/* The purposes that it runs for; 0 ends it. With the GVL. 0 or -errno: there is no thread to be had. */
int heddle_watch_want(int wants, const heddle_watch_settings *settings);
/* 0 while it is paused. */
int heddle_watch_wants(void);
/* true: ends its thread; heddle_watch_want has no effect until a call with false. With the GVL. 0 or -errno. */
int heddle_watch_pause(bool paused);
bool heddle_watch_paused(void);

/* A record for a loop that begins to run on this thread (a VALUE); NULL without memory. */
heddle_heartbeat *heddle_heartbeat_acquire(void *loop, uintptr_t thread);
void heddle_heartbeat_release(heddle_heartbeat *heartbeat);

/*
 * Looks after something of a loop while that is held up. Both are called on the watch's thread, under its lock, so
 * that no fork comes in between; they must be quick, and neither wait for the GVL nor call Ruby.
 */
typedef struct heddle_rescue heddle_rescue;
struct heddle_rescue {
    void *loop;
    void (*held_up)(heddle_rescue *rescue); /* again and again, as long as it is */
    void (*goes_on)(heddle_rescue *rescue);
    int64_t since;  /* when what holds it up began, CLOCK_MONOTONIC ns */
    uint32_t label; /* of what holds it up, if that is one of its own fibers; 0: not known */
    bool under_way;
    heddle_rescue *next, *previous;
};

void heddle_watch_add(heddle_rescue *rescue);
/* It is not called any more; `goes_on` was, if need be. */
void heddle_watch_remove(heddle_rescue *rescue);
/* How many there are. */
unsigned heddle_watch_rescues(void);

/* It does not look while all are idle: see heddle_watch_asleep. */
void heddle_watch_rouse(void);

/* The lowest two bits of a heartbeat's `gvl`; the others count changes. */
enum {
    HEDDLE_GVL_HELD,
    HEDDLE_GVL_WANTED,
    HEDDLE_GVL_FREE,
};

/* The activity of this record's thread, as far as the GVL tells; NATIVE_HELD stands for holding it. */
static inline heddle_doing heddle_watch_gvl(uint32_t word)
{
    switch (word & 3) {
    case HEDDLE_GVL_WANTED:
        return HEDDLE_DOING_NOTHING;
    case HEDDLE_GVL_FREE:
        return HEDDLE_DOING_NATIVE_FREE;
    default:
        return HEDDLE_DOING_NATIVE_HELD;
    }
}

/* Follows who has the GVL, or stops. */
void heddle_watch_follow_gvl(bool follow);

#endif
