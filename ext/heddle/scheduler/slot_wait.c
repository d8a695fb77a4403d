#include "scheduler/slot_wait.h"

static VALUE wait_in_park(VALUE data)
{
    heddle_wait *wait = (heddle_wait *)data;
    *wait->slot = wait;
    heddle_park_set_deadline(&wait->park, wait->deadline);
    heddle_park_wait(&wait->park);
    return Qnil;
}

static VALUE leave_park(VALUE data)
{
    heddle_wait *wait = (heddle_wait *)data;
    if (wait->slot && *wait->slot == wait)
        *wait->slot = NULL;
    heddle_park_leave(&wait->park);
    return Qnil;
}

heddle_wait_result heddle_wait_in_slot(heddle_loop *loop, heddle_wait wait, const char *busy)
{
    if (*wait.slot)
        rb_raise(rb_eIOError, "%s", busy);
    heddle_park_enter(loop, &wait.park);
    heddle_park_waits_for(&wait.park, wait.part);
    rb_ensure(wait_in_park, (VALUE)&wait, leave_park, (VALUE)&wait);
    if (!wait.slot)
        return HEDDLE_WAIT_CLOSED;
    return wait.park.timed_out ? HEDDLE_WAIT_TIMED_OUT : HEDDLE_WAIT_READY;
}

void heddle_wait_drop(heddle_wait **slot)
{
    heddle_wait *wait = *slot;
    *slot = NULL;
    if (!wait)
        return;
    wait->slot = NULL;
    heddle_park_wake(&wait->park);
}
