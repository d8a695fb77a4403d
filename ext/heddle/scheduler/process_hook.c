/*
 * The hook process_wait. In callbacks from libraries that are not re-entrant, waits in place (wait_in_place.h).
 * Otherwise, on Linux, waits for the end of a single child by the child's pidfd. All other waits are made in a thread.
 */

#include "scheduler/ruby_hooks.h"
#include "scheduler/wait_in_place.h"

#include <sys/wait.h>
#ifdef __linux__
#include <sys/syscall.h>
#ifndef __NR_pidfd_open
#define __NR_pidfd_open 434
#endif
#endif

typedef struct {
    heddle_park park;
    heddle_waiter waiter;
    heddle_loop *loop;
    int pid, flags;
} process_waiting;

/* Reaps the child if it has ended. Returns its Process::Status, or nil if it has not ended. */
static VALUE reap_child(int pid, int flags)
{
    return rb_funcall(rb_const_get(rb_mProcess, rb_intern("Status")), rb_intern("wait"), 2, INT2NUM(pid),
                      INT2NUM(flags | WNOHANG));
}

#ifdef __linux__

static void note_change(heddle_waiter *waiter, int result, uint32_t flags)
{
    process_waiting *wait = (process_waiting *)((char *)waiter - offsetof(process_waiting, waiter));
    heddle_loop_count_disarmed(wait->loop);
    heddle_park_wake(&wait->park);
}

static VALUE wait_for_pidfd(VALUE data)
{
    process_waiting *wait = (process_waiting *)data;
    int now = heddle_loop_arm(wait->loop, &wait->waiter);
    if (now < 0)
        rb_syserr_fail(-now, "waiting for a child process");
    if (now == 0)
        heddle_park_wait(&wait->park);
    return Qnil;
}

static VALUE end_wait_for_pidfd(VALUE data)
{
    process_waiting *wait = (process_waiting *)data;
    if (heddle_park_entered(&wait->park))
        heddle_loop_disarm(wait->loop, &wait->waiter);
    heddle_park_leave(&wait->park);
    close(wait->waiter.fd);
    return Qnil;
}

static bool pidfd_wait(process_waiting *wait)
{
    int fd = (int)syscall(__NR_pidfd_open, wait->pid, 0); /* the kernel sets close-on-exec */
    if (fd < 0)
        /* ESRCH: the child does not exist, which reap_child reports; after any other error, a thread waits */
        return errno == ESRCH;
    wait->waiter = (heddle_waiter){.fn = note_change, .fd = fd, .events = HEDDLE_READABLE};
    heddle_park_enter(wait->loop, &wait->park);
    heddle_park_waits_for(&wait->park, HEDDLE_SPENT_PROCESS);
    rb_ensure(wait_for_pidfd, (VALUE)wait, end_wait_for_pidfd, (VALUE)wait);
    return true;
}

#else

static bool pidfd_wait(process_waiting *wait)
{
    return false;
}

#endif

/* The interval at which a wait in place checks whether the child has ended, ns. */
static const int64_t CHILD_POLL_INTERVAL = 5 * 1000 * 1000;

/*
 * call-seq: process_wait(pid, flags) -> Process::Status
 *
 * Waits for a child process. Ruby calls it for Process.wait, system, backticks, IO.popen and Open3. See waitpid(2) for
 * +pid+ and +flags+.
 */
static VALUE scheduler_process_wait(VALUE self, VALUE pid, VALUE flags)
{
    process_waiting wait = {.loop = heddle_loop_get(self), .pid = NUM2INT(pid), .flags = NUM2INT(flags)};
    for (;;) {
        VALUE status = reap_child(wait.pid, wait.flags);
        if (!NIL_P(status))
            return status;
        if (heddle_must_wait_in_place(wait.loop)) {
            heddle_wait_in_place(wait.loop, NULL, 0, heddle_deadline_after(CHILD_POLL_INTERVAL), NULL);
            continue;
        }
        if (wait.pid <= 0 || (wait.flags & WUNTRACED) || !pidfd_wait(&wait))
            return rb_funcall(self, rb_intern("process_wait_in_thread"), 2, pid, flags);
    }
}

void heddle_define_process_hook(VALUE scheduler_class)
{
    rb_define_method(scheduler_class, "process_wait", scheduler_process_wait, 2);
}
