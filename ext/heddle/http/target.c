#include "http/target.h"

#include "http/authority.h"
#include "http/text.h"

static heddle_slice make_slice(uint32_t start, uint32_t end)
{
    return (heddle_slice){start, end - start};
}

static uint32_t find_character(const char *bytes, uint32_t start, uint32_t end, char character)
{
    const char *found = memchr(bytes + start, character, end - start);
    return found ? (uint32_t)(found - bytes) : end;
}

bool heddle_target_authority(heddle_request_head *head, const char *bytes, heddle_slice text)
{
    heddle_authority authority;
    if (!heddle_authority_split(&authority, bytes + text.start, text.size))
        return false;
    head->authority = text;
    head->host = (heddle_slice){text.start, (uint32_t)authority.host_size};
    head->port = make_slice(text.start + (uint32_t)authority.port_start, text.start + text.size);
    head->has_host = true;
    return true;
}

static int split_path_and_query(heddle_request_head *head, const char *bytes, uint32_t start, uint32_t end)
{
    uint32_t mark = find_character(bytes, start, end, '?');
    head->path = make_slice(start, mark);
    head->query = mark < end ? make_slice(mark + 1, end) : make_slice(end, end);
    return 0;
}

/* CONNECT: host:port */
static int split_authority_form(heddle_request_head *head, const char *bytes, heddle_rejection *rejection)
{
    if (!heddle_target_authority(head, bytes, head->target) || head->host.size == 0 || head->port.size == 0)
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the target of CONNECT is not host:port");
    head->path = head->target;
    head->query = make_slice(head->target.start + head->target.size, head->target.start + head->target.size);
    return 0;
}

/*
 * Returns the size of "http://" or "https://" at the start of the target, in upper or lower case; 0 if it has neither.
 */
static uint32_t measure_scheme(const char *target, uint32_t size)
{
    uint32_t name = size > 4 && (target[4] | 0x20) == 's' ? 5 : 4;
    if (size < name + 3 || !heddle_is_word(target, name, name == 5 ? "https" : "http"))
        return 0;
    return memcmp(target + name, "://", 3) == 0 ? name + 3 : 0;
}

/* http://host:port/path?query */
static int split_absolute_form(heddle_request_head *head, const char *bytes, heddle_rejection *rejection)
{
    uint32_t start = head->target.start, end = start + head->target.size;
    uint32_t scheme = measure_scheme(bytes + start, head->target.size);
    if (scheme == 0)
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the request target is neither a path nor an http URL");

    uint32_t host = start + scheme;
    uint32_t mark = find_character(bytes, host, end, '?'), slash = find_character(bytes, host, mark, '/');
    if (!heddle_target_authority(head, bytes, make_slice(host, slash)) || head->host.size == 0)
        return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the authority in the request target is not host[:port]");
    split_path_and_query(head, bytes, slash, end);
    /*
     * A URL without a path means `/`: as the path, uses the second `/` of `://`. With OPTIONS, however, a URL without
     * path and query means the whole server (RFC 9112, 3.2.4), and the path stays empty.
     */
    if (head->path.size == 0 && !(head->method_id == HEDDLE_OPTIONS && mark == end))
        head->path = make_slice(host - 1, host);
    return 0;
}

int heddle_target_split(heddle_request_head *head, const char *bytes, heddle_rejection *rejection)
{
    uint32_t start = head->target.start, size = head->target.size;
    if (head->method_id == HEDDLE_CONNECT)
        return split_authority_form(head, bytes, rejection);
    if (bytes[start] == '/')
        return split_path_and_query(head, bytes, start, start + size);
    if (size == 1 && bytes[start] == '*') {
        if (head->method_id != HEDDLE_OPTIONS)
            return heddle_reject(rejection, HEDDLE_BAD_REQUEST, "the request target * is allowed only with OPTIONS");
        return split_path_and_query(head, bytes, start, start + size);
    }
    return split_absolute_form(head, bytes, rejection);
}
