#pragma once

/* Lines of the access log: for people (text.c), as JSON (json.c), and in Apache's two formats (clf.c). */

#include "http/exchange_ruby.h"
#include "http/fields.h"
#include "http/text.h"

/* Sizes in bytes. The first four are limits: longer values are cut. */
enum {
    HEDDLE_LOG_TARGET = 4096, /* text.c has a lower limit */
    HEDDLE_LOG_VALUE = 1024,  /* the value of a field */
    HEDDLE_LOG_METHOD = 32,
    HEDDLE_LOG_REQUEST_ID = 256,
    HEDDLE_LOG_FIXED = 512, /* room for all other parts of a line together, without the time account of JSON */
};

/* A request and its response: the values that a line may show. */
typedef struct {
    const heddle_exchange *exchange;
    heddle_slice method, target; /* slices of the exchange's bytes, cut to the limits above */
    const char *remote; /* the client's address, or NULL */
    const char *proxy;  /* the address of the trusted proxy that has sent the request, or NULL */
    const char *tls;    /* the TLS version, or NULL */
    int status;         /* 0: no response */
    uint64_t sent;      /* bytes of content */
    int64_t now; /* CLOCK_MONOTONIC, ns */
    double seconds;     /* since the request's head was complete */
    const char *time;   /* the time of day in the form that the format needs */
    VALUE remark, id;   /* a text to add, and the request's ID: Strings or nil */
} heddle_log_entry;

/* A line that is being written into a String whose size was computed beforehand. */
typedef struct {
    VALUE string;
    char *at, *end;
} heddle_log_line;

heddle_log_line heddle_log_start_line(size_t room);
VALUE heddle_log_finish_line(heddle_log_line *line);
__attribute__((format(printf, 2, 3))) void heddle_log_put_text(heddle_log_line *line, const char *format, ...);

static inline void heddle_log_put_bytes(heddle_log_line *line, const char *bytes, size_t size)
{
    size_t room = (size_t)(line->end - line->at);
    size = size < room ? size : room;
    memcpy(line->at, bytes, size);
    line->at += size;
}

/* Returns the size of the well-formed UTF-8 sequence at `at` (RFC 3629, 4), or 0 if there is none. */
size_t heddle_log_measure_utf8(const uint8_t *at, size_t left);
/*
 * Returns the code point of this UTF-8 sequence if a terminal would interpret it: a C1 control character, a separator
 * of lines or paragraphs, or a character that changes the text's direction. Returns 0 otherwise.
 */
unsigned heddle_log_control_code(const uint8_t *at, size_t length);
/* Returns a field of the request, or NULL. */
const heddle_field *heddle_log_find_field(const heddle_exchange *exchange, heddle_field_id id);
size_t heddle_log_field_size(const heddle_exchange *exchange, heddle_field_id id);
/* Returns the version of HTTP, as in SERVER_PROTOCOL. */
const char *heddle_log_protocol(const heddle_exchange *exchange);

VALUE heddle_log_make_text(const heddle_log_entry *entry);
VALUE heddle_log_make_json(const heddle_log_entry *entry);
VALUE heddle_log_make_clf(const heddle_log_entry *entry, bool combined);
