/* The calls that belong to a job: its function, its callbacks, and its unblocking function. */

#include "offload/thread_calls.h"

#include <signal.h>

pthread_mutex_t heddle_threads_lock = PTHREAD_MUTEX_INITIALIZER;

/* A separate function, because longjmp may change the local variables of the function to which it returns. */
__attribute__((noinline)) void *heddle_thread_run_function(heddle_offload_thread *thread, heddle_job *job)
{
    /* A callback that raises leaves the native function by longjmp, as in plain Ruby. */
    if (_setjmp(thread->left) == 0)
        return job->function(job->data);
    return NULL;
}

void heddle_threads_interrupt_locked(heddle_job *job)
{
    if (atomic_load(&job->state) != HEDDLE_JOB_RUNNING || !job->unblock)
        return;
    heddle_offload_thread *thread = job->thread;
    if (job->unblock == HEDDLE_UNBLOCK_BY_SIGNAL) {
        /* Ruby's handler of this signal does nothing, but the system call returns EINTR */
        pthread_kill(thread->native, SIGVTALRM);
        return;
    }
    if (job->unblocked)
        return;
    job->unblocked = true;
    thread->interrupting = true;
    pthread_mutex_unlock(&heddle_threads_lock);
    job->unblock(job->unblock_data);
    pthread_mutex_lock(&heddle_threads_lock);
    thread->interrupting = false;
    pthread_cond_broadcast(&thread->answered);
}

void heddle_threads_interrupt(heddle_job *job)
{
    pthread_mutex_lock(&heddle_threads_lock);
    heddle_threads_interrupt_locked(job);
    pthread_mutex_unlock(&heddle_threads_lock);
}

void heddle_threads_answer(heddle_job *job, void *result, bool raised)
{
    pthread_mutex_lock(&heddle_threads_lock);
    job->callback_result = result;
    job->raised = raised;
    job->answered = true;
    atomic_store(&job->state, HEDDLE_JOB_RUNNING);
    pthread_cond_signal(&job->thread->answered);
    pthread_mutex_unlock(&heddle_threads_lock);
}

void *heddle_threads_call_back(heddle_job *job, void *(*function)(void *data), void *data)
{
    int saved = errno;
    pthread_mutex_lock(&heddle_threads_lock);
    heddle_offload_thread *thread = job->thread;
    /*
     * From here until the job ends, the garbage collector scans the registers, and the stack from this frame to the
     * frame that has called the native function, as Ruby does for rb_thread_call_with_gvl. _setjmp alone does not
     * suffice, because some libcs encode the registers that it stores. So __builtin_unwind_init stores the callee-saved
     * registers in this frame, too.
     */
    __builtin_unwind_init();
    volatile uintptr_t lowest = (uintptr_t)&saved;
    thread->frames.start = (const void *)(lowest & ~(uintptr_t)(sizeof(void *) - 1));
    (void)_setjmp(thread->frames.registers); /* the garbage collector scans it; no longjmp uses it */
    job->callback = function;
    job->callback_data = data;
    job->callback_result = NULL;
    job->answered = false;
    if (!job->abandoned) {
        atomic_store(&job->state, HEDDLE_JOB_CALLING_BACK);
        job->notify(job);
    }
    while (!job->answered && !job->abandoned)
        pthread_cond_wait(&thread->answered, &heddle_threads_lock);
    atomic_store(&job->state, HEDDLE_JOB_RUNNING);
    void *result = job->callback_result;
    bool leave = job->answered ? job->raised : job->abandoned;
    pthread_mutex_unlock(&heddle_threads_lock);
    errno = saved;
    if (leave)
        _longjmp(thread->left, 1);
    return result;
}

heddle_native_frames heddle_threads_frames(const heddle_job *job)
{
    heddle_native_frames frames = {0};
    pthread_mutex_lock(&heddle_threads_lock);
    int state = atomic_load(&job->state);
    if ((state == HEDDLE_JOB_RUNNING || state == HEDDLE_JOB_CALLING_BACK) && job->thread->frames.start)
        frames = job->thread->frames;
    pthread_mutex_unlock(&heddle_threads_lock);
    return frames;
}
