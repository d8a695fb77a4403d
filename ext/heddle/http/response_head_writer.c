#include "http/response_head_writer.h"
#include "http/field_value.h"
#include "http/text.h"
#include "selector/assert.h"

#define PUT(out, text) put_bytes(out, text, sizeof(text) - 1)

static inline void put_bytes(heddle_buffer *out, const char *bytes, size_t size)
{
    size_t used = out->used;
    if (used <= out->room && size <= out->room - used)
        memcpy(out->bytes + used, bytes, size);
    out->used = used + size;
}

/* Writes a number in decimal digits, so that it ends before `end`. Returns the number of digits. */
static size_t write_digits(char *end, int64_t number)
{
    char *at = end;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    return (size_t)(end - at);
}

/* -- names (RFC 9110, 5.1 and 5.6.2) ----------------------------------------------------------------------------- */

/* The lower case of each byte that is allowed in a token; 0 for other bytes. */
static const char token_bytes[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, '!', 0, '#', '$', '%', '&', '\'', 0, 0, '*', '+', 0, '-', '.', 0,
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 0, 0, 0, 0, 0, 0,
    0, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
    'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 0, 0, 0, '^', '_',
    '`', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
    'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 0, '|', 0, '~', 0,
};

/* Returns false if the name is empty or not a token. */
static bool copy_lower_token(char *lower, const char *name, size_t size)
{
    bool good = size > 0;
    for (size_t i = 0; i < size; i++) {
        char byte = token_bytes[(unsigned char)name[i]];
        lower[i] = byte;
        good &= byte != 0;
    }
    return good;
}

/* -- fields that the server evaluates ---------------------------------------------------------------------------- */

static heddle_field_result take_length(heddle_head_writer *head, const char *value, size_t size)
{
    int64_t length = 0;
    if (size == 0)
        return HEDDLE_BAD_LENGTH;
    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9' || __builtin_mul_overflow(length, 10, &length) ||
            __builtin_add_overflow(length, value[i] - '0', &length))
            return HEDDLE_BAD_LENGTH;
    }
    if (head->declared_length >= 0 && head->declared_length != length)
        return HEDDLE_BAD_LENGTH;
    head->declared_length = length;
    return HEDDLE_FIELD_TAKEN;
}

/*
 * The application's Transfer-Encoding is only evaluated: put_framing writes the field. `identity` means no coding. An
 * empty value is invalid.
 */
static heddle_field_result take_coding(heddle_head_writer *head, const char *value, size_t size)
{
    const char *at = value, *end = value + size;
    const char *coding = heddle_value_is_forbidden(value, size) ? NULL : heddle_next_element(&at, end, &size);
    if (!coding)
        return HEDDLE_BAD_CODING;
    bool chunked = heddle_is_word(coding, size, "chunked");
    if (!chunked && !heddle_is_word(coding, size, "identity"))
        return HEDDLE_BAD_CODING;
    if (heddle_next_element(&at, end, &size) || (chunked && head->declared_chunked))
        return HEDDLE_BAD_CODING;
    head->declared_chunked |= chunked;
    return HEDDLE_FIELD_TAKEN;
}

/* Evaluates only `close`. put_connection writes the option `upgrade` if the response has the field Upgrade. */
static heddle_field_result take_connection(heddle_head_writer *head, const char *value, size_t size)
{
    if (heddle_value_is_forbidden(value, size))
        return HEDDLE_BAD_VALUE;
    const char *at = value, *end = value + size, *option;
    while ((option = heddle_next_element(&at, end, &size)))
        head->declared_close |= heddle_is_word(option, size, "close");
    return HEDDLE_FIELD_TAKEN;
}

/* How the server treats a field. */
typedef enum {
    PLAIN,
    DATE,
    UPGRADE,
    LENGTH,
    CODING,
    CONNECTION,
    IGNORED,
} treatment;

enum { LONGEST_SPECIAL_NAME = sizeof("transfer-encoding") - 1 };

#define IS(word) (memcmp(name, word, sizeof(word) - 1) == 0)

/* `name` is in lower case. */
static treatment classify_field(const char *name, size_t size)
{
    switch (size) {
    case 4:
        return IS("date") ? DATE : PLAIN;
    case 6:
        return IS("status") ? IGNORED : PLAIN;
    case 7:
        return IS("upgrade") ? UPGRADE : PLAIN;
    case 10:
        return IS("connection") ? CONNECTION : IS("keep-alive") ? IGNORED : PLAIN;
    case 14:
        return IS("content-length") ? LENGTH : PLAIN;
    case 16:
        return IS("proxy-connection") ? IGNORED : PLAIN;
    case 17:
        return IS("transfer-encoding") ? CODING : PLAIN;
    default:
        return PLAIN;
    }
}

/* Is the field for the server only (the Rack specification, "The Headers")? */
static bool is_internal(const char *name, size_t size)
{
    return size >= 5 && IS("rack.");
}

static bool take_internal(heddle_head_writer *head, const char *name, size_t size)
{
    bool internal = is_internal(name, size);
    head->has_internal |= internal;
    return internal;
}

/* -- the head ---------------------------------------------------------------------------------------------------- */

void heddle_head_writer_begin(heddle_head_writer *head, heddle_buffer *out)
{
    HEDDLE_ASSERT(head->status >= 100 && head->status <= 999);
    head->declared_length = -1;
    head->declared_close = head->declared_chunked = head->declared_upgrade = head->declared_date = false;
    head->has_internal = false;
    if (head->form == HEDDLE_AS_FIELDS)
        return;
    char room[HEDDLE_STATUS_LINE_ROOM];
    size_t size;
    const char *line = heddle_status_line(head->status, &size, room);
    put_bytes(out, line, size);
}

static inline void put_packed(heddle_buffer *out, const char *name, size_t name_size, const char *value,
                              size_t value_size)
{
    heddle_packed_field packed = {(uint32_t)name_size, (uint32_t)value_size};
    put_bytes(out, (const char *)&packed, sizeof(packed));
    put_bytes(out, name, name_size);
    put_bytes(out, value, value_size);
}

static inline heddle_field_result write_field(const heddle_head_writer *head, heddle_buffer *out, const char *name,
                                              size_t name_size, const char *value, size_t value_size)
{
    if (heddle_value_is_forbidden(value, value_size))
        return HEDDLE_BAD_VALUE;
    if (head->form == HEDDLE_AS_FIELDS) {
        put_packed(out, name, name_size, value, value_size);
        return HEDDLE_FIELD_WRITTEN;
    }
    size_t used = out->used, size = name_size + value_size + 4;
    if (used <= out->room && size <= out->room - used) {
        char *at = out->bytes + used;
        memcpy(at, name, name_size);
        at += name_size;
        memcpy(at, ": ", 2);
        memcpy(at + 2, value, value_size);
        memcpy(at + 2 + value_size, "\r\n", 2);
    }
    out->used = used + size;
    return HEDDLE_FIELD_WRITTEN;
}

static heddle_field_result write_short_field(heddle_head_writer *head, heddle_buffer *out, const char *name,
                                             size_t name_size, const char *value, size_t value_size)
{
    heddle_field_result result;
    switch (classify_field(name, name_size)) {
    case LENGTH:
        return take_length(head, value, value_size);
    case CODING:
        return take_coding(head, value, value_size);
    case CONNECTION:
        return take_connection(head, value, value_size);
    case IGNORED:
        return HEDDLE_FIELD_TAKEN;
    case DATE:
        result = write_field(head, out, name, name_size, value, value_size);
        head->declared_date |= result == HEDDLE_FIELD_WRITTEN;
        return result;
    case UPGRADE:
        result = write_field(head, out, name, name_size, value, value_size);
        head->declared_upgrade |= result == HEDDLE_FIELD_WRITTEN;
        return result;
    default:
        return write_field(head, out, name, name_size, value, value_size);
    }
}

heddle_field_result heddle_head_writer_field(heddle_head_writer *head, heddle_buffer *out, const char *name,
                                             size_t name_size, const char *value, size_t value_size)
{
    if (take_internal(head, name, name_size))
        return HEDDLE_FIELD_TAKEN;
    if (name_size <= LONGEST_SPECIAL_NAME) {
        char lowered[LONGEST_SPECIAL_NAME];
        if (!copy_lower_token(lowered, name, name_size))
            return HEDDLE_BAD_NAME;
        return write_short_field(head, out, lowered, name_size, value, value_size);
    }
    if (!heddle_is_token(name, name_size))
        return HEDDLE_BAD_NAME;
    size_t start = out->used + (head->form == HEDDLE_AS_FIELDS ? sizeof(heddle_packed_field) : 0);
    heddle_field_result result = write_field(head, out, name, name_size, value, value_size);
    if (result == HEDDLE_FIELD_WRITTEN && out->used <= out->room)
        copy_lower_token(out->bytes + start, name, name_size);
    return result;
}

heddle_field_result heddle_head_writer_plain_field(heddle_head_writer *head, heddle_buffer *out, const char *name,
                                              size_t name_size, const char *value, size_t value_size)
{
    return write_field(head, out, name, name_size, value, value_size);
}

bool heddle_head_writer_plain_name(const char *name, size_t name_size)
{
    if (is_internal(name, name_size))
        return false;
    if (name_size > LONGEST_SPECIAL_NAME)
        return heddle_is_token(name, name_size);
    char lowered[LONGEST_SPECIAL_NAME];
    return copy_lower_token(lowered, name, name_size) && classify_field(lowered, name_size) == PLAIN;
}

bool heddle_head_writer_ignore(heddle_head_writer *head, const char *name, size_t name_size)
{
    if (take_internal(head, name, name_size))
        return true;
    char lowered[LONGEST_SPECIAL_NAME];
    return name_size <= LONGEST_SPECIAL_NAME && copy_lower_token(lowered, name, name_size) &&
           classify_field(lowered, name_size) == IGNORED;
}

/* Does a response with this status never have content (RFC 9110, 6.4.1)? */
static bool is_bodiless(int status)
{
    return status == 204 || status == 304 || status < 200;
}

static heddle_framing framing_of(const heddle_head_writer *head, int64_t length)
{
    bool begins_tunnel = head->request == HEDDLE_CONNECT && head->status < 300; /* RFC 9110, 9.3.6 */
    if (head->status == 101 || begins_tunnel)
        return HEDDLE_CONTENT_RAW;
    if (head->request == HEDDLE_HEAD || head->status == 205 || is_bodiless(head->status))
        return HEDDLE_NO_CONTENT;
    if (length >= 0 && !head->declared_chunked)
        return HEDDLE_CONTENT_BY_LENGTH;
    return head->minor == 1 && !head->until_close ? HEDDLE_CONTENT_CHUNKED : HEDDLE_CONTENT_UNTIL_CLOSE;
}

static void put_length(const heddle_head_writer *head, heddle_buffer *out, int64_t length)
{
    char room[20], *end = room + sizeof(room);
    size_t size = write_digits(end, length);
    if (head->form == HEDDLE_AS_FIELDS) {
        put_packed(out, "content-length", sizeof("content-length") - 1, end - size, size);
        return;
    }
    PUT(out, "content-length: ");
    put_bytes(out, end - size, size);
    PUT(out, "\r\n");
}

/* Writes Content-Length or Transfer-Encoding (RFC 9112, 6.1 and 6.2; RFC 9110, 8.6 and 15.3.6). */
static void put_framing(heddle_head_writer *head, heddle_buffer *out)
{
    int64_t length = head->length >= 0 ? head->length : head->declared_length;
    head->framing = framing_of(head, length);
    head->length = -1;
    switch (head->framing) {
    case HEDDLE_CONTENT_BY_LENGTH:
        head->length = length;
        put_length(head, out, length);
        break;
    case HEDDLE_CONTENT_CHUNKED:
        if (head->form == HEDDLE_AS_LINES)
            PUT(out, "transfer-encoding: chunked\r\n");
        break;
    case HEDDLE_CONTENT_UNTIL_CLOSE:
        /*
         * Over HTTP/1.1 this framing is only used with until_close. Then the application itself encodes what it writes
         * to the socket, so its transfer-encoding is sent.
         */
        if (head->declared_chunked && head->minor == 1 && head->form == HEDDLE_AS_LINES)
            PUT(out, "transfer-encoding: chunked\r\n");
        break;
    case HEDDLE_NO_CONTENT:
        /*
         * A response to HEAD has the content-length of the response to GET. Of the statuses without content, only 205
         * has a content-length.
         */
        head->length = 0;
        if (head->status == 205)
            put_length(head, out, 0);
        else if (length >= 0 && !is_bodiless(head->status) && !head->declared_chunked)
            put_length(head, out, length);
        break;
    case HEDDLE_CONTENT_RAW:
        break;
    }
}

/* Writes Connection (RFC 9112, 9.3 and 9.6; RFC 9110, 7.8). */
static void put_connection(const heddle_head_writer *head, heddle_buffer *out)
{
    if (head->status == 101 || head->declared_upgrade)
        PUT(out, "connection: upgrade\r\n");
    if (head->framing == HEDDLE_CONTENT_RAW)
        return;
    if (!head->keep_alive)
        PUT(out, "connection: close\r\n");
    else if (head->minor == 0)
        PUT(out, "connection: keep-alive\r\n");
}

static void put_date(const heddle_head_writer *head, heddle_buffer *out, const char *line, size_t size)
{
    enum { NAME = sizeof("date") - 1, AROUND = sizeof("date: \r\n") - 1 };
    if (head->form == HEDDLE_AS_LINES)
        put_bytes(out, line, size);
    else if (size > AROUND)
        put_packed(out, line, NAME, line + NAME + 2, size - AROUND);
}

void heddle_head_writer_end(heddle_head_writer *head, heddle_buffer *out, const char *date, size_t date_size,
                       const char *protocol, size_t protocol_size)
{
    if (!head->declared_date)
        put_date(head, out, date, date_size);
    if (protocol_size && !head->declared_upgrade)
        write_short_field(head, out, "upgrade", sizeof("upgrade") - 1, protocol, protocol_size);
    put_framing(head, out);
    if (head->declared_close || head->until_close || head->framing == HEDDLE_CONTENT_UNTIL_CLOSE ||
        head->framing == HEDDLE_CONTENT_RAW)
        head->keep_alive = false;
    if (head->form == HEDDLE_AS_FIELDS)
        return;
    put_connection(head, out);
    PUT(out, "\r\n");
}

/* -- chunks and rejections ----------------------------------------------------------------------------------------- */

size_t heddle_chunk_head(char *out, size_t size)
{
    int digits = 1;
    while (digits < 16 && (uint64_t)size >> (4 * digits))
        digits++;
    for (int i = digits - 1; i >= 0; i--) {
        out[i] = "0123456789abcdef"[size & 15];
        size >>= 4;
    }
    memcpy(out + digits, "\r\n", 2);
    return (size_t)digits + 2;
}

size_t heddle_rejection_text(const heddle_rejection *rejection, char *text)
{
    const char *phrase = heddle_status_phrase(rejection->status);
    int size = snprintf(text, HEDDLE_REJECTION_ROOM, "%d %s: %s.\n", rejection->status, *phrase ? phrase : "Error",
                        rejection->reason);
    HEDDLE_ASSERT(size > 0 && size < HEDDLE_REJECTION_ROOM);
    return (size_t)size;
}

void heddle_rejection_write(const heddle_rejection *rejection, heddle_buffer *out, const char *date, size_t date_size,
                             bool content, const char *retry_after)
{
    heddle_head_writer head = {.status = rejection->status};
    char text[HEDDLE_REJECTION_ROOM];
    size_t size = heddle_rejection_text(rejection, text);
    heddle_head_writer_begin(&head, out);
    put_bytes(out, date, date_size);
    PUT(out, "content-type: " HEDDLE_REJECTION_TYPE "\r\n");
    put_length(&head, out, (int64_t)size);
    if (retry_after) {
        PUT(out, "retry-after: ");
        put_bytes(out, retry_after, strlen(retry_after));
        PUT(out, "\r\n");
    }
    PUT(out, "connection: close\r\n\r\n");
    if (content)
        put_bytes(out, text, size);
}
