#pragma once

/*
 * The heartbeat of a running loop: a record that the loop shares with the watch thread, which detects loops that make
 * no progress. Records are reused and never freed, because the watch thread reads them without the GVL.
 */

#include "system.h"

typedef struct heddle_heartbeat heddle_heartbeat;

/* The activity of a loop's thread when it was sampled. */
typedef enum {
    HEDDLE_ACTIVITY_NATIVE_NO_GVL, /* in native code that has released the GVL */
    HEDDLE_ACTIVITY_NATIVE_GVL, /* in native code that holds the GVL */
    HEDDLE_ACTIVITY_RUBY,
    HEDDLE_ACTIVITY_NONE, /* waiting for the GVL, which another thread holds */
    HEDDLE_ACTIVITY_COLLECTING, /* in a garbage collection, which holds the GVL */
    HEDDLE_ACTIVITIES,
} heddle_activity;

/* The watch thread's verdict on the current heartbeat. */
enum {
    HEDDLE_IN_TIME,
    HEDDLE_LATE,
};

/* The state of the postponed job that the watch thread triggers for a heartbeat (preempt/preempt.c). */
enum {
    HEDDLE_POSTPONED_JOB_IDLE,
    HEDDLE_POSTPONED_JOB_TRIGGERED,
    HEDDLE_POSTPONED_JOB_REQUEUED, /* the job ran and triggered itself again, so that other jobs run first */
};

/* When the watch thread should sample a loop again. Set by the loop's thread. */
enum {
    HEDDLE_SAMPLE_LATER,
    /* within microseconds: the thread switches fibers, or runs short code that must not be interrupted */
    HEDDLE_SAMPLE_SOON,
    HEDDLE_SAMPLE_AFRESH, /* no other fiber is ready, so the age of this heartbeat is counted from now */
};

/* How much a sample has shown of the code that makes a loop late. */
enum {
    HEDDLE_UNSEEN,
    HEDDLE_GLIMPSED, /* in Heddle's own code; a later sample may show the user's code */
    HEDDLE_SEEN,
};

enum {
    /* a thread that leaves more samples than this unanswered counts as unresponsive */
    HEDDLE_HEARTBEAT_MAX_UNANSWERED = 10,
    HEDDLE_HEARTBEAT_REQUEST = 256,       /* bytes of a method and a path */
    HEDDLE_HEARTBEAT_PLACE = 2048,        /* bytes of a backtrace */
    HEDDLE_HEARTBEAT_LIBRARY = 256,       /* bytes of a library's path */
};

struct heddle_heartbeat {
    /* Written by the loop at every switch. Odd: a fiber runs; even: the loop waits in the selector. */
    _Atomic uint64_t word;
    _Atomic int verdict;      /* written by the watch thread; the loop reads and resets it at its next heartbeat */
    _Atomic uintptr_t thread; /* the loop's thread, a VALUE; 0: the record is spare */

    _Atomic uint32_t label; /* hashed label of the running fiber's request (heddle_fiber); 0: none */

    _Atomic uint32_t gvl; /* the number of changes << 2 | does the thread hold the GVL: HEDDLE_GVL_HELD … (watch.h) */
    /* how often the thread has answered a sample, that is, has reached a point where Ruby handles interrupts */
    _Atomic uint32_t answers;
    _Atomic int next_sample;   /* HEDDLE_SAMPLE_LATER … */
    _Atomic int postponed_job; /* HEDDLE_POSTPONED_JOB_IDLE … */

    /* Used with the GVL. */
    void *loop;
    heddle_heartbeat *next;
    int sighted; /* how precise `request` and `place` are for this heartbeat: see HEDDLE_SEEN */
    char request[HEDDLE_HEARTBEAT_REQUEST];
    char place[HEDDLE_HEARTBEAT_PLACE];
    /* The last wait in place (wait_in_place.h) in a callback of a library: its end, library, request and place. */
    int64_t callback_until;
    char callback_library[HEDDLE_HEARTBEAT_LIBRARY];
    char callback_request[HEDDLE_HEARTBEAT_REQUEST];
    char callback_place[HEDDLE_HEARTBEAT_PLACE];
    int64_t stack_at; /* when the loop's stack was last recorded (recorder.c) */

    /*
     * Written by the watch thread before `verdict`, read by the loop after it: when a late heartbeat began, and when it
     * was found late.
     */
    int64_t late_since, late_at;
    /*
     * ns since `late_since` in which the machine gave the thread no core (lost_time.h); the watch thread keeps adding
     * to it
     */
    _Atomic int64_t late_lost;
    /* the number of samples with each activity; the watch thread keeps counting */
    _Atomic uint32_t found[HEDDLE_ACTIVITIES];

    /* Used by the watch thread alone. */
    uint64_t seen;        /* `word` at the last sample */
    int64_t since, moved; /* when this heartbeat began, and when a sample last found that the loop was not idle */
    bool stuck;
    int64_t lost;                             /* ns since `since` in which the machine gave the thread no core */
    /* when `lost` was last updated, and the CPU time and queue time read then */
    int64_t sampled_at, cpu_seen, queued_seen;
    bool progressed;                          /* the thread has used a core between the last two samples */

    /* The clocks of the loop's thread, if the system has them; set before `thread`. */
    bool timed;
    clockid_t cpu_clock;
    int schedstat, thread_id; /* a descriptor of the thread's schedstat file, or -1; the kernel's id of the thread */

    uint32_t gvl_seen, answers_seen; /* `gvl` at the last sample; `answers` when the postponed job was triggered */
    bool asked;                      /* the job was triggered, and the thread has not answered yet */
    /* Written by the watch thread, read by the loop's thread, too. */
    _Atomic uint32_t unanswered; /* samples since the postponed job was triggered; reset when the job has run */
    _Atomic int64_t probed;      /* `since` of the heartbeat for which the job was triggered */
};

/* The first of all records; they are linked by `next` and never removed. */
extern _Atomic(heddle_heartbeat *) heddle_heartbeats;

/*
 * When the watch thread samples next, CLOCK_MONOTONIC ns; INT64_MAX: it is sampling, or sleeps until a loop wakes it.
 */
extern _Atomic int64_t heddle_watch_due;

/* Does the recorder record stacks (recorder.h)? */
extern _Atomic bool heddle_recording;
