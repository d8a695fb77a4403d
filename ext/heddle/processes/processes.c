/* Heddle::Native::Processes: system calls, and functions of CRuby and malloc, that the server's processes need. */

#include "binding.h"

#include "processes/heap_gaps.h"

#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static pid_t master;   /* the process that adopts orphans; 0: none. Forked processes inherit the value */
static unsigned grace; /* seconds, see end_after_master */
#endif

/*
 * call-seq: Heddle::Native::Processes.adopt_orphans -> true or false
 *
 * Makes this process adopt orphans: when a descendant's parent ends, the descendant becomes a child of this process,
 * which can then wait for it (prctl(2), PR_SET_CHILD_SUBREAPER). Returns false if this system can't do that.
 */
static VALUE adopt_orphans(VALUE self)
{
#ifdef PR_SET_CHILD_SUBREAPER
    master = getpid();
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 ? Qtrue : Qfalse;
#else
    return Qfalse;
#endif
}

#ifdef PR_SET_PDEATHSIG
/*
 * The parent has ended: either the master, or a process between it and this one, so that the master is the parent now.
 * But while the threads of such a process end, the kernel first makes another one of them the parent, which looks like
 * the end of the master. Then a second signal comes when the master is the parent, and takes the alarm back.
 */
static void handle_orphaned(int number)
{
    static void (*previous)(int) = SIG_ERR; /* the handler of SIGALRM before the alarm; SIG_ERR: there is no alarm */
    if (getppid() != master) {
        alarm(grace); /* comes first: it replaces a timer of the application, whose SIGALRM would end the process now */
        previous = previous == SIG_ERR ? signal(SIGALRM, SIG_DFL) : previous;
    } else if (previous != SIG_ERR) {
        alarm(0);
        signal(SIGALRM, previous);
        previous = SIG_ERR;
    }
}
#endif

/*
 * call-seq: Heddle::Native::Processes.end_after_master(seconds) -> nil
 *
 * Has the kernel end this process +seconds+ (at least 1) after the master has ended, even if the process is stuck in
 * native code (prctl(2), PR_SET_PDEATHSIG). Processes that this one forks are not ended.
 */
static VALUE end_after_master(VALUE self, VALUE seconds)
{
#ifdef PR_SET_PDEATHSIG
    grace = NUM2UINT(seconds);
    signal(SIGPWR, handle_orphaned);
    prctl(PR_SET_PDEATHSIG, SIGPWR, 0, 0, 0);
#endif
    return Qnil;
}

/*
 * call-seq: Heddle::Native::Processes.allow_inspection -> nil
 *
 * Lets the master read how much memory this process uses. After a process has changed its user, its /proc/PID belongs
 * to root, so the master could not read it. This call gives /proc/PID to the process's user again (prctl(2),
 * PR_SET_DUMPABLE). Other users still can't read it.
 */
static VALUE allow_inspection(VALUE self)
{
#ifdef PR_SET_DUMPABLE
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
#endif
    return Qnil;
}

static VALUE raise_error(VALUE error)
{
    rb_exc_raise(error);
}

/*
 * call-seq: Heddle::Native::Processes.end_child(error) -> never
 *
 * Ends this process, a forked child, as if its main thread had ended with the exception +error+, or without an
 * exception if +error+ is nil. The at_exit handlers run. The frames on the stack are a copy of the parent's, so their
 * `ensure` blocks do not run.
 */
NORETURN(static VALUE end_child(VALUE self, VALUE error));

static VALUE end_child(VALUE self, VALUE error)
{
    int state = 0;
    if (!NIL_P(error))
        rb_protect(raise_error, error, &state);
    ruby_stop(state);
}

/*
 * call-seq: Heddle::Native::Processes.fill_heap_gaps -> Integer or nil
 *
 * Fills the small gaps between malloc's blocks, so that processes that are forked from this one allocate in new pages
 * and not in shared ones. The next call frees what this call has allocated. Returns the number of filled bytes, or nil
 * if malloc is not glibc's.
 */
static VALUE fill_heap_gaps(VALUE self)
{
    ssize_t filled = heddle_fill_heap_gaps();
    return filled < 0 ? Qnil : SSIZET2NUM(filled);
}

void Init_heddle_processes(VALUE heddle)
{
    VALUE processes = rb_define_module_under(rb_define_module_under(heddle, "Native"), "Processes");
    rb_define_singleton_method(processes, "adopt_orphans", adopt_orphans, 0);
    rb_define_singleton_method(processes, "end_after_master", end_after_master, 1);
    rb_define_singleton_method(processes, "allow_inspection", allow_inspection, 0);
    rb_define_singleton_method(processes, "end_child", end_child, 1);
    rb_define_singleton_method(processes, "fill_heap_gaps", fill_heap_gaps, 0);
}
