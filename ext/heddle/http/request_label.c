#include "http/request_label.h"

static const char ID[] = ":id";

enum {
    LONG = 15,     /* bytes; a longer segment may be a secret if it has digits, or does not consist of words */
    WORD = 20,     /* the maximum number of letters of a word that is all lower or all upper case */
    METHOD = 17,   /* bytes of the longest registered method */
    EXTENSION = 6, /* the maximum number of letters and digits of a format such as `.json` */
};

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static bool is_lower(char character)
{
    return character >= 'a' && character <= 'z';
}

static bool is_upper(char character)
{
    return character >= 'A' && character <= 'Z';
}

/*
 * Do the letters look like words? Words are in one case (at most WORD letters), or in camelCase with at least two
 * lower-case letters after each capital. Random letters hardly ever look like this.
 */
static bool is_word(const char *letters, size_t size)
{
    size_t lower = 0, upper = 0, after = 2; /* lower-case letters since the last capital */
    bool humps = true;
    for (size_t i = 0; i < size; i++) {
        if (is_lower(letters[i])) {
            lower++;
            after++;
        } else {
            humps = humps && after >= 2;
            upper++;
            after = 0;
        }
    }
    if (!lower || !upper)
        return size <= WORD;
    return humps && after >= 2;
}

/* Does the segment consist of words, with punctuation between them? */
static bool is_words(const char *segment, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t end = at;
        while (end < size && (is_lower(segment[end]) || is_upper(segment[end])))
            end++;
        if (end > at && !is_word(segment + at, end - at))
            return false;
        at = end > at ? end : at + 1;
    }
    return true;
}

/*
 * May the segment be an identifier, such as a number, an e-mail address or a secret? Then it must not appear in a
 * label. A short word is not recognized as an identifier, even if it is a person's name.
 */
static bool is_id(const char *segment, size_t size)
{
    size_t digits = 0;
    for (size_t i = 0; i < size; i++) {
        char character = segment[i];
        digits += is_digit(character);
        if (!is_digit(character) && !is_lower(character) && !is_upper(character) && !memchr("-_.:*", character, 5))
            return true; /* may be encoded text, an address or base64 */
    }
    return (size && digits == size) || (size > LONG && (digits || !is_words(segment, size)));
}

typedef struct {
    char *bytes;
    size_t used;
} text;

static void append_bytes(text *to, const char *bytes, size_t size)
{
    size_t room = HEDDLE_REQUEST_LABEL - 1 - to->used;
    size = size < room ? size : room;
    memcpy(to->bytes + to->used, bytes, size);
    to->used += size;
}

/* Returns the size of the segment without a format such as `.json`, which the label always keeps. */
static size_t find_stem(const char *segment, size_t size)
{
    for (size_t extension = 0; extension < size && extension <= EXTENSION; extension++) {
        char character = segment[size - 1 - extension];
        if (character == '.')
            return extension ? size - 1 - extension : size;
        if (!is_digit(character) && !is_lower(character) && !is_upper(character))
            break;
    }
    return size;
}

static void append_segment(text *to, const char *segment, size_t size)
{
    size_t stem = find_stem(segment, size);
    if (is_id(segment, stem)) {
        append_bytes(to, ID, sizeof(ID) - 1);
        append_bytes(to, segment + stem, size - stem);
    } else {
        append_bytes(to, segment, size);
    }
}

/* Clients may send any token as a method. Writes OTHER for a token that can't be a registered method. */
static void append_method(text *to, const char *method, size_t size)
{
    static const char OTHER[] = "OTHER";
    for (size_t i = 0; i < size; i++) {
        if (size > METHOD || (!is_upper(method[i]) && method[i] != '-')) {
            append_bytes(to, OTHER, sizeof(OTHER) - 1);
            return;
        }
    }
    append_bytes(to, method, size);
}

/* Returns the offset of the path. In an absolute target, a scheme and an authority come before it. */
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
    append_method(&to, method, method_size);
    append_bytes(&to, " ", 1);
    if (at == end)
        append_bytes(&to, "/", 1);
    while (at < end) {
        const char *slash = memchr(target + at, '/', end - at);
        size_t segment = slash ? (size_t)(slash - (target + at)) : end - at;
        append_segment(&to, target + at, segment);
        if (slash)
            append_bytes(&to, "/", 1);
        at += segment + (slash != NULL);
    }
    label[to.used] = '\0';
    return to.used;
}

uint32_t heddle_request_label_hash(const char *method, size_t method_size, const char *target, size_t target_size)
{
    char label[HEDDLE_REQUEST_LABEL];
    size_t size = heddle_request_label_write(label, method, method_size, target, target_size);
    uint32_t hash = UINT32_C(0x811c9dc5); /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)label[i]) * UINT32_C(0x01000193);
    return hash ? hash : 1;
}

uint32_t heddle_request_label_hash_line(const char *bytes, size_t size)
{
    const char *end = bytes + size;
    while (bytes < end && (*bytes == '\r' || *bytes == '\n'))
        bytes++;
    const char *space = memchr(bytes, ' ', (size_t)(end - bytes));
    if (!space)
        return 0;
    const char *target = space + 1, *after = target;
    while (after < end && *after != ' ' && *after != '?')
        after++;
    if (after == end && (size_t)(after - target) < HEDDLE_REQUEST_LABEL)
        return 0; /* the request line is incomplete: the next bytes may belong to the label */
    return heddle_request_label_hash(bytes, (size_t)(space - bytes), target, (size_t)(after - target));
}
