/* Lines of the access log in the format for people. */

#include "http/log/access_log.h"

enum { TEXT_TARGET = 200 }; /* bytes; longer targets are cut, so that lines remain readable */

static void put_size(heddle_log_line *line, uint64_t bytes)
{
    if (bytes < 10000)
        heddle_log_put_text(line, "%llu bytes", (unsigned long long)bytes);
    else if (bytes < 10000000)
        heddle_log_put_text(line, "%llu kB", (unsigned long long)bytes / 1000);
    else
        heddle_log_put_text(line, "%llu MB", (unsigned long long)bytes / 1000000);
}

static void put_duration(heddle_log_line *line, double seconds)
{
    if (seconds < 1)
        heddle_log_put_text(line, "%.1f ms", seconds * 1000);
    else
        heddle_log_put_text(line, "%.2f s", seconds);
}

/* Writes nothing for HTTP/1.1 without TLS. */
static void put_protocol(heddle_log_line *line, const heddle_log_entry *entry)
{
    const char *protocol = heddle_log_protocol(entry->exchange);
    if (entry->tls)
        heddle_log_put_text(line, " over %s, %s", protocol, entry->tls);
    else if (strcmp(protocol, "HTTP/1.1") != 0)
        heddle_log_put_text(line, " over %s", protocol);
}

static bool is_ascii(const char *bytes, size_t size)
{
    uint8_t all = 0;
    for (size_t i = 0; i < size; i++)
        all |= (uint8_t)bytes[i];
    return all < 0x80;
}

enum { TEXT_GROWTH = 4 }; /* the size of an escaped byte: \xNN */

/* Escapes bytes that are not valid UTF-8, and characters that a terminal would interpret. */
static void put_visible(heddle_log_line *line, const char *bytes, size_t size)
{
    const uint8_t *at = (const uint8_t *)bytes, *end = at + size;
    while (at < end) {
        size_t length = heddle_log_measure_utf8(at, (size_t)(end - at));
        if (length == 0 || heddle_log_control_code(at, length)) {
            heddle_log_put_text(line, "\\x%02X", *at++);
        } else {
            heddle_log_put_bytes(line, (const char *)at, length);
            at += length;
        }
    }
}

/* 21:40:44 200 GET /hello?a=b 12 bytes in 0.3 ms for 127.0.0.1 over HTTP/2, TLSv1.3 */
VALUE heddle_log_make_text(const heddle_log_entry *entry)
{
    const heddle_exchange *exchange = entry->exchange;
    heddle_slice method = entry->method, target = entry->target;
    const char *shown = exchange->bytes + target.start;
    uint32_t shown_size = (uint32_t)heddle_least(target.size, TEXT_TARGET);
    bool plain = is_ascii(shown, shown_size);
    heddle_log_line line = heddle_log_start_line((plain ? TEXT_TARGET : TEXT_TARGET * TEXT_GROWTH) +
                                                 HEDDLE_LOG_METHOD + HEDDLE_LOG_REQUEST_ID + HEDDLE_LOG_FIXED);
    char code[16] = "---";
    if (entry->status)
        snprintf(code, sizeof(code), "%d", entry->status);
    heddle_log_put_text(&line, "%.32s %s ", entry->time, code);
    heddle_log_put_bytes(&line, exchange->bytes + method.start, method.size);
    heddle_log_put_text(&line, " ");
    if (plain)
        heddle_log_put_bytes(&line, shown, shown_size);
    else
        put_visible(&line, shown, shown_size);
    heddle_log_put_text(&line, "%s ", target.size > TEXT_TARGET ? "..." : "");
    put_size(&line, entry->sent);
    heddle_log_put_text(&line, " in ");
    put_duration(&line, entry->seconds);
    heddle_log_put_text(&line, " for %s", entry->remote ? entry->remote : "?");
    put_protocol(&line, entry);
    if (!NIL_P(entry->remark))
        heddle_log_put_text(&line, "%.64s", RSTRING_PTR(entry->remark));
    if (!NIL_P(entry->id)) {
        heddle_log_put_text(&line, " [");
        heddle_log_put_bytes(&line, RSTRING_PTR(entry->id),
                             heddle_least((size_t)RSTRING_LEN(entry->id), HEDDLE_LOG_REQUEST_ID));
        heddle_log_put_text(&line, "]");
    }
    heddle_log_put_text(&line, "\n");
    return heddle_log_finish_line(&line);
}
