#include "http/h1/line_errors.h"

#include "http/text.h"

enum { VERSION_NOT_SUPPORTED = 505 };

/*
 * Returns where the line's CR LF begins, or `end`. Messages must not depend on bytes after the line, because how many
 * of them have been received is a matter of chance.
 */
static const char *find_line_end(const char *line, const char *end)
{
    for (const char *at = line; end - at >= 2; at++) {
        at = memchr(at, '\r', (size_t)(end - at - 1));
        if (!at)
            return end;
        if (at[1] == '\n')
            return at;
    }
    return end;
}

static int reject_fold(heddle_rejection *rejection, int status)
{
    return heddle_reject(rejection, status,
                         "a header line starts with white space (obs-fold): put the header on one line");
}

int heddle_reject_control(heddle_rejection *rejection, int status, char character)
{
    if (character == '\n')
        return heddle_reject(rejection, status, "a line ends with LF alone: lines must end with CR LF");
    if (character == '\r')
        return heddle_reject(rejection, status, "a CR is not followed by LF");
    return heddle_reject(rejection, status, "a line of the head or of the trailers has control characters");
}

int heddle_reject_field(heddle_rejection *rejection, int status, const char *line, const char *end)
{
    const char *stop = find_line_end(line, end);
    if (line < stop && heddle_is_space(*line))
        return reject_fold(rejection, status);
    const char *control = heddle_find_control(line, stop);
    if (control < stop)
        return heddle_reject_control(rejection, status, *control);
    size_t size = (size_t)(stop - line);
    if (!memchr(line, ':', size) && stop < end)
        return heddle_reject(rejection, status, "a header line has no colon");
    if (size > 0 && *line == ':')
        return heddle_reject(rejection, status, "a header line has no name");
    const char *name_end = heddle_find_token_end(line, stop), *colon = name_end;
    while (colon < stop && heddle_is_space(*colon))
        colon++;
    if (name_end < colon && (colon == stop || *colon == ':'))
        return heddle_reject(rejection, status, "a header line has white space before the colon");
    return heddle_reject(rejection, status, "a header name has characters that are not allowed");
}

static int reject_target(heddle_rejection *rejection, const char *target, const char *end)
{
    if (memchr(target, '#', (size_t)(end - target))) {
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST,
                             "the request target has a fragment (#), which clients must not send");
    }
    return heddle_reject(rejection, HEDDLE_BAD_REQUEST,
                         "the request target has characters that must be percent-encoded");
}

static bool is_version(const char *text, size_t size)
{
    return size == 8 && memcmp(text, "HTTP/", 5) == 0 && heddle_is(text[5], HEDDLE_DIGIT) && text[6] == '.' &&
           heddle_is(text[7], HEDDLE_DIGIT);
}

static int reject_version(heddle_rejection *rejection, const char *version, const char *end)
{
    if (is_version(version, (size_t)(end - version))) {
        return heddle_reject(rejection, VERSION_NOT_SUPPORTED,
                             "this server supports HTTP/1.1 and HTTP/1.0, not %.8s", version);
    }
    return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the HTTP version is malformed: expected HTTP/1.1");
}

static int reject_shape(heddle_rejection *rejection)
{
    return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the request line is not of the form `method target HTTP/1.1`");
}

/*
 * Does the line begin with a PROXY header, in text or binary form? The binary form begins with an empty line, which the
 * parser has already skipped.
 */
static bool is_proxy_header(const char *line, const char *end)
{
    return (end - line >= 6 && memcmp(line, "PROXY ", 6) == 0) ||
           (end - line >= 10 && memcmp(line, "\r\n\0\r\nQUIT\n", 10) == 0);
}

int heddle_reject_request_line(heddle_rejection *rejection, const char *line, const char *end)
{
    if (is_proxy_header(line, end)) {
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST,
                             "the connection begins with a PROXY header: set proxy_protocol=on for this address");
    }
    const char *stop = find_line_end(line, end);
    bool whole = stop < end;
    const char *control = heddle_find_control(line, stop);
    if (control < stop)
        return heddle_reject_control(rejection, HEDDLE_BAD_REQUEST, *control);

    const char *spaces[3] = {NULL, NULL, NULL};
    const char *at = line;
    for (int i = 0; i < 3 && at; i++) {
        spaces[i] = memchr(at, ' ', (size_t)(stop - at));
        at = spaces[i] ? spaces[i] + 1 : NULL;
    }
    if (whole && (!spaces[1] || spaces[2]))
        return reject_shape(rejection);

    const char *method_end = spaces[0] ? spaces[0] : stop;
    if (method_end == line || heddle_find_token_end(line, method_end) < method_end) {
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST,
                             whole ? "the method is not a valid token"
                                   : "this is not an HTTP request: the method is not a valid token");
    }
    if (!spaces[0])
        return reject_shape(rejection);
    const char *target = spaces[0] + 1, *target_end = spaces[1] ? spaces[1] : stop;
    if (heddle_find_target_end(target, target_end) < target_end)
        return reject_target(rejection, target, target_end);
    if (target == target_end || !spaces[1] || spaces[2])
        return reject_shape(rejection);
    return reject_version(rejection, spaces[1] + 1, stop);
}
