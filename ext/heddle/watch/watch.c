/* The watch thread, which finds loops that run for too long: see watch.h. */

#include "watch/watch.h"

#include "watch/lost_time.h"
#include "selector/clock.h"
#include "selector/list.h"
#include "selector/native_thread.h"

#include <signal.h>

/* All times are in ns. */
static const int64_t CALM_INTERVAL = 5000000;     /* the interval of samples while no loop is late */
static const int64_t ALERT_INTERVAL = 2000000;    /* … while a loop is late, or nearly late */
static const int64_t STARVED_INTERVAL = 20000000; /* … while a loop waits for a core */
static const int64_t RESCUE_INTERVAL = 1000000;   /* … while rescues (watch.h) run for a stuck loop */
static const int64_t SOON_INTERVAL = 100000;      /* … after the loop's thread has replied HEDDLE_SAMPLE_SOON */
static const int64_t GVL_WAIT_TO_RECORD = 10000000; /* how long a loop waits for the GVL before a stack is recorded */
static const int64_t QUIET_TIME = 10000000;         /* how long all loops must be idle before the watch thread sleeps */

_Atomic(heddle_heartbeat *) heddle_heartbeats;
_Atomic int64_t heddle_watch_due = INT64_MAX;
_Atomic bool heddle_recording;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t roused;
    pthread_t thread;
    heddle_watch_settings settings;
    heddle_rescue *rescues;
    int wants;
    bool running, quit, paused, handles_forks;
} watch = {.mutex = PTHREAD_MUTEX_INITIALIZER, .roused = PTHREAD_COND_INITIALIZER};

/* -- the records ------------------------------------------------------------------------------------------------- */

static heddle_heartbeat *find_free_slot(void)
{
    for (heddle_heartbeat *heartbeat = atomic_load(&heddle_heartbeats); heartbeat; heartbeat = heartbeat->next) {
        if (!atomic_load(&heartbeat->thread))
            return heartbeat;
    }
    heddle_heartbeat *heartbeat = calloc(1, sizeof(*heartbeat));
    if (!heartbeat)
        return NULL;
    heartbeat->schedstat = -1;
    heartbeat->next = atomic_load(&heddle_heartbeats);
    atomic_store(&heddle_heartbeats, heartbeat);
    return heartbeat;
}

static int start_thread(void);
static void handle_forks(void);

heddle_heartbeat *heddle_heartbeat_acquire(void *loop, uintptr_t thread)
{
    /* Needed even without a watch thread: a forked child that starts one must not sample the parent's loops. */
    handle_forks();
    pthread_mutex_lock(&watch.mutex);
    heddle_heartbeat *heartbeat = find_free_slot();
    if (heartbeat) {
        heartbeat->loop = loop;
        heartbeat->sighted = HEDDLE_UNSEEN;
        heartbeat->callback_until = 0;
        atomic_store(&heartbeat->verdict, HEDDLE_IN_TIME);
        atomic_store(&heartbeat->postponed_job, HEDDLE_POSTPONED_JOB_IDLE);
        atomic_store(&heartbeat->next_sample, HEDDLE_SAMPLE_LATER);
        atomic_store(&heartbeat->word, 1);
        atomic_store(&heartbeat->gvl, HEDDLE_GVL_HELD); /* the loop's thread calls this with the GVL */
        heartbeat->seen = 0;
        heartbeat->moved = heddle_clock_now();
        heddle_lost_time_attach(heartbeat);
        atomic_store(&heartbeat->thread, thread);
    }
    if (watch.wants && !watch.running && !watch.paused)
        start_thread(); /* needed in a forked child; if it fails, the loop is not watched */
    pthread_mutex_unlock(&watch.mutex);
    if (atomic_load(&heddle_watch_asleep))
        heddle_watch_rouse();
    return heartbeat;
}

void heddle_heartbeat_release(heddle_heartbeat *heartbeat)
{
    pthread_mutex_lock(&watch.mutex);
    atomic_store(&heartbeat->thread, 0);
    heddle_lost_time_detach(heartbeat);
    heartbeat->loop = NULL;
    pthread_mutex_unlock(&watch.mutex);
}

/* -- sampling ---------------------------------------------------------------------------------------------------- */

/* The stores are atomic, because the loop may be reading the counts of its late heartbeat at the same time. */
static void clear_samples(heddle_heartbeat *heartbeat)
{
    for (int activity = 0; activity < HEDDLE_ACTIVITIES; activity++)
        atomic_store_explicit(&heartbeat->found[activity], 0, memory_order_relaxed);
}

static void count_samples(heddle_heartbeat *heartbeat, heddle_activity activity, uint32_t samples)
{
    atomic_fetch_add_explicit(&heartbeat->found[activity], samples, memory_order_relaxed);
}

static void start_sampling(heddle_heartbeat *heartbeat, uint64_t word, int64_t now)
{
    heartbeat->seen = word;
    heartbeat->since = heartbeat->moved = now;
    heartbeat->asked = false;
    heartbeat->stuck = false;
    heartbeat->unanswered = 0;
    clear_samples(heartbeat);
    heddle_lost_time_begin(heartbeat, now);
}

/*
 * Counts what the loop's thread does now. A thread that holds the GVL may run Ruby code or native code. If it runs Ruby
 * code, it answers when the watch thread asks it to check for interrupts. But it may have to wait for a core first. So
 * only a thread that leaves several samples unanswered counts as running native code.
 */
static void sample_activity(heddle_heartbeat *heartbeat, uint32_t gvl)
{
    heddle_activity found = heddle_gvl_activity(gvl);
    if (found != HEDDLE_ACTIVITY_NATIVE_GVL) {
        count_samples(heartbeat, found, 1);
        return;
    }
    if (watch.settings.collects()) {
        count_samples(heartbeat, HEDDLE_ACTIVITY_COLLECTING, 1);
        return;
    }
    if (!heartbeat->asked || heddle_lost_time_awaits_core(heartbeat))
        return;
    heartbeat->unanswered++;
    if (atomic_load_explicit(&heartbeat->answers, memory_order_relaxed) == heartbeat->answers_seen)
        return;
    bool native = heartbeat->unanswered > HEDDLE_HEARTBEAT_MAX_UNANSWERED;
    count_samples(heartbeat, native ? HEDDLE_ACTIVITY_NATIVE_GVL : HEDDLE_ACTIVITY_RUBY, heartbeat->unanswered);
    heartbeat->unanswered = 0;
    heartbeat->asked = false;
}

static void probe_thread(heddle_heartbeat *heartbeat)
{
    if (!heartbeat->asked) {
        heartbeat->answers_seen = atomic_load_explicit(&heartbeat->answers, memory_order_relaxed);
        atomic_store_explicit(&heartbeat->probed, heartbeat->since, memory_order_relaxed);
    }
    heartbeat->asked = true;
    atomic_store(&heartbeat->postponed_job, HEDDLE_POSTPONED_JOB_TRIGGERED);
    watch.settings.ask();
}

/* Called for a heartbeat that has lasted too long. Marks it as late, or updates its lost time if it is late already. */
static void judge_heartbeat(heddle_heartbeat *heartbeat, int64_t now)
{
    atomic_store_explicit(&heartbeat->late_lost, heartbeat->lost, memory_order_relaxed);
    if (atomic_load(&heartbeat->verdict) != HEDDLE_IN_TIME)
        return;
    heartbeat->late_since = heartbeat->since;
    heartbeat->late_at = now;
    atomic_store(&heartbeat->verdict, HEDDLE_LATE);
}

/* Returns whether a heartbeat of this age makes rescues (watch.h) run. */
static bool is_stuck(int64_t age)
{
    return (watch.wants & HEDDLE_WATCH_HANDOFF) && age >= watch.settings.handoff;
}

/*
 * Returns the heartbeat's age in ns, without the lost time (lost_time.h). If the thread has waited for a core for at
 * least CALM_INTERVAL, sets *awaits_core, and returns the age at the last sample before the wait. The length of that
 * wait is known only when the thread runs again.
 */
static int64_t measure_age(heddle_heartbeat *heartbeat, int64_t now, int64_t late, bool *awaits_core)
{
    int64_t lost = heddle_lost_time_add(heartbeat, now, late);
    *awaits_core = now - heartbeat->sampled_at >= CALM_INTERVAL && heddle_lost_time_awaits_core(heartbeat);
    return (*awaits_core ? heartbeat->sampled_at : now) - heartbeat->since - lost;
}

/*
 * Returns the time until the next sample. Samples are frequent only when the age comes near the lowest limit of the
 * current purposes: earlier samples would be useless.
 */
static int64_t choose_interval(int64_t age)
{
    int64_t first = (watch.wants & HEDDLE_WATCH_STALLS) ? watch.settings.threshold / 2 : INT64_MAX;
    if ((watch.wants & HEDDLE_WATCH_PREEMPT) && watch.settings.slice < first)
        first = watch.settings.slice;
    if ((watch.wants & HEDDLE_WATCH_HANDOFF) && watch.settings.handoff < first)
        first = watch.settings.handoff;
    int64_t left = first - age;
    return left < ALERT_INTERVAL ? ALERT_INTERVAL : left < CALM_INTERVAL ? left : CALM_INTERVAL;
}

/* Examines the heartbeat of a loop that runs a fiber. Returns the time until the next sample. */
static int64_t examine_busy(heddle_heartbeat *heartbeat, int64_t now, int64_t late, uint32_t gvl)
{
    int next_sample = atomic_exchange(&heartbeat->next_sample, HEDDLE_SAMPLE_LATER);
    if (next_sample == HEDDLE_SAMPLE_AFRESH && atomic_load(&heartbeat->verdict) == HEDDLE_IN_TIME)
        start_sampling(heartbeat, heartbeat->seen, now);
    sample_activity(heartbeat, gvl);
    heartbeat->gvl_seen = gvl;
    bool awaits_core, stalls = watch.wants & HEDDLE_WATCH_STALLS;
    int64_t age = measure_age(heartbeat, now, late, &awaits_core);
    heartbeat->stuck = is_stuck(age);
    if (stalls && age >= watch.settings.threshold)
        judge_heartbeat(heartbeat, now);
    if (awaits_core) /* probing the thread, or frequent samples, would only delay it further */
        return heartbeat->stuck ? ALERT_INTERVAL : STARVED_INTERVAL;
    /*
     * Probes the thread after half the threshold, so that its activity is known once the tick counts as a stall. Probes
     * it after a slice, so that it preempts its fiber.
     */
    if ((stalls && age >= watch.settings.threshold / 2) ||
        ((watch.wants & HEDDLE_WATCH_PREEMPT) && age >= watch.settings.slice))
        probe_thread(heartbeat);
    return next_sample == HEDDLE_SAMPLE_SOON ? SOON_INTERVAL : choose_interval(age);
}

/* Examines the heartbeat of a loop that is in the selector, or that returns from it and may wait for the GVL. */
static int64_t examine_idle(heddle_heartbeat *heartbeat, int64_t now, int64_t late, uint32_t gvl)
{
    if (!(watch.wants & (HEDDLE_WATCH_STALLS | HEDDLE_WATCH_HANDOFF)) ||
        heddle_gvl_activity(gvl) != HEDDLE_ACTIVITY_NONE || gvl != heartbeat->gvl_seen) {
        heartbeat->gvl_seen = gvl;
        heartbeat->since = now;
        heartbeat->stuck = false;
        clear_samples(heartbeat);
        heddle_lost_time_begin(heartbeat, now);
        return CALM_INTERVAL;
    }
    heartbeat->moved = now;
    count_samples(heartbeat, HEDDLE_ACTIVITY_NONE, 1);
    bool awaits_core;
    int64_t age = measure_age(heartbeat, now, late, &awaits_core);
    heartbeat->stuck = is_stuck(age);
    bool is_late = (watch.wants & HEDDLE_WATCH_STALLS) && age >= watch.settings.threshold;
    if (is_late)
        judge_heartbeat(heartbeat, now);
    if (awaits_core)
        return heartbeat->stuck ? ALERT_INTERVAL : STARVED_INTERVAL;
    if (is_late || (age >= GVL_WAIT_TO_RECORD && atomic_load_explicit(&heddle_recording, memory_order_relaxed)))
        probe_thread(heartbeat);
    return ALERT_INTERVAL;
}

static int64_t examine_heartbeat(heddle_heartbeat *heartbeat, int64_t now, int64_t late)
{
    if (!atomic_load(&heartbeat->thread))
        return CALM_INTERVAL;
    uint64_t word = atomic_load(&heartbeat->word);
    uint32_t gvl = atomic_load(&heartbeat->gvl);
    if (word != heartbeat->seen) {
        start_sampling(heartbeat, word, now);
        heartbeat->gvl_seen = gvl;
        return CALM_INTERVAL;
    }
    return word & 1 ? examine_busy(heartbeat, now, late, gvl) : examine_idle(heartbeat, now, late, gvl);
}

/* -- rescues ------------------------------------------------------------------------------------------------------- */

/* Returns whether the loop blocks itself. A loop that waits for the GVL is blocked by another loop or thread. */
static bool is_stuck_alone(const heddle_heartbeat *heartbeat)
{
    return (heartbeat->seen & 1) && heddle_gvl_activity(heartbeat->gvl_seen) != HEDDLE_ACTIVITY_NONE;
}

/*
 * Finds the stuck loop that blocks the rescue's loop: the rescue's loop itself, or else another one. Sets the rescue's
 * `since` and `label`.
 */
static bool find_stuck_loop(heddle_rescue *rescue)
{
    bool found = false;
    for (heddle_heartbeat *heartbeat = atomic_load(&heddle_heartbeats); heartbeat; heartbeat = heartbeat->next) {
        if (!atomic_load(&heartbeat->thread) || !heartbeat->stuck)
            continue;
        /* Another stuck loop counts only if its thread keeps the GVL, because it then blocks every loop. */
        bool own = heartbeat->loop == rescue->loop;
        if (!own && !((heartbeat->seen & 1) && heddle_gvl_activity(heartbeat->gvl_seen) == HEDDLE_ACTIVITY_NATIVE_GVL))
            continue;
        if (own || !found) {
            rescue->since = heartbeat->since + heartbeat->lost;
            rescue->label = own && is_stuck_alone(heartbeat)
                                ? atomic_load_explicit(&heartbeat->label, memory_order_relaxed)
                                : 0;
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
        rescue->on_recovered(rescue);
    rescue->under_way = false;
}

/* Returns the time until the next call of the rescue. */
static int64_t call_rescue(heddle_rescue *rescue)
{
    if (!find_stuck_loop(rescue)) {
        end_rescue(rescue);
        return CALM_INTERVAL;
    }
    rescue->under_way = true;
    rescue->collecting = watch.settings.collects();
    rescue->on_stuck(rescue);
    return RESCUE_INTERVAL;
}

void heddle_watch_add(heddle_rescue *rescue)
{
    handle_forks();
    pthread_mutex_lock(&watch.mutex);
    rescue->under_way = false;
    HEDDLE_LIST_ADD(watch.rescues, rescue);
    pthread_mutex_unlock(&watch.mutex);
}

void heddle_watch_remove(heddle_rescue *rescue)
{
    pthread_mutex_lock(&watch.mutex);
    end_rescue(rescue);
    HEDDLE_LIST_REMOVE(watch.rescues, rescue);
    pthread_mutex_unlock(&watch.mutex);
}

unsigned heddle_watch_count_rescues(void)
{
    unsigned count = 0;
    pthread_mutex_lock(&watch.mutex);
    for (heddle_rescue *rescue = watch.rescues; rescue; rescue = rescue->next)
        count++;
    pthread_mutex_unlock(&watch.mutex);
    return count;
}

/* -- the watch thread ---------------------------------------------------------------------------------------------- */

static bool has_changes(int64_t now)
{
    for (heddle_heartbeat *heartbeat = atomic_load(&heddle_heartbeats); heartbeat; heartbeat = heartbeat->next) {
        uint64_t word = atomic_load(&heartbeat->word);
        if (atomic_load(&heartbeat->thread) &&
            (word & 1 || word != heartbeat->seen || now - heartbeat->moved < QUIET_TIME ||
             heddle_gvl_activity(atomic_load(&heartbeat->gvl)) == HEDDLE_ACTIVITY_NONE))
            return true;
    }
    return false;
}

/*
 * Sleeps while all loops are idle. No wake-up is lost, because a loop that stops being idle changes its heartbeat
 * before it reads heddle_watch_asleep.
 */
static void sleep_while_quiet(int64_t now)
{
    if (has_changes(now))
        return;
    atomic_store(&heddle_watch_asleep, 1);
    while (!watch.quit && atomic_load(&heddle_watch_asleep) && !has_changes(now))
        pthread_cond_wait(&watch.roused, &watch.mutex);
    atomic_store(&heddle_watch_asleep, 0);
}

void heddle_watch_rouse(void)
{
    pthread_mutex_lock(&watch.mutex);
    atomic_store(&heddle_watch_asleep, 0);
    pthread_mutex_unlock(&watch.mutex);
    pthread_cond_signal(&watch.roused); /* after the unlock, because the woken thread locks the mutex */
}

/* Sleeps for `pause` ns. Returns by how many ns the thread woke up too late. */
static int64_t sleep_for(int64_t pause)
{
    struct timespec time = {.tv_nsec = pause};
    int64_t due = heddle_clock_now() + pause;
    atomic_store(&heddle_watch_due, due);
    nanosleep(&time, NULL);
    atomic_store(&heddle_watch_due, INT64_MAX);
    int64_t now = heddle_clock_now();
    return now > due ? now - due : 0;
}

static void *run_watch(void *unused)
{
    int64_t late = 0;
    pthread_mutex_lock(&watch.mutex);
    while (!watch.quit) {
        int64_t now = heddle_clock_now(), pause = STARVED_INTERVAL;
        for (heddle_heartbeat *heartbeat = atomic_load(&heddle_heartbeats); heartbeat; heartbeat = heartbeat->next) {
            int64_t interval = examine_heartbeat(heartbeat, now, late);
            pause = interval < pause ? interval : pause;
        }
        for (heddle_rescue *rescue = watch.rescues; rescue; rescue = rescue->next) {
            int64_t interval = call_rescue(rescue);
            pause = interval < pause ? interval : pause;
        }
        pthread_mutex_unlock(&watch.mutex);
        late = sleep_for(pause);
        pthread_mutex_lock(&watch.mutex);
        sleep_while_quiet(heddle_clock_now());
    }
    for (heddle_rescue *rescue = watch.rescues; rescue; rescue = rescue->next)
        end_rescue(rescue);
    pthread_mutex_unlock(&watch.mutex);
    return NULL;
}

/* -- start and end ----------------------------------------------------------------------------------------------- */

HEDDLE_HOLD_DURING_FORK(&watch.mutex)

/* A forked child has neither the watch thread nor the parent's loops. A loop that continues gets a new heartbeat. */
static void after_fork_in_child(void)
{
    for (heddle_heartbeat *heartbeat = atomic_load(&heddle_heartbeats); heartbeat; heartbeat = heartbeat->next)
        heddle_lost_time_detach(heartbeat);
    atomic_store(&heddle_watch_due, INT64_MAX);
    atomic_store(&heddle_heartbeats, NULL);
    atomic_store(&heddle_watch_asleep, 0);
    watch.running = false;
    watch.rescues = NULL;
    pthread_cond_init(&watch.roused, NULL);
    pthread_mutex_unlock(&watch.mutex);
}

static void handle_forks(void)
{
    if (!watch.handles_forks)
        watch.handles_forks = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

/* Called with the mutex held. */
static int start_thread(void)
{
    handle_forks();
    watch.quit = false;
    int result = heddle_native_thread_start(&watch.thread, run_watch);
    watch.running = result == 0;
    return -result;
}

/* Called with the mutex held; releases it. */
static void end_thread(void)
{
    bool running = watch.running;
    pthread_t thread = watch.thread;
    watch.quit = true;
    watch.running = false;
    pthread_cond_signal(&watch.roused);
    pthread_mutex_unlock(&watch.mutex);
    if (running)
        pthread_join(thread, NULL); /* no deadlock: the watch thread never waits for the GVL */
}

/* Starts or ends the thread, as its purposes require. Called with the mutex held; releases it. */
static int adjust_thread(void)
{
    if (!heddle_watch_purposes()) {
        end_thread();
        return 0;
    }
    int result = watch.running ? 0 : start_thread();
    pthread_mutex_unlock(&watch.mutex);
    return result;
}

int heddle_watch_set_purposes(int wants, const heddle_watch_settings *settings)
{
    pthread_mutex_lock(&watch.mutex);
    watch.wants = wants;
    if (settings)
        watch.settings = *settings;
    return adjust_thread();
}

int heddle_watch_pause(bool paused)
{
    pthread_mutex_lock(&watch.mutex);
    watch.paused = paused;
    return adjust_thread();
}

int heddle_watch_purposes(void)
{
    return watch.paused ? 0 : watch.wants;
}

bool heddle_watch_paused(void)
{
    return watch.paused;
}
