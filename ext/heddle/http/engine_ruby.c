/* Heddle::HTTP::Engine: the HTTP service of a Heddle::Net::Sockets. */

#include "http/body/disk.h"
#include "http/body/files.h"
#include "http/exchange_ruby.h"
#include "http/head_ruby.h"
#include "http/method.h"

#include "binding.h"
#include "net/scoreboard_ruby.h"
#include "net/networks.h"
#include "net/sockets.h"

#include <math.h>
#include <ruby/ractor.h>

static void object_mark(void *data)
{
    heddle_engine *engine = data;
    rb_gc_mark(engine->on_rejection);
    rb_gc_mark(engine->proxies);
    for (heddle_exchange *exchange = engine->bodies; exchange; exchange = exchange->next)
        rb_gc_mark(exchange->body); /* pinned: received bytes are written into it */
    heddle_engine_mark_protocols(engine);
}

/* Sockets and requests may still use the engine. The last user frees it. */
static void object_free(void *data)
{
    heddle_engine *engine = data;
    engine->has_object = false;
    heddle_service_release(&engine->base);
}

static size_t object_size(const void *data)
{
    const heddle_engine *engine = data;
    return sizeof(*engine) + engine->spare_count * sizeof(heddle_exchange);
}

static const rb_data_type_t engine_type = {
    .wrap_struct_name = "Heddle::HTTP::Engine",
    .function = {.dmark = object_mark, .dfree = object_free, .dsize = object_size},
    .parent = &heddle_service_type,
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE engine_allocate(VALUE klass)
{
    heddle_engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        rb_memerror();
    engine->base = (heddle_service){.operations = &heddle_engine_operations, .holders = 1};
    engine->on_rejection = engine->proxies = Qnil;
    engine->has_object = true;
    engine->date_second = -1;
    return TypedData_Wrap_Struct(klass, &engine_type, engine);
}

HEDDLE_RECORD_OF(engine_of, heddle_engine, engine_type)

VALUE heddle_engine_option(VALUE configuration, const char *name)
{
    return rb_funcall(configuration, rb_intern(name), 0);
}

static char *copy_text(VALUE string)
{
    char *text = strdup(StringValueCStr(string));
    if (!text)
        rb_memerror();
    return text;
}

/* `paths`: an Array of paths, true for all paths, or false for none. */
static void set_path_option(heddle_path_option *option, VALUE paths)
{
    if (!RB_TYPE_P(paths, T_ARRAY)) {
        option->all = RTEST(paths);
        return;
    }
    option->prefixes = calloc((size_t)RARRAY_LEN(paths), sizeof(*option->prefixes));
    if (!option->prefixes && RARRAY_LEN(paths))
        rb_memerror();
    for (long i = 0; i < RARRAY_LEN(paths); i++) {
        option->prefixes[i] = copy_text(RARRAY_AREF(paths, i));
        option->count++;
    }
}

/* Called once, by Engine.new, with a checked configuration. */
static VALUE engine_set_up(VALUE self, VALUE configuration, VALUE on_rejection, VALUE proxies, VALUE folder,
                           VALUE paths, VALUE health_paths, VALUE http2)
{
    heddle_engine *engine = engine_of(self);
    engine->on_rejection = on_rejection;
    engine->h2_over_plain = http2 == ID2SYM(rb_intern("auto"));
    if (!NIL_P(proxies))
        rb_check_typeddata(proxies, &heddle_networks_type);
    engine->proxies = proxies;
    engine->limits = heddle_http_limits_of(configuration);
    engine->body_buffer = NUM2ULL(heddle_engine_option(configuration, "body_buffer"));
    engine->body_disk_limit = NUM2ULL(heddle_engine_option(configuration, "body_disk_limit"));
    engine->body_folder = copy_text(folder);
    set_path_option(&engine->stream_bodies, paths);
    set_path_option(&engine->health_paths, health_paths);
    engine->body_rate = NUM2ULL(heddle_engine_option(configuration, "body_rate"));
    engine->linger_limit = NUM2ULL(heddle_engine_option(configuration, "linger_limit"));
    engine->head_timeout = heddle_parse_duration(heddle_engine_option(configuration, "head_timeout"));
    engine->idle_timeout = heddle_parse_duration(heddle_engine_option(configuration, "idle_timeout"));
    engine->body_grace = heddle_parse_duration(heddle_engine_option(configuration, "body_grace"));
    engine->body_timeout = heddle_parse_duration(heddle_engine_option(configuration, "body_timeout"));
    engine->body_pause = heddle_parse_duration(heddle_engine_option(configuration, "body_pause"));
    engine->write_timeout = heddle_parse_duration(heddle_engine_option(configuration, "write_timeout"));
    engine->linger_timeout = heddle_parse_duration(heddle_engine_option(configuration, "linger_timeout"));
    heddle_engine_configure_protocols(engine, configuration);
    engine->head.fields = calloc(engine->limits.header_count, sizeof(heddle_field));
    if (!engine->head.fields)
        rb_memerror();
    engine->head.field_room = (uint16_t)engine->limits.header_count;
    return self;
}

/*
 * call-seq: drain(close_code = 1001, seconds = 0) -> nil
 *
 * From now on every response announces that its connection will be closed. WebSockets are closed with +close_code+
 * within +seconds+, at a rate of a hundred a second, or faster if that would take longer than +seconds+. The running
 * callback of a WebSocket and its on_shutdown may finish first, but not later than +seconds+ from now.
 */
static VALUE engine_drain(int argc, VALUE *argv, VALUE self)
{
    heddle_engine *engine = engine_of(self);
    heddle_websockets *sockets = &engine->websockets;
    rb_check_arity(argc, 0, 2);
    if (argc > 0)
        sockets->retire_code = (uint16_t)NUM2UINT(argv[0]);
    int64_t most = argc > 1 ? heddle_parse_duration(argv[1]) : 0, usual = (int64_t)sockets->open * 10000000;
    sockets->retire_time = usual < most ? usual : most;
    sockets->retire_end = heddle_add_duration(heddle_clock_coarse(), most);
    engine->draining = true;
    return Qnil;
}

/*
 * call-seq: websocket_loader = loader
 *
 * +loader.load(name, state)+ is called for a WebSocket that another process has handed off, with the class name and the
 * state of its handler. Both are nil if they can't be read. It must return an Array of the handler and the object that
 * calls the handler. If the handler is nil, the WebSocket is closed. +loader.refuse_stream+ is called for an event
 * stream whose description can't be read.
 */
static VALUE engine_set_websocket_loader(VALUE self, VALUE loader)
{
    RB_OBJ_WRITE(self, &engine_of(self)->websockets.loader, loader);
    return loader;
}

/*
 * call-seq: websocket_clients -> Array of WebSocket::Session
 *
 * The sessions of all open WebSockets.
 */
static VALUE engine_websocket_clients(VALUE self)
{
    VALUE clients = engine_of(self)->websockets.clients, found = rb_ary_new();
    for (long i = 0; clients && i < RARRAY_LEN(clients); i++) {
        if (!FIXNUM_P(RARRAY_AREF(clients, i)))
            rb_ary_push(found, RARRAY_AREF(clients, i));
    }
    return found;
}

/* The maximum number of files for bodies in a process with this limit of descriptors. */
static VALUE engine_body_files(VALUE class, VALUE descriptors)
{
    return UINT2NUM(heddle_body_files_limit(NUM2ULL(descriptors)));
}

/*
 * The scoreboard (shared memory) in which this process counts its bodies. The reference keeps it mapped until the
 * process ends.
 */
static VALUE disk_scoreboard = Qnil;

/*
 * call-seq: share_disk(scoreboard, slot) -> self
 *
 * Makes this process one of several workers: body_disk_limit applies to the bodies of all workers that have a slot of
 * this Scoreboard.
 */
static VALUE engine_share_disk(VALUE self, VALUE object, VALUE number)
{
    heddle_scoreboard *scoreboard = heddle_scoreboard_of(object);
    uint32_t slot = NUM2UINT(number);
    if (slot >= scoreboard->slot_count)
        rb_raise(rb_eArgError, "the scoreboard has no slot %u", slot);
    disk_scoreboard = object;
    scoreboard->kept = true;
    heddle_body_disk_share(scoreboard, slot);
    return self;
}

static VALUE array_of(const uint64_t *counts, unsigned size)
{
    VALUE list = rb_ary_new_capa(size);
    for (unsigned i = 0; i < size; i++)
        rb_ary_push(list, ULL2NUM(counts[i]));
    return list;
}

/* Returns the number of requests that were rejected before they reached the application, by status. */
static VALUE engine_rejections(VALUE self)
{
    VALUE counts = rb_hash_new();
    for (int i = 0; i < HEDDLE_REJECTION_STATUSES; i++) {
        uint64_t count = engine_of(self)->rejections[i];
        if (count)
            rb_hash_aset(counts, INT2FIX(400 + i), ULL2NUM(count));
    }
    return counts;
}

static VALUE duration_key(const heddle_duration_series *series)
{
    const char *method = series->method ? heddle_method_name((heddle_method)series->method) : "_OTHER";
    return rb_ary_new_from_args(4, rb_str_new_cstr(method),
                                rb_str_new_cstr(series->secure ? "https" : "http"), INT2FIX(series->version),
                                INT2FIX(series->status));
}

/*
 * call-seq: durations -> Hash
 *
 * The durations of complete responses. A key is [method, scheme, version of HTTP times 10, status]. A value is a flat
 * Array: the counts in the buckets of DURATION_BOUNDS, the count in a last bucket without a bound, and the sum in
 * nanoseconds. After the first 128 keys, all other responses are counted under one key, whose status is 0.
 */
static VALUE engine_durations(VALUE self)
{
    VALUE durations = rb_hash_new();
    for (unsigned i = 0; i <= HEDDLE_DURATION_SERIES; i++) {
        heddle_duration_series series = engine_of(self)->durations.series[i];
        VALUE counts = array_of(series.counts, HEDDLE_DURATION_BOUNDS + 1);
        uint64_t total = 0;
        for (unsigned bucket = 0; bucket <= HEDDLE_DURATION_BOUNDS; bucket++)
            total += series.counts[bucket];
        rb_ary_push(counts, ULL2NUM(series.sum));
        if (total)
            rb_hash_aset(durations, duration_key(&series), counts);
    }
    return durations;
}

static const char *part_name(int part)
{
    return part < HEDDLE_SPENT_PARTS ? heddle_account_names[part] : "other";
}

/*
 * call-seq: spent -> Hash{Symbol => Array}
 *
 * The time accounts: how requests have spent their time. A key is a part of the time, such as :query. A value is
 * [an Array of the counts in the buckets of LATENCY_BOUNDS, the sum in seconds].
 */
static VALUE engine_spent(VALUE self)
{
    const heddle_engine *engine = engine_of(self);
    VALUE result = rb_hash_new();
    for (int part = 0; part <= HEDDLE_SPENT_PARTS; part++) {
        VALUE counts = array_of(engine->spent[part].counts, HEDDLE_LATENCY_BUCKETS);
        if (engine->spent[part].sum)
            rb_hash_aset(result, ID2SYM(rb_intern(part_name(part))),
                         rb_assoc_new(counts, DBL2NUM((double)engine->spent[part].sum / 1e9)));
    }
    return result;
}

/*
 * call-seq: endpoints -> Hash{String => Hash{Symbol => Float}}
 *
 * The time accounts by endpoint ("GET /users/:id"): the seconds that requests have spent on each part. Requests that
 * took less than a millisecond, not counting the time in the queue, are omitted. When the list is full, its last entry
 * "other" counts all further endpoints.
 */
static VALUE engine_endpoints(VALUE self)
{
    const heddle_endpoints *endpoints = engine_of(self)->endpoints;
    VALUE result = rb_hash_new();
    for (unsigned i = 0; endpoints && i < endpoints->count; i++) {
        VALUE sums = rb_hash_new();
        rb_hash_aset(result, rb_str_new_cstr(endpoints->list[i].label), sums);
        for (int part = 0; part <= HEDDLE_SPENT_PARTS; part++) {
            uint64_t spent = endpoints->list[i].spent[part];
            if (spent)
                rb_hash_aset(sums, ID2SYM(rb_intern(part_name(part))), DBL2NUM((double)spent / 1e9));
        }
    }
    return result;
}

#define METHODS(X)                                                                                                     \
    X(engine_draining_p, "draining?", engine_of(self)->draining ? Qtrue : Qfalse)                                      \
    /* Requests whose head was complete. */                                                                            \
    X(engine_requests, "requests", ULL2NUM(engine_of(self)->requests))                                                 \
    /* Requests that were rejected before the application was called. */                                               \
    X(engine_rejected, "rejected", ULL2NUM(engine_of(self)->rejected))                                                 \
    /* Requests whose body went into a file. */                                                                        \
    X(engine_spooled, "spooled", ULL2NUM(engine_of(self)->spooled))                                                    \
    /* Bytes on disk of the request bodies of all engines of this process. */                                          \
    X(engine_body_disk_used, "body_disk_used", ULL2NUM(heddle_body_disk_used()))                                       \
    /* The numbers of complete responses to requests for which the application was called, including the responses     \
     * that Heddle has made. The index is the first digit of the status, 1 to 5, or 0 for any other status. */         \
    X(engine_answers, "answers", array_of(engine_of(self)->answers, HEDDLE_STATUS_CLASSES))                            \
    /* The sum of the times that are counted in #latencies, in seconds. */                                             \
    X(engine_latency_sum, "latency_sum", DBL2NUM((double)engine_of(self)->latency.sum / 1e9))                          \
    X(engine_websocket_loader, "websocket_loader",                                                                     \
      engine_of(self)->websockets.loader ? engine_of(self)->websockets.loader : Qnil)                                  \
    /* The durations of requests, from the complete head to the complete response, as counts in the buckets of         \
     * LATENCY_BOUNDS. Hijacked and aborted requests are not counted. */                                               \
    X(engine_latencies, "latencies", array_of(engine_of(self)->latency.counts, HEDDLE_LATENCY_BUCKETS))
METHODS(HEDDLE_DEFINE_METHOD)

static int compare_durations(const void *one, const void *other)
{
    int64_t taken = ((const heddle_slow *)one)->taken, others = ((const heddle_slow *)other)->taken;
    return (taken < others) - (taken > others);
}

/*
 * call-seq: slowest -> Array of Arrays
 *
 * The slowest responses of the last five minutes, slowest first. Each element is [method and target, duration in
 * seconds, seconds since the response, status]. Responses that took a millisecond or less are never listed.
 */
static VALUE engine_slowest(VALUE self)
{
    heddle_slowest *slowest = &engine_of(self)->slowest;
    heddle_slow list[HEDDLE_SLOWEST];
    int64_t now = heddle_clock_now();
    heddle_slowest_expire(slowest, now);
    unsigned count = slowest->count;
    /* The list is copied before anything is allocated: an allocation may run other threads, which change the list. */
    memcpy(list, slowest->list, count * sizeof(*list));
    qsort(list, count, sizeof(*list), compare_durations);
    VALUE result = rb_ary_new_capa(count);
    for (unsigned i = 0; i < count; i++) {
        const heddle_slow *one = &list[i];
        rb_ary_push(result, rb_ary_new_from_args(4, rb_str_new(one->text, one->size),
                                                 DBL2NUM((double)one->taken / 1e9),
                                                 DBL2NUM((double)(now - one->at) / 1e9), INT2FIX(one->status)));
    }
    return result;
}

/*
 * Adds the number of ended WebSockets for each close code: closed_1000 and so on. closed_3000 counts all codes from
 * 3000 to 3999, and closed_4000 all codes from 4000 on. Codes that have not occurred are omitted.
 */
static void add_closes(VALUE result, const heddle_websockets *sockets)
{
    for (unsigned slot = 0; slot < HEDDLE_WEBSOCKET_CODES; slot++) {
        unsigned code = slot < 16 ? 1000 + slot : (slot - 13) * 1000;
        char name[16];
        snprintf(name, sizeof(name), "closed_%u", code);
        if (sockets->closes[slot])
            rb_hash_aset(result, ID2SYM(rb_intern(name)), ULL2NUM(sockets->closes[slot]));
    }
}

/*
 * call-seq: websockets -> Hash
 *
 * Statistics of WebSockets, and of event streams with a handler. +open+: how many are open now. +opened+: how many were
 * opened since the engine was created. +received+ and +sent+: the number of messages; +received_bytes+ and
 * +sent_bytes+: the sum of their sizes. +failures+: how many ended because the client violated the protocol or a limit.
 * +too_slow+: how many ended because the client read too slowly. +vanished+: how many ended because the client did not
 * answer a ping. +closed_1000+ and so on: how many ended with this close code, if any.
 */
static VALUE engine_websockets(VALUE self)
{
    const heddle_websockets *sockets = &engine_of(self)->websockets;
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"open", sockets->open},
        {"opened", sockets->opened},
        {"received", sockets->received},
        {"received_bytes", sockets->received_bytes},
        {"sent", sockets->sent},
        {"sent_bytes", sockets->sent_bytes},
        {"failures", sockets->failures},
        {"too_slow", sockets->too_slow},
        {"vanished", sockets->vanished},
    };
    VALUE result = rb_hash_new();
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
        rb_hash_aset(result, ID2SYM(rb_intern(counters[i].name)), ULL2NUM(counters[i].value));
    add_closes(result, sockets);
    return result;
}

static VALUE make_latency_bounds(void)
{
    VALUE bounds = rb_ary_new_capa(HEDDLE_LATENCY_BUCKETS);
    for (unsigned bucket = 0; bucket < HEDDLE_LATENCY_BUCKETS - 1; bucket++)
        rb_ary_push(bounds, DBL2NUM((double)heddle_latency_end(bucket) / 1e9));
    rb_ary_push(bounds, DBL2NUM(HUGE_VAL));
    return rb_ractor_make_shareable(bounds);
}

void Init_heddle_engine(VALUE http)
{
    VALUE class = heddle_define_class(http, "Engine", engine_allocate);
    rb_define_private_method(class, "set_up", engine_set_up, 7);
    rb_define_method(class, "drain", engine_drain, -1);
    rb_define_method(class, "websocket_loader=", engine_set_websocket_loader, 1);
    rb_define_method(class, "websocket_clients", engine_websocket_clients, 0);
    METHODS(HEDDLE_REGISTER_METHOD)
    rb_define_method(class, "share_disk", engine_share_disk, 2);
    rb_define_singleton_method(class, "body_files", engine_body_files, 1);
    rb_gc_register_address(&disk_scoreboard);
    rb_define_method(class, "rejections", engine_rejections, 0);
    rb_define_method(class, "durations", engine_durations, 0);
    rb_define_method(class, "spent", engine_spent, 0);
    rb_define_method(class, "endpoints", engine_endpoints, 0);
    rb_define_method(class, "slowest", engine_slowest, 0);
    rb_define_method(class, "websockets", engine_websockets, 0);
    /*
     * The upper bounds of the buckets in seconds. Each bound is at most a quarter larger than the bound before it, but
     * the last bound is infinite.
     */
    rb_define_const(class, "LATENCY_BOUNDS", make_latency_bounds());
    VALUE bounds = rb_ary_new();
    for (unsigned i = 0; i < HEDDLE_DURATION_BOUNDS; i++)
        rb_ary_push(bounds, DBL2NUM(heddle_duration_bounds[i] / 1e3));
    rb_define_const(class, "DURATION_BOUNDS", rb_ary_freeze(bounds));
}
