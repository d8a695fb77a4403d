/*
 * Keeps `gvl` of all heartbeats up to date: whether the loop's thread holds the GVL, waits for it or has released it.
 * Ruby's thread events (ruby/thread.h) report each change: the thread itself calls follow_gvl, mostly without the GVL.
 */

#include "watch/watch.h"

#include <ruby.h>
#include <ruby/thread.h>

static rb_internal_thread_event_hook_t *hook;

static void follow_gvl(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    for (heddle_heartbeat *heartbeat = atomic_load_explicit(&heddle_heartbeats, memory_order_acquire); heartbeat;
         heartbeat = heartbeat->next) {
        if (atomic_load_explicit(&heartbeat->thread, memory_order_relaxed) != data->thread)
            continue;
        uint32_t state = event & RUBY_INTERNAL_THREAD_EVENT_RESUMED ? HEDDLE_GVL_HELD
                         : event & RUBY_INTERNAL_THREAD_EVENT_READY ? HEDDLE_GVL_WANTED
                                                                    : HEDDLE_GVL_FREE;
        uint32_t changes = (atomic_load_explicit(&heartbeat->gvl, memory_order_relaxed) >> 2) + 1;
        atomic_store(&heartbeat->gvl, changes << 2 | state);
        /*
         * Wakes the watch thread here, because the loop could do so only when it has got the GVL, which may take long.
         */
        if (state == HEDDLE_GVL_WANTED && atomic_load(&heddle_watch_asleep))
            heddle_watch_rouse();
    }
}

void heddle_watch_follow_gvl(bool follow)
{
    if (follow && !hook) {
        hook = rb_internal_thread_add_event_hook(follow_gvl,
                                                 RUBY_INTERNAL_THREAD_EVENT_READY |
                                                     RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                                     RUBY_INTERNAL_THREAD_EVENT_SUSPENDED,
                                                 NULL);
    } else if (!follow && hook) {
        rb_internal_thread_remove_event_hook(hook);
        hook = NULL;
    }
}
