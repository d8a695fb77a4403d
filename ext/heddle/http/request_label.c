#include "http/request_label.h"

#include <stdbool.h>
#include <string.h>

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

static void append(text *to, const char *bytes, size_t size)
{
    size_t room = HEDDLE_REQUEST_LABEL - 1 - to->used;
    size = size < room ? size : room;
    memcpy(to->bytes + to->used, bytes, size);
    to->used += size;
}

/* A format such as `.json` is part of the label. */
static void append_segment(text *to, const char *segment, size_t size)
{
    const char *dot = memchr(segment, '.', size);
    size_t stem = dot ? (size_t)(dot - segment) : size;
    if (is_id(segment, stem)) {
        append(to, ID, sizeof(ID) - 1);
        append(to, segment + stem, size - stem);
    } else {
        append(to, segment, size);
    }
}

/* Where the path begins: an absolute target has a scheme and an authority first. */
static size_t find_path(const char *target, size_t size)
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

size_t heddle_request_label_write(char label[HEDDLE_REQUEST_LABEL], const char *method, size_t method_size,
                                  const char *target, size_t target_size)
{
    text to = {.bytes = label};
    const char *query = memchr(target, '?', target_size);
    size_t end = query ? (size_t)(query - target) : target_size, at = find_path(target, end);
    append(&to, method, method_size);
    append(&to, " ", 1);
    if (at == end)
        append(&to, "/", 1);
    while (at < end) {
        const char *slash = memchr(target + at, '/', end - at);
        size_t segment = slash ? (size_t)(slash - (target + at)) : end - at;
        append_segment(&to, target + at, segment);
        if (slash)
            append(&to, "/", 1);
        at += segment + (slash != NULL);
    }
    label[to.used] = '\0';
    return to.used;
}
