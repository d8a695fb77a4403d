/*
 * One tick of a loop: runs the fibers that are ready, then polls the selector or sleeps in it. loop_run.c repeats the
 * tick.
 */

#include "scheduler/io_rest.h"
#include "scheduler/io_wait.h"
#include "scheduler/run_queue.h"

#include <ruby/thread.h>

/* The shortest interval between searches for closed IOs (ns); see `unreported` in heddle_loop_io. */
static const int64_t SWEEP_INTERVAL = 50 * 1000 * 1000;

/*
 * In ns. How long fibers may run before the loop polls a selector without the function `pending`. Such a selector needs
 * a system call to find out whether events are ready. The call takes about 2 µs, so polling costs a tenth of the time.
 */
static const int64_t POLL_INTERVAL = 20 * 1000;

/*
 * The interval of polls (ns) while no fiber is ready, but requests or other work wait to begin. It is longer than
 * POLL_INTERVAL, because most of this work suspends its fiber soon after it has begun.
 */
static const int64_t BEGIN_INTERVAL = 200 * 1000;

/*
 * How often (ns) the loop looks for a deadlock while only other threads can wake it. These threads may end without
 * waking it.
 */
static const int64_t DEADLOCK_INTERVAL = 1000 * 1000 * 1000;

static bool has_work(heddle_loop *loop)
{
    if (loop->run.until && loop->run.until->woken)
        return true;
    return heddle_loop_has_queued(loop) || loop->work_waits;
}

static void check_result(int result, const char *what)
{
    if (result < 0)
        rb_syserr_fail(-result, what);
}

typedef struct {
    heddle_loop *loop;
    int64_t timeout;
    int result;
} blocking_wait;

static void *wait_without_gvl(void *data)
{
    blocking_wait *wait = data;
    wait->result = wait->loop->operations->wait(wait->loop->selector, wait->timeout);
    return NULL;
}

static void interrupt_wait(void *data)
{
    heddle_loop *loop = data;
    heddle_selector_wake(loop->selector);
}

/* Publishes for other processes when the tick began, or that the loop sleeps. */
static void publish_tick(heddle_loop *loop, bool running)
{
    if (loop->watch.published_tick)
        atomic_store_explicit(loop->watch.published_tick, running ? heddle_clock_coarse() : 0, memory_order_relaxed);
}

static void begin_sleep(heddle_loop *loop)
{
    if (!loop->watch.heartbeat)
        return;
    atomic_store_explicit(&loop->watch.heartbeat->word, loop->watch.word + 1, memory_order_relaxed);
    heddle_loop_check_heartbeat(loop, false);
}

static void end_sleep(heddle_loop *loop)
{
    if (!loop->watch.heartbeat)
        return;
    loop->watch.word += 2;
    /*
     * the word is stored before the flag is loaded; the watch thread stores the flag before it loads the word, so at
     * least one of the two sees the other's store
     */
    atomic_store(&loop->watch.heartbeat->word, loop->watch.word);
    if (atomic_load(&heddle_watch_asleep))
        heddle_hooks.rouse_watch();
    heddle_loop_check_heartbeat(loop, true);
}

/* Is it time to poll the selector although the loop has other work? */
static bool is_worth_a_poll(heddle_loop *loop)
{
    if (loop->operations->pending)
        return loop->operations->pending(loop->selector);
    bool only_begins = loop->work_waits && !heddle_loop_has_queued(loop);
    return heddle_clock_now() - loop->polled >= (only_begins ? BEGIN_INTERVAL : POLL_INTERVAL);
}

static void poll_selector(heddle_loop *loop)
{
    check_result(loop->operations->poll(loop->selector), loop->operations->name);
    if (!loop->operations->pending)
        loop->polled = heddle_clock_now();
}

/* Has this tick looked for closed IOs? */
static bool is_swept(const heddle_loop *loop)
{
    return loop->io.unreported && loop->io.swept_tick == loop->statistics.ticks;
}

static void wait_in_selector(heddle_loop *loop, int64_t timeout)
{
    publish_tick(loop, false);
    atomic_store(&loop->sleeping, 1);
    /* From here on, a thread that posts a message sees the flag and wakes the loop. Earlier messages are found here. */
    if (heddle_inbox_empty(&loop->inbox)) {
        blocking_wait wait = {.loop = loop, .timeout = timeout};
        loop->statistics.waits++;
        loop->held_since = 0; /* from here on, the loop notices an event as soon as it occurs */
        begin_sleep(loop);
        int64_t began = heddle_clock_now();
        if (is_swept(loop))
            heddle_io_begin_rest(loop);
        /* INTR_FAIL: no interrupt may be raised before the loop's state is consistent again. */
        rb_nogvl(wait_without_gvl, &wait, interrupt_wait, loop, RB_NOGVL_INTR_FAIL);
        heddle_io_end_rest(loop);
        loop->statistics.asleep += (uint64_t)(heddle_clock_now() - began);
        end_sleep(loop);
        atomic_store(&loop->sleeping, 0);
        loop->operations->harvest(loop->selector);
        check_result(wait.result, loop->operations->name);
    } else {
        atomic_store(&loop->sleeping, 0);
        /*
         * Code that divides long work posts a message for each part. So the loop polls between two messages: events
         * must not wait for all parts.
         */
        if (is_worth_a_poll(loop))
            poll_selector(loop);
    }
    publish_tick(loop, true);
    if (loop->watch.published_tick)
        loop->watch.awake_since = atomic_load_explicit(loop->watch.published_tick, memory_order_relaxed);
    rb_thread_check_ints();
}

/* Polls the inbox for a short time (spin.h). Returns true if a message arrived, so that the loop need not sleep. */
static bool spin_for_message(heddle_loop *loop)
{
    int64_t until = loop->spin_until;
    loop->spin_until = 0;
    if (!until || !heddle_spin_due(&loop->spins))
        return false;
    loop->held_since = 0; /* as in wait_in_selector */
    while (heddle_inbox_empty(&loop->inbox) && heddle_clock_now() < until)
        heddle_spin_pause();
    bool found = !heddle_inbox_empty(&loop->inbox);
    heddle_spin_ended(&loop->spins, found);
    if (!found)
        return false;
    heddle_inbox_open(&loop->inbox);
    rb_thread_check_ints();
    return true;
}

/*
 * Looks for closed IOs, at most once in each SWEEP_INTERVAL. Returns when the next check is due, or -1 if this tick has
 * made a check after its fibers ran: then only another thread can close an IO before the next tick (io_rest.h).
 */
static int64_t check_for_closed_ios(heddle_loop *loop, int64_t now)
{
    if (now - loop->io.swept >= SWEEP_INTERVAL) {
        heddle_io_fail_closed_waits(loop);
        loop->io.swept = now;
        loop->io.swept_tick = loop->statistics.ticks;
    }
    return is_swept(loop) ? -1 : loop->io.swept + SWEEP_INTERVAL;
}

static int64_t find_wait_time(heddle_loop *loop)
{
    int64_t now = heddle_clock_now(), deadline = heddle_timer_heap_next(&loop->timers);
    int64_t next = loop->io.unreported ? check_for_closed_ios(loop, now) : -1;
    if (next >= 0 && (deadline < 0 || deadline > next))
        deadline = next;
    if (has_work(loop))
        return 0;
    if (deadline < 0)
        return -1;
    return deadline > now ? deadline - now : 0;
}

bool heddle_loop_has_live_fiber(const heddle_loop *loop)
{
    return loop->fiber_count > loop->idle + loop->run.runs_in_fiber || loop->park_count > loop->idle;
}

/* Is there no other thread that could wake a fiber of this loop? Idle offload threads don't count. */
static bool is_alone(void)
{
    if (rb_thread_alone())
        return true;
    long idle = heddle_hooks.count_idle_threads();
    if (idle <= 0)
        return false;
    VALUE list = rb_funcall(rb_cThread, rb_intern("list"), 0);
    return RARRAY_LEN(list) == 1 + idle;
}

static bool is_timer_due(heddle_loop *loop)
{
    return loop->timers.count && heddle_timer_heap_next(&loop->timers) <= heddle_clock_now();
}

static void begin_tick(heddle_loop *loop)
{
    loop->statistics.ticks++;
    loop->starts = 0;
    if (loop->watch.published_tick)
        publish_tick(loop, true);
}

/*
 * Called when all fibers of a tick have run. May a waiting fiber switch directly to a ready one? Yes if the loop would
 * do nothing but begin the next tick.
 */
static bool may_switch_directly(heddle_loop *loop)
{
    if (heddle_token_ring_count(&loop->preempted) || loop->work_waits || heddle_stalls_pending ||
        !heddle_inbox_empty(&loop->inbox))
        return false;
    if (loop->watch.heartbeat && loop->preempt.hooked != heddle_preempting)
        return false;
    return !is_timer_due(loop) && !is_worth_a_poll(loop);
}

heddle_park *heddle_loop_choose_next(heddle_loop *loop, const heddle_park *leaving)
{
    if (!heddle_loop_is_running(loop) || loop->run.until || loop->switching.next_unblocked || loop->run.forked_by ||
        loop->preempt.killed ||
        leaving->owner == &loop->implicit || heddle_loop_forked(loop))
        return NULL;
    while (heddle_token_ring_count(&loop->ready)) {
        heddle_park *park = heddle_loop_find_park(loop, heddle_token_ring_at(&loop->ready, 0));
        /*
         * Only the loop's fiber may start fibers, continue fibers that have switched to another one by Fiber#raise or
         * Fiber#transfer, continue the fiber that is leaving, and make switches that release stacks.
         */
        if (park &&
            (park == &park->owner->queue_park || park->fiber == leaving->fiber || heddle_park_returns_stack(park)))
            return NULL;
        if (loop->left == 0) {
            if (!may_switch_directly(loop))
                return NULL;
            begin_tick(loop);
            loop->left = heddle_token_ring_count(&loop->ready);
        }
        loop->left--;
        heddle_token_ring_shift(&loop->ready);
        if (park) {
            heddle_loop_prepare_switch(loop, park);
            return park;
        }
    }
    return NULL;
}

static void begin_work(heddle_loop *loop)
{
    loop->work_waits = false; /* an attachment sets the flag again if its work must continue to wait */
    for (heddle_attachment *attachment = loop->attachments; attachment; attachment = attachment->next) {
        if (attachment->begin_work)
            attachment->begin_work(attachment);
    }
}

void heddle_loop_tick(heddle_loop *loop)
{
    begin_tick(loop);
    if (loop->preempt.hooked != heddle_preempting)
        heddle_hooks.follow_switches(loop, heddle_preempting);
    loop->held_since = 0;
    loop->ran_since = heddle_accounting ? heddle_clock_now() : 0;
    heddle_loop_run_ready(loop);
    if (heddle_stalls_pending && loop->in_main_ractor) /* other Ractors can't call the code that reports stalls */
        heddle_hooks.announce_stalls(loop);
    loop->held_since = loop->ran_since;
    heddle_inbox_open(&loop->inbox);

    if (!heddle_loop_has_live_fiber(loop) && !loop->work_waits)
        return;
    int64_t timeout = has_work(loop) ? 0 : find_wait_time(loop);
    if (timeout == 0) {
        /* Polls before timers expire: if a fiber's IO is ready and its time limit has passed, the fiber gets the IO. */
        if (is_timer_due(loop) || is_worth_a_poll(loop))
            poll_selector(loop);
    } else {
        /*
         * While other threads run, the loop may have to wait for the GVL for a whole time slice of Ruby's threads
         * (100 ms). So the loop polls first, without releasing the GVL.
         */
        if (!rb_thread_alone() && (!loop->operations->pending || loop->operations->pending(loop->selector))) {
            poll_selector(loop);
            timeout = find_wait_time(loop); /* a callback may have set a timer */
        }
        if (timeout < 0 && loop->armed == 0 && heddle_inbox_empty(&loop->inbox)) {
            if (is_alone()) {
                rb_funcall(loop->scheduler, rb_intern("on_deadlock"), 0);
                if (has_work(loop))
                    return;
            } else {
                timeout = DEADLOCK_INTERVAL;
            }
        }
        if (timeout && !spin_for_message(loop))
            wait_in_selector(loop, timeout);
    }
    if (loop->timers.count)
        heddle_timer_heap_expire(&loop->timers, heddle_clock_now());
    if (loop->work_waits)
        begin_work(loop);
}

void heddle_loop_wake(heddle_loop *loop)
{
    /* At most one system call for each sleep: only the first thread that sees the loop asleep wakes the selector. */
    if (atomic_load(&loop->sleeping) && atomic_exchange(&loop->sleeping, 0))
        heddle_selector_wake(loop->selector);
}
