/* Parses the head of a response over HTTP/1.1 (RFC 9112). */

#include "http/h1/head.h"
#include "http/text.h"

enum {
    BAD_GATEWAY = 502,

    SWITCHING_PROTOCOLS = 101,
    NO_CONTENT = 204,
    NOT_MODIFIED = 304,

    INCOMPLETE = 0,
    MALFORMED = -1,
};

static const heddle_head_statuses statuses = {BAD_GATEWAY, BAD_GATEWAY, "response"};

/* -- the status line (RFC 9112, 4) -------------------------------------------------------------------------------- */

/*
 * Reads "HTTP/1.1 200 OK" and the line's end. If the reason is empty, the space before it may be missing, too.
 * Returns where the field lines start, INCOMPLETE or MALFORMED.
 */
static int64_t read_status_line(heddle_response_head *head, const char *bytes, uint32_t end)
{
    /* d: a digit; s: a digit from 1 to 9 */
    static const char shape[] = "HTTP/1.d sdd";
    enum { MINOR_AT = 7, STATUS_AT = 9, SHAPE_SIZE = sizeof(shape) - 1 };
    for (uint32_t i = 0; i < SHAPE_SIZE; i++) {
        if (i == end)
            return INCOMPLETE;
        bool digit = shape[i] == 'd' || shape[i] == 's';
        if (digit ? !heddle_is(bytes[i], HEDDLE_DIGIT) : bytes[i] != shape[i])
            return MALFORMED;
        if (shape[i] == 's' && bytes[i] == '0')
            return MALFORMED;
    }
    head->minor = bytes[MINOR_AT] != '0';
    head->status = (bytes[STATUS_AT] - '0') * 100 + (bytes[STATUS_AT + 1] - '0') * 10 + (bytes[STATUS_AT + 2] - '0');
    if (end == SHAPE_SIZE)
        return INCOMPLETE;
    uint32_t reason = SHAPE_SIZE + 1;
    if (bytes[SHAPE_SIZE] == '\r')
        reason = SHAPE_SIZE;
    else if (bytes[SHAPE_SIZE] != ' ')
        return MALFORMED;
    uint32_t stop = (uint32_t)(heddle_find_control(bytes + reason, bytes + end) - bytes);
    if (stop == end || (bytes[stop] == '\r' && end - stop == 1))
        return INCOMPLETE;
    head->reason = (heddle_slice){reason, stop - reason};
    return bytes[stop] == '\r' && bytes[stop + 1] == '\n' ? (int64_t)stop + 2 : MALFORMED;
}

static int reject_status_line(const char *bytes, uint32_t end, heddle_rejection *rejection)
{
    if (end >= 7 && memcmp(bytes, "HTTP/", 5) == 0 && heddle_is(bytes[5], HEDDLE_DIGIT) && bytes[5] != '1') {
        return heddle_reject(rejection, BAD_GATEWAY, "the server speaks HTTP/%c instead of HTTP/1.1 or HTTP/1.0",
                             bytes[5]);
    }
    return heddle_reject(rejection, BAD_GATEWAY, "the status line is not of the form `HTTP/1.1 status reason`");
}

/* -- the meaning of the head -------------------------------------------------------------------------------------- */

/*
 * Parses a list that repeats one number, such as "5, 5" (RFC 9112, 6.3). Returns the number, or -1 if the list is
 * malformed or has different numbers.
 */
static int64_t parse_repeated_length(const char *at, const char *end)
{
    int64_t length = -1;
    size_t size;
    const char *element;
    while ((element = heddle_next_element(&at, end, &size))) {
        int64_t one = heddle_content_length_parse(element, size);
        if (one < 0 || (length >= 0 && one != length))
            return -1;
        length = one;
    }
    return length;
}

static int judge_length(heddle_response_head *head, const char *bytes, const heddle_control_fields *controls,
                        const heddle_http_limits *limits, heddle_rejection *rejection)
{
    if (controls->content_length.differs)
        return heddle_reject(rejection, BAD_GATEWAY, "the response has two different Content-Length headers");
    const char *text = bytes + controls->content_length.value.start;
    int64_t length = parse_repeated_length(text, text + controls->content_length.value.size);
    if (length < 0)
        return heddle_reject(rejection, BAD_GATEWAY, "the Content-Length is not a single number");
    if ((uint64_t)length > limits->body || length == INT64_MAX) {
        return heddle_reject(rejection, BAD_GATEWAY, "the body is larger than %llu bytes",
                             (unsigned long long)limits->body);
    }
    head->content_length = length;
    return 0;
}

/* Determines the length of the content (RFC 9112, 6.3). */
static int judge_content(heddle_response_head *head, heddle_method request, const char *bytes,
                         const heddle_control_fields *controls, const heddle_http_limits *limits,
                         heddle_rejection *rejection)
{
    head->content_length = HEDDLE_NO_BODY;
    head->upgrade = head->status == SWITCHING_PROTOCOLS || (request == HEDDLE_CONNECT && head->status / 100 == 2);
    if (head->upgrade) {
        head->keep_alive = false;
        return 0;
    }
    if (request == HEDDLE_HEAD || head->status < 200 || head->status == NO_CONTENT || head->status == NOT_MODIFIED)
        return 0;
    if (controls->transfer_encoding.present) {
        if (head->minor == 0)
            return heddle_reject(rejection, BAD_GATEWAY, "HTTP/1.0 does not allow Transfer-Encoding");
        if (heddle_transfer_encoding_check(&controls->transfer_encoding, BAD_GATEWAY, BAD_GATEWAY, rejection) < 0)
            return -1;
        if (controls->content_length.present)
            return heddle_reject(rejection, BAD_GATEWAY, "the response has Content-Length and Transfer-Encoding");
        head->content_length = HEDDLE_CHUNKED_BODY;
        return 0;
    }
    if (controls->content_length.present)
        return judge_length(head, bytes, controls, limits, rejection);
    head->until_close = true;
    head->keep_alive = false;
    return 0;
}

/* -- the head ----------------------------------------------------------------------------------------------------- */

static heddle_field_lines start_lines(const heddle_response_head *head, const char *bytes)
{
    return (heddle_field_lines){.bytes = bytes, .fields = head->fields, .room = head->field_room,
                                .keep_underscores = true, .unfold = true};
}

int heddle_response_head_parse(heddle_response_head *head, heddle_method request, const char *bytes, size_t size,
                               size_t seen, const heddle_http_limits *limits, heddle_rejection *rejection)
{
    if (seen > size)
        seen = size;
    if (seen > 0 && !heddle_head_needs_reading(start_lines(head, bytes), 0, size, seen, limits))
        return 0;

    size_t line_limit = heddle_line_limit(limits);
    uint32_t line_stop = (uint32_t)heddle_least(size, line_limit + 2);
    *head = (heddle_response_head){.fields = head->fields, .field_room = head->field_room};
    int64_t lines_start = read_status_line(head, bytes, line_stop);
    if (lines_start == MALFORMED)
        return reject_status_line(bytes, line_stop, rejection);
    if (lines_start == INCOMPLETE) {
        if (line_stop < line_limit + 2)
            return 0;
        return heddle_reject(rejection, BAD_GATEWAY, "the status line is longer than %zu bytes", line_limit);
    }

    heddle_field_lines lines = start_lines(head, bytes);
    int64_t head_end = heddle_head_read_fields(&lines, (uint32_t)lines_start, size, limits, &statuses, rejection);
    if (head_end <= 0)
        return (int)head_end;
    head->size = (uint32_t)head_end;
    head->field_bytes = (uint32_t)(head_end - lines_start);
    head->line_count = (uint16_t)lines.line_count;
    head->field_count = (uint16_t)lines.field_count;
    head->folded = lines.folded;
    head->keep_alive = heddle_control_fields_keep_alive(&lines.controls, head->minor);
    return judge_content(head, request, bytes, &lines.controls, limits, rejection) < 0 ? -1 : (int)head_end;
}
