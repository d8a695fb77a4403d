/* Responses over HTTP/2: heads, from heads as they are written for HTTP/1.1, and content that is complete. */

#include "http/h2_server.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_FIELDS = 1024,
    COPIED = 16384, /* bytes of a string: a longer one is lent */
};

/* The head's lines as fields; the number of them, or -1: too many. */
static int split_lines(const char *at, const char *end, heddle_h2_field *fields)
{
    int count = 0;
    for (const char *line_end; at < end && *at != '\r'; at = line_end + 2) {
        line_end = memchr(at, '\r', (size_t)(end - at));
        const char *colon = memchr(at, ':', (size_t)(line_end - at));
        if (count == MOST_FIELDS)
            return -1;
        fields[count++] = (heddle_h2_field){at, colon + 1, (uint32_t)(colon - at), (uint32_t)(line_end - colon - 1)};
    }
    return count;
}

static heddle_h2_write_result send_head(heddle_h2_session *session, heddle_h2_stream *stream, const char *bytes,
                                        size_t size, bool end)
{
    heddle_h2_field fields[MOST_FIELDS];
    const char *line_end = memchr(bytes, '\r', size);
    int status = atoi(bytes + sizeof("HTTP/1.1"));
    int count = split_lines(line_end + 2, bytes + size, fields);
    if (count < 0)
        return HEDDLE_H2_MISPLACED;
    return heddle_h2_write_head(session, stream, status, fields, (size_t)count, end);
}

heddle_h2_write_result heddle_h2_send_head(heddle_h2_carrier *carrier, const char *bytes, size_t size, bool end)
{
    return send_head(carrier->server->session, carrier->stream, bytes, size, end);
}

void heddle_h2_send_rejection(heddle_h2_server *server, heddle_h2_stream *stream, const heddle_rejection *rejection,
                              bool content, const char *more_fields)
{
    char bytes[1024];
    heddle_buffer answer = {.bytes = bytes, .room = sizeof(bytes)};
    heddle_rejection_answer(rejection, &answer, heddle_engine_date(heddle_engine_of_connection(server->connection)),
                            HEDDLE_DATE_LINE, content, more_fields);
    const char *body = memmem(bytes, answer.used, "\r\n\r\n", 4);
    if (answer.used > answer.room || !body)
        return;
    body += 4;
    size_t size = (size_t)(bytes + answer.used - body);
    send_head(server->session, stream, bytes, (size_t)(body - bytes), size == 0);
    heddle_h2_write(server->session, stream, body, size);
    if (size > 0)
        heddle_h2_finish(server->session, stream, NULL, 0);
}

/* -- content ------------------------------------------------------------------------------------------------------- */

/* A String whose bytes the session sends. */
typedef struct {
    heddle_link link; /* among those of its engine */
    VALUE string;     /* frozen, marked and pinned by the engine */
} string_loan;

static void end_loan(void *data)
{
    string_loan *loan = data;
    heddle_link_remove(&loan->link);
    free(loan);
}

void heddle_h2_mark_loans(const heddle_engine *engine)
{
    const heddle_link *head = &engine->h2_loans;
    for (heddle_link *link = heddle_link_first(head); link; link = heddle_link_after(head, link))
        rb_gc_mark(HEDDLE_CONTAINER_OF(link, string_loan, link)->string);
}

static bool lend_string(heddle_h2_carrier *carrier, VALUE string)
{
    string_loan *loan = malloc(sizeof(*loan));
    if (!loan)
        return false;
    *loan = (string_loan){.string = string};
    heddle_link_push_first(&heddle_engine_of_connection(carrier->server->connection)->h2_loans, &loan->link);
    if (heddle_h2_lend_until(carrier->server->session, carrier->stream, RSTRING_PTR(string), (size_t)RSTRING_LEN(string),
                             end_loan, loan))
        return true;
    end_loan(loan);
    return false;
}

bool heddle_h2_send_string(heddle_h2_carrier *carrier, VALUE string)
{
    heddle_h2_session *session = carrier->server->session;
    size_t size = (size_t)RSTRING_LEN(string);
    if (size == 0)
        return true;
    if (size <= COPIED && heddle_h2_room(session, carrier->stream) >= size)
        return heddle_h2_write(session, carrier->stream, RSTRING_PTR(string), size) == size;
    string = rb_str_new_frozen(string);
    bool lent = lend_string(carrier, string);
    RB_GC_GUARD(string);
    return lent;
}
