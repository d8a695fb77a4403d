#include "http/h1/head.h"

#include "http/h1/line_errors.h"

enum {
    /* the search for the start of a line first goes back only this many bytes from the new bytes */
    LOOK_BACK = 256,
};

/* Do the new bytes reach a limit? Then the whole head must be read again. */
static bool passes_limits(const char *bytes, uint32_t start, size_t size, size_t seen, const heddle_http_limits *limits)
{
    size_t line_limit = heddle_line_limit(limits), header_limit = heddle_header_limit(limits);
    size_t line_stop = start + line_limit + 2;
    if (seen < line_stop && size >= line_stop)
        return true;
    if (size - start <= header_limit)
        return false;
    const char *line_end = memchr(bytes + start, '\n', heddle_least(size - start, line_limit + 2));
    return !line_end || size - (size_t)(line_end + 1 - bytes) > header_limit;
}

/* Are there more lines than allowed? */
static bool exceeds_lines(const heddle_field_lines *lines, uint32_t start, size_t size, size_t seen)
{
    const char *at = lines->bytes + start, *end = lines->bytes + size;
    if (!memchr(lines->bytes + seen - 1, '\n', size - seen + 1))
        return false;
    for (unsigned count = 0; count <= lines->room + 1; count++) { /* the end of the first line counts, too */
        at = memchr(at, '\n', (size_t)(end - at));
        if (!at)
            return false;
        at++;
    }
    return true;
}

/*
 * Does the first field line start with white space? That is malformed: a line with leading white space continues the
 * field line before it, and no field line is before the first one.
 */
static bool folds_first_line(const heddle_field_lines *lines, uint32_t start, size_t size)
{
    const char *end = lines->bytes + size, *line_end = memchr(lines->bytes + start, '\n', size - start);
    return lines->unfold && line_end && line_end + 1 < end && heddle_is_space(line_end[1]);
}

/*
 * Searches back for the start of the line that contains the byte at `at`. Returns `stop` if the line starts before
 * `stop`. A folded line is part of the line before it.
 */
static size_t find_line_start(const heddle_field_lines *lines, size_t at, size_t stop)
{
    const char *bytes = lines->bytes;
    while (at > stop && (bytes[at - 1] != '\n' || (lines->unfold && at < lines->end && heddle_is_space(bytes[at]))))
        at--;
    return at;
}

bool heddle_head_needs_reading(heddle_field_lines lines, uint32_t start, size_t size, size_t seen,
                               const heddle_http_limits *limits)
{
    const char *bytes = lines.bytes, *end = bytes + size;
    lines.room = (unsigned)heddle_least(lines.room, limits->header_count);
    if (passes_limits(bytes, start, size, seen, limits) || exceeds_lines(&lines, start, size, seen) ||
        folds_first_line(&lines, start, size))
        return true;
    lines.end = (uint32_t)size;
    size_t nearest = seen - start > LOOK_BACK ? seen - LOOK_BACK : start, line = find_line_start(&lines, seen, nearest);
    if (line == nearest && line > start) {
        /* If the new bytes of a long line contain no control characters, nothing else is checked. */
        const char *control = heddle_find_control(bytes + seen - (bytes[seen - 1] == '\r'), end);
        if (control == end || (*control == '\r' && end - control == 1))
            return false;
        line = find_line_start(&lines, line, start);
    }
    return line == start || heddle_field_lines_read(&lines, (uint32_t)line) != HEDDLE_LINES_INCOMPLETE;
}

int64_t heddle_head_read_fields(heddle_field_lines *lines, uint32_t start, size_t size,
                                const heddle_http_limits *limits, const heddle_head_statuses *statuses,
                                heddle_rejection *rejection)
{
    size_t limit = heddle_header_limit(limits);
    lines->room = (unsigned)heddle_least(lines->room, limits->header_count);
    lines->end = (uint32_t)heddle_least(size, start + limit);
    int64_t head_end = heddle_field_lines_read(lines, start);
    switch (head_end) {
    case HEDDLE_LINES_INCOMPLETE:
        if (lines->end == size)
            return 0;
        return heddle_reject(rejection, statuses->too_large, "the header lines together are longer than %zu bytes",
                             limit);
    case HEDDLE_LINES_MALFORMED:
        return heddle_reject_field(rejection, statuses->malformed, lines->bytes + lines->line,
                                   lines->bytes + lines->end);
    case HEDDLE_LINES_TOO_MANY:
        return heddle_reject(rejection, statuses->too_large, "the %s has more than %u header lines", statuses->message,
                             lines->room);
    default:
        return head_end;
    }
}
