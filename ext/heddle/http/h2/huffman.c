/* The code of RFC 7541, appendix B; bin/support/hpack_tables.rb writes its tables. */

#include "http/h2/hpack.h"
#include "http/h2/tables.h"

size_t heddle_huffman_size(const char *text, size_t size)
{
    size_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits += heddle_huffman_codes[(uint8_t)text[i]].bits;
    return (bits + 7) / 8;
}

void heddle_huffman_encode(const char *text, size_t size, uint8_t *to)
{
    uint64_t pending = 0; /* its lowest `count` bits are pending, fewer than 8 between symbols */
    unsigned count = 0;
    for (size_t i = 0; i < size; i++) {
        heddle_huffman_code code = heddle_huffman_codes[(uint8_t)text[i]];
        pending = pending << code.bits | code.code;
        count += code.bits;
        while (count >= 8) {
            count -= 8;
            *to++ = (uint8_t)(pending >> count);
        }
    }
    if (count > 0) /* filled with the first bits of the end-of-string symbol: ones */
        *to = (uint8_t)(pending << (8 - count) | 0xFF >> count);
}

int64_t heddle_huffman_decode(const uint8_t *bytes, size_t size, char *to)
{
    const char *start = to;
    uint32_t step = HEDDLE_HUFFMAN_ACCEPT;
    for (size_t i = 0; i < size; i++) {
        step = heddle_huffman_steps[(step & 0xFF) << 4 | bytes[i] >> 4];
        if (step & HEDDLE_HUFFMAN_EMIT)
            *to++ = (char)(step >> 8);
        if (step & HEDDLE_HUFFMAN_FAIL)
            return -1;
        step = heddle_huffman_steps[(step & 0xFF) << 4 | (bytes[i] & 15)];
        if (step & HEDDLE_HUFFMAN_EMIT)
            *to++ = (char)(step >> 8);
        if (step & HEDDLE_HUFFMAN_FAIL)
            return -1;
    }
    return step & HEDDLE_HUFFMAN_ACCEPT ? to - start : -1;
}
