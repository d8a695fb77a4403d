/* Heddle::HTTP::AccessLine: a line of the access log for a request and its response, in one of several formats. */

#include "http/exchange_ruby.h"
#include "http/fields.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    TEXT,     /* for people */
    JSON,
    COMMON,   /* Apache's common log format */
    COMBINED, /* the same, with the fields Referer and User-Agent */
};

enum {
    TEXT_TARGET = 200, /* longer targets are cut: they may have 16 KiB */
    TARGET = 4096,     /* in formats for programs */
    VALUE_SIZE = 1024, /* bytes of a field's value */
    METHOD = 32,
    REQUEST_ID = 256,
    FIXED = 512, /* room for all other parts of a line */
};

typedef struct {
    const heddle_exchange *exchange;
    const char *remote; /* the client's address, or NULL */
    const char *proxy;  /* the address of the trusted proxy in front of it, or NULL */
    const char *tls;    /* the TLS version, or NULL */
    int status;         /* 0: no response */
    uint64_t sent;
    double seconds;
    const char *time;   /* in the format's own form */
    VALUE remark, id;   /* Strings or nil */
} answer;

/* Written into a String whose room was computed beforehand. */
typedef struct {
    VALUE string;
    char *at, *end;
} line;

static line line_of(size_t room)
{
    VALUE string = rb_str_buf_new((long)room);
    return (line){string, RSTRING_PTR(string), RSTRING_PTR(string) + room};
}

static VALUE finish_line(line *line)
{
    rb_str_set_len(line->string, line->at - RSTRING_PTR(line->string));
    return line->string;
}

__attribute__((format(printf, 2, 3))) static void put_text(line *line, const char *format, ...);
static void put_text(line *line, const char *format, ...)
{
    va_list arguments;
    size_t room = (size_t)(line->end - line->at);
    va_start(arguments, format);
    int size = vsnprintf(line->at, room, format, arguments);
    va_end(arguments);
    if (size > 0)
        line->at += (size_t)size < room ? (size_t)size : room - 1;
}

static void put_bytes(line *line, const char *bytes, size_t size)
{
    size_t room = (size_t)(line->end - line->at);
    size = size < room ? size : room;
    memcpy(line->at, bytes, size);
    line->at += size;
}

static uint32_t limit_size(uint32_t size, uint32_t most)
{
    return size < most ? size : most;
}

static const heddle_field *field_of(const heddle_exchange *exchange, heddle_field_id id)
{
    for (unsigned i = 0; i < exchange->head.field_count; i++) {
        if (exchange->head.fields[i].id == id)
            return &exchange->head.fields[i];
    }
    return NULL;
}

/* As SERVER_PROTOCOL names it. */
static const char *protocol_of(const heddle_exchange *exchange)
{
    if (exchange->operations->version)
        return exchange->operations->version;
    return exchange->head.minor ? "HTTP/1.1" : "HTTP/1.0";
}

/* -- for a person ------------------------------------------------------------------------------------------------ */

static void put_size(line *line, uint64_t bytes)
{
    if (bytes < 10000)
        put_text(line, "%llu bytes", (unsigned long long)bytes);
    else if (bytes < 10000000)
        put_text(line, "%llu kB", (unsigned long long)bytes / 1000);
    else
        put_text(line, "%llu MB", (unsigned long long)bytes / 1000000);
}

static void put_duration(line *line, double seconds)
{
    if (seconds < 1)
        put_text(line, "%.1f ms", seconds * 1000);
    else
        put_text(line, "%.2f s", seconds);
}

/* HTTP/1.1 without TLS is not mentioned. */
static void put_protocol(line *line, const answer *answer)
{
    const char *protocol = protocol_of(answer->exchange);
    if (answer->tls)
        put_text(line, " over %s, %s", protocol, answer->tls);
    else if (strcmp(protocol, "HTTP/1.1") != 0)
        put_text(line, " over %s", protocol);
}

/* 21:40:44 200 GET /hello?a=b 12 bytes in 0.3 ms for 127.0.0.1 over HTTP/2, TLSv1.3 */
static VALUE make_text_line(const answer *answer)
{
    const heddle_exchange *exchange = answer->exchange;
    heddle_slice method = exchange->head.method, target = exchange->head.target;
    line line = line_of(TEXT_TARGET + METHOD + REQUEST_ID + FIXED);
    char code[16] = "---";
    if (answer->status)
        snprintf(code, sizeof(code), "%d", answer->status);
    put_text(&line, "%.16s %s ", answer->time, code);
    put_bytes(&line, exchange->bytes + method.start, limit_size(method.size, METHOD));
    put_text(&line, " ");
    put_bytes(&line, exchange->bytes + target.start, limit_size(target.size, TEXT_TARGET));
    put_text(&line, "%s ", target.size > TEXT_TARGET ? "..." : "");
    put_size(&line, answer->sent);
    put_text(&line, " in ");
    put_duration(&line, answer->seconds);
    put_text(&line, " for %s", answer->remote ? answer->remote : "?");
    put_protocol(&line, answer);
    if (!NIL_P(answer->remark))
        put_text(&line, "%.64s", RSTRING_PTR(answer->remark));
    if (!NIL_P(answer->id)) {
        put_text(&line, " [");
        put_bytes(&line, RSTRING_PTR(answer->id), limit_size((uint32_t)RSTRING_LEN(answer->id), REQUEST_ID));
        put_text(&line, "]");
    }
    put_text(&line, "\n");
    return finish_line(&line);
}

/* -- JSON (RFC 8259) --------------------------------------------------------------------------------------------- */

/* The size of the well-formed UTF-8 sequence at this place (RFC 3629, 4); 0: there is none. */
static size_t measure_utf8(const uint8_t *at, size_t left)
{
    uint8_t first = at[0], least = 0x80, most = 0xbf;
    size_t size;
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        size = 2;
    else if (first >= 0xe0 && first <= 0xef)
        size = 3;
    else if (first >= 0xf0 && first <= 0xf4)
        size = 4;
    else
        return 0;
    if (left < size)
        return 0;
    if (first == 0xe0)
        least = 0xa0; /* overlong */
    else if (first == 0xed)
        most = 0x9f; /* surrogates */
    else if (first == 0xf0)
        least = 0x90;
    else if (first == 0xf4)
        most = 0x8f; /* above U+10FFFF */
    if (at[1] < least || at[1] > most)
        return 0;
    for (size_t i = 2; i < size; i++) {
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    }
    return size;
}

enum { JSON_GROWTH = 6 }; /* \u00XX */

/* Each byte that is not part of UTF-8 becomes U+FFFD; control characters are escaped. */
static void put_json(line *line, const char *bytes, size_t size)
{
    const uint8_t *at = (const uint8_t *)bytes, *end = at + size;
    put_text(line, "\"");
    while (at < end) {
        size_t length = measure_utf8(at, (size_t)(end - at));
        if (length == 0) {
            put_bytes(line, "\xef\xbf\xbd", 3);
            at++;
        } else if (length == 1 && (*at < 0x20 || *at == 0x7f)) {
            put_text(line, "\\u%04x", *at++);
        } else if (length == 2 && at[0] == 0xc2 && at[1] < 0xa0) { /* C1 controls */
            put_text(line, "\\u%04x", at[1]);
            at += 2;
        } else {
            if (*at == '"' || *at == '\\')
                put_bytes(line, "\\", 1);
            put_bytes(line, (const char *)at, length);
            at += length;
        }
    }
    put_text(line, "\"");
}

static void put_json_field(line *line, const answer *answer, const char *name, heddle_field_id id)
{
    const heddle_field *field = field_of(answer->exchange, id);
    if (!field)
        return;
    put_text(line, ",\"%s\":", name);
    put_json(line, answer->exchange->bytes + field->value.start, limit_size(field->value.size, VALUE_SIZE));
}

/* Seconds since 1970 in the form of RFC 3339, with milliseconds, in UTC. */
static void put_now(line *line)
{
    struct timespec now;
    struct tm parts;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    put_text(line, "%s.%03ldZ", text, now.tv_nsec / 1000000);
}

static size_t field_size(const heddle_exchange *exchange, heddle_field_id id)
{
    const heddle_field *field = field_of(exchange, id);
    return field ? limit_size(field->value.size, VALUE_SIZE) : 0;
}

static VALUE make_json_line(const answer *answer)
{
    const heddle_exchange *exchange = answer->exchange;
    heddle_slice method = exchange->head.method, target = exchange->head.target;
    size_t wild = METHOD + limit_size(target.size, TARGET) + field_size(exchange, HEDDLE_FIELD_HOST) +
                  field_size(exchange, HEDDLE_FIELD_USER_AGENT) + field_size(exchange, HEDDLE_FIELD_REFERER) +
                  (NIL_P(answer->id) ? 0 : REQUEST_ID);
    line line = line_of(wild * JSON_GROWTH + FIXED);
    put_text(&line, "{\"time\":\"");
    put_now(&line);
    put_text(&line, "\",\"level\":\"info\",\"event\":\"request\",\"method\":");
    put_json(&line, exchange->bytes + method.start, limit_size(method.size, METHOD));
    put_text(&line, ",\"target\":");
    put_json(&line, exchange->bytes + target.start, limit_size(target.size, TARGET));
    if (answer->status)
        put_text(&line, ",\"status\":%d", answer->status);
    else
        put_text(&line, ",\"status\":null");
    put_text(&line, ",\"bytes\":%llu,\"duration\":%.6f,\"remote\":\"%s\",\"protocol\":\"%s\"",
        (unsigned long long)answer->sent, answer->seconds, answer->remote ? answer->remote : "",
        protocol_of(exchange));
    if (answer->tls)
        put_text(&line, ",\"tls\":\"%s\"", answer->tls);
    if (answer->proxy)
        put_text(&line, ",\"proxy\":\"%s\"", answer->proxy);
    put_json_field(&line, answer, "host", HEDDLE_FIELD_HOST);
    put_json_field(&line, answer, "user_agent", HEDDLE_FIELD_USER_AGENT);
    put_json_field(&line, answer, "referer", HEDDLE_FIELD_REFERER);
    if (!NIL_P(answer->id)) {
        put_text(&line, ",\"request_id\":");
        put_json(&line, RSTRING_PTR(answer->id), limit_size((uint32_t)RSTRING_LEN(answer->id), REQUEST_ID));
    }
    if (!NIL_P(answer->remark)) {
        put_text(&line, ",\"remark\":");
        put_json(&line, RSTRING_PTR(answer->remark), limit_size((uint32_t)RSTRING_LEN(answer->remark), 64));
    }
    put_text(&line, "}\n");
    return finish_line(&line);
}

/* -- Apache's formats -------------------------------------------------------------------------------------------- */

enum { CLF_GROWTH = 4 }; /* \xhh */

/*
 * As Apache's mod_log_config: quotes and backslashes get a backslash, other bytes that are not printable become \xhh.
 */
static void put_clf(line *line, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)bytes[i];
        if (byte == '"' || byte == '\\')
            put_text(line, "\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
            put_text(line, "\\x%02x", byte);
        else
            put_bytes(line, bytes + i, 1);
    }
}

static void put_clf_field(line *line, const heddle_exchange *exchange, heddle_field_id id)
{
    const heddle_field *field = field_of(exchange, id);
    put_text(line, " \"");
    if (field)
        put_clf(line, exchange->bytes + field->value.start, limit_size(field->value.size, VALUE_SIZE));
    else
        put_text(line, "-");
    put_text(line, "\"");
}

/* 127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 */
static VALUE make_clf_line(const answer *answer, bool combined)
{
    const heddle_exchange *exchange = answer->exchange;
    heddle_slice method = exchange->head.method, target = exchange->head.target;
    size_t wild = METHOD + limit_size(target.size, TARGET) + field_size(exchange, HEDDLE_FIELD_USER_AGENT) +
                  field_size(exchange, HEDDLE_FIELD_REFERER);
    line line = line_of(wild * CLF_GROWTH + FIXED);
    put_text(&line, "%s - - [%.40s] \"", answer->remote ? answer->remote : "-", answer->time);
    put_clf(&line, exchange->bytes + method.start, limit_size(method.size, METHOD));
    put_text(&line, " ");
    put_clf(&line, exchange->bytes + target.start, limit_size(target.size, TARGET));
    put_text(&line, " %s\" ", protocol_of(exchange));
    if (answer->status)
        put_text(&line, "%d ", answer->status);
    else
        put_text(&line, "- ");
    if (answer->sent)
        put_text(&line, "%llu", (unsigned long long)answer->sent);
    else
        put_text(&line, "-");
    if (combined) {
        put_clf_field(&line, exchange, HEDDLE_FIELD_REFERER);
        put_clf_field(&line, exchange, HEDDLE_FIELD_USER_AGENT);
    }
    put_text(&line, "\n");
    return finish_line(&line);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static VALUE make_formatted_line(int format, const answer *answer)
{
    switch (format) {
    case JSON:
        return make_json_line(answer);
    case COMMON:
        return make_clf_line(answer, false);
    case COMBINED:
        return make_clf_line(answer, true);
    default:
        return make_text_line(answer);
    }
}

static VALUE make_line(VALUE format, VALUE time, VALUE object, VALUE id, int status, uint64_t sent, VALUE remark)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    char address[HEDDLE_ADDRESS_ROOM], client_address[HEDDLE_ADDRESS_ROOM];
    heddle_address client;
    answer answer = {
        .exchange = heddle_exchange_of(handle),
        .remote = heddle_address_text(&handle->remote, address),
        .tls = handle->tls_version,
        .status = status,
        .sent = sent,
        .time = StringValueCStr(time),
        .remark = remark,
        .id = id,
    };
    if (heddle_exchange_client(handle, &client)) {
        answer.proxy = answer.remote;
        answer.remote = heddle_address_text(&client, client_address);
    }
    answer.seconds = (double)(heddle_clock_now() - answer.exchange->arrived) / 1e9;
    if (!NIL_P(remark))
        StringValueCStr(answer.remark);
    if (!NIL_P(id))
        StringValue(answer.id);
    VALUE result = make_formatted_line(NUM2INT(format), &answer);
    RB_GC_GUARD(time);
    RB_GC_GUARD(object);
    return result;
}

/*
 * call-seq: AccessLine.line(format, time, exchange, id, status, sent, remark) -> String
 *
 * The line with its line end. `time`: now, in the form that the format needs (JSON has its own); `id`: of the request,
 * or nil; `status`: an Integer, or nil for none; `sent`: bytes of content; `remark`: a text that is added, or nil.
 */
static VALUE access_line_line(VALUE self, VALUE format, VALUE time, VALUE object, VALUE id, VALUE status, VALUE sent,
                       VALUE remark)
{
    return make_line(format, time, object, id, NIL_P(status) ? 0 : NUM2INT(status), NUM2ULL(sent), remark);
}

/*
 * call-seq: AccessLine.access_line_of_plain(format, time, exchange, id) -> String or nil
 *
 * The same for a response that C has sent completely; nil when it is of another kind.
 */
static VALUE access_line_of_plain(VALUE self, VALUE format, VALUE time, VALUE object, VALUE id)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    if (!handle->status)
        return Qnil;
    return make_line(format, time, object, id, handle->status, handle->sent, Qnil);
}

void Init_heddle_access_line(VALUE http)
{
    VALUE module = rb_define_module_under(http, "AccessLine");
    rb_define_const(module, "TEXT", INT2FIX(TEXT));
    rb_define_const(module, "JSON", INT2FIX(JSON));
    rb_define_const(module, "COMMON", INT2FIX(COMMON));
    rb_define_const(module, "COMBINED", INT2FIX(COMBINED));
    rb_define_singleton_method(module, "line", access_line_line, 7);
    rb_define_singleton_method(module, "of_plain", access_line_of_plain, 4);
}
