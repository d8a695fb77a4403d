#pragma once

/*
 * The time account of a request: how the request has spent its time. The code that parks a fiber names the part of the
 * account that the wait counts as. The clock is read when a request begins or ends, and when a fiber is switched away,
 * becomes ready, or continues. Requests that never wait, and that a fiber serves one right after another, cost one
 * reading each. The fiber that serves the request shares the record with the fibers that it starts. The time of those
 * fibers is counted separately, in `tasks`. All times are CLOCK_MONOTONIC, ns. Uses no Ruby.
 */

#include "selector/clock.h"

/* The parts of an account, in the order in which they are printed. heddle_account_names has their names. */
typedef enum {
    HEDDLE_SPENT_PROXY, /* from the time in the field X-Request-Start to the request's arrival; not part of the total */
    /* from the first byte until the body was complete, or only the head, if the body is streamed */
    HEDDLE_SPENT_RECEIVED,
    HEDDLE_SPENT_QUEUED,    /* waiting for a runner */
    HEDDLE_SPENT_RUNNING,   /* in Ruby, or in native code that was not offloaded */
    HEDDLE_SPENT_READY,     /* ready to run, while the loop ran other fibers */
    HEDDLE_SPENT_PREEMPTED, /* ready to run, after it had used up its time slice */
    HEDDLE_SPENT_GC,
    HEDDLE_SPENT_OFFLOADED, /* in native code on another thread */
    /* waiting */
    HEDDLE_SPENT_CHECKOUT,  /* for a resource of a pool, such as a connection */
    HEDDLE_SPENT_QUERY,     /* for a database */
    HEDDLE_SPENT_HTTP,      /* for another server, over HTTP */
    HEDDLE_SPENT_REDIS,
    HEDDLE_SPENT_DNS,
    HEDDLE_SPENT_SLEEP,
    HEDDLE_SPENT_LOCK,      /* for other fibers: Mutex, Queue, ConditionVariable, a task, a channel */
    HEDDLE_SPENT_PROCESS,   /* for a child process */
    HEDDLE_SPENT_FILE,
    HEDDLE_SPENT_IO,        /* for any other IO */
    HEDDLE_SPENT_CLIENT,    /* for the client: to read the response, or to send more of a streamed body */
    HEDDLE_SPENT_THREAD,    /* for the thread that runs the application (mode thread) */
    HEDDLE_SPENT_PARTS,
} heddle_spent;

extern const char *const heddle_account_names[HEDDLE_SPENT_PARTS];

/*
 * An adapter (code for one library, such as a database driver) may set the part `named` for all waits of a block. Does
 * a wait count as its own `part` nevertheless? Yes if `named` is 0. Yes also for sleeps and child processes, and for a
 * lock within a query, because then the fiber waits for another fiber.
 */
static inline bool heddle_spent_overrides(heddle_spent part, heddle_spent named)
{
    return !named || part == HEDDLE_SPENT_SLEEP || part == HEDDLE_SPENT_PROCESS ||
           (part == HEDDLE_SPENT_LOCK && named == HEDDLE_SPENT_QUERY);
}

/* How many native libraries an account names. Calls of further libraries count only as HEDDLE_SPENT_OFFLOADED. */
enum { HEDDLE_ACCOUNT_LIBRARIES = 3 };

typedef struct heddle_spender heddle_spender;

typedef struct {
    unsigned request; /* the number of the current request; 0: none */
    bool waited;      /* if false, the parts after HEDDLE_SPENT_GC, and all members after `parts`, are zero */
    int64_t began;    /* when the first byte of the request arrived */
    heddle_spender *owner; /* the record of the fiber that serves the request */
    int64_t parts[HEDDLE_SPENT_PARTS], tasks[HEDDLE_SPENT_PARTS];
    uint32_t waits[HEDDLE_SPENT_PARTS]; /* the number of waits, including those of tasks */
    struct {
        const char *name;
        int64_t spent;
    } libraries[HEDDLE_ACCOUNT_LIBRARIES];
} heddle_account;

/* Counts one fiber's time in an account. */
struct heddle_spender {
    heddle_account *account; /* NULL: nothing is counted */
    /* the number of the fiber's request; after that request has ended, the fiber's time is not counted */
    unsigned request;
    bool task;               /* the request has started this fiber; false for the fiber that serves the request */
    uint8_t waits_for;       /* the part that an adapter has set for the fiber's waits; 0: none */
    uint8_t doing;           /* the part that the fiber's time counts as now */
    bool timed_out;          /* a time limit has ended the fiber's last wait */
    int64_t since;           /* the fiber's time is counted up to this time */
    int64_t collected;       /* heddle_collected at the time `since` */
};

/* Written with the GVL. */
extern bool heddle_accounting;  /* requests have accounts */
extern int64_t heddle_collected; /* ns that garbage collections have taken */

/* Called for each stretch of time that is counted, from spender->since to `now`. NULL while the recorder is off. */
extern void (*heddle_account_record)(const heddle_spender *spender, int64_t now);

static inline bool heddle_spender_counts(const heddle_spender *spender)
{
    return spender->account && spender->account->request == spender->request;
}

/* Adds the time from spender->since to `now` to these parts. */
static inline void heddle_spender_add(const heddle_spender *spender, int64_t parts[HEDDLE_SPENT_PARTS], int64_t now)
{
    int64_t spent = now - spender->since;
    if (spender->doing == HEDDLE_SPENT_RUNNING) {
        int64_t collected = heddle_collected - spender->collected;
        collected = collected < spent ? collected : spent;
        parts[HEDDLE_SPENT_GC] += collected;
        spent -= collected;
    }
    parts[spender->doing] += spent;
}

/* Counts the time until `now`, and sets the part for the time from then on. */
static inline void heddle_spender_set_part(heddle_spender *spender, heddle_spent next, int64_t now)
{
    heddle_account *account = spender->account;
    account->waited = true;
    heddle_spender_add(spender, spender->task ? account->tasks : account->parts, now);
    if (__builtin_expect(heddle_account_record != NULL, 0))
        heddle_account_record(spender, now);
    spender->doing = next;
    spender->since = now;
    spender->collected = heddle_collected;
}

/* Called when the fiber begins to run. */
static inline void heddle_spender_start(heddle_spender *spender)
{
    if (!heddle_spender_counts(spender))
        return;
    spender->doing = HEDDLE_SPENT_RUNNING;
    spender->since = heddle_clock_now();
    spender->collected = heddle_collected;
}

/* Called when the fiber is about to be switched away, or ends. */
static inline void heddle_spender_stop(heddle_spender *spender, heddle_spent part)
{
    if (!heddle_spender_counts(spender))
        return;
    heddle_spender_set_part(spender, part, heddle_clock_now());
    spender->account->waits[part]++;
}

/* Called when the fiber continues. `ready_at`: when it became ready; 0: now. */
static inline void heddle_spender_resume(heddle_spender *spender, int64_t ready_at)
{
    if (!heddle_spender_counts(spender))
        return;
    int64_t now = heddle_clock_now();
    if (ready_at && ready_at < now)
        heddle_spender_set_part(spender, HEDDLE_SPENT_READY, ready_at > spender->since ? ready_at : spender->since);
    heddle_spender_set_part(spender, HEDDLE_SPENT_RUNNING, now);
}

/*
 * Called when a runner (a fiber that serves requests) begins a request. `in_row`: the runner has just ended the account
 * of its previous request, and the new account begins at that time, so the clock is not read again.
 */
void heddle_account_begin(heddle_account *account, heddle_spender *spender, unsigned request, bool in_row);

/* Records when the first byte of the request arrived (`began`), and when the request was complete (`complete`). */
static inline void heddle_account_arrived(heddle_account *account, int64_t began, int64_t complete)
{
    if (account->owner->since < complete)
        account->owner->since = complete;
    account->began = began;
    account->parts[HEDDLE_SPENT_RECEIVED] = complete - began;
    account->parts[HEDDLE_SPENT_QUEUED] = account->owner->since - complete;
}

/* Ends the account for all fibers that share it, without counting their last stretch of time. */
static inline void heddle_account_abandon(heddle_account *account)
{
    account->request = 0;
}

/*
 * Ends the account for all fibers that share it, and adds the time until `now` to its parts. Sets `other` and returns
 * the total like heddle_account_read.
 */
int64_t heddle_account_end(heddle_account *account, int64_t now, int64_t *other);

/* Adds the time of an offloaded call of this library, `spent` ns. `name` must never be freed. */
void heddle_account_count_library(heddle_account *account, const char *name, int64_t spent);

/*
 * Sets `parts` to the parts of a running request until `now`, and `other` to the time that belongs to no part. Returns
 * the total.
 */
int64_t heddle_account_read(const heddle_account *account, int64_t now, int64_t parts[HEDDLE_SPENT_PARTS],
                            int64_t *other);
