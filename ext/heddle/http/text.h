#pragma once

/* Classes of characters, searches in bytes, and lists. No function reads the byte at `end` or bytes after it. */

#include "system.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    HEDDLE_TOKEN = 1, /* tchar (RFC 9110, 5.6.2) */
    HEDDLE_NAME = 2,  /* unreserved or sub-delims (RFC 3986, 2) */
    HEDDLE_HEX = 4,
    HEDDLE_DIGIT = 8,
};

extern const uint8_t heddle_characters[256];

static inline bool heddle_is(char character, int classes)
{
    return (heddle_characters[(uint8_t)character] & classes) != 0;
}

static inline bool heddle_is_space(char character)
{
    return character == ' ' || character == '\t';
}

/* Is this a control character other than a tab? A field value must not contain it. */
static inline bool heddle_is_control(char character)
{
    return ((uint8_t)character < 0x20 && character != '\t') || character == 0x7F;
}

/*
 * Is this character allowed in a request target? Visible ASCII is allowed, except `#`, which begins a fragment. Bytes
 * above ASCII are allowed, too: some clients send them unescaped although RFC 9112 forbids it, and Puma and nginx
 * accept them.
 */
static inline bool heddle_is_target(char character)
{
    return (uint8_t)character > 0x20 && character != 0x7F && character != '#';
}

/* -- eight bytes at a time, without SSE2 or for short texts ---------------------------------------------- */

static inline uint64_t heddle_eight(const char *at)
{
    uint64_t bytes;
    memcpy(&bytes, at, sizeof(bytes));
    return bytes;
}

static inline uint64_t heddle_repeat(uint8_t byte)
{
    return UINT64_C(0x0101010101010101) * byte;
}

/* Returns a nonzero value if a byte is less than `limit`, which is at most 128. */
static inline uint64_t heddle_any_less(uint64_t bytes, uint8_t limit)
{
    return (bytes - heddle_repeat(limit)) & ~bytes & heddle_repeat(0x80);
}

static inline uint64_t heddle_any_equal(uint64_t bytes, uint8_t byte)
{
    return heddle_any_less(bytes ^ heddle_repeat(byte), 1);
}

/* -- hashes ------------------------------------------------------------------------------------------------------- */

static inline uint64_t heddle_mix_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

/*
 * Hashes eight bytes at a time; the last eight may overlap the eight before them. Only for tables in this process,
 * because the hash depends on the byte order.
 */
static inline uint64_t heddle_hash_bytes(uint64_t hash, const char *text, size_t size)
{
    hash = heddle_mix_word(hash, size);
    if (size < sizeof(uint64_t)) {
        uint64_t word = 0;
        for (size_t i = 0; i < size; i++)
            word = word << 8 | (uint8_t)text[i];
        return heddle_mix_word(hash, word);
    }
    for (size_t at = 0; at + sizeof(uint64_t) < size; at += sizeof(uint64_t))
        hash = heddle_mix_word(hash, heddle_eight(text + at));
    return heddle_mix_word(hash, heddle_eight(text + size - sizeof(uint64_t)));
}

/* -- scans -------------------------------------------------------------------------------------------------------- */

/* Returns the first control character other than a tab, or `end`. */
static inline const char *heddle_find_control(const char *at, const char *end)
{
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
        __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
        __m128i delete = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7F));
        int found = _mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, low), delete));
        if (found)
            return at + __builtin_ctz((unsigned)found);
    }
#endif
    while (end - at >= 8) {
        uint64_t bytes = heddle_eight(at);
        if (heddle_any_less(bytes, 0x20) | heddle_any_equal(bytes, 0x7F))
            break;
        at += 8;
    }
    while (at < end && !heddle_is_control(*at))
        at++;
    return at;
}

/* Returns the first character that is not allowed in a request target, or `end`. */
static inline const char *heddle_find_target_end(const char *at, const char *end)
{
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x20)), bytes);
        __m128i delete = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7F));
        __m128i hash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('#'));
        int found = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(low, delete), hash));
        if (found)
            return at + __builtin_ctz((unsigned)found);
    }
#endif
    while (end - at >= 8) {
        uint64_t bytes = heddle_eight(at);
        if (heddle_any_less(bytes, 0x21) | heddle_any_equal(bytes, '#') | heddle_any_equal(bytes, 0x7F))
            break;
        at += 8;
    }
    while (at < end && heddle_is_target(*at))
        at++;
    return at;
}

static inline size_t heddle_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline const char *heddle_find_token_end(const char *at, const char *end)
{
    while (at < end && heddle_is(*at, HEDDLE_TOKEN))
        at++;
    return at;
}

static inline bool heddle_is_token(const char *text, size_t size)
{
    return size > 0 && heddle_find_token_end(text, text + size) == text + size;
}

/* -- words -------------------------------------------------------------------------------------------------------- */

/* Is the text this word, in any case? `word` is in lower case. */
bool heddle_is_word(const char *text, size_t size, const char *word);

/*
 * Returns the next element of a list (RFC 9110, 5.6.1), without the white space around it, or NULL at the end. Skips
 * empty elements. Moves `*at` past the element. CR LF counts as white space: in a value it can only come from a folded
 * line.
 */
const char *heddle_next_element(const char **at, const char *end, size_t *size);
