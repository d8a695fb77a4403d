#pragma once

/*
 * The HTTP service of a loop (the engine). All connections of the loop, in every version of HTTP, share its limits,
 * counters and buffers. A fiber must not wait while it uses one of these buffers.
 */

#include "http/response_head_writer.h"
#include "http/exchange.h"
#include "http/endpoint_accounts.h"
#include "http/latency_histogram.h"
#include "http/path_options.h"
#include "http/otel_durations.h"
#include "http/slowest_responses.h"
#include "http/websocket/shared_state.h"
#include "net/fate.h"
#include "net/protocol.h"
#include "net/sockets.h"

/* The class of a status is its first digit, 1 to 5. Class 0 stands for statuses below 100 or above 599. */
enum {
    HEDDLE_STATUS_CLASSES = 6,
    HEDDLE_REJECTION_STATUSES = 200, /* statuses 400 to 599 */
};

static inline unsigned heddle_status_class(int status)
{
    return status >= 100 && status < 600 ? (unsigned)status / 100 : 0;
}

struct heddle_engine {
    heddle_service base;
    VALUE on_rejection; /* Qnil: no callback */
    VALUE proxies;    /* a Heddle::Net::Networks with the trusted proxies, or Qnil */
    bool has_object;  /* the Ruby object, which marks on_rejection, exists; otherwise on_rejection must not be called */

    heddle_http_limits limits;
    uint64_t body_buffer, body_rate, linger_limit; /* bytes; bytes a second; bytes */
    uint64_t body_disk_limit;   /* bytes, for all processes of this server together */
    char *body_folder;          /* the folder for bodies that don't stay in memory */
    heddle_path_option stream_bodies; /* paths of requests whose body the application reads while it is received */
    heddle_path_option health_paths;  /* paths of health checks */
    /* in ns */
    int64_t head_timeout, idle_timeout, body_grace, body_timeout, body_pause, write_timeout, linger_timeout;
    bool draining; /* each connection closes after its next response */

    heddle_request_head head; /* the parser's result, which heddle_exchange_new copies */
    heddle_exchange *bodies; /* exchanges with a body in memory that the application has not received yet */
    heddle_exchange *spare;  /* records that can be used again */
    unsigned spare_count;
    bool h2_over_plain; /* may a connection without TLS use HTTP/2? */
    struct heddle_h2_shared *h2; /* see http/h2/server/server.h; NULL before set_up */
    heddle_websockets websockets;
    heddle_link receiving; /* WebSockets with an unfinished message, in the order in which the messages began */
    heddle_buffer out; /* the buffer in which responses are assembled; see http/response_head_ruby.h */
    char date[40]; /* the `date` line of the current second */
    int64_t date_second;
    uint64_t requests, rejected, spooled; /* numbers of requests, see engine_ruby.c */
    /* complete responses of the application, and rejections that replaced them, by the class of their status */
    uint64_t answers[HEDDLE_STATUS_CLASSES];
    /* rejections of requests that have not reached the application; the index is the status - 400 */
    uint64_t rejections[HEDDLE_REJECTION_STATUSES];
    heddle_otel_durations durations;
    heddle_latency latency; /* times from the request's complete head to the complete response */
    heddle_slowest slowest; /* the slowest responses */
    /* histograms of the time accounts: one for each part (such as `query`), and one for time that belongs to no part */
    heddle_latency spent[HEDDLE_SPENT_PARTS + 1];
    heddle_endpoints *endpoints; /* NULL until the first request that took at least HEDDLE_ENDPOINT_LEAST has ended */
};

/* Calls `configure` of each protocol with a checked configuration. May raise. */
void heddle_engine_configure_protocols(heddle_engine *engine, VALUE configuration);
/* Marks the Ruby objects that the protocols have stored in the engine. */
void heddle_engine_mark_protocols(const heddle_engine *engine);
/* Returns the value of an option. */
VALUE heddle_engine_option(VALUE configuration, const char *name);

/* The current `date` line: 37 bytes. */
const char *heddle_engine_date(heddle_engine *engine);

extern const heddle_service_operations heddle_engine_operations;

static inline heddle_engine *heddle_engine_of_connection(const heddle_connection *connection)
{
    return (heddle_engine *)connection->sockets->service;
}

/* Counts a complete response of the application, or the rejection that replaced it. */
void heddle_engine_count_response(heddle_engine *engine, const heddle_exchange *exchange, int status);
/*
 * Counts the rejection of a request that has not reached the application. Calls on_rejection, which may close the
 * connection.
 */
HEDDLE_FATE heddle_engine_count_rejection(heddle_connection *connection, const heddle_rejection *rejection);
