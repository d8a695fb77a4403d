#include "scheduler/io_rest.h"

#include "selector/list.h"
#include "selector/native_thread.h"

#include <ruby/thread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static heddle_io_rest *_Atomic rests; /* changed with `lock` held */

/* Ruby calls this function on each thread, of any Ractor, that has just got the GVL. */
static void wake_loops(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    if (!rests)
        return;
    pthread_mutex_lock(&lock);
    for (heddle_io_rest *rest = rests, *next; rest; rest = next) {
        next = rest->next;
        if (rest->loop->thread == data->thread)
            continue;
        HEDDLE_LIST_REMOVE(rests, rest);
        heddle_loop_wake(rest->loop);
    }
    pthread_mutex_unlock(&lock);
}

HEDDLE_HOLD_DURING_FORK(&lock)

static void after_fork_in_child(void)
{
    rests = NULL;
    pthread_mutex_unlock(&lock);
}

static void follow_threads(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    rb_internal_thread_add_event_hook(wake_loops, RUBY_INTERNAL_THREAD_EVENT_RESUMED, NULL);
}

void heddle_io_begin_rest(heddle_loop *loop)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, follow_threads);
    pthread_mutex_lock(&lock);
    loop->io.rest.loop = loop;
    HEDDLE_LIST_ADD(rests, &loop->io.rest);
    pthread_mutex_unlock(&lock);
}

void heddle_io_end_rest(heddle_loop *loop)
{
    pthread_mutex_lock(&lock);
    HEDDLE_LIST_REMOVE(rests, &loop->io.rest);
    pthread_mutex_unlock(&lock);
}
