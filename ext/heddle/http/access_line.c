/* Heddle::HTTP::AccessLine: a request and its answer as a line of a log. */

#include "http/exchange_ruby.h"

#include <stdio.h>

enum {
    TARGET = 200, /* longer targets are cut; they may have 16 KiB */
    LINE = TARGET + 256,
};

static int add_size(char *out, size_t room, uint64_t bytes)
{
    if (bytes < 10000)
        return snprintf(out, room, "%llu bytes", (unsigned long long)bytes);
    if (bytes < 10000000)
        return snprintf(out, room, "%llu kB", (unsigned long long)bytes / 1000);
    return snprintf(out, room, "%llu MB", (unsigned long long)bytes / 1000000);
}

static int add_duration(char *out, size_t room, double seconds)
{
    return seconds < 1 ? snprintf(out, room, "%.1f ms", seconds * 1000) : snprintf(out, room, "%.2f s", seconds);
}

/*
 * call-seq: AccessLine.line(time, exchange, status, sent, remark) -> String
 *
 *     21:40:44 200 GET /hello?a=b 12 bytes in 0.3 ms for 127.0.0.1
 *
 * `status`: an Integer, or nil for none.
 */
static VALUE line(VALUE self, VALUE time, VALUE object, VALUE status, VALUE sent, VALUE remark)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    heddle_exchange *exchange = heddle_exchange_of(handle);
    const heddle_request_head *head = &exchange->head;
    char text[LINE], address[HEDDLE_ADDRESS_ROOM], code[16] = "---";
    const char *remote = heddle_address_text(&handle->remote, address);
    int target = head->target.size > TARGET ? TARGET : (int)head->target.size;
    int method = head->method.size > 32 ? 32 : (int)head->method.size;
    if (!NIL_P(status))
        snprintf(code, sizeof(code), "%d", NUM2INT(status));
    int used = snprintf(text, sizeof(text), "%.16s %s %.*s %.*s%s ", StringValueCStr(time), code, method,
                        exchange->bytes + head->method.start, target, exchange->bytes + head->target.start,
                        head->target.size > TARGET ? "..." : "");
    used += add_size(text + used, sizeof(text) - (size_t)used, NUM2ULL(sent));
    used += snprintf(text + used, sizeof(text) - (size_t)used, " in ");
    used += add_duration(text + used, sizeof(text) - (size_t)used, (double)(heddle_now() - exchange->arrived) / 1e9);
    used += snprintf(text + used, sizeof(text) - (size_t)used, " for %s%.32s\n", remote ? remote : "?",
                     !RTEST(remark) ? "" : StringValueCStr(remark));
    return rb_str_new(text, used);
}

/*
 * call-seq: AccessLine.of_plain(time, exchange) -> String or nil
 *
 * The same for an answer that C has sent whole; nil when it is of another kind.
 */
static VALUE of_plain(VALUE self, VALUE time, VALUE object)
{
    heddle_exchange_handle *handle = heddle_exchange_handle_of(object);
    if (!handle->status)
        return Qnil;
    return line(self, time, object, INT2FIX(handle->status), ULL2NUM(handle->sent), Qnil);
}

void Init_heddle_access_line(VALUE http)
{
    VALUE module = rb_define_module_under(http, "AccessLine");
    rb_define_singleton_method(module, "line", line, 5);
    rb_define_singleton_method(module, "of_plain", of_plain, 2);
}
