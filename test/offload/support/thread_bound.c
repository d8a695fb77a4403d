/* An extension whose state belongs to the thread, as that of some gems: locks with an owner, values of a callback. */

#include <pthread.h>
#include <ruby.h>
#include <ruby/thread.h>
#include <unistd.h>

/* -- a lock that is taken without Ruby's lock and given back with it, as LMDB's of a write transaction ------------- */

static pthread_mutex_t owned;

static void *lock_owned(void *data)
{
    return (void *)(intptr_t)pthread_mutex_lock(&owned);
}

static VALUE lock(VALUE self)
{
    return INT2NUM((int)(intptr_t)rb_thread_call_without_gvl(lock_owned, NULL, NULL, NULL));
}

static VALUE unlock(VALUE self)
{
    return INT2NUM(pthread_mutex_unlock(&owned));
}

/* -- a lock that its owner may take again, held across a callback, as sqlite3's of a connection --------------------- */

static pthread_mutex_t recursive;

static void *call_block(void *data)
{
    return (void *)rb_funcall((VALUE)data, rb_intern("call"), 0);
}

static void *call_locked(void *data)
{
    pthread_mutex_lock(&recursive);
    void *result = rb_thread_call_with_gvl(call_block, data);
    pthread_mutex_unlock(&recursive);
    return result;
}

static VALUE locked(VALUE self)
{
    VALUE block = rb_block_proc();
    VALUE result = (VALUE)rb_thread_call_without_gvl(call_locked, (void *)block, NULL, NULL);
    RB_GC_GUARD(block);
    return result;
}

static VALUE lock_again(VALUE self)
{
    pthread_mutex_lock(&recursive);
    pthread_mutex_unlock(&recursive);
    return ID2SYM(rb_intern("again"));
}

/* -- a value of one callback, kept by nobody but the native function's frame until the next ------------------------- */

static void *make(void *data)
{
    return (void *)rb_sprintf("a string that is too long to be embedded in its object: %040d", (int)(intptr_t)data);
}

static void *check(void *data)
{
    VALUE text = (VALUE)data;
    return (void *)(intptr_t)(RB_TYPE_P(text, T_STRING) && RSTRING_LEN(text) > 60 &&
                              memcmp(RSTRING_PTR(text), "a string that", 13) == 0);
}

static void *wait_for_collection(void *data)
{
    rb_funcall((VALUE)data, rb_intern("call"), 0);
    return NULL;
}

static void *keep_in_frame(void *data)
{
    volatile VALUE mine = (VALUE)rb_thread_call_with_gvl(make, NULL);
    for (int i = 0; i < 4; i++)
        rb_thread_call_with_gvl(make, NULL); /* others, of which nothing is kept, where this one may lie */
    rb_thread_call_with_gvl(wait_for_collection, data);
    return rb_thread_call_with_gvl(check, (void *)mine);
}

/* Is the value still itself after the block, which collects garbage? */
static VALUE keep(VALUE self)
{
    VALUE block = rb_block_proc();
    VALUE result = rb_thread_call_without_gvl(keep_in_frame, (void *)block, NULL, NULL) ? Qtrue : Qfalse;
    RB_GC_GUARD(block);
    return result;
}

/* -- a function that asks for as long as it gets nothing --------------------------------------------------------------- */

static void *ask_until_answered(void *data)
{
    while (!rb_thread_call_with_gvl(call_block, data))
        ;
    return NULL;
}

static VALUE until_answered(VALUE self)
{
    VALUE block = rb_block_proc();
    rb_thread_call_without_gvl(ask_until_answered, (void *)block, NULL, NULL);
    RB_GC_GUARD(block);
    return Qtrue;
}

void Init_thread_bound(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&owned, &attributes);
    VALUE module = rb_define_module("ThreadBound");
    rb_define_singleton_method(module, "lock", lock, 0);
    rb_define_singleton_method(module, "unlock", unlock, 0);
    rb_define_singleton_method(module, "locked", locked, 0);
    rb_define_singleton_method(module, "lock_again", lock_again, 0);
    rb_define_singleton_method(module, "keep", keep, 0);
    rb_define_singleton_method(module, "until_answered", until_answered, 0);
}
