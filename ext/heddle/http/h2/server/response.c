/* Sends responses over HTTP/2: heads, rejections, and content that is complete. */

#include "http/h2/server/server.h"

enum {
    MOST_FIELDS = 1024,
    COPIED = 16384, /* bytes of the longest string that is copied if there is room; others are sent without a copy */
};

/* Unpacks fields. Returns their number, or -1 if there are too many or they are not packed as heddle_packed_field. */
static int unpack_fields(const char *at, const char *end, heddle_h2_field *fields)
{
    int count = 0;
    while (at < end) {
        heddle_packed_field size;
        if (count == MOST_FIELDS || (size_t)(end - at) < sizeof(size))
            return -1;
        memcpy(&size, at, sizeof(size));
        at += sizeof(size);
        if ((uint64_t)size.name_size + size.value_size > (uint64_t)(end - at))
            return -1;
        const char *value = at + size.name_size;
        fields[count++] = (heddle_h2_field){at, value, size.name_size, size.value_size};
        at = value + size.value_size;
    }
    return count;
}

heddle_h2_write_result heddle_h2_send_head(heddle_h2_carrier *carrier, int status, const char *bytes, size_t size,
                                           bool end)
{
    heddle_h2_field fields[MOST_FIELDS];
    int count = unpack_fields(bytes, bytes + size, fields);
    if (count < 0)
        return HEDDLE_H2_MISPLACED;
    return heddle_h2_write_head(carrier->server->session, carrier->stream, status, fields, (size_t)count, end);
}

heddle_h2_write_result heddle_h2_hold_head(heddle_h2_carrier *carrier, int status, const char *bytes, size_t size)
{
    heddle_h2_field fields[MOST_FIELDS];
    int count = carrier->held ? -1 : unpack_fields(bytes, bytes + size, fields);
    heddle_h2_write_result result =
        count < 0 ? HEDDLE_H2_MISPLACED : heddle_h2_check_fields(fields, (size_t)count);
    if (result != HEDDLE_H2_WRITTEN)
        return result;
    carrier->held = malloc(sizeof(*carrier->held) + size);
    if (!carrier->held)
        return HEDDLE_H2_GONE;
    *carrier->held = (heddle_h2_held_head){.status = status, .size = size};
    memcpy(carrier->held->bytes, bytes, size);
    carrier->server->held_count++;
    heddle_connection_flush_later(carrier->server->connection);
    return HEDDLE_H2_WRITTEN;
}

bool heddle_h2_drop_head(heddle_h2_carrier *carrier)
{
    if (!carrier->held)
        return false;
    free(carrier->held);
    carrier->held = NULL;
    carrier->server->held_count--;
    return true;
}

void heddle_h2_release_head(heddle_h2_carrier *carrier)
{
    const heddle_h2_held_head *held = carrier->held;
    if (!held)
        return;
    if (!carrier->gone &&
        heddle_h2_send_head(carrier, held->status, held->bytes, held->size, false) != HEDDLE_H2_WRITTEN)
        heddle_h2_reset_exchange(carrier);
    heddle_h2_drop_head(carrier);
}

void heddle_h2_release_heads(heddle_h2_server *server)
{
    for (heddle_h2_carrier *carrier = heddle_h2_first_carrier(server); carrier && server->held_count;
         carrier = heddle_h2_next_carrier(carrier))
        heddle_h2_release_head(carrier);
}

static heddle_h2_field make_field(const char *name, const char *value, size_t value_size)
{
    return (heddle_h2_field){name, value, (uint32_t)strlen(name), (uint32_t)value_size};
}

void heddle_h2_send_rejection(heddle_h2_server *server, heddle_h2_stream *stream, const heddle_rejection *rejection,
                              bool content, const char *retry_after)
{
    enum { DATE = sizeof("date: ") - 1, DATE_SIZE = HEDDLE_DATE_LINE - sizeof("date: \r\n") + 1 };
    char text[HEDDLE_REJECTION_ROOM], length[24];
    size_t size = heddle_rejection_text(rejection, text);
    const char *date = heddle_engine_date(heddle_engine_of_connection(server->connection));
    const heddle_h2_field fields[] = {
        make_field("date", date + DATE, DATE_SIZE),
        make_field("content-type", HEDDLE_REJECTION_TYPE, sizeof(HEDDLE_REJECTION_TYPE) - 1),
        make_field("content-length", length, (size_t)snprintf(length, sizeof(length), "%zu", size)),
        make_field("retry-after", retry_after, retry_after ? strlen(retry_after) : 0),
    };
    heddle_h2_write_head(server->session, stream, rejection->status, fields, retry_after ? 4 : 3, !content);
    if (!content)
        return;
    heddle_h2_write(server->session, stream, text, size);
    heddle_h2_finish(server->session, stream);
}

/* -- content ------------------------------------------------------------------------------------------------------- */

/*
 * A loan: a String that the session sends without a copy. The session calls end_loan when it no longer needs the
 * String.
 */
typedef struct {
    heddle_link link; /* in the engine's list of loans */
    heddle_engine *engine;
    heddle_h2_server *server;
    size_t size;
    VALUE string;     /* frozen, marked and pinned by the engine */
} string_loan;

static void end_loan(void *data)
{
    string_loan *loan = data;
    loan->engine->h2->lent -= loan->size;
    loan->server->lent -= loan->size;
    heddle_link_remove(&loan->link);
    free(loan);
}

void heddle_h2_mark_loans(const heddle_engine *engine)
{
    if (!engine->h2)
        return;
    const heddle_link *head = &engine->h2->loans;
    for (heddle_link *link = heddle_link_first(head); link; link = heddle_link_after(head, link))
        rb_gc_mark(HEDDLE_CONTAINER_OF(link, string_loan, link)->string);
}

static bool lend_string(heddle_h2_carrier *carrier, VALUE string)
{
    heddle_h2_server *server = carrier->server;
    heddle_engine *engine = heddle_engine_of_connection(server->connection);
    size_t size = (size_t)RSTRING_LEN(string);
    string_loan *loan = malloc(sizeof(*loan));
    if (!loan)
        return false;
    *loan = (string_loan){.engine = engine, .server = server, .size = size, .string = string};
    heddle_link_push_first(&engine->h2->loans, &loan->link);
    engine->h2->lent += size;
    server->lent += size;
    if (heddle_h2_lend(server->session, carrier->stream, RSTRING_PTR(string), size, end_loan, loan))
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
