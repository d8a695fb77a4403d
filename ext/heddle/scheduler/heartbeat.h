#ifndef HEDDLE_HEARTBEAT_H
#define HEDDLE_HEARTBEAT_H

/*
 * The heartbeat of a running loop: a record that the loop and the watch thread share. Records are reused and never
 * freed, because the watch thread reads them without the GVL.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct heddle_heartbeat heddle_heartbeat;

/* The activity of a loop's thread when it was sampled. */
typedef enum {
    HEDDLE_DOING_NATIVE_FREE, /* in native code that has released the GVL */
    HEDDLE_DOING_NATIVE_HELD, /* in native code that holds it */
    HEDDLE_DOING_RUBY,
    HEDDLE_DOING_NOTHING, /* it waits for the GVL, which another thread holds */
    HEDDLE_DOING_COLLECTING, /* garbage, which holds the GVL */
    HEDDLE_DOINGS,
} heddle_doing;

/* The watch thread's judgement of the current heartbeat. */
enum {
    HEDDLE_IN_TIME,
    HEDDLE_LATE,
};

/* When the watch should look again, as the loop's thread answers. */
enum {
    HEDDLE_LOOK_LATER,
    HEDDLE_LOOK_SOON,    /* a switch is under way, or code that must not be interrupted: it passes in no time */
    HEDDLE_LOOK_AFRESH, /* nobody waits: this heartbeat counts from now on */
};

/* How much is known of where a late loop is. */
enum {
    HEDDLE_UNSEEN,
    HEDDLE_GLIMPSED, /* in Heddle's own code: a later sample may show more */
    HEDDLE_SEEN,
};

enum {
    HEDDLE_HEARTBEAT_PATIENCE = 10, /* looks that an answer may take */
    HEDDLE_HEARTBEAT_REQUEST = 256, /* bytes of a method and a path */
    HEDDLE_HEARTBEAT_PLACE = 2048,  /* bytes of a backtrace */
    HEDDLE_HEARTBEAT_LIBRARY = 256, /* bytes of a library's path */
};

struct heddle_heartbeat {
    /* Written by the loop at every switch. Odd: somebody runs since; even: it waits in the selector. */
    _Atomic uint64_t word;
    _Atomic int verdict;      /* of the watch; the loop settles it at its next heartbeat */
    _Atomic uintptr_t thread; /* the loop's, a VALUE; 0: the record is spare */

    _Atomic uint32_t label; /* of what runs since, see heddle_fiber; 0: none */

    _Atomic uint32_t gvl;     /* changes << 2 | enum of watch_gvl.c */
    _Atomic uint32_t answers; /* how often the thread has come to a point where Ruby takes interrupts */
    _Atomic int look;
    _Atomic int pass; /* of the job that was triggered: see preempt.c */

    /* With the GVL. */
    void *loop;
    heddle_heartbeat *next;
    int sighted; /* request and place are those of this heartbeat: see HEDDLE_SEEN */
    char request[HEDDLE_HEARTBEAT_REQUEST];
    char place[HEDDLE_HEARTBEAT_PLACE];
    /* The last wait in place, inside a callback of a library: when it ended, and the same of it as above. */
    int64_t callback_until;
    char callback_library[HEDDLE_HEARTBEAT_LIBRARY];
    char callback_request[HEDDLE_HEARTBEAT_REQUEST];
    char callback_place[HEDDLE_HEARTBEAT_PLACE];

    /* Written by the watch before the verdict, read by the loop after it. */
    int64_t late_since, late_at;
    _Atomic int64_t late_lost; /* of that, ns that the machine took (lost_time.h); the watch goes on adding */
    _Atomic uint32_t found[HEDDLE_DOINGS]; /* looks; the watch goes on counting meanwhile */

    /* The watch's own. */
    uint64_t seen;
    int64_t since, moved;
    bool held_up;
    int64_t lost;                             /* ns since `since` that were the machine's */
    int64_t looked, cpu_seen, queued_seen;    /* when that was last added to, and what the thread had used then */
    bool progressed;                          /* it had used a core since the look before */

    /* Of the loop's thread, where the system tells; set before `thread`. */
    bool timed;
    clockid_t cpu_clock;
    int schedstat, thread_id; /* a descriptor, or -1 */

    uint32_t gvl_seen, answers_seen;
    bool asked;
    _Atomic uint32_t unanswered; /* looks since it was asked; the loop reads it, too */
};

/* The first of all records; they are linked by `next` and none leaves. */
extern _Atomic(heddle_heartbeat *) heddle_heartbeats;

/* When the watch is to look next, CLOCK_MONOTONIC ns; INT64_MAX: it looks, or sleeps until it is roused. */
extern _Atomic int64_t heddle_watch_due;

#endif
