#include "scheduler/fiber_stacks.h"

#include "scheduler/loop.h"
#include "selector/clock.h"
#include "selector/native_thread.h"

#include <ruby/debug.h>
#include <ruby/ractor.h>
#include <ruby/thread.h>
#include <ruby/version.h>

#if RUBY_API_VERSION_CODE < 40000

#ifdef __linux__
#include <sys/syscall.h>
#endif

/*
 * The holder, which has claimed the list of vacant stacks: the address of a loop, or the ID of a garbage collection (an
 * odd number). 0: the list is not claimed.
 */
static _Atomic uintptr_t holder;
static _Atomic int holding_thread; /* the native thread of the holder */
static _Thread_local int identity;  /* the kernel's id of this native thread; 0 if it is not read yet */

/* The interval at which a waiting thread checks whether the list was released, ns. */
static const int64_t POLL_INTERVAL = 200 * 1000;
/* Protects `freed`, the condition on which threads wait for the list. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed;
static _Atomic unsigned waiting;

static int thread_number(void)
{
#ifdef __linux__
    if (!identity)
        identity = (int)syscall(SYS_gettid);
#elif defined(__APPLE__)
    uint64_t number = 0;
    if (!identity && pthread_threadid_np(NULL, &number) == 0)
        identity = (int)number;
#endif
    return identity;
}

static bool lock_stacks_for(uintptr_t who)
{
    uintptr_t before = 0;
    if (!atomic_compare_exchange_strong(&holder, &before, who))
        return before == who;
    atomic_store_explicit(&holding_thread, thread_number(), memory_order_relaxed);
    return true;
}

static void unlock_stacks(uintptr_t who)
{
    if (atomic_load_explicit(&holder, memory_order_relaxed) != who)
        return;
    atomic_store_explicit(&holding_thread, 0, memory_order_relaxed);
    /*
     * Stores `holder`, then loads `waiting`. A waiting thread stores `waiting`, then loads `holder`. So at least one of
     * the two sees what the other has stored.
     */
    atomic_store(&holder, 0);
    if (atomic_load(&waiting)) {
        pthread_mutex_lock(&lock);
        pthread_cond_broadcast(&freed);
        pthread_mutex_unlock(&lock);
    }
}

void heddle_fiber_stacks_unlock(const void *loop)
{
    unlock_stacks((uintptr_t)loop);
}

static void wait_for_stacks(int64_t nanoseconds)
{
    struct timespec end = heddle_clock_after(HEDDLE_CONDITION_CLOCK, nanoseconds);
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&waiting, 1);
    if (atomic_load(&holder))
        pthread_cond_timedwait(&freed, &lock, &end);
    atomic_fetch_sub(&waiting, 1);
    pthread_mutex_unlock(&lock);
}

/*
 * Releases the list if the garbage collection that has claimed it is over, but follow_collector was not called at its
 * end. This happens if a Ractor without a loop uses a TracePoint: then Ruby stops calling follow_collector.
 */
static void unlock_ended_collection(void)
{
    uintptr_t who = atomic_load(&holder);
    if ((who & 1) && !rb_during_gc())
        atomic_compare_exchange_strong(&holder, &who, 0);
}

static void *wait_until_free(void *unused)
{
    while (atomic_load(&holder)) {
        wait_for_stacks(POLL_INTERVAL);
        unlock_ended_collection();
    }
    return NULL;
}

static VALUE wait_without_gvl(VALUE unused)
{
    /* Not interruptible, because the wait is short: some microseconds, or a garbage collection. */
    rb_nogvl(wait_until_free, NULL, NULL, NULL, 0);
    return Qnil;
}

int heddle_fiber_stacks_lock(const void *loop)
{
    int state = 0;
    while (!lock_stacks_for((uintptr_t)loop) && !state)
        rb_protect(wait_without_gvl, Qnil, &state);
    return state;
}

/* -- the garbage collector ---------------------------------------------------------------------------------------- */

/* Was a loop ever created outside of the main Ractor? */
static _Atomic bool shared;

static rb_ractor_local_key_t joined;
static rb_postponed_job_handle_t renewal = POSTPONED_JOB_HANDLE_INVALID;

/* The longest time that a garbage collection waits for a loop, ns. */
static const int64_t LOCK_TIMEOUT = 1000 * 1000 * 1000;

/*
 * Does this native thread, which has claimed the list, sleep? Then it does not change the list during this garbage
 * collection, so the collection need not wait for the thread. There are three cases in which such a thread sleeps:
 *
 * - It has run out of stacks and allocates memory for one. It changes the list only afterwards.
 * - Its switch of fibers is over: it no longer uses the list, but has not released it yet.
 * - It is in the fiber of Scheduler#resume_new, which starts the main Ractor's offload threads. That fiber releases its
 *   stack only at its end.
 */
static bool is_thread_at_rest(int thread)
{
    return thread && heddle_native_thread_state(thread) == 'S';
}

/* Returns the id of a garbage collection that runs in this native thread. */
static uintptr_t collection_id(void)
{
    return (uintptr_t)thread_number() << 1 | 1;
}

static void lock_for_collector(void)
{
    if (!atomic_load(&shared) || atomic_load(&holding_thread) == thread_number())
        return;
    for (int64_t waited = 0; !lock_stacks_for(collection_id()) && waited < LOCK_TIMEOUT; waited += POLL_INTERVAL) {
        if (is_thread_at_rest(atomic_load(&holding_thread)))
            return;
        wait_for_stacks(POLL_INTERVAL);
    }
}

static void follow_collector(rb_event_flag_t event, VALUE data, VALUE self, ID method, VALUE klass)
{
    if (event == RUBY_INTERNAL_EVENT_GC_ENTER)
        lock_for_collector();
    else
        unlock_stacks(collection_id());
}

static void subscribe_to_collector(void)
{
    rb_add_event_hook2(follow_collector, RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT, Qnil,
                       RUBY_EVENT_HOOK_FLAG_SAFE);
}

static void ignore_event(rb_event_flag_t event, VALUE data, VALUE self, ID method, VALUE klass)
{
}

/*
 * Runs in the main Ractor. Adds a hook and removes it, so that Ruby sets its global variable again (see
 * heddle_fiber_stacks_join). Does not touch the hook of the Ractor that has called heddle_fiber_stacks_join, because a
 * collection may run there now.
 */
static void subscribe_again(void *unused)
{
    rb_add_event_hook2(ignore_event, RUBY_INTERNAL_EVENT_GC_EXIT, Qnil, RUBY_EVENT_HOOK_FLAG_SAFE);
    rb_remove_event_hook(ignore_event);
}

/*
 * Each Ractor has its own event hooks. But Ruby keeps in one global variable which events have hooks, and each call
 * that adds or removes a hook overwrites this variable with the events of the calling Ractor's hooks. So the main
 * Ractor, in which the program may have hooks, must make the last such call.
 */
void heddle_fiber_stacks_join(void)
{
    VALUE value;
    if (heddle_in_main_ractor())
        return;
    if (rb_ractor_local_storage_value_lookup(joined, &value))
        return;
    rb_ractor_local_storage_value_set(joined, Qtrue);
    atomic_store(&shared, true);
    subscribe_to_collector();
    rb_postponed_job_trigger(renewal);
}

/* -- setting up --------------------------------------------------------------------------------------------------- */

/* Called in a forked child: releases the list, because the thread that claimed it does not exist there. */
static void free_in_child(void)
{
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    lock = unlocked;
    heddle_condition_init(&freed);
    atomic_store(&waiting, 0);
    atomic_store(&holding_thread, 0);
    atomic_store(&holder, 0);
    identity = 0;
}

void heddle_fiber_stacks_setup(void)
{
    heddle_condition_init(&freed);
    pthread_atfork(NULL, NULL, free_in_child);
    joined = rb_ractor_local_storage_value_newkey();
    renewal = rb_postponed_job_preregister(0, subscribe_again, NULL);
    subscribe_to_collector();
}

#else

int heddle_fiber_stacks_lock(const void *loop)
{
    return 0;
}

void heddle_fiber_stacks_unlock(const void *loop)
{
}

void heddle_fiber_stacks_setup(void)
{
}

void heddle_fiber_stacks_join(void)
{
}

#endif
