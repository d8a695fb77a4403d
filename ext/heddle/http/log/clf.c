/* Lines of the access log in Apache's formats: common, and combined. */

#include "http/log/access_log.h"

enum { CLF_GROWTH = 4 }; /* the size of an escaped byte: \xhh */

/*
 * Writes a backslash before quotes and backslashes, and \xhh for bytes that are not printable. Apache does the same,
 * except that it writes \n, \t and the like for some control characters.
 */
static void put_clf(heddle_log_line *line, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)bytes[i];
        if (byte == '"' || byte == '\\')
            heddle_log_put_text(line, "\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
            heddle_log_put_text(line, "\\x%02x", byte);
        else
            heddle_log_put_bytes(line, bytes + i, 1);
    }
}

static void put_clf_field(heddle_log_line *line, const heddle_exchange *exchange, heddle_field_id id)
{
    const heddle_field *field = heddle_log_find_field(exchange, id);
    heddle_log_put_text(line, " \"");
    if (field)
        put_clf(line, exchange->bytes + field->value.start, heddle_least(field->value.size, HEDDLE_LOG_VALUE));
    else
        heddle_log_put_text(line, "-");
    heddle_log_put_text(line, "\"");
}

/* 127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 */
VALUE heddle_log_make_clf(const heddle_log_entry *entry, bool combined)
{
    const heddle_exchange *exchange = entry->exchange;
    heddle_slice method = entry->method, target = entry->target;
    size_t value_size = method.size + target.size + heddle_log_field_size(exchange, HEDDLE_FIELD_USER_AGENT) +
                        heddle_log_field_size(exchange, HEDDLE_FIELD_REFERER);
    heddle_log_line line = heddle_log_start_line(value_size * CLF_GROWTH + HEDDLE_LOG_FIXED);
    heddle_log_put_text(&line, "%s - - [%.40s] \"", entry->remote ? entry->remote : "-", entry->time);
    put_clf(&line, exchange->bytes + method.start, method.size);
    heddle_log_put_text(&line, " ");
    put_clf(&line, exchange->bytes + target.start, target.size);
    heddle_log_put_text(&line, " %s\" ", heddle_log_protocol(exchange));
    if (entry->status)
        heddle_log_put_text(&line, "%d ", entry->status);
    else
        heddle_log_put_text(&line, "- ");
    if (entry->sent)
        heddle_log_put_text(&line, "%llu", (unsigned long long)entry->sent);
    else
        heddle_log_put_text(&line, "-");
    if (combined) {
        put_clf_field(&line, exchange, HEDDLE_FIELD_REFERER);
        put_clf_field(&line, exchange, HEDDLE_FIELD_USER_AGENT);
    }
    heddle_log_put_text(&line, "\n");
    return heddle_log_finish_line(&line);
}
