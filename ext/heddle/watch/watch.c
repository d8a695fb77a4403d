#include "watch/watch.h"

#include "watch/lost_time.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static const int64_t CALM = 5000000;     /* how often it looks while all goes well */
static const int64_t ALERT = 2000000;    /* … while somebody is late */
static const int64_t RESCUE = 1000000;   /* … while others look after what is a loop's */
static const int64_t SOON = 100000;      /* … when told that it came at the wrong moment */
static const int64_t QUIET = 50000000;   /* without any event for so long it goes to sleep */

_Atomic(heddle_beat *) heddle_beats;
_Atomic int64_t heddle_watch_due = INT64_MAX;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t roused;
    pthread_t thread;
    heddle_watch_settings settings;
    heddle_rescue *rescues;
    int wants;
    bool running, quit, paused, forks_seen_to;
} watch = {.mutex = PTHREAD_MUTEX_INITIALIZER, .roused = PTHREAD_COND_INITIALIZER};

/* CLOCK_MONOTONIC, ns */
static int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* -- the records ------------------------------------------------------------------------------------------------- */

static heddle_beat *spare(void)
{
    for (heddle_beat *beat = atomic_load(&heddle_beats); beat; beat = beat->next) {
        if (!atomic_load(&beat->thread))
            return beat;
    }
    heddle_beat *beat = calloc(1, sizeof(*beat));
    if (!beat)
        return NULL;
    beat->schedstat = -1;
    beat->next = atomic_load(&heddle_beats);
    atomic_store(&heddle_beats, beat);
    return beat;
}

static int start(void);

heddle_beat *heddle_beat_take(void *loop, uintptr_t thread)
{
    pthread_mutex_lock(&watch.mutex);
    heddle_beat *beat = spare();
    if (beat) {
        beat->loop = loop;
        beat->sighted = HEDDLE_UNSEEN;
        beat->callback_until = 0;
        atomic_store(&beat->verdict, HEDDLE_IN_TIME);
        atomic_store(&beat->pass, 0);
        atomic_store(&beat->look, HEDDLE_LOOK_LATER);
        atomic_store(&beat->word, 1);
        atomic_store(&beat->gvl, 0); /* it calls this with the GVL */
        beat->seen = 0;
        beat->moved = clock_now();
        heddle_lost_time_attach(beat);
        atomic_store(&beat->thread, thread);
    }
    if (watch.wants && !watch.running && !watch.paused)
        start(); /* a child after fork; without a thread it goes unwatched */
    pthread_mutex_unlock(&watch.mutex);
    if (atomic_load(&heddle_watch_asleep))
        heddle_watch_rouse();
    return beat;
}

void heddle_beat_give_back(heddle_beat *beat)
{
    pthread_mutex_lock(&watch.mutex);
    atomic_store(&beat->thread, 0);
    heddle_lost_time_detach(beat);
    beat->loop = NULL;
    pthread_mutex_unlock(&watch.mutex);
}

/* -- looking ----------------------------------------------------------------------------------------------------- */

/* The loop may be reading the record of its late beat: it gets these counts or those of the new beat, never torn ones. */
static void forget_looks(heddle_beat *beat)
{
    for (int doing = 0; doing < HEDDLE_DOINGS; doing++)
        atomic_store_explicit(&beat->found[doing], 0, memory_order_relaxed);
}

static void count_looks(heddle_beat *beat, heddle_doing doing, uint32_t looks)
{
    atomic_fetch_add_explicit(&beat->found[doing], looks, memory_order_relaxed);
}

static void begin(heddle_beat *beat, uint64_t word, int64_t now)
{
    beat->seen = word;
    beat->since = beat->moved = now;
    beat->asked = false;
    beat->held_up = false;
    beat->unanswered = 0;
    forget_looks(beat);
    heddle_lost_time_begin(beat, now);
}

/*
 * A thread that holds the GVL runs Ruby if it comes to where Ruby takes interrupts when it is asked to. It may have to
 * wait for a core to do so, so only what goes unanswered for some looks is native code.
 */
static void note_doing(heddle_beat *beat, uint32_t gvl)
{
    heddle_doing found = heddle_watch_gvl(gvl);
    if (found != HEDDLE_DOING_NATIVE_HELD) {
        count_looks(beat, found, 1);
        return;
    }
    if (watch.settings.collects()) {
        count_looks(beat, HEDDLE_DOING_COLLECTING, 1);
        return;
    }
    if (!beat->asked)
        return;
    beat->unanswered++;
    if (atomic_load_explicit(&beat->answers, memory_order_relaxed) == beat->answers_seen)
        return;
    bool native = beat->unanswered > HEDDLE_BEAT_PATIENCE;
    count_looks(beat, native ? HEDDLE_DOING_NATIVE_HELD : HEDDLE_DOING_RUBY, beat->unanswered);
    beat->unanswered = 0;
    beat->asked = false;
}

static void ask(heddle_beat *beat)
{
    if (!beat->asked)
        beat->answers_seen = atomic_load_explicit(&beat->answers, memory_order_relaxed);
    beat->asked = true;
    atomic_store(&beat->pass, 1);
    watch.settings.ask();
}

/* Takes too long: unless its thread waits for a core, and it is not known yet for how long it does. */
static void judge(heddle_beat *beat, int64_t now)
{
    if (atomic_load(&beat->verdict) != HEDDLE_IN_TIME) {
        atomic_store_explicit(&beat->late_lost, beat->lost, memory_order_relaxed);
        return;
    }
    if (heddle_lost_time_goes_on(beat))
        return;
    beat->late_since = beat->since;
    beat->late_at = now;
    atomic_store_explicit(&beat->late_lost, beat->lost, memory_order_relaxed);
    atomic_store(&beat->verdict, HEDDLE_LATE);
}

/* It takes so long that others look after what is the loop's. */
static bool is_held_up(int64_t age)
{
    return (watch.wants & HEDDLE_WATCH_HANDOFF) && age >= watch.settings.handoff;
}

/* When to look again. */
static int64_t busy(heddle_beat *beat, int64_t now, int64_t late, uint32_t gvl)
{
    int look = atomic_exchange(&beat->look, HEDDLE_LOOK_LATER);
    if (look == HEDDLE_LOOK_AFRESH && atomic_load(&beat->verdict) == HEDDLE_IN_TIME)
        begin(beat, beat->seen, now);
    note_doing(beat, gvl);
    beat->gvl_seen = gvl;
    int64_t age = now - beat->since - heddle_lost_time_add(beat, now, late);
    bool stalls = watch.wants & HEDDLE_WATCH_STALLS;
    beat->held_up = is_held_up(age);
    if (stalls && age >= watch.settings.threshold)
        judge(beat, now);
    /* Early enough to know of a stall what it is. */
    if ((stalls && age >= watch.settings.threshold / 2) ||
        ((watch.wants & HEDDLE_WATCH_PREEMPT) && age >= watch.settings.slice))
        ask(beat);
    return look == HEDDLE_LOOK_SOON ? SOON : ALERT;
}

/* In the selector, or on its way out of it, for which it may have to wait until another thread gives up the GVL. */
static int64_t idle(heddle_beat *beat, int64_t now, int64_t late, uint32_t gvl)
{
    if (!(watch.wants & (HEDDLE_WATCH_STALLS | HEDDLE_WATCH_HANDOFF)) ||
        heddle_watch_gvl(gvl) != HEDDLE_DOING_NOTHING || gvl != beat->gvl_seen) {
        beat->gvl_seen = gvl;
        beat->since = now;
        beat->held_up = false;
        forget_looks(beat);
        heddle_lost_time_begin(beat, now);
        return CALM;
    }
    beat->moved = now;
    count_looks(beat, HEDDLE_DOING_NOTHING, 1);
    int64_t age = now - beat->since - heddle_lost_time_add(beat, now, late);
    beat->held_up = is_held_up(age);
    if (!(watch.wants & HEDDLE_WATCH_STALLS) || age < watch.settings.threshold)
        return ALERT;
    judge(beat, now);
    ask(beat);
    return ALERT;
}

static int64_t examine(heddle_beat *beat, int64_t now, int64_t late)
{
    if (!atomic_load(&beat->thread))
        return CALM;
    uint64_t word = atomic_load(&beat->word);
    uint32_t gvl = atomic_load(&beat->gvl);
    if (word != beat->seen) {
        begin(beat, word, now);
        beat->gvl_seen = gvl;
        return CALM;
    }
    return word & 1 ? busy(beat, now, late, gvl) : idle(beat, now, late, gvl);
}

/* -- looking after what is a loop's -------------------------------------------------------------------------------- */

/* A loop that waits for the GVL is held up by another one, or by another thread. */
static bool holds_itself_up(const heddle_beat *beat)
{
    return (beat->seen & 1) && heddle_watch_gvl(beat->gvl_seen) != HEDDLE_DOING_NOTHING;
}

static bool stands_still(heddle_rescue *rescue)
{
    bool found = false;
    for (heddle_beat *beat = atomic_load(&heddle_beats); beat; beat = beat->next) {
        if (!atomic_load(&beat->thread) || !beat->held_up)
            continue;
        /* Who keeps the GVL keeps every loop. */
        bool own = beat->loop == rescue->loop;
        if (!own && !((beat->seen & 1) && heddle_watch_gvl(beat->gvl_seen) == HEDDLE_DOING_NATIVE_HELD))
            continue;
        if (own || !found) {
            rescue->since = beat->since + beat->lost;
            rescue->label = own && holds_itself_up(beat) ? atomic_load_explicit(&beat->label, memory_order_relaxed) : 0;
        }
        found = true;
        if (own)
            break;
    }
    return found;
}

static void end_rescue(heddle_rescue *rescue)
{
    if (rescue->under_way)
        rescue->goes_on(rescue);
    rescue->under_way = false;
}

/* When to look again. */
static int64_t look_after(heddle_rescue *rescue)
{
    if (!stands_still(rescue)) {
        end_rescue(rescue);
        return CALM;
    }
    rescue->under_way = true;
    rescue->held_up(rescue);
    return RESCUE;
}

static void see_to_forks(void);

void heddle_watch_add(heddle_rescue *rescue)
{
    see_to_forks();
    pthread_mutex_lock(&watch.mutex);
    rescue->under_way = false;
    rescue->previous = NULL;
    rescue->next = watch.rescues;
    if (rescue->next)
        rescue->next->previous = rescue;
    watch.rescues = rescue;
    pthread_mutex_unlock(&watch.mutex);
}

void heddle_watch_remove(heddle_rescue *rescue)
{
    pthread_mutex_lock(&watch.mutex);
    end_rescue(rescue);
    if (rescue->previous)
        rescue->previous->next = rescue->next;
    else if (watch.rescues == rescue)
        watch.rescues = rescue->next;
    if (rescue->next)
        rescue->next->previous = rescue->previous;
    rescue->next = rescue->previous = NULL;
    pthread_mutex_unlock(&watch.mutex);
}

unsigned heddle_watch_rescues(void)
{
    unsigned count = 0;
    pthread_mutex_lock(&watch.mutex);
    for (heddle_rescue *rescue = watch.rescues; rescue; rescue = rescue->next)
        count++;
    pthread_mutex_unlock(&watch.mutex);
    return count;
}

/* -- its thread ----------------------------------------------------------------------------------------------------- */

static bool anything_new(int64_t now)
{
    for (heddle_beat *beat = atomic_load(&heddle_beats); beat; beat = beat->next) {
        uint64_t word = atomic_load(&beat->word);
        if (atomic_load(&beat->thread) && (word & 1 || word != beat->seen || now - beat->moved < QUIET ||
                                           heddle_watch_gvl(atomic_load(&beat->gvl)) == HEDDLE_DOING_NOTHING))
            return true;
    }
    return false;
}

/* Nobody does anything: until somebody does. Whoever ceases to be idle says so before reading the flag. */
static void sleep_while_quiet(int64_t now)
{
    if (anything_new(now))
        return;
    atomic_store(&heddle_watch_asleep, 1);
    while (!watch.quit && atomic_load(&heddle_watch_asleep) && !anything_new(now))
        pthread_cond_wait(&watch.roused, &watch.mutex);
    atomic_store(&heddle_watch_asleep, 0);
}

void heddle_watch_rouse(void)
{
    pthread_mutex_lock(&watch.mutex);
    atomic_store(&heddle_watch_asleep, 0);
    pthread_cond_signal(&watch.roused);
    pthread_mutex_unlock(&watch.mutex);
}

/* Returns by how much later it woke up than it was to. */
static int64_t rest(int64_t pause)
{
    struct timespec time = {.tv_nsec = pause};
    int64_t due = clock_now() + pause;
    atomic_store(&heddle_watch_due, due);
    nanosleep(&time, NULL);
    atomic_store(&heddle_watch_due, INT64_MAX);
    int64_t now = clock_now();
    return now > due ? now - due : 0;
}

static void *run(void *unused)
{
    (void)unused;
    int64_t late = 0;
    pthread_mutex_lock(&watch.mutex);
    while (!watch.quit) {
        int64_t now = clock_now(), pause = CALM;
        for (heddle_beat *beat = atomic_load(&heddle_beats); beat; beat = beat->next) {
            int64_t wish = examine(beat, now, late);
            pause = wish < pause ? wish : pause;
        }
        for (heddle_rescue *rescue = watch.rescues; rescue; rescue = rescue->next) {
            int64_t wish = look_after(rescue);
            pause = wish < pause ? wish : pause;
        }
        pthread_mutex_unlock(&watch.mutex);
        late = rest(pause);
        pthread_mutex_lock(&watch.mutex);
        sleep_while_quiet(clock_now());
    }
    for (heddle_rescue *rescue = watch.rescues; rescue; rescue = rescue->next)
        end_rescue(rescue);
    pthread_mutex_unlock(&watch.mutex);
    return NULL;
}

/* -- its life ---------------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&watch.mutex);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&watch.mutex);
}

/* The thread is gone, and the loops of the parent run no more; a loop that goes on takes a new record. */
static void after_fork_in_child(void)
{
    for (heddle_beat *beat = atomic_load(&heddle_beats); beat; beat = beat->next)
        heddle_lost_time_detach(beat);
    atomic_store(&heddle_watch_due, INT64_MAX);
    atomic_store(&heddle_beats, NULL);
    atomic_store(&heddle_watch_asleep, 0);
    watch.running = false;
    watch.rescues = NULL;
    pthread_cond_init(&watch.roused, NULL);
    pthread_mutex_unlock(&watch.mutex);
}

static void see_to_forks(void)
{
    if (!watch.forks_seen_to)
        watch.forks_seen_to = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

/* With the mutex. Signals are for Ruby's threads. */
static int start(void)
{
    sigset_t all, before;
    see_to_forks();
    watch.quit = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(&watch.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    watch.running = result == 0;
    return -result;
}

/* With the mutex, which it gives back. */
static void end(void)
{
    bool running = watch.running;
    pthread_t thread = watch.thread;
    watch.quit = true;
    watch.running = false;
    pthread_cond_signal(&watch.roused);
    pthread_mutex_unlock(&watch.mutex);
    if (running)
        pthread_join(thread, NULL); /* it never waits for the GVL, which we may hold */
}

int heddle_watch_want(int wants, const heddle_watch_settings *settings)
{
    int result = 0;
    pthread_mutex_lock(&watch.mutex);
    watch.wants = wants;
    if (settings)
        watch.settings = *settings;
    if (!wants) {
        end();
        return 0;
    }
    if (!watch.running && !watch.paused)
        result = start();
    pthread_mutex_unlock(&watch.mutex);
    return result;
}

int heddle_watch_pause(bool paused)
{
    int result = 0;
    pthread_mutex_lock(&watch.mutex);
    watch.paused = paused;
    if (paused) {
        end();
        return 0;
    }
    if (watch.wants && !watch.running)
        result = start();
    pthread_mutex_unlock(&watch.mutex);
    return result;
}

int heddle_watch_wants(void)
{
    return watch.paused ? 0 : watch.wants;
}

bool heddle_watch_paused(void)
{
    return watch.paused;
}
