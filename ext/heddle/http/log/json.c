/* Lines of the access log as JSON (RFC 8259): one object for each request. */

#include "http/log/access_log.h"

enum {
    JSON_GROWTH = 6, /* the size of an escaped byte: \u00XX */
    ACCOUNT_ROOM = 2 * (HEDDLE_SPENT_PARTS + 2) * 40,
};

/*
 * Writes a JSON string, with U+FFFD for each byte that is not part of valid UTF-8. Also escapes characters that a
 * terminal would interpret.
 */
static void put_json(heddle_log_line *line, const char *bytes, size_t size)
{
    const uint8_t *at = (const uint8_t *)bytes, *end = at + size;
    heddle_log_put_text(line, "\"");
    while (at < end) {
        size_t length = heddle_log_measure_utf8(at, (size_t)(end - at));
        unsigned code;
        if (length == 0) {
            heddle_log_put_bytes(line, "\xef\xbf\xbd", 3);
            at++;
        } else if (length == 1 && (*at < 0x20 || *at == 0x7f)) {
            heddle_log_put_text(line, "\\u%04x", *at++);
        } else if ((code = heddle_log_control_code(at, length))) {
            heddle_log_put_text(line, "\\u%04x", code);
            at += length;
        } else {
            if (*at == '"' || *at == '\\')
                heddle_log_put_bytes(line, "\\", 1);
            heddle_log_put_bytes(line, (const char *)at, length);
            at += length;
        }
    }
    heddle_log_put_text(line, "\"");
}

static void put_json_field(heddle_log_line *line, const heddle_log_entry *entry, const char *name, heddle_field_id id)
{
    const heddle_field *field = heddle_log_find_field(entry->exchange, id);
    if (!field)
        return;
    heddle_log_put_text(line, ",\"%s\":", name);
    put_json(line, entry->exchange->bytes + field->value.start,
             heddle_least(field->value.size, HEDDLE_LOG_VALUE));
}

/* Writes the current time as in RFC 3339, with milliseconds, in UTC. */
static void put_now(heddle_log_line *line)
{
    struct timespec now;
    struct tm parts;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    heddle_log_put_text(line, "%s.%03ldZ", text, now.tv_nsec / 1000000);
}

/* Writes a time in seconds, with six decimals. vsnprintf would be slow for the many times of a time account. */
static void put_seconds(heddle_log_line *line, int64_t ns)
{
    char text[24], *at = text + sizeof(text);
    uint64_t left = (uint64_t)(ns > 0 ? ns : 0) / 1000;
    for (int digit = 0; digit < 7 || left; digit++, left /= 10) {
        if (digit == 6)
            *--at = '.';
        *--at = (char)('0' + left % 10);
    }
    heddle_log_put_bytes(line, at, (size_t)(text + sizeof(text) - at));
}

static void put_part(heddle_log_line *line, const char *name, int64_t ns)
{
    heddle_log_put_bytes(line, "\"", 1);
    heddle_log_put_bytes(line, name, strlen(name));
    heddle_log_put_bytes(line, "\":", 2);
    put_seconds(line, ns);
    heddle_log_put_bytes(line, ",", 1);
}

/*
 * Writes `name`, and then the parts of a time account (scheduler/account.h) that took at least a microsecond. If there
 * are none, writes nothing and returns false.
 */
static bool put_parts(heddle_log_line *line, const char *name, const int64_t parts[HEDDLE_SPENT_PARTS])
{
    bool any = false;
    for (int part = 0; part < HEDDLE_SPENT_PARTS; part++) {
        if (parts[part] < 1000)
            continue;
        if (!any)
            heddle_log_put_bytes(line, name, strlen(name));
        any = true;
        put_part(line, heddle_account_names[part], parts[part]);
    }
    return any;
}

static void put_account(heddle_log_line *line, const heddle_log_entry *entry)
{
    int64_t parts[HEDDLE_SPENT_PARTS], other;
    heddle_account_read(entry->exchange->account, entry->now, parts, &other);
    heddle_log_put_text(line, ",\"account\":{");
    put_parts(line, "", parts);
    put_part(line, "other", other);
    line->at[-1] = '}';
    if (put_parts(line, ",\"tasks\":{", entry->exchange->account->tasks))
        line->at[-1] = '}';
}

VALUE heddle_log_make_json(const heddle_log_entry *entry)
{
    const heddle_exchange *exchange = entry->exchange;
    heddle_slice method = entry->method, target = entry->target;
    size_t value_size = method.size + target.size + heddle_log_field_size(exchange, HEDDLE_FIELD_HOST) +
                        heddle_log_field_size(exchange, HEDDLE_FIELD_USER_AGENT) +
                        heddle_log_field_size(exchange, HEDDLE_FIELD_REFERER) +
                        (NIL_P(entry->id) ? 0 : HEDDLE_LOG_REQUEST_ID);
    size_t account = exchange->account ? ACCOUNT_ROOM : 0;
    heddle_log_line line = heddle_log_start_line(value_size * JSON_GROWTH + HEDDLE_LOG_FIXED + account);
    heddle_log_put_text(&line, "{\"time\":\"");
    put_now(&line);
    heddle_log_put_text(&line, "\",\"level\":\"info\",\"event\":\"request\",\"method\":");
    put_json(&line, exchange->bytes + method.start, method.size);
    heddle_log_put_text(&line, ",\"target\":");
    put_json(&line, exchange->bytes + target.start, target.size);
    if (entry->status)
        heddle_log_put_text(&line, ",\"status\":%d", entry->status);
    else
        heddle_log_put_text(&line, ",\"status\":null");
    heddle_log_put_text(&line, ",\"bytes\":%llu,\"duration\":%.6f,\"remote\":\"%s\",\"protocol\":\"%s\"",
        (unsigned long long)entry->sent, entry->seconds, entry->remote ? entry->remote : "",
        heddle_log_protocol(exchange));
    if (entry->tls)
        heddle_log_put_text(&line, ",\"tls\":\"%s\"", entry->tls);
    if (entry->proxy)
        heddle_log_put_text(&line, ",\"proxy\":\"%s\"", entry->proxy);
    put_json_field(&line, entry, "host", HEDDLE_FIELD_HOST);
    put_json_field(&line, entry, "user_agent", HEDDLE_FIELD_USER_AGENT);
    put_json_field(&line, entry, "referer", HEDDLE_FIELD_REFERER);
    if (!NIL_P(entry->id)) {
        heddle_log_put_text(&line, ",\"request_id\":");
        put_json(&line, RSTRING_PTR(entry->id),
                 heddle_least((size_t)RSTRING_LEN(entry->id), HEDDLE_LOG_REQUEST_ID));
    }
    if (!NIL_P(entry->remark)) {
        heddle_log_put_text(&line, ",\"remark\":");
        put_json(&line, RSTRING_PTR(entry->remark), heddle_least((size_t)RSTRING_LEN(entry->remark), 64));
    }
    if (exchange->account)
        put_account(&line, entry);
    heddle_log_put_text(&line, "}\n");
    return heddle_log_finish_line(&line);
}
