#include "pubsub/process_history.h"

#include "pubsub/fanout.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static const heddle_history_limits DEFAULTS = {
    .log_size = 16777216,
    .topics = 16384,
    .messages = 100,
    .age = INT64_C(300000000000),
};

/* Ractors have no lock in common. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static heddle_history process_history = {.memory.fd = -1, .wake_fd = -1};
static bool there;
static _Atomic uint64_t published; /* by this process */

static int make(const heddle_history_limits *limits)
{
    pthread_mutex_lock(&making);
    int result = there ? 0 : heddle_history_create(&process_history, limits);
    there = there || result == 0;
    pthread_mutex_unlock(&making);
    return result;
}

heddle_history *heddle_process_history(void)
{
    int result = make(&DEFAULTS);
    if (result < 0)
        rb_syserr_fail(-result, "making the ring of messages");
    return &process_history;
}

static uint64_t power_of_two(uint64_t least)
{
    uint64_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}

/*
 * call-seq: History.open(memory, topics, messages, age) -> true or false
 *
 * Makes the process's ring, with room for so many bytes and topics; both are rounded up to a power of two. +messages+ of
 * a topic can be replayed as long as they are younger than +age+ seconds. false: there is one already, which stays.
 */
static VALUE ring_open(VALUE self, VALUE memory, VALUE topics, VALUE messages, VALUE age)
{
    heddle_history_limits limits = {
        .log_size = power_of_two(NUM2SIZET(memory) < 65536 ? 65536 : NUM2SIZET(memory)),
        .topics = (uint32_t)power_of_two(NUM2UINT(topics) < 8 ? 8 : NUM2UINT(topics)),
        .messages = NUM2UINT(messages),
        .age = heddle_parse_duration(age),
    };
    if (there)
        return Qfalse;
    int result = make(&limits);
    if (result < 0)
        rb_syserr_fail(-result, "making the ring of messages");
    return Qtrue;
}

/*
 * call-seq: History.adopt(memory, wake) -> true or false
 *
 * The process's ring is the one that these descriptors, of .descriptors in another process, stand for; they are its own
 * from now on. false: it is of another version, or there is one already.
 */
static VALUE ring_adopt(VALUE self, VALUE memory, VALUE wake)
{
    heddle_history ring;
    int result = heddle_history_open(&ring, NUM2INT(memory), NUM2INT(wake));
    if (result < 0)
        return Qfalse;
    pthread_mutex_lock(&making);
    bool taken = !there;
    if (taken)
        process_history = ring;
    there = true;
    pthread_mutex_unlock(&making);
    if (!taken)
        heddle_history_close(&ring);
    return taken ? Qtrue : Qfalse;
}

/*
 * call-seq: History.descriptors -> [Integer, Integer] or nil
 *
 * Of the memory and of what wakes its readers; they close when a program is executed. nil: there is no ring, or it goes
 * over a fork only.
 */
static VALUE ring_descriptors(VALUE self)
{
    if (!there || process_history.memory.fd < 0 || process_history.wake_fd < 0)
        return Qnil;
    return rb_ary_new_from_args(2, INT2FIX(process_history.memory.fd), INT2FIX(process_history.wake_fd));
}

/*
 * call-seq: History.open? -> true or false
 */
static VALUE ring_open_p(VALUE self)
{
    return there ? Qtrue : Qfalse;
}

/*
 * call-seq: History.publish(topic, data) -> Integer
 *
 * Appends a message; its offset. Raises ArgumentError when it is too large, and Errno::ETIMEDOUT when another process
 * holds the ring and does not go on.
 */
static VALUE ring_publish(VALUE self, VALUE topic, VALUE data)
{
    StringValue(topic);
    StringValue(data);
    heddle_history *ring = heddle_process_history();
    if (RSTRING_LEN(topic) > HEDDLE_TOPIC_LIMIT)
        rb_raise(rb_eArgError, "the topic has %ld bytes, but may have %d", RSTRING_LEN(topic), HEDDLE_TOPIC_LIMIT);
    int64_t offset = heddle_history_publish(ring, RSTRING_PTR(topic), (size_t)RSTRING_LEN(topic), RSTRING_PTR(data),
                                         (size_t)RSTRING_LEN(data));
    if (offset == -EMSGSIZE)
        rb_raise(rb_eArgError, "the message has %ld bytes, but may have %zu with its topic: see pubsub_memory",
                 RSTRING_LEN(data), heddle_history_most(ring));
    if (offset < 0)
        rb_syserr_fail((int)-offset, "publishing to the ring of messages");
    atomic_fetch_add_explicit(&published, 1, memory_order_relaxed);
    RB_GC_GUARD(topic);
    RB_GC_GUARD(data);
    return LL2NUM(offset);
}

/*
 * call-seq: History.published -> Integer
 *
 * Messages that this process has published; a forked process begins with none.
 */
static VALUE ring_published(VALUE self)
{
    return ULL2NUM(atomic_load_explicit(&published, memory_order_relaxed));
}

static void reset_published(void)
{
    atomic_store_explicit(&published, 0, memory_order_relaxed);
}

/*
 * call-seq: History.epoch -> String
 */
static VALUE ring_epoch(VALUE self)
{
    return rb_usascii_str_new_cstr(heddle_history_epoch(heddle_process_history()));
}

/*
 * call-seq: History.offset(topic) -> Integer
 *
 * Of the topic's last message.
 */
static VALUE ring_offset(VALUE self, VALUE topic)
{
    StringValue(topic);
    int64_t offset = heddle_history_offset(heddle_process_history(), RSTRING_PTR(topic), (size_t)RSTRING_LEN(topic));
    if (offset < 0)
        rb_syserr_fail((int)-offset, "reading the ring of messages");
    RB_GC_GUARD(topic);
    return LL2NUM(offset);
}

void Init_heddle_history(VALUE pubsub)
{
    VALUE ring = rb_define_module_under(pubsub, "History");
    rb_define_singleton_method(ring, "open", ring_open, 4);
    rb_define_singleton_method(ring, "adopt", ring_adopt, 2);
    rb_define_singleton_method(ring, "descriptors", ring_descriptors, 0);
    rb_define_singleton_method(ring, "open?", ring_open_p, 0);
    rb_define_singleton_method(ring, "publish", ring_publish, 2);
    rb_define_singleton_method(ring, "published", ring_published, 0);
    pthread_atfork(NULL, NULL, reset_published);
    rb_define_singleton_method(ring, "epoch", ring_epoch, 0);
    rb_define_singleton_method(ring, "offset", ring_offset, 1);
}
