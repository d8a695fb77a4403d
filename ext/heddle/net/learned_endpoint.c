#include "net/learned.h"

#include <string.h>

/* What stands for one of many in a path. */
static const char ID[] = ":id";

enum {
    LONG_HEX = 16, /* digits: shorter ones may be words */
    UUID = 36,
};

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static bool is_hex(char character)
{
    return is_digit(character) || (character >= 'a' && character <= 'f') || (character >= 'A' && character <= 'F');
}

static bool is_uuid(const char *word, size_t size)
{
    if (size != UUID)
        return false;
    for (size_t i = 0; i < UUID; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? word[i] != '-' : !is_hex(word[i]))
            return false;
    }
    return true;
}

static bool is_id(const char *word, size_t size)
{
    size_t digits = 0, hex = 0;
    for (size_t i = 0; i < size; i++) {
        digits += is_digit(word[i]);
        hex += is_hex(word[i]);
    }
    return size && (digits == size || (hex == size && size >= LONG_HEX && digits) || is_uuid(word, size));
}

typedef struct {
    char *bytes;
    size_t used;
} text;

static void add(text *to, const char *bytes, size_t size)
{
    size_t room = HEDDLE_LEARNED_NAME - 1 - to->used;
    size = size < room ? size : room;
    memcpy(to->bytes + to->used, bytes, size);
    to->used += size;
}

/* A format such as `.json` is part of the endpoint. */
static void add_segment(text *to, const char *segment, size_t size)
{
    const char *dot = memchr(segment, '.', size);
    size_t stem = dot ? (size_t)(dot - segment) : size;
    if (is_id(segment, stem)) {
        add(to, ID, sizeof(ID) - 1);
        add(to, segment + stem, size - stem);
    } else {
        add(to, segment, size);
    }
}

/* Where the path begins: an absolute target has a scheme and an authority first. */
static size_t start_of_path(const char *target, size_t size)
{
    if (size == 0 || target[0] == '/')
        return 0;
    const char *colon = memchr(target, ':', size);
    size_t at = colon ? (size_t)(colon - target) : size;
    if (size - at < 3 || memcmp(target + at, "://", 3) != 0)
        return 0;
    const char *slash = memchr(target + at + 3, '/', size - at - 3);
    return slash ? (size_t)(slash - target) : size;
}

size_t heddle_endpoint_write(char name[HEDDLE_LEARNED_NAME], const char *method, size_t method_size,
                             const char *target, size_t target_size)
{
    text to = {.bytes = name};
    const char *query = memchr(target, '?', target_size);
    size_t end = query ? (size_t)(query - target) : target_size, at = start_of_path(target, end);
    add(&to, method, method_size);
    add(&to, " ", 1);
    if (at == end)
        add(&to, "/", 1);
    while (at < end) {
        const char *slash = memchr(target + at, '/', end - at);
        size_t segment = slash ? (size_t)(slash - (target + at)) : end - at;
        add_segment(&to, target + at, segment);
        if (slash)
            add(&to, "/", 1);
        at += segment + (slash != NULL);
    }
    name[to.used] = '\0';
    return to.used;
}
