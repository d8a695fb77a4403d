#include "scheduler/io_wait.h"

#include "scheduler/wait_in_place.h"
#include "selector/list.h"

#include <ruby/io.h>
#include <sys/stat.h>

int64_t heddle_io_get_timeout(VALUE io)
{
    return RB_TYPE_P(io, T_FILE) ? heddle_parse_duration(rb_io_timeout(io)) : -1;
}

void heddle_io_raise_timeout(void)
{
    rb_raise(rb_eIOTimeoutError, "the IO's timeout has passed");
}

static bool is_closed(VALUE io)
{
    return RB_TYPE_P(io, T_FILE) && RTEST(rb_io_closed_p(io));
}

/*
 * When an extension waits for a descriptor, as UNIXSocket#recv_io does, Ruby creates an IO from the descriptor's number
 * for the hook. That IO does not own the descriptor (FMODE_EXTERNAL), and does not notice when the extension closes its
 * own IO object. Then the number is unused, or belongs to another file. So this function records to which file the
 * number belongs now.
 */
static void note_file(heddle_io_wait *wait)
{
    struct stat file;
    if (!RB_TYPE_P(wait->io, T_FILE) || !(rb_io_mode(wait->io) & FMODE_EXTERNAL) || fstat(wait->waiter.fd, &file) != 0)
        return;
    wait->by_number = true;
    wait->device = file.st_dev;
    wait->inode = file.st_ino;
}

static bool has_lost_file(const heddle_io_wait *wait)
{
    struct stat file;
    if (is_closed(wait->io))
        return true;
    return wait->by_number && !wait->reopened &&
           (fstat(wait->waiter.fd, &file) != 0 || file.st_dev != wait->device || file.st_ino != wait->inode);
}

/*
 * Must the loop check whether the IO was closed? From Ruby 4.0 on, Ruby itself ends the waits for an IO that is closed
 * (fiber_interrupt.h). But Ruby does not know the waits whose IO does not own its descriptor (note_file).
 */
static bool is_unreported(const heddle_io_wait *wait)
{
    return RUBY_API_VERSION_MAJOR < 4 || wait->by_number;
}

/* Enlarges the arrays so that they have an entry for this descriptor. Raises NoMemoryError when out of memory. */
static void reserve_descriptor(heddle_loop *loop, int fd)
{
    if (fd < loop->io.size)
        return;
    int size = loop->io.size ? loop->io.size : 64;
    while (size <= fd)
        size *= 2;
    heddle_io_wait **waits = realloc(loop->io.waits, (size_t)size * sizeof(*waits));
    if (!waits)
        rb_memerror();
    loop->io.waits = waits;
    uint8_t *notes = realloc(loop->io.notes, (size_t)size);
    if (!notes)
        rb_memerror();
    loop->io.notes = notes;
    memset(waits + loop->io.size, 0, (size_t)(size - loop->io.size) * sizeof(*waits));
    memset(notes + loop->io.size, 0, (size_t)(size - loop->io.size));
    loop->io.size = size;
}

uint8_t heddle_io_get_note(const heddle_loop *loop, int fd)
{
    return fd < loop->io.size ? loop->io.notes[fd] : 0;
}

void heddle_io_set_note(heddle_loop *loop, int fd, uint8_t note)
{
    reserve_descriptor(loop, fd);
    loop->io.notes[fd] = note;
}

/*
 * Ends a wait whose IO was closed or reopened: its result is -EBADF. Does nothing if the wait is not armed: then it has
 * ended already, will end after a tick, or is for urgent data of a regular file and so lasts until its time limit.
 */
static void fail_wait(heddle_io_wait *wait)
{
    if (!wait->waiter.armed)
        return;
    wait->result = -EBADF;
    heddle_loop_disarm(wait->park.loop, &wait->waiter);
    heddle_park_wake(&wait->park);
}

static void link_wait(heddle_io_wait *wait)
{
    heddle_loop *loop = wait->park.loop;
    reserve_descriptor(loop, wait->waiter.fd);
    heddle_io_wait **first = &loop->io.waits[wait->waiter.fd];

    /* Older waits may belong to a closed IO that had the same descriptor. They must not receive events of this IO. */
    for (heddle_io_wait *other = *first; other; other = other->next) {
        if (other->io != wait->io && has_lost_file(other))
            fail_wait(other);
    }
    HEDDLE_LIST_ADD(*first, wait);
    wait->linked = true;
    loop->io.unreported += is_unreported(wait);
}

static void unlink_wait(heddle_io_wait *wait)
{
    heddle_loop *loop = wait->park.loop;
    if (!wait->linked)
        return;
    wait->linked = false;
    HEDDLE_LIST_REMOVE(loop->io.waits[wait->waiter.fd], wait);
    loop->io.unreported -= is_unreported(wait);
}

void heddle_io_fail_closed_waits(heddle_loop *loop)
{
    for (int fd = 0; fd < loop->io.size; fd++) {
        for (heddle_io_wait *wait = loop->io.waits[fd]; wait; wait = wait->next) {
            if (has_lost_file(wait))
                fail_wait(wait);
        }
    }
}

void heddle_io_fail_waits(heddle_loop *loop, int fd)
{
    if (fd < 0 || fd >= loop->io.size)
        return;
    for (heddle_io_wait *wait = loop->io.waits[fd]; wait; wait = wait->next)
        fail_wait(wait);
}

/*
 * Called on the loop's thread for the message `io.reopened`, because only that thread may remove a wait from the
 * selector.
 */
static void receive_reopened(heddle_loop_message *message)
{
    heddle_loop *loop = (heddle_loop *)((char *)message - offsetof(heddle_loop, io.reopened));
    loop->io.reopened_posted = false;
    for (int fd = 0; fd < loop->io.size; fd++) {
        for (heddle_io_wait *wait = loop->io.waits[fd]; wait; wait = wait->next) {
            if (wait->reopened)
                fail_wait(wait);
        }
    }
}

static void mark_reopened(heddle_loop *loop, int fd)
{
    bool waits = false;
    /* A forked child has copies of the parent's loops. Their waits lie on stacks that may no longer exist. */
    if (heddle_loop_is_closed(loop) || heddle_loop_forked(loop) || fd >= loop->io.size)
        return;
    for (heddle_io_wait *wait = loop->io.waits[fd]; wait; wait = wait->next)
        wait->reopened = waits = true;
    if (!waits || loop->io.reopened_posted)
        return;
    loop->io.reopened_posted = true;
    loop->io.reopened.open = receive_reopened;
    heddle_inbox_post(&loop->inbox, &loop->io.reopened);
    heddle_loop_wake(loop);
}

void heddle_io_fail_reopened_waits(int fd)
{
    if (fd < 0 || !heddle_in_main_ractor())
        return;
    for (heddle_loop *loop = heddle_loops_in_main_ractor; loop; loop = loop->next)
        mark_reopened(loop, fd);
}

static void receive_event(heddle_waiter *waiter, int result, uint32_t flags)
{
    heddle_io_wait *wait = (heddle_io_wait *)((char *)waiter - offsetof(heddle_io_wait, waiter));
    heddle_loop_count_disarmed(wait->park.loop);
    if (heddle_io_has_no_urgent_data(waiter, result))
        return; /* no event can come, so the wait lasts until its time limit, as select(2) does in a thread */
    wait->result = result;
    heddle_park_wake(&wait->park);
}

static VALUE wait_for_event(VALUE data)
{
    heddle_io_wait *wait = (heddle_io_wait *)data;
    heddle_loop *loop = wait->park.loop;

    link_wait(wait);
    int ready_now = heddle_loop_arm(loop, &wait->waiter); /* a readiness mask, -errno, or 0 if the waiter is armed */
    if (ready_now != 0 && !heddle_io_has_no_urgent_data(&wait->waiter, ready_now)) {
        wait->result = ready_now;
        return Qnil;
    }
    do {
        /*
         * the fiber waits again if it was not woken by an event of the IO, but by #unpark, or by a passed time limit
         * whose exception Thread.handle_interrupt still delays
         */
        wait->park.woken = false;
        heddle_park_wait(&wait->park);
    } while (wait->waiter.armed && !wait->park.timed_out);
    return Qnil;
}

static VALUE end_wait(VALUE data)
{
    heddle_io_wait *wait = (heddle_io_wait *)data;
    /* False if the loop was closed meanwhile, or if this is a forked child: then the loop has discarded this wait. */
    if (heddle_park_entered(&wait->park)) {
        heddle_loop_disarm(wait->park.loop, &wait->waiter);
        unlink_wait(wait);
    }
    heddle_park_leave(&wait->park);
    return Qnil;
}

NORETURN(static void raise_closed(void))
{
    rb_raise(rb_eIOError, "stream closed while a fiber waited for it");
}

void heddle_io_check_open(VALUE io)
{
    if (is_closed(io))
        raise_closed();
}

NORETURN(static void raise_reopened(void))
{
    rb_raise(rb_eIOError, "stream reopened while a fiber waited for it");
}

int heddle_io_wait_ready(heddle_loop *loop, VALUE io, int events, int64_t timeout)
{
    heddle_io_wait wait = {.io = io};
    wait.waiter = (heddle_waiter){.fn = receive_event, .fd = rb_io_descriptor(io), .events = (uint8_t)events};

    if (wait.waiter.fd < 0)
        rb_syserr_fail(EBADF, "waiting for IO");
    note_file(&wait);
    heddle_park_enter(loop, &wait.park);
    if (timeout >= 0)
        heddle_park_set_deadline(&wait.park, heddle_deadline_after(timeout));
    rb_ensure(wait_for_event, (VALUE)&wait, end_wait, (VALUE)&wait);
    RB_GC_GUARD(io);

    if (wait.reopened)
        raise_reopened();
    /* Also checked if the IO became ready: it may have been closed before the fiber ran. */
    if ((wait.result == -EBADF || wait.result > 0) && has_lost_file(&wait))
        raise_closed();
    if (wait.result < 0)
        rb_syserr_fail(-wait.result, "waiting for IO");
    return wait.result;
}

int heddle_io_wait_ready_in_place(heddle_loop *loop, VALUE io, int events, int64_t timeout)
{
    struct pollfd one = {.fd = rb_io_descriptor(io)};
    int64_t deadline = timeout < 0 ? -1 : heddle_deadline_after(timeout);
    if (one.fd < 0)
        rb_syserr_fail(EBADF, "waiting for IO");
    one.events = (short)((events & HEDDLE_READABLE ? POLLIN : 0) | (events & HEDDLE_WRITABLE ? POLLOUT : 0) |
                         (events & HEDDLE_PRIORITY ? POLLPRI : 0));
    if (!heddle_wait_in_place(loop, &one, 1, deadline, NULL))
        return 0;
    heddle_io_check_open(io);
    RB_GC_GUARD(io);
    int ready = (one.revents & POLLIN ? HEDDLE_READABLE : 0) | (one.revents & POLLOUT ? HEDDLE_WRITABLE : 0) |
                (one.revents & POLLPRI ? HEDDLE_PRIORITY : 0);
    /* after an error or the end of input, all events count as ready; the next system call reports what has happened */
    return ready & events ? ready & events : events;
}

bool heddle_io_has_others_ready(const heddle_loop *loop)
{
    return heddle_token_ring_count(&loop->ready) ||
           (loop->operations->pending && loop->operations->pending(loop->selector));
}

/*
 * The fiber wakes itself before it waits, so it is queued behind the fibers that are ready now. The wait is linked only
 * so that IO#reopen finds it; its waiter is not armed.
 */
static VALUE wait_a_tick(VALUE data)
{
    heddle_io_wait *wait = (heddle_io_wait *)data;
    link_wait(wait);
    heddle_park_wake(&wait->park);
    heddle_park_wait(&wait->park);
    return Qnil;
}

void heddle_io_wait_tick(heddle_loop *loop, VALUE io, int fd)
{
    heddle_io_wait wait = {.waiter = {.fd = fd}, .io = io};
    heddle_park_enter(loop, &wait.park);
    rb_ensure(wait_a_tick, (VALUE)&wait, end_wait, (VALUE)&wait);
    RB_GC_GUARD(io);
    if (wait.reopened)
        raise_reopened();
    heddle_io_check_open(io);
}
