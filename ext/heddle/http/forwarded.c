#include "http/forwarded.h"

#include "http/text.h"
#include "selector/clock.h"

/* If a request seems to take this many ns or more from the proxy to the server, one of their clocks must be wrong. */
static const int64_t MOST_DELAY = INT64_C(600) * 1000 * 1000 * 1000;

/* Traefik says wss and ws of a WebSocket's request. */
static heddle_scheme scheme_of(const char *bytes, size_t size)
{
    if (heddle_is_word(bytes, size, "https") || heddle_is_word(bytes, size, "wss"))
        return HEDDLE_SCHEME_HTTPS;
    bool plain = heddle_is_word(bytes, size, "http") || heddle_is_word(bytes, size, "ws");
    return plain ? HEDDLE_SCHEME_HTTP : HEDDLE_SCHEME_UNKNOWN;
}

/* Returns the scheme of a list's last element that is a scheme, or `before` if no element is. */
static heddle_scheme find_last_scheme(const char *at, const char *end, heddle_scheme before)
{
    while (at < end) {
        const char *start = at;
        while (at < end && *at != ',' && !heddle_is_space(*at))
            at++;
        heddle_scheme scheme = scheme_of(start, (size_t)(at - start));
        if (scheme != HEDDLE_SCHEME_UNKNOWN)
            before = scheme;
        at++;
    }
    return before;
}

/* -- the client's identity ----------------------------------------------------------------------------------------- */

typedef struct {
    heddle_trusts *trusts;
    const void *trusted;
    heddle_address client;
    bool any, known; /* any: the field has an address; known: the chosen address could be parsed */
} search;

/*
 * Considers the next address of a field, from left to right. Keeps the last address that is not a trusted proxy's, or
 * else the first one.
 */
static void consider_address(search *search, const char *text, size_t size)
{
    heddle_address address;
    bool known = heddle_address_read(text, size, &address);
    bool stranger = !known || !search->trusts(search->trusted, &address);
    if (search->any && !stranger)
        return;
    search->any = true;
    search->known = known;
    if (known)
        search->client = address;
}

static void consider_list(search *search, const char *at, const char *end)
{
    const char *text;
    size_t size;
    while ((text = heddle_next_element(&at, end, &size)))
        consider_address(search, text, size);
}

/* -- Forwarded ---------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *at, *end;
} rest;

static void skip_blanks(rest *text)
{
    while (text->at < text->end && heddle_is_space(*text->at))
        text->at++;
}

static size_t take_token(rest *text)
{
    const char *start = text->at;
    text->at = heddle_find_token_end(start, text->end);
    return (size_t)(text->at - start);
}

/* Takes a value without quotes. An address with a port must be quoted, but proxies often omit the quotes. */
static size_t take_bare(rest *text)
{
    const char *start = text->at;
    while (text->at < text->end && !heddle_is_space(*text->at) && !strchr(";,\"\\", *text->at))
        text->at++;
    return (size_t)(text->at - start);
}

/*
 * Takes a quoted string; `text` is at the opening quote. Returns the size between the quotes, or -1 if there is no
 * closing quote.
 */
static long take_quoted(rest *text)
{
    const char *start = ++text->at;
    while (text->at < text->end && *text->at != '"') {
        if (*text->at == '\\')
            text->at++;
        text->at++;
    }
    if (text->at >= text->end)
        return -1;
    return text->at++ - start;
}

/* Where the parser stores `proto` and `for`. NULL: the caller does not need the value. */
typedef struct {
    heddle_scheme *scheme;
    search *search;
} forwarded_fields;

/* Parses one `name=value`. Returns false if it is malformed. */
static bool take_pair(rest *text, forwarded_fields fields)
{
    const char *name = text->at;
    size_t name_size = take_token(text);
    if (name_size == 0 || text->at == text->end || *text->at++ != '=' || text->at == text->end)
        return false;
    bool quoted = *text->at == '"';
    const char *value = text->at + quoted;
    long size = quoted ? take_quoted(text) : (long)take_bare(text);
    if (size < 0 || (size == 0 && !quoted))
        return false;
    if (fields.scheme && heddle_is_word(name, name_size, "proto"))
        *fields.scheme = scheme_of(value, (size_t)size);
    else if (fields.search && heddle_is_word(name, name_size, "for"))
        consider_address(fields.search, value, (size_t)size);
    return true;
}

static bool read_forwarded(rest text, forwarded_fields fields)
{
    for (;;) {
        skip_blanks(&text);
        if (text.at == text.end)
            return true;
        if (*text.at != ';' && *text.at != ',' && !take_pair(&text, fields))
            return false;
        skip_blanks(&text);
        if (text.at == text.end)
            return true;
        if (*text.at != ';' && *text.at != ',')
            return false;
        text.at++;
    }
}

/* -- all fields ---------------------------------------------------------------------------------------------------- */

heddle_scheme heddle_forwarded_scheme(const heddle_request_head *head, const char *bytes)
{
    heddle_scheme forwarded = HEDDLE_SCHEME_UNKNOWN, proto = HEDDLE_SCHEME_UNKNOWN, scheme = HEDDLE_SCHEME_UNKNOWN;
    bool malformed = false;
    for (unsigned i = 0; i < head->field_count; i++) {
        const heddle_field *field = &head->fields[i];
        const char *value = bytes + field->value.start, *end = value + field->value.size;
        switch ((heddle_field_id)field->id) {
        case HEDDLE_FIELD_X_FORWARDED_SSL:
            if (heddle_is_word(value, field->value.size, "on"))
                return HEDDLE_SCHEME_HTTPS;
            break;
        case HEDDLE_FIELD_FORWARDED:
            malformed |= !read_forwarded((rest){value, end}, (forwarded_fields){.scheme = &forwarded});
            break;
        case HEDDLE_FIELD_X_FORWARDED_PROTO:
            proto = find_last_scheme(value, end, proto);
            break;
        case HEDDLE_FIELD_X_FORWARDED_SCHEME:
            scheme = find_last_scheme(value, end, scheme);
            break;
        default:
            break;
        }
    }
    if (forwarded != HEDDLE_SCHEME_UNKNOWN && !malformed)
        return forwarded;
    return proto != HEDDLE_SCHEME_UNKNOWN ? proto : scheme;
}

bool heddle_forwarded_client(const heddle_request_head *head, const char *bytes, heddle_trusts *trusts,
                             const void *trusted, heddle_address *client)
{
    search forwarded = {.trusts = trusts, .trusted = trusted}, list = forwarded;
    bool malformed = false;
    for (unsigned i = 0; i < head->field_count; i++) {
        const heddle_field *field = &head->fields[i];
        const char *value = bytes + field->value.start, *end = value + field->value.size;
        if (field->id == HEDDLE_FIELD_FORWARDED)
            malformed |= !read_forwarded((rest){value, end}, (forwarded_fields){.search = &forwarded});
        else if (field->id == HEDDLE_FIELD_X_FORWARDED_FOR)
            consider_list(&list, value, end);
    }
    const search *found = forwarded.any && !malformed ? &forwarded : &list;
    if (found->known)
        *client = found->client;
    return found->known;
}

bool heddle_forwarded_any(const heddle_request_head *head, const char *bytes)
{
    static const char prefix[] = "x-forwarded-";
    for (unsigned i = 0; i < head->field_count; i++) {
        const heddle_field *field = &head->fields[i];
        if (field->id == HEDDLE_FIELD_OTHER) {
            if (field->name.size >= sizeof(prefix) - 1 &&
                heddle_is_word(bytes + field->name.start, sizeof(prefix) - 1, prefix))
                return true;
        } else if (field->id == HEDDLE_FIELD_VIA || HEDDLE_FORWARDED_FIELDS >> field->id & 1) {
            return true;
        }
    }
    return false;
}

/* -- the time ------------------------------------------------------------------------------------------------------ */

enum { DIGITS = 19 }; /* a time in nanoseconds since 1970 has this many digits; larger numbers are invalid */

/* Parses a value of X-Request-Start. Returns ns since 1970, or 0 if the text is not a time. */
static int64_t parse_start(const char *at, const char *end)
{
    int64_t number = 0, fraction = 0, unit = 1, weight;
    int digits = 0;
    if (end - at > 2 && at[0] == 't' && at[1] == '=')
        at += 2;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        if (++digits > DIGITS || number > INT64_MAX / 10 - 1)
            return 0;
        number = number * 10 + (*at - '0');
    }
    if (digits < 9)
        return 0;
    /* the number of digits shows the unit: until the year 2286, a time in seconds has ten digits */
    weight = digits <= 11 ? 1000000000 : digits <= 14 ? 1000000 : digits <= 17 ? 1000 : 1;
    if (at < end && *at == '.') {
        for (at++; at < end && *at >= '0' && *at <= '9'; at++) {
            if (unit < weight) {
                unit *= 10;
                fraction = fraction * 10 + (*at - '0');
            }
        }
    }
    if (at < end || number > INT64_MAX / weight - 1)
        return 0;
    return number * weight + fraction * (weight / unit);
}

int64_t heddle_forwarded_start(const heddle_request_head *head, const char *bytes)
{
    int64_t first = 0;
    for (unsigned i = 0; i < head->field_count; i++) {
        if (head->fields[i].id != HEDDLE_FIELD_X_REQUEST_START)
            continue;
        heddle_slice value = head->fields[i].value;
        int64_t start = parse_start(bytes + value.start, bytes + value.start + value.size);
        if (start && (!first || start < first))
            first = start;
    }
    return first;
}

int64_t heddle_forwarded_delay(const heddle_request_head *head, const char *bytes, int64_t began)
{
    int64_t start = heddle_forwarded_start(head, bytes);
    if (!start)
        return 0;
    int64_t spent = heddle_clock_read(CLOCK_REALTIME) - start - (heddle_clock_now() - began);
    return spent > 0 && spent < MOST_DELAY ? spent : 0;
}
