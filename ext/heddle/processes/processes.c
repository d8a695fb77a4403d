/* Heddle::Processes: what a master process needs of the system, and Ruby does not have. */

#include "processes/processes.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

/*
 * call-seq: Heddle::Processes.adopt_orphans -> true or false
 *
 * Descendants whose parent ends become this process's children, so that it can wait for them (prctl(2),
 * PR_SET_CHILD_SUBREAPER). false: this system has nothing like that.
 */
static VALUE adopt_orphans(VALUE self)
{
#ifdef PR_SET_CHILD_SUBREAPER
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 ? Qtrue : Qfalse;
#else
    return Qfalse;
#endif
}

void Init_heddle_processes(VALUE heddle)
{
    VALUE processes = rb_define_module_under(heddle, "Processes");
    rb_define_singleton_method(processes, "adopt_orphans", adopt_orphans, 0);
}
