/* The HTTP service (the engine): starts each connection with HTTP/1.1, and counts the responses of all versions. */

#include "http/engine.h"

#include "http/protocols.h"
#include "scheduler/take_errinfo.h"
#include "selector/clock.h"

/* -- protocols ----------------------------------------------------------------------------------------------------- */

static const heddle_http_protocol *protocols[HEDDLE_HTTP_PROTOCOLS];

void heddle_http_register(heddle_http_protocol_number number, const heddle_http_protocol *protocol)
{
    protocols[number] = protocol;
}

const heddle_http_protocol *heddle_http_protocol_of(heddle_http_protocol_number number)
{
    return protocols[number];
}

void heddle_engine_configure_protocols(heddle_engine *engine, VALUE configuration)
{
    for (unsigned i = 0; i < HEDDLE_HTTP_PROTOCOLS; i++) {
        if (protocols[i]->configure)
            protocols[i]->configure(engine, configuration);
    }
}

void heddle_engine_mark_protocols(const heddle_engine *engine)
{
    for (unsigned i = 0; i < HEDDLE_HTTP_PROTOCOLS; i++) {
        if (protocols[i]->mark)
            protocols[i]->mark(engine);
    }
}

/* -- the date ------------------------------------------------------------------------------------------------------ */

#ifndef CLOCK_REALTIME_COARSE
#define CLOCK_REALTIME_COARSE CLOCK_REALTIME
#endif

const char *heddle_engine_date(heddle_engine *engine)
{
    int64_t second = heddle_clock_read(CLOCK_REALTIME_COARSE) / HEDDLE_SECOND;
    if (second != engine->date_second) {
        engine->date_second = second;
        heddle_date_line(engine->date, second);
    }
    return engine->date;
}

/* -- counting ------------------------------------------------------------------------------------------------------ */

static void note_slow(heddle_engine *engine, const heddle_exchange *exchange, int64_t now, int status)
{
    heddle_slice method = exchange->head.method, target = exchange->head.target;
    heddle_slowest_note(&engine->slowest, now, now - exchange->arrived, status, exchange->bytes + method.start,
                        method.size, exchange->bytes + target.start, target.size);
}

void heddle_engine_count_response(heddle_engine *engine, const heddle_exchange *exchange, int status)
{
    int64_t now = heddle_clock_now();
    heddle_latency_add(&engine->latency, now - exchange->arrived);
    const char *named = exchange->operations->version; /* "HTTP/2"; NULL for HTTP/1 */
    uint8_t version = named ? (uint8_t)((named[5] - '0') * 10) : 10 + exchange->head.minor;
    heddle_otel_durations_add(&engine->durations, exchange->head.method_id,
                              exchange->work.connection->transport.tls != NULL, version, status,
                              now - exchange->arrived);
    if (__builtin_expect(heddle_slowest_concerns(&engine->slowest, now, now - exchange->arrived), 0))
        note_slow(engine, exchange, now, status);
    engine->answers[heddle_status_class(status)]++;
}

typedef struct {
    heddle_connection *connection;
    const heddle_rejection *rejection;
} rejection_report;

static VALUE report_rejection(VALUE data)
{
    rejection_report *report = (rejection_report *)data;
    VALUE arguments[] = {
        heddle_address_string(&report->connection->remote),
        INT2FIX(report->rejection->status),
        rb_str_new_cstr(report->rejection->reason),
        report->rejection->by_admission ? Qtrue : Qfalse,
    };
    return rb_proc_call_with_block(heddle_engine_of_connection(report->connection)->on_rejection, 4, arguments, Qnil);
}

heddle_fate heddle_engine_count_rejection(heddle_connection *connection, const heddle_rejection *rejection)
{
    heddle_engine *engine = heddle_engine_of_connection(connection);
    engine->rejected++;
    HEDDLE_ASSERT(rejection->status >= 400 && rejection->status < 400 + HEDDLE_REJECTION_STATUSES);
    engine->rejections[rejection->status - 400]++;
    if (!engine->has_object || NIL_P(engine->on_rejection) || rejection->unlogged)
        return HEDDLE_ALIVE;
    heddle_sockets *sockets = connection->sockets;
    uint64_t identity = heddle_sockets_identity(sockets, connection);
    rejection_report report = {connection, rejection};
    int state = 0;
    rb_protect(report_rejection, (VALUE)&report, &state);
    if (state)
        heddle_take_errinfo(); /* an error in the callback, such as a full disk, must not stop the server */
    /* The callback may have closed the sockets. */
    return heddle_sockets_at(sockets, identity) == connection ? HEDDLE_ALIVE : HEDDLE_GONE;
}

/* -- operations of the service ------------------------------------------------------------------------------------- */

static void reject_handshake(heddle_connection *connection, heddle_handshake_error error)
{
    static const char *const reasons[] = {
        [HEDDLE_NO_PROXY_HEADER] = "this address expects the header of the PROXY protocol first (proxy_protocol=on)",
        [HEDDLE_NO_TLS] = "this port expects TLS: use https:// in place of http://",
    };
    protocols[HEDDLE_HTTP_1]->begin_rejecting(connection, 400, reasons[error]);
}

/* Without TLS, a request begins with its method, and so with a capital letter. A TLS handshake begins with byte 22. */
static bool is_plaintext(char first)
{
    return first >= 'A' && first <= 'Z';
}

static void free_engine(heddle_service *service)
{
    heddle_engine *engine = (heddle_engine *)service;
    for (heddle_exchange *exchange = engine->spare, *next; exchange; exchange = next) {
        next = exchange->next;
        free(exchange);
    }
    for (unsigned i = 0; i < HEDDLE_HTTP_PROTOCOLS; i++) {
        if (protocols[i]->release)
            protocols[i]->release(engine);
    }
    free(engine->out.bytes);
    heddle_path_option_free(&engine->stream_bodies);
    heddle_path_option_free(&engine->health_paths);
    free(engine->endpoints);
    free(engine->body_folder);
    free(engine->head.fields);
    free(engine);
}

static void choose_protocol(heddle_connection *connection)
{
    protocols[HEDDLE_HTTP_1]->begin(connection);
}

/*
 * Loads a session that another process has handed off. The first byte of `description` is the protocol's number, and
 * that protocol loads the rest. Returns an Array of the number and the loaded session. Returns nil if the session can't
 * continue. Also returns nil if an exception was raised; then `*state` is the state that rb_protect has set.
 */
static VALUE load_session(heddle_service *service, VALUE description, int *state)
{
    unsigned number = RSTRING_LEN(description) ? *(uint8_t *)RSTRING_PTR(description) : HEDDLE_HTTP_PROTOCOLS;
    if (number >= HEDDLE_HTTP_PROTOCOLS || !protocols[number]->load)
        return Qnil;
    VALUE rest = rb_str_new(RSTRING_PTR(description) + 1, RSTRING_LEN(description) - 1);
    RB_GC_GUARD(description); /* allocating `rest` may run the GC before the bytes are copied */
    VALUE loaded = protocols[number]->load((heddle_engine *)service, rest, state);
    return *state || NIL_P(loaded) ? Qnil : rb_assoc_new(UINT2NUM(number), loaded);
}

static void resume_session(heddle_connection *connection, VALUE loaded)
{
    protocols[FIX2UINT(RARRAY_AREF(loaded, 0))]->resume(connection, RARRAY_AREF(loaded, 1));
}

const heddle_service_operations heddle_engine_operations = {
    .choose_protocol = choose_protocol,
    .reject_handshake = reject_handshake,
    .is_plaintext = is_plaintext,
    .load_session = load_session,
    .resume_session = resume_session,
    .free = free_engine,
};
