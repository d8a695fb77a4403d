#include "http/authority.h"

#include "http/text.h"

#include <arpa/inet.h>

static bool is_ipv6(const char *at, const char *end)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    size_t size = (size_t)(end - at);
    if (size >= sizeof(text) || memchr(at, '\0', size))
        return false;
    memcpy(text, at, size);
    text[size] = '\0';
    return inet_pton(AF_INET6, text, &ignored) == 1;
}

/*
 * Is the text an IPvFuture address (RFC 3986, 3.2.2)? Such an address consists of "v", hexadecimal digits, ".", and one
 * or more characters that are `:` or allowed in names.
 */
static bool is_future_address(const char *at, const char *end)
{
    if (at == end || (*at | 0x20) != 'v')
        return false;
    const char *digits = ++at;
    while (at < end && heddle_is(*at, HEDDLE_HEX))
        at++;
    if (at == digits || at == end || *at++ != '.' || at == end)
        return false;
    while (at < end && (heddle_is(*at, HEDDLE_NAME) || *at == ':'))
        at++;
    return at == end;
}

static const char *find_bracket_end(const char *at, const char *end)
{
    const char *bracket = memchr(at, ']', (size_t)(end - at));
    if (!bracket || !(is_ipv6(at + 1, bracket) || is_future_address(at + 1, bracket)))
        return NULL;
    return bracket + 1;
}

static const char *find_name_end(const char *at, const char *end)
{
    for (;;) {
        while (at < end && heddle_is(*at, HEDDLE_NAME))
            at++;
        if (end - at < 3 || *at != '%' || !heddle_is(at[1], HEDDLE_HEX) || !heddle_is(at[2], HEDDLE_HEX))
            return at;
        at += 3;
    }
}

bool heddle_authority_split(heddle_authority *authority, const char *text, size_t size)
{
    const char *end = text + size;
    *authority = (heddle_authority){0, size};
    if (size == 0)
        return true;
    const char *at = *text == '[' ? find_bracket_end(text, end) : find_name_end(text, end);
    if (!at || at == text)
        return false;
    authority->host_size = (size_t)(at - text);
    if (at == end)
        return true;
    if (*at++ != ':')
        return false;
    authority->port_start = (size_t)(at - text);
    while (at < end && heddle_is(*at, HEDDLE_DIGIT))
        at++;
    return at == end;
}
