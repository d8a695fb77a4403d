/* Heddle::HTTP::AccessLog: makes the line of the access log for a request and its response, in one of four formats. */

#include "http/log/access_log.h"

#include "http/websocket/utf8.h"

#include <stdarg.h>

enum {
    TEXT,     /* for people */
    JSON,
    COMMON,   /* Apache's common log format */
    COMBINED, /* the common log format with the fields Referer and User-Agent */
};

size_t heddle_log_measure_utf8(const uint8_t *at, size_t left)
{
    heddle_utf8 utf8 = {0};
    if (at[0] < 0x80)
        return 1;
    for (size_t size = 0; size < left && heddle_utf8_check(&utf8, (const char *)at + size, 1); size++) {
        if (heddle_utf8_is_complete(&utf8))
            return size + 1;
    }
    return 0;
}

unsigned heddle_log_control_code(const uint8_t *at, size_t length)
{
    if (length == 2 && at[0] == 0xc2 && at[1] < 0xa0)
        return at[1];
    unsigned code = length == 3 ? (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu) : 0;
    return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ? code : 0;
}

heddle_log_line heddle_log_start_line(size_t room)
{
    VALUE string = rb_str_buf_new((long)room);
    return (heddle_log_line){string, RSTRING_PTR(string), RSTRING_PTR(string) + room};
}

VALUE heddle_log_finish_line(heddle_log_line *line)
{
    rb_str_set_len(line->string, line->at - RSTRING_PTR(line->string));
    return line->string;
}

void heddle_log_put_text(heddle_log_line *line, const char *format, ...)
{
    va_list arguments;
    size_t room = (size_t)(line->end - line->at);
    va_start(arguments, format);
    int size = vsnprintf(line->at, room, format, arguments);
    va_end(arguments);
    if (size > 0)
        line->at += (size_t)size < room ? (size_t)size : room - 1;
}

const heddle_field *heddle_log_find_field(const heddle_exchange *exchange, heddle_field_id id)
{
    for (unsigned i = 0; i < exchange->head.field_count; i++) {
        if (exchange->head.fields[i].id == id)
            return &exchange->head.fields[i];
    }
    return NULL;
}

size_t heddle_log_field_size(const heddle_exchange *exchange, heddle_field_id id)
{
    const heddle_field *field = heddle_log_find_field(exchange, id);
    return field ? heddle_least(field->value.size, HEDDLE_LOG_VALUE) : 0;
}

const char *heddle_log_protocol(const heddle_exchange *exchange)
{
    if (exchange->operations->version)
        return exchange->operations->version;
    return exchange->head.minor ? "HTTP/1.1" : "HTTP/1.0";
}

static VALUE make_formatted_line(int format, const heddle_log_entry *entry)
{
    switch (format) {
    case JSON:
        return heddle_log_make_json(entry);
    case COMMON:
        return heddle_log_make_clf(entry, false);
    case COMBINED:
        return heddle_log_make_clf(entry, true);
    default:
        return heddle_log_make_text(entry);
    }
}

static heddle_slice cut(heddle_slice slice, uint32_t most)
{
    return (heddle_slice){slice.start, (uint32_t)heddle_least(slice.size, most)};
}

static VALUE make_line(VALUE format, VALUE time, VALUE object, VALUE id, int status, uint64_t sent, VALUE remark)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    char address[HEDDLE_ADDRESS_ROOM], client_address[HEDDLE_ADDRESS_ROOM];
    heddle_address client;
    heddle_log_entry entry = {
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
        entry.proxy = entry.remote;
        entry.remote = heddle_address_text(&client, client_address);
    }
    entry.method = cut(entry.exchange->head.method, HEDDLE_LOG_METHOD);
    entry.target = cut(entry.exchange->head.target, HEDDLE_LOG_TARGET);
    entry.now = heddle_clock_now();
    entry.seconds = (double)(entry.now - entry.exchange->arrived) / 1e9;
    if (!NIL_P(remark))
        StringValueCStr(entry.remark);
    if (!NIL_P(id))
        StringValue(entry.id);
    VALUE result = make_formatted_line(NUM2INT(format), &entry);
    RB_GC_GUARD(time);
    RB_GC_GUARD(object);
    return result;
}

/*
 * call-seq: AccessLog.line(format, time, exchange, id, status, sent, remark) -> String
 *
 * Returns the line, with its line end. `time`: the current time as a String, as the format needs it (ignored for JSON);
 * `id`: the request's ID, or nil; `status`: an Integer, or nil if there was no response; `sent`: bytes of content;
 * `remark`: a text to add, or nil.
 */
static VALUE access_log_line(VALUE self, VALUE format, VALUE time, VALUE object, VALUE id, VALUE status, VALUE sent,
                             VALUE remark)
{
    return make_line(format, time, object, id, NIL_P(status) ? 0 : NUM2INT(status), NUM2ULL(sent), remark);
}

/*
 * call-seq: AccessLog.of_plain(format, time, exchange, id) -> String or nil
 *
 * Returns the line if C code has sent the whole response, and nil if Ruby code has sent it.
 */
static VALUE access_log_of_plain(VALUE self, VALUE format, VALUE time, VALUE object, VALUE id)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    if (!handle->status)
        return Qnil;
    return make_line(format, time, object, id, handle->status, handle->sent, Qnil);
}

void Init_heddle_access_log(VALUE http)
{
    VALUE module = rb_define_module_under(http, "AccessLog");
    rb_define_const(module, "TEXT", INT2FIX(TEXT));
    rb_define_const(module, "JSON", INT2FIX(JSON));
    rb_define_const(module, "COMMON", INT2FIX(COMMON));
    rb_define_const(module, "COMBINED", INT2FIX(COMBINED));
    rb_define_singleton_method(module, "line", access_log_line, 7);
    rb_define_singleton_method(module, "of_plain", access_log_of_plain, 4);
}
