#include "offload/io_calls.h"

#include "offload/call.h"
#include "offload/caller.h"
#include "offload/replacements.h"
#include "scheduler/take_errinfo.h"

#include <fcntl.h>
#include <ruby/io.h>
#include <ruby/version.h>
#include <sys/file.h>

/*
 * Since Ruby 4.0, rb_thread_io_blocking_call and rb_thread_io_blocking_region have the IO as a parameter, and IO#close
 * waits for the calls that are registered with the IO.
 */
#define BY_IO (RUBY_API_VERSION_MAJOR >= 4)

#if defined(HAVE_RB_THREAD_IO_BLOCKING_CALL) && (!BY_IO || defined(HAVE_RB_THREAD_IO_BLOCKING_OPERATION))

/* Ruby exports these functions, but no header declares them. */
#if BY_IO
typedef struct rb_io *file_reference;
VALUE rb_thread_io_blocking_call(struct rb_io *io, rb_blocking_function_t *function, void *data, int events);
VALUE rb_thread_io_blocking_region(struct rb_io *io, rb_blocking_function_t *function, void *data);
VALUE rb_thread_io_blocking_operation(VALUE io, VALUE (*function)(VALUE), VALUE argument);
#else
typedef int file_reference;
VALUE rb_thread_io_blocking_call(rb_blocking_function_t *function, void *data, int fd, int events);
VALUE rb_thread_io_blocking_region(rb_blocking_function_t *function, void *data, int fd);
#endif

typedef struct {
    rb_blocking_function_t *function;
    void *data;
    file_reference file;
    int events;
} io_call;

static VALUE call_ruby(const io_call *call, rb_blocking_function_t *function, void *data)
{
#if BY_IO
    return rb_thread_io_blocking_call(call->file, function, data, call->events);
#else
    return rb_thread_io_blocking_call(function, data, call->file, call->events);
#endif
}

#if BY_IO

/* Returns the IO object, which is the first field of Ruby's private record. Returns nil if the layout is different. */
static VALUE read_io(file_reference file)
{
    VALUE io = *(const VALUE *)file;
    return RB_TYPE_P(io, T_FILE) && RFILE(io)->fptr == file ? io : Qnil;
}

#endif

/* -- the check ----------------------------------------------------------------------------------------------------- */

static const char *missing;
static struct {
    VALUE expected; /* the file on which the call is expected; Qfalse after the check */
    bool arrived, known;
} trial;

static file_reference reference_of(VALUE file)
{
#if BY_IO
    return RFILE(file)->fptr;
#else
    return rb_io_descriptor(file);
#endif
}

static void try_arguments(const io_call *call)
{
    trial.arrived = true;
    if (call->file != reference_of(trial.expected) || call->events != 0)
        return;
#if BY_IO
    trial.known = read_io(call->file) == trial.expected;
#else
    trial.known = true;
#endif
}

const char *heddle_io_calls_missing(void)
{
    return missing;
}

const char *heddle_io_calls_check(VALUE file, VALUE expected)
{
    int state = 0;
    VALUE before = rb_errinfo();
    trial.expected = expected;
    trial.arrived = trial.known = false;
    VALUE operation = INT2FIX(LOCK_UN);
    /* unlocking succeeds even if the file is not locked */
    heddle_call_protected(file, rb_intern("flock"), 1, &operation, &state);
    rb_set_errinfo(before);
    trial.expected = Qfalse;
    missing = trial.known     ? NULL
              : trial.arrived ? "this Ruby passes it unknown arguments"
                              : "this Ruby does not use it to lock files";
    return missing;
}

/* -- one call ------------------------------------------------------------------------------------------------------ */

static void *run_function(void *data)
{
    io_call *call = data;
    return (void *)call->function(call->data);
}

static VALUE run_timed(void *data)
{
    return (VALUE)heddle_timed_call_run(data);
}

/*
 * Is this a call of File#flock that unlocks, or only tries to lock? Such a call never waits, and must not be queued
 * behind calls that wait for the lock.
 */
static bool is_lock_without_waiting(const heddle_function *known, const void *data, int fd)
{
    if (!heddle_function_is_ruby(known) || rb_frame_this_func() != rb_intern("flock"))
        return false;
    const int *arguments = data; /* the arguments of flock(2) */
    return arguments[0] == fd && arguments[1] & (LOCK_UN | LOCK_NB);
}

typedef struct {
    heddle_loop *loop;
    heddle_job *job;
    heddle_function *known;
    bool ran;
    int error;
} offloading;

static VALUE offload(VALUE data)
{
    offloading *self = (offloading *)data;
    self->ran = heddle_offload_run(self->loop, self->job, self->known, HEDDLE_CALL_ENDS_EARLY);
    self->error = errno;
    return Qnil;
}

/*
 * Called instead of Ruby's function. Offloads the call only if `events` is 0: otherwise Ruby first waits for these
 * events, by the scheduler's hooks.
 */
static VALUE run_call(io_call *call)
{
    if (trial.expected)
        try_arguments(call);
    heddle_loop *loop = !missing && heddle_offload_on() && call->events == 0 ? heddle_offload_find_loop() : NULL;
#if BY_IO
    VALUE io = loop ? read_io(call->file) : Qnil;
    if (NIL_P(io))
        return call_ruby(call, call->function, call->data);
    int fd = rb_io_descriptor(io);
#else
    int fd = call->file;
    if (!loop)
        return call_ruby(call, call->function, call->data);
#endif
    heddle_function *known = heddle_function_of_call((void *)call->function);
    bool ruby = heddle_function_is_ruby(known);
    /* The socket library's calls on a non-blocking descriptor never wait, so they need no offload thread. */
    bool quick = ruby ? heddle_function_is_inline_in_ruby(known, call->data)
                      : known->in_place || (fcntl(fd, F_GETFL) & O_NONBLOCK);
    if (!quick && !is_lock_without_waiting(known, call->data, fd)) {
        heddle_job job = {
            .function = run_function,
            .data = call,
            .unblock = HEDDLE_UNBLOCK_BY_SIGNAL,
            .core = ruby,
            .on_descriptor = true,
            .fd = fd,
        };
        offloading self = {.loop = loop, .job = &job, .known = known};
#if BY_IO
        rb_thread_io_blocking_operation(io, offload, (VALUE)&self);
#else
        offload((VALUE)&self);
#endif
        errno = self.error;
        if (self.ran)
            return (VALUE)job.result;
    }
    heddle_timed_call timed = {.function = run_function, .data = call};
    VALUE result = call_ruby(call, run_timed, &timed);
    heddle_timed_call_record(known, &timed);
    return result;
}

#if BY_IO

static VALUE replaced_call(struct rb_io *io, rb_blocking_function_t *function, void *data, int events)
{
    return run_call(&(io_call){.function = function, .data = data, .file = io, .events = events});
}

static VALUE replaced_region(struct rb_io *io, rb_blocking_function_t *function, void *data)
{
    return replaced_call(io, function, data, 0);
}

#else

static VALUE replaced_call(rb_blocking_function_t *function, void *data, int fd, int events)
{
    return run_call(&(io_call){.function = function, .data = data, .file = fd, .events = events});
}

static VALUE replaced_region(rb_blocking_function_t *function, void *data, int fd)
{
    return replaced_call(function, data, fd, 0);
}

#endif

const heddle_import *heddle_io_call_imports(size_t *count)
{
    static const heddle_import imports[] = {
        {"rb_thread_io_blocking_call", (void *)rb_thread_io_blocking_call, (void *)replaced_call},
        {"rb_thread_io_blocking_region", (void *)rb_thread_io_blocking_region, (void *)replaced_region},
    };
    *count = sizeof(imports) / sizeof(imports[0]);
    return imports;
}

#else

static const char *const missing = "this Ruby does not export it";

const heddle_import *heddle_io_call_imports(size_t *count)
{
    *count = 0;
    return NULL;
}

const char *heddle_io_calls_missing(void)
{
    return missing;
}

const char *heddle_io_calls_check(VALUE file, VALUE expected)
{
    return missing;
}

#endif
