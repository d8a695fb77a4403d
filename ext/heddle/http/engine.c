/*
 * The HTTP service: starts each connection with HTTP/1.1, which h1/reading.c changes to HTTP/2 at its preface. Counts
 * for all versions.
 */

#include "http/engine.h"

#include "http/push/event_stream.h"
#include "http/push/session.h"

#include "http/h1/server.h"
#include "scheduler/take_errinfo.h"
#include "selector/clock.h"


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
    engine->rejections[heddle_status_class(rejection->status)]++;
    if (!engine->marked || NIL_P(engine->on_rejection))
        return HEDDLE_ALIVE;
    heddle_sockets *sockets = connection->sockets;
    uint64_t identity = heddle_sockets_identity(sockets, connection);
    rejection_report report = {connection, rejection};
    int state = 0;
    rb_protect(report_rejection, (VALUE)&report, &state);
    if (state)
        heddle_take_errinfo(); /* an error of the log must not end the server */
    /* The callback may have closed the sockets. */
    return heddle_sockets_at(sockets, identity) == connection ? HEDDLE_ALIVE : HEDDLE_GONE;
}

/* -- as a service -------------------------------------------------------------------------------------------------- */

static void reject_handshake(heddle_connection *connection, heddle_handshake_error error)
{
    static const char *const reasons[] = {
        [HEDDLE_NO_PROXY_HEADER] = "this address expects the header of the PROXY protocol first (proxy_protocol=on)",
        [HEDDLE_NO_TLS] = "this port speaks TLS, and the request came without: say https:// in place of http://",
    };
    heddle_h1_begin_rejecting(connection, 400, reasons[error]);
}

/* A request begins with the first letter of a method; a TLS record begins with another byte. */
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
    free(engine->out.bytes);
    heddle_h2_workspace_free(&engine->h2_workspace);
    heddle_path_option_free(&engine->stream_bodies);
    free(engine->body_folder);
    heddle_deflater_free(engine->websockets.deflater);
    free(engine->head.fields);
    free(engine);
}

/* Loading an event stream runs no Ruby code. */
static VALUE load_session(heddle_service *service, VALUE words, int *state)
{
    if (RSTRING_LEN(words) && *RSTRING_PTR(words) == HEDDLE_EVENTS_WORDS)
        return words;
    return heddle_websocket_load(service, words, state);
}

static void resume_session(heddle_connection *connection, VALUE loaded)
{
    if (RB_TYPE_P(loaded, T_STRING))
        heddle_events_resume(connection, loaded);
    else
        heddle_websocket_resume(connection, loaded);
}

const heddle_service_operations heddle_engine_operations = {
    .choose_protocol = heddle_h1_begin, /* h1/reading.c changes the protocol to HTTP/2 when it reads the preface */
    .reject_handshake = reject_handshake,
    .is_plaintext = is_plaintext,
    .load_session = load_session,
    .resume_session = resume_session,
    .free = free_engine,
};
