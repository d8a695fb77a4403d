/* Parses the head of a request over HTTP/1.1 (RFC 9112). */

#include "http/authority.h"
#include "http/h1/head.h"
#include "http/h1/line_errors.h"
#include "http/method.h"
#include "http/request_limits.h"
#include "http/target.h"
#include "http/text.h"

enum {
    URI_TOO_LONG = 414,
    NOT_IMPLEMENTED = 501,
};

/* -- the request line (RFC 9112, 3) ------------------------------------------------------------------------------- */

enum {
    INCOMPLETE = 0,
    MALFORMED = -1,
};

/* Reads "HTTP/1.1" and the line's end. Returns their size in bytes, INCOMPLETE or MALFORMED. */
static int read_version(heddle_request_head *head, const char *at, const char *end)
{
    static const char expected[] = "HTTP/1.";
    enum { DIGIT_AT = sizeof(expected) - 1, SIZE = DIGIT_AT + 3 };
    size_t size = heddle_least((size_t)(end - at), SIZE);
    if (memcmp(at, expected, heddle_least(size, DIGIT_AT)) != 0) {
        /*
         * A line with another major version, such as HTTP/2.0, is rejected with another status than a line without a
         * version. Only the complete line shows which of the two it is.
         */
        for (size_t i = 0; i < size; i++) {
            bool fits = i == 5 || i == DIGIT_AT ? heddle_is(at[i], HEDDLE_DIGIT)
                        : i < DIGIT_AT          ? at[i] == expected[i]
                                                : at[i] == (i == DIGIT_AT + 1 ? '\r' : '\n');
            if (!fits)
                return MALFORMED;
        }
        return size < SIZE ? INCOMPLETE : MALFORMED;
    }
    if (size > DIGIT_AT && !heddle_is(at[DIGIT_AT], HEDDLE_DIGIT))
        return MALFORMED;
    if (size > DIGIT_AT + 1 && at[DIGIT_AT + 1] != '\r')
        return MALFORMED;
    if (size < SIZE)
        return INCOMPLETE;
    head->minor = at[DIGIT_AT] != '0';
    return at[DIGIT_AT + 2] == '\n' ? SIZE : MALFORMED;
}

/* Reads the request line. Returns the offset at which the field lines start, INCOMPLETE or MALFORMED. */
static int64_t read_request_line(heddle_request_head *head, const char *bytes, uint32_t start, uint32_t end)
{
    const char *method = bytes + start, *stop = bytes + end;
    const char *at = heddle_find_token_end(method, stop);
    if (at == stop)
        return INCOMPLETE;
    if (at == method || *at != ' ')
        return at == method && *at == '\r' && stop - at == 1 ? INCOMPLETE : MALFORMED;
    head->method = (heddle_slice){start, (uint32_t)(at - method)};
    head->method_id = heddle_method_find(method, head->method.size);

    const char *target = ++at;
    at = heddle_find_target_end(target, stop);
    if (at == stop)
        return INCOMPLETE;
    if (at == target || *at != ' ')
        return MALFORMED;
    head->target = (heddle_slice){(uint32_t)(target - bytes), (uint32_t)(at - target)};

    int size = read_version(head, ++at, stop);
    return size > 0 ? at + size - bytes : size;
}

/*
 * Rejects a request line that exceeds the limit: with 501 if the method alone fills the limit, else with 414, because
 * the target is too long (RFC 9112, 3).
 */
static int reject_long_line(heddle_rejection *rejection, const char *line, size_t limit)
{
    if (!memchr(line, ' ', limit))
        return heddle_reject(rejection, NOT_IMPLEMENTED, "the method is too long");
    return heddle_reject(rejection, URI_TOO_LONG, "the request line is longer than %zu bytes", limit);
}

/* -- the meaning of the head -------------------------------------------------------------------------------------- */

static int reject_host(heddle_rejection *rejection)
{
    return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the Host header is not host[:port]");
}

static int judge_host(heddle_request_head *head, const char *bytes, const heddle_control_fields *controls,
                      heddle_rejection *rejection)
{
    if (!controls->has_host)
        return head->minor == 0 ? 0 : heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the request has no Host header");
    if (!head->has_host) { /* an http URI must have a host (RFC 9110, 4.2.1) */
        bool valid = heddle_target_authority(head, bytes, controls->host) && (head->host.size > 0 || head->minor == 0);
        return valid ? 0 : reject_host(rejection);
    }
    /* The host of an absolute target replaces the Host header (RFC 9112, 3.2.2), which must still be valid. */
    heddle_authority unused;
    const char *host = bytes + controls->host.start;
    return heddle_authority_split(&unused, host, controls->host.size) ? 0 : reject_host(rejection);
}

static int judge_body(heddle_request_head *head, const char *bytes, const heddle_control_fields *controls,
                      heddle_rejection *rejection)
{
    head->content_length = HEDDLE_NO_BODY;
    if (controls->transfer_encoding.present) {
        if (head->minor == 0)
            return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "HTTP/1.0 does not allow Transfer-Encoding");
        if (heddle_transfer_encoding_check(&controls->transfer_encoding, HEDDLE_BAD_REQUEST, NOT_IMPLEMENTED,
                                           rejection) < 0)
            return -1;
        if (controls->content_length.present)
            return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the request has Content-Length and Transfer-Encoding");
        head->content_length = HEDDLE_CHUNKED_BODY;
    } else if (controls->content_length.present) {
        int64_t length = heddle_content_length_read(&controls->content_length, bytes);
        if (length < 0)
            return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the Content-Length is not a number");
        head->content_length = length;
    }
    return 0;
}

static int judge_head(heddle_request_head *head, const char *bytes, const heddle_control_fields *controls,
                 const heddle_http_limits *limits, heddle_rejection *rejection)
{
    if (controls->second_host)
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the request has two Host headers");
    if (controls->content_length.differs)
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the request has two different Content-Length headers");
    if (judge_host(head, bytes, controls, rejection) < 0 ||
        judge_body(head, bytes, controls, rejection) < 0 ||
        heddle_judge_request(head->content_length, limits->body, controls->more_expected, rejection) < 0)
        return -1;
    head->expects_continue = controls->continue_expected && head->minor > 0;
    head->keep_alive = heddle_control_fields_keep_alive(controls, head->minor);
    head->upgrade = controls->upgrade_offered && controls->upgrade_named && head->minor > 0;
    return 0;
}

/* -- the head ----------------------------------------------------------------------------------------------------- */

static const heddle_head_statuses statuses = {HEDDLE_BAD_REQUEST, HEDDLE_HEAD_TOO_LARGE, "request"};

static heddle_field_lines start_lines(const heddle_request_head *head, const char *bytes,
                                    const heddle_http_limits *limits)
{
    return (heddle_field_lines){.bytes = bytes, .fields = head->fields, .room = head->field_room,
                                .keep_underscores = limits->keep_underscores};
}

/*
 * Reads the head from left to right, and rejects it at the first error. So the result does not depend on the pieces in
 * which the bytes arrive. Rules that concern several fields at once are checked at the end.
 */
static int read_head(heddle_request_head *head, const char *bytes, uint32_t start, size_t size,
                     const heddle_http_limits *limits, heddle_rejection *rejection)
{
    size_t line_limit = heddle_line_limit(limits);
    uint32_t line_stop = (uint32_t)heddle_least(size, start + line_limit + 2);
    *head = (heddle_request_head){.fields = head->fields, .field_room = head->field_room};
    int64_t lines_start = read_request_line(head, bytes, start, line_stop);
    if (lines_start == MALFORMED)
        return heddle_reject_request_line(rejection, bytes + start, bytes + line_stop);
    if (lines_start == INCOMPLETE)
        return line_stop < start + line_limit + 2 ? 0 : reject_long_line(rejection, bytes + start, line_limit);
    if (heddle_target_split(head, bytes, rejection) < 0)
        return -1;

    heddle_field_lines lines = start_lines(head, bytes, limits);
    int64_t head_end = heddle_head_read_fields(&lines, (uint32_t)lines_start, size, limits, &statuses, rejection);
    if (head_end <= 0)
        return (int)head_end;
    head->size = (uint32_t)head_end;
    head->field_bytes = (uint32_t)(head_end - lines_start);
    head->line_count = (uint16_t)lines.line_count;
    head->dropped = lines.line_count != lines.field_count;
    head->field_count = (uint16_t)lines.field_count;
    return judge_head(head, bytes, &lines.controls, limits, rejection) < 0 ? -1 : (int)head_end;
}

int heddle_request_head_parse(heddle_request_head *head, const char *bytes, size_t size, size_t seen,
                              const heddle_http_limits *limits, heddle_rejection *rejection)
{
    uint32_t start = 0;
    if (size > 0 && *bytes == '\r') { /* one empty line before a request is ignored (RFC 9112, 2.2) */
        if (size == 1)
            return 0;
        if (bytes[1] == '\n')
            start = 2;
    }
    if (seen > size)
        seen = size;
    if (seen > start && !heddle_head_needs_reading(start_lines(head, bytes, limits), start, size, seen, limits))
        return 0;
    return read_head(head, bytes, start, size, limits, rejection);
}
