#pragma once

/* Finds forbidden bytes in the field values of an application's response (RFC 9110, 5.5), 16 or 8 bytes at a time. */

#include "http/text.h"

static inline bool heddle_is_forbidden(char byte)
{
    return byte == '\r' || byte == '\n' || byte == 0;
}

static inline bool heddle_any_forbidden(uint64_t bytes)
{
    return (heddle_any_less(bytes, 1) | heddle_any_equal(bytes, '\r') | heddle_any_equal(bytes, '\n')) != 0;
}

static inline uint64_t heddle_four(const char *at)
{
    uint32_t bytes;
    memcpy(&bytes, at, sizeof(bytes));
    return bytes;
}

/* Does the value contain CR, LF or NUL? The last load ends with the last byte, so it may overlap the load before it. */
static inline bool heddle_value_is_forbidden(const char *value, size_t size)
{
    if (size < 4)
        return size && (heddle_is_forbidden(value[0]) || heddle_is_forbidden(value[size / 2]) ||
                        heddle_is_forbidden(value[size - 1]));
    if (size < 8)
        return heddle_any_forbidden(heddle_four(value) | heddle_four(value + size - 4) << 32);
#ifdef __SSE2__
    if (size >= 16) {
        const __m128i cr = _mm_set1_epi8('\r'), lf = _mm_set1_epi8('\n'), nul = _mm_setzero_si128();
        size_t at = 0;
        for (;;) {
            __m128i piece = _mm_loadu_si128((const __m128i *)(value + at));
            __m128i found = _mm_or_si128(_mm_cmpeq_epi8(piece, cr), _mm_cmpeq_epi8(piece, lf));
            if (_mm_movemask_epi8(_mm_or_si128(found, _mm_cmpeq_epi8(piece, nul))))
                return true;
            if (at == size - 16)
                return false;
            at = at + 32 <= size ? at + 16 : size - 16;
        }
    }
#endif
    for (size_t at = 0; at + 8 < size; at += 8) {
        if (heddle_any_forbidden(heddle_eight(value + at)))
            return true;
    }
    return heddle_any_forbidden(heddle_eight(value + size - 8));
}
