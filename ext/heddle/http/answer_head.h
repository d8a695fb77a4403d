#ifndef HEDDLE_HTTP_ANSWER_HEAD_H
#define HEDDLE_HTTP_ANSWER_HEAD_H

/*
 * Writes heads of answers (RFC 9112, 4 and 6; RFC 9110, 6.4 and 15) into memory that the caller provides. Framing is
 * decided here, never by the application. No Ruby here, no I/O.
 */

#include "http/message.h"
#include "http/status.h"

/* Bytes that are being put together. Bytes that do not fit are counted and not written: `used` > `room` then. */
typedef struct {
    char *bytes;
    size_t used, room;
} heddle_buffer;

typedef enum {
    HEDDLE_NO_CONTENT,         /* the answer ends with its head: HEAD, 204, 304 … */
    HEDDLE_CONTENT_BY_LENGTH,
    HEDDLE_CONTENT_CHUNKED,
    HEDDLE_CONTENT_UNTIL_CLOSE,
    HEDDLE_CONTENT_RAW,        /* after 101 or CONNECT: the connection is the application's stream */
} heddle_framing;

/* How a head is written. */
typedef enum {
    HEDDLE_AS_LINES,  /* a status line, field lines and an empty line (RFC 9112) */
    HEDDLE_AS_FIELDS, /* names and values, each pair behind a heddle_packed_field: their protocol frames them */
} heddle_head_form;

typedef struct {
    uint32_t name_size, value_size;
} heddle_packed_field;

/* The facts about a response. The first part is set by the caller, fields of the application are added one by one. */
typedef struct {
    heddle_method request;
    heddle_head_form form;
    uint8_t minor;            /* of the request's HTTP/1.x */
    int status;               /* 200 to 999, or 101 */
    bool keep_alive;          /* client and server would go on */
    bool until_close;         /* content of unknown length ends with the connection */
    int64_t length;           /* of the content, where the server knows it; else -1: content-length counts */

    int64_t declared_length;      /* what the application's content-length says, or -1 */
    bool declared_close, declared_chunked, declared_upgrade, declared_date; /* what else its fields say */

    heddle_framing framing;   /* set by heddle_answer_end, and `length` with it: of the content that follows, or -1 */
} heddle_answer;

/* Starts one: the status line, where there are lines. */
void heddle_answer_begin(heddle_answer *answer, heddle_buffer *out);

typedef enum {
    HEDDLE_FIELD_WRITTEN,
    HEDDLE_FIELD_TAKEN,      /* it is about the framing or the connection: noted, not written */
    HEDDLE_BAD_NAME,         /* no token */
    HEDDLE_BAD_VALUE,        /* holds CR, LF or NUL */
    HEDDLE_BAD_LENGTH,       /* a content-length that is no number, or another one than before */
    HEDDLE_BAD_CODING,       /* a transfer-encoding that is not chunked or identity */
} heddle_field_result;

/* One value of one field. The name is written in lower case. */
heddle_field_result heddle_answer_field(heddle_answer *answer, heddle_buffer *out, const char *name, size_t name_size,
                                        const char *value, size_t value_size);

/* A name for which heddle_answer_plain_name was true, in lower case; the value is checked. */
heddle_field_result heddle_answer_known_field(heddle_answer *answer, heddle_buffer *out, const char *name,
                                              size_t name_size, const char *value, size_t value_size);

/* Is it a token, and one that means nothing to the server: not taken, nor `date` or `upgrade`? */
bool heddle_answer_plain_name(const char *name, size_t name_size);

/* Is it one whose value is neither sent nor looked at, whatever it is? */
bool heddle_answer_ignores(const char *name, size_t name_size);

/* Whether it has no CR, LF or NUL (RFC 9110, 5.5). */
bool heddle_answer_value_allowed(const char *value, size_t size);

/*
 * Date unless the application set one, framing, and in lines also connection and the empty line; decides framing and
 * keep_alive. `date`: the whole line. `protocol`: what a 101 upgrades to, unless a field of the application has said it.
 */
void heddle_answer_end(heddle_answer *answer, heddle_buffer *out, const char *date, size_t date_size,
                       const char *protocol, size_t protocol_size);

/* "1a\r\n" before a chunk of this size; at most 18 bytes. How many it was. */
size_t heddle_chunk_head(char *out, size_t size);

/* An IMF-fixdate field line, "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n": 37 bytes and a NUL. */
void heddle_date_line(char *out, int64_t seconds);

#define HEDDLE_REJECTION_TYPE "text/plain; charset=utf-8"

enum {
    HEDDLE_REJECTION_ROOM = sizeof(((heddle_rejection *)0)->reason) + 64,
};

/* The content of a rejection's answer, a sentence for a person, into HEDDLE_REJECTION_ROOM bytes. How many it was. */
size_t heddle_rejection_text(const heddle_rejection *rejection, char *text);

/*
 * The whole answer to what is refused, in lines, with connection: close. `retry_after`: the value of that field; NULL:
 * there is none.
 */
void heddle_rejection_answer(const heddle_rejection *rejection, heddle_buffer *out, const char *date, size_t date_size,
                             bool content, const char *retry_after);

#endif
