/* An extension as gems are, for the tests of offloading: each function makes one native call of a certain kind. */

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <ruby.h>
#include <ruby/thread.h>
#include <stdatomic.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef RB_NOGVL_OFFLOAD_SAFE
#define RB_NOGVL_OFFLOAD_SAFE 0
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int inside, most, passed, cancelled;

/* -- calls that meet: they return when so many are under way at once ---------------------------------------------- */

typedef struct {
    int number;
    int met;
    int cancelled;
} meeting;

static void *meet_without_gvl(void *data)
{
    meeting *self = data;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 8;
    pthread_mutex_lock(&lock);
    if (++inside > most)
        most = inside;
    if (inside >= self->number) {
        passed++;
        pthread_cond_broadcast(&changed);
    }
    int before = passed - (inside >= self->number);
    while (passed == before && !self->cancelled && pthread_cond_timedwait(&changed, &lock, &limit) == 0)
        ;
    self->met = passed != before;
    inside--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void cancel_meeting(void *data)
{
    pthread_mutex_lock(&lock);
    ((meeting *)data)->cancelled = 1;
    cancelled++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static VALUE outcome_of(const meeting *self)
{
    return self->met ? ID2SYM(rb_intern("met")) : self->cancelled ? ID2SYM(rb_intern("cancelled")) : Qfalse;
}

static VALUE meet(VALUE self, VALUE number)
{
    meeting data = {.number = NUM2INT(number)};
    rb_thread_call_without_gvl(meet_without_gvl, &data, cancel_meeting, &data);
    return outcome_of(&data);
}

static VALUE meet2(VALUE self, VALUE number)
{
    meeting data = {.number = NUM2INT(number)};
    rb_thread_call_without_gvl2(meet_without_gvl, &data, cancel_meeting, &data);
    return outcome_of(&data);
}

/* Asks again until its function has run, and takes interrupts in between, as Ruby's own getaddrinfo does. */
static VALUE meet2_until_run(VALUE self, VALUE number)
{
    meeting data = {.number = NUM2INT(number)};
    while (!data.met && !data.cancelled) {
        rb_thread_call_without_gvl2(meet_without_gvl, &data, cancel_meeting, &data);
        if (!data.met)
            rb_thread_check_ints();
    }
    return outcome_of(&data);
}

static VALUE meet_nogvl(VALUE self, VALUE number, VALUE flags)
{
    meeting data = {.number = NUM2INT(number)};
    rb_nogvl(meet_without_gvl, &data, cancel_meeting, &data, NUM2INT(flags));
    return outcome_of(&data);
}

/* Called by way of a table in the data of the library. */
static void *(*const volatile table[])(void *(*)(void *), void *, rb_unblock_function_t *, void *) = {
    rb_thread_call_without_gvl,
};

static VALUE meet_by_table(VALUE self, VALUE number)
{
    meeting data = {.number = NUM2INT(number)};
    table[0](meet_without_gvl, &data, cancel_meeting, &data);
    return outcome_of(&data);
}

static VALUE most_inside(VALUE self)
{
    return INT2NUM(most);
}

static VALUE reset(VALUE self)
{
    pthread_mutex_lock(&lock);
    most = cancelled = 0;
    pthread_mutex_unlock(&lock);
    return Qnil;
}

/* How often a meeting was told to end. */
static VALUE now_cancelled(VALUE self)
{
    return INT2NUM(cancelled);
}

static VALUE now_inside(VALUE self)
{
    return INT2NUM(inside);
}

/* -- other kinds ----------------------------------------------------------------------------------------------------- */

static struct timespec duration(VALUE seconds)
{
    double value = NUM2DBL(seconds);
    struct timespec time = {.tv_sec = (time_t)value};
    time.tv_nsec = (long)((value - (double)time.tv_sec) * 1e9);
    return time;
}

static void *sleep_without_gvl(void *data)
{
    return (void *)(intptr_t)nanosleep(data, NULL);
}

/* 0, or errno: EINTR when it was cut short by a signal. */
static VALUE sleep_for(VALUE self, VALUE seconds)
{
    struct timespec time = duration(seconds);
    void *result = rb_thread_call_without_gvl(sleep_without_gvl, &time, RUBY_UBF_IO, NULL);
    return INT2NUM(result ? errno : 0);
}

static void note_cancelling(void *data)
{
    cancelled++;
}

/* Is told to end, and doesn't. */
static VALUE ignore_unblocking(VALUE self, VALUE seconds)
{
    struct timespec time = duration(seconds);
    rb_thread_call_without_gvl(sleep_without_gvl, &time, note_cancelling, NULL);
    return Qtrue;
}

/* Can't be cut short. */
static VALUE stubborn(VALUE self, VALUE seconds)
{
    struct timespec time = duration(seconds);
    rb_thread_call_without_gvl(sleep_without_gvl, &time, NULL, NULL);
    return Qtrue;
}

static VALUE hold(VALUE self, VALUE seconds)
{
    struct timespec time = duration(seconds);
    return INT2NUM(nanosleep(&time, NULL));
}

static VALUE hold_poll(VALUE self, VALUE fd, VALUE milliseconds)
{
    struct pollfd descriptor = {.fd = NUM2INT(fd), .events = POLLIN};
    return INT2NUM(poll(&descriptor, 1, NUM2INT(milliseconds)));
}

#ifdef __GLIBC__
/* What fortified headers make of poll and recv. */
int __poll_chk(struct pollfd *descriptors, nfds_t count, int timeout, size_t size);
ssize_t __recv_chk(int fd, void *buffer, size_t length, size_t size, int flags);
#else
#define __poll_chk(descriptors, count, timeout, size) poll(descriptors, count, timeout)
#define __recv_chk(fd, buffer, length, size, flags) recv(fd, buffer, length, flags)
#endif

static VALUE result_or_error(intptr_t result)
{
    return INT2NUM(result < 0 ? -errno : (int)result);
}

/* The waits of libc for a descriptor, for some seconds at most; 0 or more, or -errno. */
static VALUE hold_poll_chk(VALUE self, VALUE fd)
{
    struct pollfd descriptor = {.fd = NUM2INT(fd), .events = POLLIN};
    return result_or_error(__poll_chk(&descriptor, 1, 8000, sizeof(descriptor)));
}

static VALUE hold_select(VALUE self, VALUE fd)
{
    fd_set readable;
    struct timeval limit = {.tv_sec = 8};
    FD_ZERO(&readable);
    FD_SET(NUM2INT(fd), &readable);
    return result_or_error(select(NUM2INT(fd) + 1, &readable, NULL, NULL, &limit));
}

static VALUE hold_recv(VALUE self, VALUE fd)
{
    char buffer[16];
    return result_or_error(recv(NUM2INT(fd), buffer, sizeof(buffer), 0));
}

static VALUE hold_recv_all(VALUE self, VALUE fd)
{
    char buffer[2];
    return result_or_error(recv(NUM2INT(fd), buffer, sizeof(buffer), MSG_WAITALL));
}

static VALUE hold_recv_chk(VALUE self, VALUE fd)
{
    char buffer[16];
    return result_or_error(__recv_chk(NUM2INT(fd), buffer, sizeof(buffer), sizeof(buffer), 0));
}

static VALUE hold_connect(VALUE self, VALUE fd, VALUE address)
{
    return result_or_error(
        connect(NUM2INT(fd), (struct sockaddr *)RSTRING_PTR(address), (socklen_t)RSTRING_LEN(address)));
}

static VALUE hold_usleep(VALUE self, VALUE microseconds)
{
    return result_or_error(usleep((useconds_t)NUM2INT(microseconds)));
}

static VALUE hold_sleep(VALUE self, VALUE seconds)
{
    return UINT2NUM(sleep((unsigned)NUM2INT(seconds)));
}

static void *poll_nothing(void *data)
{
    *(int *)data = poll(NULL, 0, 1);
    return NULL;
}

/* On a thread that Ruby doesn't know. */
static VALUE hold_elsewhere(VALUE self)
{
    pthread_t thread;
    int result = -1;
    if (pthread_create(&thread, NULL, poll_nothing, &result) != 0)
        rb_sys_fail("pthread_create");
    pthread_join(thread, NULL);
    return INT2NUM(result);
}

/* As a library does that loads others. */
static VALUE open_library(VALUE self, VALUE path)
{
    return dlopen(StringValueCStr(path), RTLD_NOW) ? Qtrue : Qfalse;
}

/* For who has no Ruby around: the library was loaded by hand. */
int plain_poll(int fd, int milliseconds)
{
    struct pollfd descriptor = {.fd = fd, .events = POLLIN};
    return poll(&descriptor, 1, milliseconds);
}

/* Says in one pipe which process has begun it, and ends when there is something in the other one. */
static VALUE hold_between(VALUE self, VALUE begun, VALUE go)
{
    struct pollfd descriptor = {.fd = NUM2INT(go), .events = POLLIN};
    if (dprintf(NUM2INT(begun), "%d\n", (int)getpid()) < 0)
        rb_sys_fail("write");
    return INT2NUM(poll(&descriptor, 1, 60000));
}

/* Goes on sleeping however often it was interrupted, up to a number. */
static void *doze_without_gvl(void *data)
{
    intptr_t interrupted = 0;
    for (int i = 0; i < 20; i++)
        interrupted += nanosleep(data, NULL) != 0;
    return (void *)interrupted;
}

/* How many of its twenty sleeps were cut short. */
static VALUE doze(VALUE self, VALUE seconds)
{
    struct timespec time = duration(seconds);
    return INT2NUM((int)(intptr_t)rb_thread_call_without_gvl(doze_without_gvl, &time, RUBY_UBF_IO, NULL));
}

static void *set_errno_without_gvl(void *data)
{
    errno = *(int *)data;
    return data;
}

static VALUE set_errno(VALUE self, VALUE number)
{
    int value = NUM2INT(number);
    errno = 0;
    void *result = rb_thread_call_without_gvl(set_errno_without_gvl, &value, RUBY_UBF_IO, NULL);
    int error = errno;
    return rb_ary_new_from_args(2, INT2NUM(error), result == &value ? Qtrue : Qfalse);
}

static void *burn_without_gvl(void *data)
{
    struct timespec now;
    int64_t end = *(int64_t *)data;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec < end);
    return NULL;
}

typedef struct {
    int64_t length;
    int computing;
} burning;

static int burning_now, most_burning;

static void *burn_counted(void *data)
{
    burning *self = data;
    struct timespec now;
    pthread_mutex_lock(&lock);
    if (++burning_now > most_burning)
        most_burning = burning_now;
    pthread_mutex_unlock(&lock);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    int64_t end = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + self->length;
    burn_without_gvl(&end);
    pthread_mutex_lock(&lock);
    burning_now--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static VALUE burn(VALUE self, VALUE seconds)
{
    burning data = {.length = (int64_t)(NUM2DBL(seconds) * 1e9)};
    rb_thread_call_without_gvl(burn_counted, &data, RUBY_UBF_IO, NULL);
    return Qnil;
}

static VALUE most_burning_at_once(VALUE self)
{
    return INT2NUM(most_burning);
}

static VALUE reset_burning(VALUE self)
{
    most_burning = 0;
    return Qnil;
}

typedef struct {
    int64_t end;
    _Atomic int cancelled;
} spinning;

static _Atomic int spun;

static void *spin_without_gvl(void *data)
{
    spinning *self = data;
    struct timespec now;
    atomic_fetch_add(&spun, 1);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    int64_t end = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + self->end;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (!atomic_load(&self->cancelled) && (int64_t)now.tv_sec * 1000000000 + now.tv_nsec < end);
    return NULL;
}

static void cancel_spinning(void *data)
{
    atomic_store(&((spinning *)data)->cancelled, 1);
}

/* Computes for so long, or until it is told to end. */
static VALUE spin(VALUE self, VALUE seconds)
{
    spinning data = {.end = (int64_t)(NUM2DBL(seconds) * 1e9)};
    rb_thread_call_without_gvl(spin_without_gvl, &data, cancel_spinning, &data);
    return Qnil;
}

/* How many have begun to spin. */
static VALUE now_spun(VALUE self)
{
    return INT2NUM(atomic_load(&spun));
}

typedef struct {
    int64_t burn;
    meeting meeting;
} burning_or_meeting;

static void *burn_or_meet_without_gvl(void *data)
{
    burning_or_meeting *self = data;
    if (self->burn) {
        burning burn = {.length = self->burn};
        return burn_counted(&burn);
    }
    return meet_without_gvl(&self->meeting);
}

/* One function that computes for a while, or (so many) waits for others: what it did before says nothing. */
static VALUE burn_or_meet(VALUE self, VALUE seconds, VALUE number)
{
    burning_or_meeting data = {.burn = (int64_t)(NUM2DBL(seconds) * 1e9), .meeting.number = NUM2INT(number)};
    rb_thread_call_without_gvl(burn_or_meet_without_gvl, &data, cancel_meeting, &data.meeting);
    return outcome_of(&data.meeting);
}

static void *thread_without_gvl(void *data)
{
    return (void *)pthread_self();
}

/* Does the function run on the thread that called it? */
static VALUE same_thread(VALUE self)
{
    return rb_thread_call_without_gvl(thread_without_gvl, NULL, RUBY_UBF_IO, NULL) == (void *)pthread_self() ? Qtrue
                                                                                                             : Qfalse;
}

#if RUBY_API_VERSION_MAJOR < 4
VALUE rb_thread_io_blocking_region(rb_blocking_function_t *function, void *data, int fd); /* in no header */

static VALUE thread_of_region(void *data)
{
    return (VALUE)pthread_self();
}

/* Does a call on a descriptor run on the thread that made it? */
static VALUE region_on_same_thread(VALUE self, VALUE fd)
{
    return rb_thread_io_blocking_region(thread_of_region, NULL, NUM2INT(fd)) == (VALUE)pthread_self() ? Qtrue : Qfalse;
}
#endif

int plain_same_thread(void)
{
    return same_thread(Qnil) == Qtrue;
}

/* -- what is freed by the garbage collection -------------------------------------------------------------------------- */

static int freed, freed_elsewhere;

static void *note_without_gvl(void *data)
{
    freed++;
    freed_elsewhere += !pthread_equal(*(pthread_t *)data, pthread_self());
    return NULL;
}

static void free_with_a_call(void *data)
{
    pthread_t here = pthread_self();
    rb_thread_call_without_gvl2(note_without_gvl, &here, NULL, NULL);
}

static const rb_data_type_t freed_type = {
    .wrap_struct_name = "NativeCalls: calls when it is freed",
    .function = {.dfree = free_with_a_call},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE call_when_freed(VALUE self)
{
    TypedData_Wrap_Struct(rb_cObject, &freed_type, &freed);
    return Qnil;
}

/* [how many made their call, how many of the calls did not run on the thread that freed] */
static VALUE now_freed(VALUE self)
{
    return rb_ary_new_from_args(2, INT2NUM(freed), INT2NUM(freed_elsewhere));
}

/* -- callbacks --------------------------------------------------------------------------------------------------------- */

typedef struct {
    VALUE proc, result;
    int times, done, after;
} callback;

static void *call_proc(void *data)
{
    callback *self = data;
    self->result = rb_funcall(self->proc, rb_intern("call"), 1, INT2NUM(self->done));
    self->done++;
    return (void *)1;
}

static void *call_back_without_gvl(void *data)
{
    callback *self = data;
    for (int i = 0; i < self->times; i++)
        rb_thread_call_with_gvl(call_proc, self);
    self->after = 1;
    return NULL;
}

/* [value of the last call, calls that returned, the native function went to its end] */
static VALUE call_back(VALUE self, VALUE times)
{
    callback data = {.proc = rb_block_proc(), .result = Qnil, .times = NUM2INT(times)};
    rb_thread_call_without_gvl(call_back_without_gvl, &data, RUBY_UBF_IO, NULL);
    return rb_ary_new_from_args(3, data.result, INT2NUM(data.done), data.after ? Qtrue : Qfalse);
}

/* The same; any thread may make the call. */
static VALUE call_back_safely(VALUE self, VALUE times)
{
    callback data = {.proc = rb_block_proc(), .result = Qnil, .times = NUM2INT(times)};
    rb_nogvl(call_back_without_gvl, &data, RUBY_UBF_IO, NULL, RB_NOGVL_OFFLOAD_SAFE);
    return rb_ary_new_from_args(3, data.result, INT2NUM(data.done), data.after ? Qtrue : Qfalse);
}

/* -- the caller's stack ------------------------------------------------------------------------------------------------- */

typedef struct {
    meeting meeting;
    const char *text;
    long length;
    unsigned long sum;
} reading;

static void *read_without_gvl(void *data)
{
    reading *self = data;
    meet_without_gvl(&self->meeting);
    for (long i = 0; i < self->length; i++)
        self->sum += (unsigned char)self->text[i];
    return NULL;
}

/* The sum of a String's bytes that only this function holds, read when `number` calls are under way. */
static VALUE sum_later(VALUE self, VALUE number, VALUE letter, VALUE length)
{
    volatile VALUE text = rb_str_times(rb_str_dup(letter), length);
    reading data = {.meeting.number = NUM2INT(number), .text = RSTRING_PTR(text), .length = RSTRING_LEN(text)};
    rb_thread_call_without_gvl(read_without_gvl, &data, cancel_meeting, &data.meeting);
    RB_GC_GUARD(text);
    return ULONG2NUM(data.sum);
}

/* Allocates by Ruby's allocator, so much that it collects garbage meanwhile. */
static void *allocate_without_gvl(void *data)
{
    int count = *(int *)data;
    void **blocks = ruby_xmalloc((size_t)count * sizeof(*blocks));
    for (int i = 0; i < count; i++)
        blocks[i] = ruby_xmalloc(1024 * 1024);
    for (int i = 0; i < count; i++)
        ruby_xfree(blocks[i]);
    ruby_xfree(blocks);
    return NULL;
}

static VALUE allocate(VALUE self, VALUE times)
{
    int number = NUM2INT(times);
    rb_thread_call_without_gvl(allocate_without_gvl, &number, RUBY_UBF_IO, NULL);
    return Qtrue;
}

static void define(void)
{
    VALUE module = rb_define_module("NativeCalls");
    rb_define_const(module, "INTR_FAIL", INT2NUM(RB_NOGVL_INTR_FAIL));
    rb_define_const(module, "UBF_ASYNC_SAFE", INT2NUM(RB_NOGVL_UBF_ASYNC_SAFE));
    rb_define_const(module, "OFFLOAD_SAFE", INT2NUM(RB_NOGVL_OFFLOAD_SAFE));
    rb_define_singleton_method(module, "meet", meet, 1);
    rb_define_singleton_method(module, "meet2", meet2, 1);
    rb_define_singleton_method(module, "meet2_until_run", meet2_until_run, 1);
    rb_define_singleton_method(module, "ignore_unblocking", ignore_unblocking, 1);
    rb_define_singleton_method(module, "meet_nogvl", meet_nogvl, 2);
    rb_define_singleton_method(module, "meet_by_table", meet_by_table, 1);
    rb_define_singleton_method(module, "most_inside", most_inside, 0);
    rb_define_singleton_method(module, "inside", now_inside, 0);
    rb_define_singleton_method(module, "cancelled", now_cancelled, 0);
    rb_define_singleton_method(module, "reset", reset, 0);
    rb_define_singleton_method(module, "sleep_for", sleep_for, 1);
    rb_define_singleton_method(module, "stubborn", stubborn, 1);
    rb_define_singleton_method(module, "hold", hold, 1);
    rb_define_singleton_method(module, "hold_poll", hold_poll, 2);
    rb_define_singleton_method(module, "hold_between", hold_between, 2);
    rb_define_singleton_method(module, "hold_poll_chk", hold_poll_chk, 1);
    rb_define_singleton_method(module, "hold_select", hold_select, 1);
    rb_define_singleton_method(module, "hold_recv", hold_recv, 1);
    rb_define_singleton_method(module, "hold_recv_all", hold_recv_all, 1);
    rb_define_singleton_method(module, "hold_recv_chk", hold_recv_chk, 1);
    rb_define_singleton_method(module, "hold_connect", hold_connect, 2);
    rb_define_singleton_method(module, "hold_usleep", hold_usleep, 1);
    rb_define_singleton_method(module, "hold_sleep", hold_sleep, 1);
    rb_define_singleton_method(module, "hold_elsewhere", hold_elsewhere, 0);
    rb_define_singleton_method(module, "open_library", open_library, 1);
    rb_define_singleton_method(module, "doze", doze, 1);
    rb_define_singleton_method(module, "spin", spin, 1);
    rb_define_singleton_method(module, "spun", now_spun, 0);
    rb_define_singleton_method(module, "call_when_freed", call_when_freed, 0);
    rb_define_singleton_method(module, "freed", now_freed, 0);
    rb_define_singleton_method(module, "set_errno", set_errno, 1);
    rb_define_singleton_method(module, "burn", burn, 1);
    rb_define_singleton_method(module, "burn_or_meet", burn_or_meet, 2);
    rb_define_singleton_method(module, "most_burning", most_burning_at_once, 0);
    rb_define_singleton_method(module, "reset_burning", reset_burning, 0);
    rb_define_singleton_method(module, "same_thread?", same_thread, 0);
#if RUBY_API_VERSION_MAJOR < 4
    rb_define_singleton_method(module, "region_on_same_thread?", region_on_same_thread, 1);
#endif
    rb_define_singleton_method(module, "call_back", call_back, 1);
    rb_define_singleton_method(module, "call_back_safely", call_back_safely, 1);
    rb_define_singleton_method(module, "sum_later", sum_later, 3);
    rb_define_singleton_method(module, "allocate", allocate, 1);
    /* Called before Init returns: calls are led before. */
    rb_define_const(module, "INIT_ON_SAME_THREAD", same_thread(Qnil));
}

void Init_native_calls(void)
{
    define();
}

/* As the libraries of gems by which Heddle goes by their name. */
void Init_rugged(void)
{
    define();
}

void Init_zlib(void)
{
    define();
}

void Init_ffi_c(void)
{
    define();
}
