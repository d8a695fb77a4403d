/*
 * Makes an exception pending in the calling thread: Ruby raises it when the thread next handles interrupts. If the
 * thread called Thread#raise for itself, the exception would be raised at once. So a helper thread calls Thread#raise,
 * while the calling thread waits without the GVL.
 */

#include "preempt/preempt.h"

#include "scheduler/fiber_interrupt.h"

#include <ruby/thread.h>

typedef struct {
    /*
     * kept alive: both are on the caller's stack, and on the helper thread's once that has started; not used if
     * `abandoned`
     */
    VALUE thread, exception;
    bool abandoned, started;
    int holders; /* how many of the two threads still use this record; changed with the GVL */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool finished; /* changed with the mutex held */
} delivery;

static void release_delivery(delivery *self)
{
    if (--self->holders > 0)
        return;
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

static void end_wait(void *data)
{
    delivery *self = data;
    pthread_mutex_lock(&self->mutex);
    self->finished = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
}

static void *wait_without_gvl(void *data)
{
    delivery *self = data;
    pthread_mutex_lock(&self->mutex);
    while (!self->finished)
        pthread_cond_wait(&self->changed, &self->mutex);
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

static VALUE raise_in_thread(VALUE data)
{
    delivery *self = (delivery *)data;
    self->started = true;
    return heddle_thread_raise(self->thread, self->exception);
}

static VALUE deliver_exception(void *data)
{
    delivery *self = data;
    int state = 0;
    if (!self->abandoned)
        rb_protect(raise_in_thread, (VALUE)self, &state);
    rb_set_errinfo(Qnil);
    end_wait(self);
    release_delivery(self);
    return Qnil;
}

static VALUE create_thread(VALUE data)
{
    return rb_thread_create(deliver_exception, (void *)data);
}

bool heddle_exception_deliver(heddle_loop *loop, VALUE exception)
{
    delivery *self = calloc(1, sizeof(*self));
    if (!self)
        return false;
    *self = (delivery){.thread = rb_thread_current(), .exception = exception, .holders = 2};
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->changed, NULL);
    if (heddle_exception_catch(loop, create_thread, (VALUE)self) != Qundef || loop->preempt.killed) {
        self->holders = 1;
        release_delivery(self);
        return false;
    }
    /* INTR_FAIL: nothing is raised here. If another interrupt is pending, rb_nogvl returns without waiting. */
    rb_nogvl(wait_without_gvl, self, end_wait, self, RB_NOGVL_INTR_FAIL);
    bool given = self->started;
    self->abandoned = !given;
    release_delivery(self);
    RB_GC_GUARD(exception);
    return given;
}
