#include "pubsub/history_ruby.h"

#include "binding.h"
#include "pubsub/fanout.h"

enum {
    DEFAULT_MEMORY = 16 << 20,
    BYTES_A_TOPIC = 1024, /* the table of topics has one entry for each 1024 bytes of the log */
    DEFAULT_MESSAGES = 100,
    DEFAULT_AGE = 300,
};

/* Not a Ruby Mutex, which would belong to one Ractor: all Ractors of the process use this lock. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static heddle_history process_history = {.memory.fd = -1, .wake_fd = -1};
static bool is_open;
static _Atomic uint64_t published; /* messages that this process has published */

heddle_history *heddle_process_history(void)
{
    if (!is_open)
        rb_raise(rb_path2class("Heddle::PubSub::UnreachableError"),
                 "this process has no topics: it does not belong to a server, and Heddle::PubSub.server names no "
                 "backend. Set Heddle::PubSub.server to a backend's address, or to :process for topics that only "
                 "this process uses");
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
 * call-seq: History.open(memory = 16 MiB, messages = 100, age = 300) -> true or false
 *
 * Creates the history of this process, with room for +memory+ bytes of messages (rounded up to a power of two, at least
 * 64 KiB). For each KiB of this room, the table of topics has one entry of 42 bytes. The last +messages+ messages of a
 * topic can be replayed while they are younger than +age+ seconds. Returns false, and changes nothing, if the process
 * already has a history.
 */
static VALUE history_open(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 0, 3);
    size_t memory = argc > 0 ? NUM2SIZET(argv[0]) : DEFAULT_MEMORY;
    uint64_t size = power_of_two(memory < 65536 ? 65536 : memory);
    heddle_history_limits limits = {
        .log_size = size,
        .topics = (uint32_t)(size / BYTES_A_TOPIC),
        .messages = argc > 1 ? NUM2UINT(argv[1]) : DEFAULT_MESSAGES,
        .age = heddle_parse_duration(argc > 2 ? argv[2] : INT2FIX(DEFAULT_AGE)),
    };
    pthread_mutex_lock(&making);
    bool made = !is_open;
    int result = made ? heddle_history_create(&process_history, &limits) : 0;
    is_open = result == 0;
    pthread_mutex_unlock(&making);
    if (result < 0)
        rb_syserr_fail(-result, "creating the pub/sub history");
    return made ? Qtrue : Qfalse;
}

/*
 * call-seq: History.adopt(memory, wake) -> true or false
 *
 * Uses the history of another process, which has passed its .descriptors to this one. Takes ownership of them. Returns
 * false if the history has another layout, or if this process already has a history.
 */
static VALUE history_adopt(VALUE self, VALUE memory, VALUE wake)
{
    heddle_history history;
    int result = heddle_history_open(&history, NUM2INT(memory), NUM2INT(wake));
    if (result < 0)
        return Qfalse;
    pthread_mutex_lock(&making);
    bool taken = !is_open;
    if (taken)
        process_history = history;
    is_open = true;
    pthread_mutex_unlock(&making);
    if (!taken)
        heddle_history_close(&history);
    return taken ? Qtrue : Qfalse;
}

/*
 * call-seq: History.descriptors -> [Integer, Integer] or nil
 *
 * Returns the descriptors of the memory and of the eventfd that wakes its readers; both are close-on-exec. Returns nil
 * if there is no history, or if only forked processes can share it.
 */
static VALUE history_descriptors(VALUE self)
{
    if (!is_open || process_history.memory.fd < 0 || process_history.wake_fd < 0)
        return Qnil;
    return rb_ary_new_from_args(2, INT2FIX(process_history.memory.fd), INT2FIX(process_history.wake_fd));
}

/*
 * call-seq: History.open? -> true or false
 */
HEDDLE_DEFINE_METHOD(history_open_p, "open?", is_open ? Qtrue : Qfalse)

static VALUE position_of(const heddle_history_state *state, uint64_t offset)
{
    return rb_sprintf("%.12s:%" PRIu64, state->epoch, offset);
}

static void check_topic(VALUE topic)
{
    if (RSTRING_LEN(topic) > HEDDLE_TOPIC_LIMIT)
        rb_raise(rb_eArgError, "the topic has %ld bytes, the limit is %d", RSTRING_LEN(topic), HEDDLE_TOPIC_LIMIT);
}

/* Raises the error of a failed call. */
static void check_result(int64_t result, long data_size)
{
    if (result == -EMSGSIZE)
        rb_raise(rb_eArgError,
                 "the message is too large: its data has %ld bytes, and data and topic together may have %zu (see "
                 "pubsub_memory)",
                 data_size, heddle_history_largest_message(heddle_process_history()));
    if (result < 0)
        rb_syserr_fail((int)-result, "using the pub/sub history");
}

/*
 * call-seq: History.publish(topic, data) -> String
 *
 * Appends a message and returns its position. Raises ArgumentError if it is too large, Errno::ETIMEDOUT if another
 * process does not release the history's lock, and Errno::EPERM if the history follows a backend.
 */
static VALUE history_publish(VALUE self, VALUE topic, VALUE data)
{
    StringValue(topic);
    StringValue(data);
    heddle_history *history = heddle_process_history();
    heddle_history_state state;
    check_topic(topic);
    int64_t offset = heddle_history_publish(history, RSTRING_PTR(topic), (size_t)RSTRING_LEN(topic), RSTRING_PTR(data),
                                            (size_t)RSTRING_LEN(data), &state);
    check_result(offset, RSTRING_LEN(data));
    atomic_fetch_add_explicit(&published, 1, memory_order_relaxed);
    RB_GC_GUARD(topic);
    RB_GC_GUARD(data);
    return position_of(&state, (uint64_t)offset);
}

/*
 * call-seq: History.count_published(number) -> nil
 *
 * Counts messages that this process has published to a backend.
 */
static VALUE history_count_published(VALUE self, VALUE number)
{
    atomic_fetch_add_explicit(&published, NUM2UINT(number), memory_order_relaxed);
    return Qnil;
}

static const char *epoch_of(VALUE epoch)
{
    if (RSTRING_LEN(epoch) != HEDDLE_EPOCH_SIZE || memchr(RSTRING_PTR(epoch), 0, HEDDLE_EPOCH_SIZE))
        rb_raise(rb_eArgError, "an epoch has %d characters, but this one is %+" PRIsVALUE, HEDDLE_EPOCH_SIZE, epoch);
    return StringValueCStr(epoch);
}

/*
 * call-seq: History.begin(epoch, offset) -> nil
 *
 * From now on the history follows a backend. The backend's messages up to +offset+ will not be in the history, so all
 * subscribers get a reset. Changes nothing if the history already has +epoch+ and reaches +offset+.
 */
static VALUE history_begin(VALUE self, VALUE epoch, VALUE offset)
{
    StringValue(epoch);
    check_result(heddle_history_begin(heddle_process_history(), epoch_of(epoch), NUM2ULL(offset)), 0);
    RB_GC_GUARD(epoch);
    return Qnil;
}

/*
 * call-seq: History.append(epoch, offset, topic, data) -> Symbol
 *
 * Appends a message of the backend. Returns :appended, :known if the history already has the message, :stale if the
 * history has another epoch or follows no backend, :gap if earlier messages are missing, or :too_large.
 */
static VALUE history_append(VALUE self, VALUE epoch, VALUE offset, VALUE topic, VALUE data)
{
    StringValue(epoch);
    StringValue(topic);
    StringValue(data);
    uint64_t number = NUM2ULL(offset);
    int result = heddle_history_append(heddle_process_history(), epoch_of(epoch), number, RSTRING_PTR(topic),
                                       (size_t)RSTRING_LEN(topic), RSTRING_PTR(data), (size_t)RSTRING_LEN(data));
    RB_GC_GUARD(epoch);
    RB_GC_GUARD(topic);
    switch (result) {
    case 1: return ID2SYM(rb_intern("appended"));
    case 0: return ID2SYM(rb_intern("known"));
    case -ESTALE: return ID2SYM(rb_intern("stale"));
    case -ERANGE: return ID2SYM(rb_intern("gap"));
    case -EMSGSIZE: return ID2SYM(rb_intern("too_large"));
    }
    check_result(result, RSTRING_LEN(data));
    return Qnil;
}

/*
 * call-seq: History.state -> [epoch, offset, follows]
 *
 * Returns the epoch, the offset of the last message, and whether the history follows a backend.
 */
static VALUE history_state(VALUE self)
{
    heddle_history_state state;
    check_result(heddle_history_read_state(heddle_process_history(), &state), 0);
    return rb_ary_new_from_args(3, rb_usascii_str_new_cstr(state.epoch), ULL2NUM(state.count),
                                state.follows ? Qtrue : Qfalse);
}

/*
 * call-seq: History.largest -> Integer
 *
 * The size of the largest possible message in bytes, including its topic. In a process without a history, assumes the
 * default size of a server's history.
 */
static VALUE history_largest(VALUE self)
{
    static const heddle_history assumed = {.log_size = DEFAULT_MEMORY};
    return SIZET2NUM(heddle_history_largest_message(is_open ? &process_history : &assumed));
}

/*
 * call-seq: History.published -> Integer
 *
 * The number of messages that this process has published. A forked process begins with 0.
 */
HEDDLE_DEFINE_METHOD(history_published, "published", ULL2NUM(atomic_load_explicit(&published, memory_order_relaxed)))

static void reset_published(void)
{
    atomic_store_explicit(&published, 0, memory_order_relaxed);
}

/*
 * call-seq: History.position(topic) -> String
 *
 * Returns the position after the topic's last message. Raises ArgumentError if the topic is too long.
 */
static VALUE history_position(VALUE self, VALUE topic)
{
    StringValue(topic);
    check_topic(topic);
    heddle_history_state state;
    int64_t offset =
        heddle_history_offset(heddle_process_history(), RSTRING_PTR(topic), (size_t)RSTRING_LEN(topic), &state);
    check_result(offset, 0);
    RB_GC_GUARD(topic);
    return position_of(&state, (uint64_t)offset);
}

/*
 * call-seq: History.position_before(topic, seconds) -> String or nil
 *
 * Returns the position after which the topic's messages of the last +seconds+ begin, or nil if some of them are no
 * longer in the history.
 */
static VALUE history_position_before(VALUE self, VALUE topic, VALUE seconds)
{
    StringValue(topic);
    heddle_history_state state;
    int64_t age = heddle_parse_duration(seconds);
    int64_t offset = heddle_history_offset_before(heddle_process_history(), RSTRING_PTR(topic),
                                                  (size_t)RSTRING_LEN(topic), age, &state);
    RB_GC_GUARD(topic);
    if (offset == -ENODATA)
        return Qnil;
    check_result(offset, 0);
    return position_of(&state, (uint64_t)offset);
}

void Init_heddle_history(VALUE pubsub)
{
    VALUE module = rb_define_module_under(pubsub, "History");
    rb_define_const(module, "TOPIC_LIMIT", INT2FIX(HEDDLE_TOPIC_LIMIT));
    rb_define_singleton_method(module, "open", history_open, -1);
    rb_define_singleton_method(module, "adopt", history_adopt, 2);
    rb_define_singleton_method(module, "descriptors", history_descriptors, 0);
    rb_define_singleton_method(module, "open?", history_open_p, 0);
    rb_define_singleton_method(module, "publish", history_publish, 2);
    rb_define_singleton_method(module, "count_published", history_count_published, 1);
    rb_define_singleton_method(module, "begin", history_begin, 2);
    rb_define_singleton_method(module, "append", history_append, 4);
    rb_define_singleton_method(module, "state", history_state, 0);
    rb_define_singleton_method(module, "largest", history_largest, 0);
    rb_define_singleton_method(module, "published", history_published, 0);
    pthread_atfork(NULL, NULL, reset_published);
    rb_define_singleton_method(module, "position", history_position, 1);
    rb_define_singleton_method(module, "position_before", history_position_before, 2);
}
