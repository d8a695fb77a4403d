#include "http/authority.h"

#include "http/text.h"

enum {
    GROUPS = 8,       /* groups of 16 bits in an IPv6 address */
    GROUP_DIGITS = 4,
    OCTETS = 4,
};

/* Reads up to four hexadecimal digits and returns their number. */
static int read_group(const char *at, const char *end)
{
    int digits = 0;
    while (digits < GROUP_DIGITS && at < end && heddle_is(*at, HEDDLE_HEX)) {
        at++;
        digits++;
    }
    return digits;
}

static bool is_ipv4(const char *at, const char *end)
{
    for (int octet = 0; octet < OCTETS; octet++) {
        if (octet > 0 && (at == end || *at++ != '.'))
            return false;
        int value = 0, digits = 0;
        for (; at < end && digits < 3 && heddle_is(*at, HEDDLE_DIGIT); at++, digits++)
            value = value * 10 + (*at - '0');
        if (digits == 0 || value > 255 || (digits > 1 && at[-digits] == '0'))
            return false;
    }
    return at == end;
}

static bool is_ipv6(const char *at, const char *end)
{
    int groups = 0;
    bool shortened = false;
    if (end - at >= 2 && at[0] == ':' && at[1] == ':') {
        shortened = true;
        at += 2;
    }
    while (at < end) {
        int digits = read_group(at, end);
        if (digits == 0)
            return false;
        const char *next = at + digits;
        if (next < end && *next == '.') { /* the last 32 bits may be an IPv4 address */
            if (!is_ipv4(at, end))
                return false;
            groups += 2;
            break;
        }
        groups++;
        at = next;
        if (at == end)
            break;
        if (*at++ != ':' || at == end)
            return false;
        if (*at == ':') {
            if (shortened)
                return false;
            shortened = true;
            at++;
        }
    }
    return shortened ? groups < GROUPS : groups == GROUPS;
}

/* "v", hexadecimal digits, ".", and characters of names or `:`. */
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
