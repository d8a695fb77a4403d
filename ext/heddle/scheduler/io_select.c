/* The hook io_select, which IO.select calls. */

#include "scheduler/ruby_hooks.h"
#include "scheduler/io_wait.h"
#include "scheduler/wait_in_place.h"

#include <poll.h>
#include <ruby/io.h>

/* One descriptor of a select. The waiters only wake the fiber; poll(2) then reports which descriptors are ready. */
typedef struct {
    heddle_waiter waiter;
    struct io_selection *selection;
} selected;

typedef struct io_selection {
    heddle_park park;
    heddle_loop *loop;
    VALUE lists[3]; /* readables, writables, exceptables: Array or nil */
    selected *items;
    struct pollfd *polls;
    size_t count;
    int64_t timeout;
    int error;
} io_selection;

static const short list_polls[3] = {POLLIN, POLLOUT, POLLPRI};
static const uint8_t list_events[3] = {HEDDLE_READABLE, HEDDLE_WRITABLE, HEDDLE_PRIORITY};

static bool has_buffered_bytes(VALUE io)
{
    rb_io_t *pointer;
    GetOpenFile(io, pointer);
    return rb_io_read_pending(pointer);
}

static VALUE collect_ready(io_selection *selection)
{
    VALUE result = rb_ary_new_capa(3);
    size_t index = 0;
    bool any = false;
    for (int list = 0; list < 3; list++) {
        VALUE ready = rb_ary_new();
        rb_ary_push(result, ready);
        if (NIL_P(selection->lists[list]))
            continue;
        for (long i = 0; i < RARRAY_LEN(selection->lists[list]) && index < selection->count; i++, index++) {
            VALUE item = RARRAY_AREF(selection->lists[list], i);
            bool is_ready = selection->polls[index].revents != 0;
            if (!is_ready && list == 0)
                is_ready = has_buffered_bytes(rb_io_get_io(item));
            if (is_ready) {
                rb_ary_push(ready, item);
                any = true;
            }
        }
    }
    return any ? result : Qnil;
}

/* Stops waiting for urgent data of this descriptor: poll(2) ignores negative descriptors. */
static void ignore_exception(io_selection *selection, size_t index)
{
    selection->polls[index].fd = -1;
    selection->polls[index].revents = 0;
}

static void poll_selection(io_selection *selection)
{
    if (selection->count && poll(selection->polls, (nfds_t)selection->count, 0) < 0 && errno != EINTR)
        rb_sys_fail("select");
    for (size_t i = 0; i < selection->count; i++) {
        struct pollfd *one = &selection->polls[i];
        if (one->revents & POLLNVAL)
            rb_syserr_fail(EBADF, "select");
        /* poll(2) always reports a hang-up and an error. For select(2), neither is an exceptional condition. */
        if (one->events == POLLPRI && one->revents && !(one->revents & POLLPRI))
            ignore_exception(selection, i);
    }
}

static void note_ready(heddle_waiter *waiter, int result, uint32_t flags)
{
    selected *item = (selected *)((char *)waiter - offsetof(selected, waiter));
    io_selection *selection = item->selection;
    heddle_loop_count_disarmed(selection->loop);
    if (heddle_io_has_no_urgent_data(waiter, result))
        ignore_exception(selection, (size_t)(item - selection->items));
    else if (result < 0)
        selection->error = -result;
    heddle_park_wake(&selection->park);
}

static VALUE wait_for_any(VALUE data)
{
    io_selection *selection = (io_selection *)data;
    for (size_t i = 0; i < selection->count && !selection->park.woken; i++) {
        if (selection->polls[i].fd < 0)
            continue;
        int now = heddle_loop_arm(selection->loop, &selection->items[i].waiter);
        if (heddle_io_has_no_urgent_data(&selection->items[i].waiter, now))
            ignore_exception(selection, i);
        else if (now < 0)
            rb_syserr_fail(-now, "select");
        if (now > 0)
            heddle_park_wake(&selection->park);
    }
    heddle_park_wait(&selection->park);
    return Qnil;
}

static VALUE end_wait_for_any(VALUE data)
{
    io_selection *selection = (io_selection *)data;
    if (heddle_park_entered(&selection->park)) {
        for (size_t i = 0; i < selection->count; i++)
            heddle_loop_disarm(selection->loop, &selection->items[i].waiter);
    }
    heddle_park_leave(&selection->park);
    return Qnil;
}

static VALUE run_select(VALUE data)
{
    io_selection *selection = (io_selection *)data;
    size_t index = 0;
    for (int list = 0; list < 3; list++) {
        if (NIL_P(selection->lists[list]))
            continue;
        for (long i = 0; i < RARRAY_LEN(selection->lists[list]) && index < selection->count; i++, index++) {
            VALUE io = rb_io_get_io(RARRAY_AREF(selection->lists[list], i));
            if (list == 1)
                /* the IO for writing, if this one is a pipe that is open in both directions */
                io = rb_io_get_write_io(io);
            int fd = rb_io_descriptor(io);
            if (fd < 0)
                rb_syserr_fail(EBADF, "select");
            selection->polls[index] = (struct pollfd){.fd = fd, .events = list_polls[list]};
            selection->items[index] = (selected){
                .waiter = {.fn = note_ready, .fd = fd, .events = list_events[list]}, .selection = selection};
        }
    }
    int64_t deadline = selection->timeout < 0 ? -1 : heddle_deadline_after(selection->timeout);
    for (;;) {
        poll_selection(selection);
        VALUE result = collect_ready(selection);
        if (!NIL_P(result) || selection->timeout == 0 || (deadline >= 0 && heddle_clock_now() >= deadline))
            return result;
        if (heddle_must_wait_in_place(selection->loop)) {
            heddle_wait_in_place(selection->loop, selection->polls, (nfds_t)selection->count, deadline, NULL);
            continue;
        }
        heddle_park_enter(selection->loop, &selection->park);
        heddle_park_set_deadline(&selection->park, deadline);
        rb_ensure(wait_for_any, data, end_wait_for_any, data);
        if (selection->error)
            rb_syserr_fail(selection->error, "select");
    }
}

static VALUE free_select(VALUE data)
{
    io_selection *selection = (io_selection *)data;
    free(selection->items);
    free(selection->polls);
    return Qnil;
}

/*
 * call-seq: io_select(readables, writables = nil, exceptables = nil, timeout = nil) -> Array or nil
 *
 * Called by IO.select. Waits in the selector, or in place where the fiber must not switch (wait_in_place.h). Uses no
 * other thread.
 */
static VALUE scheduler_io_select(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 4);
    io_selection selection = {.loop = heddle_loop_get(self)};
    for (int i = 0; i < 3; i++) {
        selection.lists[i] = i < argc && !NIL_P(argv[i]) ? rb_convert_type(argv[i], T_ARRAY, "Array", "to_ary") : Qnil;
        if (!NIL_P(selection.lists[i])) {
            /* a copy: the caller's Array may change during the wait */
            selection.lists[i] = rb_ary_dup(selection.lists[i]);
            selection.count += (size_t)RARRAY_LEN(selection.lists[i]);
        }
    }
    selection.timeout = argc < 4 || heddle_never_comes(argv[3]) ? -1 : heddle_parse_duration(argv[3]);
    selection.items = calloc(selection.count + 1, sizeof(*selection.items));
    selection.polls = calloc(selection.count + 1, sizeof(*selection.polls));
    if (!selection.items || !selection.polls) {
        free_select((VALUE)&selection);
        rb_memerror();
    }
    VALUE result = rb_ensure(run_select, (VALUE)&selection, free_select, (VALUE)&selection);
    for (int i = 0; i < 3; i++)
        RB_GC_GUARD(selection.lists[i]);
    return result;
}

void heddle_define_io_select_hook(VALUE scheduler_class)
{
    rb_define_method(scheduler_class, "io_select", scheduler_io_select, -1);
}
