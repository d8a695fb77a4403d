/* The Huffman code of HPACK (RFC 7541, appendix B). */

#include "http/h2/hpack.h"

enum {
    END_OF_STRING = 256,
    LONGEST_CODE = 30,
};

/*
 * The length of each symbol's code, in bits. The code is canonical: codes of the same length increase in the order of
 * their symbols. So the lengths determine all codes, and the tables below are computed from them when the library is
 * loaded.
 */
static const uint8_t code_bits[END_OF_STRING + 1] = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
};

typedef struct {
    uint32_t code;
    uint8_t bits;
} huffman_code;

static huffman_code codes[END_OF_STRING + 1];

/*
 * The result of reading four bits at a node of the code's tree. The lowest byte is the next node, the second byte a
 * symbol.
 */
enum {
    STEP_EMIT = 0x10000,   /* the second byte is a complete symbol */
    STEP_ACCEPT = 0x20000, /* the string may end here */
    STEP_FAIL = 0x40000,   /* the end-of-string symbol, which must not occur */
};

static uint32_t steps[256 * 16];

/*
 * The two children of each inner node of the tree; node 0 is the root. A child is the index of an inner node, or
 * LEAF + symbol, or 0 while it does not exist.
 */
enum { LEAF = 1024 };
typedef uint16_t tree[256][2];

static void add_code(tree nodes, unsigned *count, unsigned symbol)
{
    unsigned node = 0;
    for (unsigned bit = codes[symbol].bits - 1; bit > 0; bit--) {
        uint16_t *child = &nodes[node][codes[symbol].code >> bit & 1];
        if (*child == 0)
            *child = (uint16_t)(*count)++;
        node = *child;
    }
    nodes[node][codes[symbol].code & 1] = (uint16_t)(LEAF + symbol);
}

static uint32_t find_step(tree nodes, const bool *accepting, unsigned node, unsigned four)
{
    uint32_t emitted = 0;
    for (int bit = 3; bit >= 0; bit--) {
        node = nodes[node][four >> bit & 1];
        if (node == LEAF + END_OF_STRING)
            return STEP_FAIL;
        if (node >= LEAF) {
            emitted = (node - LEAF) << 8 | STEP_EMIT; /* at most one symbol: no code has fewer than five bits */
            node = 0;
        }
    }
    return node | emitted | (accepting[node] ? STEP_ACCEPT : 0);
}

__attribute__((constructor)) static void make_tables(void)
{
    tree nodes = {0};
    unsigned count = 1;
    uint32_t code = 0;
    for (uint8_t bits = 1; bits <= LONGEST_CODE; bits++, code <<= 1) {
        for (unsigned symbol = 0; symbol <= END_OF_STRING; symbol++) {
            if (code_bits[symbol] != bits)
                continue;
            codes[symbol] = (huffman_code){.code = code++, .bits = bits};
            add_code(nodes, &count, symbol);
        }
    }
    /* A string may end with padding: at most seven bits, all of them 1. */
    bool accepting[256] = {true};
    for (unsigned i = 0, node = 0; i < 7; i++)
        accepting[node = nodes[node][1]] = true;
    for (unsigned i = 0; i < 256 * 16; i++)
        steps[i] = find_step(nodes, accepting, i / 16, i % 16);
}

size_t heddle_huffman_size(const char *text, size_t size)
{
    size_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits += codes[(uint8_t)text[i]].bits;
    return (bits + 7) / 8;
}

void heddle_huffman_encode(const char *text, size_t size, uint8_t *to)
{
    uint64_t pending = 0; /* its lowest `count` bits are not written yet; `count` is less than 8 between symbols */
    unsigned count = 0;
    for (size_t i = 0; i < size; i++) {
        huffman_code code = codes[(uint8_t)text[i]];
        pending = pending << code.bits | code.code;
        count += code.bits;
        while (count >= 8) {
            count -= 8;
            *to++ = (uint8_t)(pending >> count);
        }
    }
    if (count > 0) /* fills the last byte with the first bits of the end-of-string symbol, which are ones */
        *to = (uint8_t)(pending << (8 - count) | 0xFF >> count);
}

int64_t heddle_huffman_decode(const uint8_t *bytes, size_t size, char *to)
{
    const char *start = to;
    uint32_t step = STEP_ACCEPT;
    for (size_t i = 0; i < size; i++) {
        step = steps[(step & 0xFF) << 4 | bytes[i] >> 4];
        if (step & STEP_EMIT)
            *to++ = (char)(step >> 8);
        if (step & STEP_FAIL)
            return -1;
        step = steps[(step & 0xFF) << 4 | (bytes[i] & 15)];
        if (step & STEP_EMIT)
            *to++ = (char)(step >> 8);
        if (step & STEP_FAIL)
            return -1;
    }
    return step & STEP_ACCEPT ? to - start : -1;
}
