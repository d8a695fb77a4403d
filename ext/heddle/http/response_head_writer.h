#pragma once

/*
 * Writes heads of responses (RFC 9112, 4 and 6; RFC 9110, 6.4 and 15) into memory that the caller provides. The framing
 * (how the client finds the end of the content) is chosen here, not by the application. Uses no Ruby and does no I/O.
 */

#include "http/message.h"
#include "http/status.h"

/* A buffer for output. Bytes that do not fit are not written, but `used` counts them, and so exceeds `room`. */
typedef struct {
    char *bytes;
    size_t used, room;
} heddle_buffer;

typedef enum {
    HEDDLE_NO_CONTENT,         /* the response has no content: HEAD, 204, 304 … */
    HEDDLE_CONTENT_BY_LENGTH,
    HEDDLE_CONTENT_CHUNKED,
    HEDDLE_CONTENT_UNTIL_CLOSE,
    HEDDLE_CONTENT_RAW,        /* after 101 or CONNECT: the application's own protocol follows */
} heddle_framing;

/* How a head is written. */
typedef enum {
    HEDDLE_AS_LINES,  /* a status line, field lines and an empty line (RFC 9112) */
    HEDDLE_AS_FIELDS, /* for each field a heddle_packed_field, the name and the value; HTTP/2 encodes them */
} heddle_head_form;

typedef struct {
    uint32_t name_size, value_size;
} heddle_packed_field;

/* The properties of a response. The caller sets the members above the first blank line. */
typedef struct {
    heddle_method request;
    heddle_head_form form;
    uint8_t minor;            /* the request's `minor` (message.h): 0 for HTTP/1.0, else 1 */
    int status;               /* 200 to 999, 101 or 103 */
    bool keep_alive;          /* the connection may be kept open */
    bool upgrade;             /* the request has a valid Upgrade, so the status may be 101 */
    bool until_close;         /* content of unknown length ends with the connection */
    int64_t length;           /* the content's length in bytes, if known; -1: declared_length is used */

    int64_t declared_length;      /* the value of the application's content-length, or -1 */
    /* what the application's other fields declare */
    bool declared_close, declared_chunked, declared_upgrade, declared_date;
    bool has_internal; /* the application has set a field for the server only, such as rack.hijack */

    heddle_framing framing;  /* set by heddle_head_writer_end, which also sets `length`; then -1 means unknown */
} heddle_head_writer;

/* Begins a head: writes the status line, if the form has one. */
void heddle_head_writer_begin(heddle_head_writer *head, heddle_buffer *out);

typedef enum {
    HEDDLE_FIELD_WRITTEN,
    HEDDLE_FIELD_TAKEN,      /* evaluated and not written: it concerns the server, the framing or the connection */
    HEDDLE_BAD_NAME,         /* the name is not a token */
    HEDDLE_BAD_VALUE,        /* the value has CR, LF or NUL */
    HEDDLE_BAD_LENGTH,       /* a content-length that is not a number, or differs from an earlier one */
    HEDDLE_BAD_CODING,       /* a transfer-encoding other than chunked or identity */
} heddle_field_result;

/* Writes one value of one field. The name is written in lower case. */
heddle_field_result heddle_head_writer_field(heddle_head_writer *head, heddle_buffer *out, const char *name,
                                             size_t name_size, const char *value, size_t value_size);

/* Writes one value of a plain field (see below). Its name must be in lower case. Checks only the value. */
heddle_field_result heddle_head_writer_plain_field(heddle_head_writer *head, heddle_buffer *out, const char *name,
                                              size_t name_size, const char *value, size_t value_size);

/*
 * Is this the valid name of a plain field? A plain field concerns neither the server, the framing nor the connection,
 * so the server copies it to the head unchanged.
 */
bool heddle_head_writer_plain_name(const char *name, size_t name_size);

/*
 * Returns true if a field with this name is never sent, whatever its value is. Sets has_internal if the field is for
 * the server only.
 */
bool heddle_head_writer_ignore(heddle_head_writer *head, const char *name, size_t name_size);

/*
 * Ends a head: sets `framing` and `keep_alive`. Writes the fields of the framing, and Date unless the application has
 * set it. With HEDDLE_AS_LINES, also writes Connection and the empty line. `date` is the whole line. `protocol` is the
 * value of Upgrade in a response 101, unless the application has set that field.
 */
void heddle_head_writer_end(heddle_head_writer *head, heddle_buffer *out, const char *date, size_t date_size,
                       const char *protocol, size_t protocol_size);

/* Writes the head of a chunk of this size, such as "1a\r\n". Returns the number of bytes, at most 18. */
size_t heddle_chunk_head(char *out, size_t size);

enum { HEDDLE_DATE_LINE = 37 };

/* Writes an IMF-fixdate field line, "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n": HEDDLE_DATE_LINE bytes and a NUL. */
void heddle_date_line(char *out, int64_t seconds);

#define HEDDLE_REJECTION_TYPE "text/plain; charset=utf-8"

enum {
    HEDDLE_REJECTION_ROOM = sizeof(((heddle_rejection *)0)->reason) + 64,
};

/*
 * Writes the content of a rejection's response, one sentence. `text` has HEDDLE_REJECTION_ROOM bytes. Returns the size.
 */
size_t heddle_rejection_text(const heddle_rejection *rejection, char *text);

/*
 * Writes the whole HTTP/1.1 response to a rejected request, with `connection: close`. `content`: false for HEAD.
 * `retry_after`: the value of Retry-After, or NULL.
 */
void heddle_rejection_write(const heddle_rejection *rejection, heddle_buffer *out, const char *date, size_t date_size,
                             bool content, const char *retry_after);
