/*
 * Decodes header blocks for a differential test: a line of hexadecimal digits is a block, an empty one starts a new
 * connection. Answers each block with a line: the size of the dynamic table, name and value of each field, and the block
 * as the encoder sends it; or "malformed".
 */

#include "http/h2/hpack.h"

#include <stdio.h>

enum {
    LINE = 1 << 16,
};

static heddle_hpack_decoder decoder;
static heddle_hpack_encoder encoder;
static heddle_bytes scratch, encoded;

static void print_hex(const char *bytes, size_t size)
{
    putchar(' ');
    for (size_t i = 0; i < size; i++)
        printf("%02x", (uint8_t)bytes[i]);
}

static void start(void)
{
    heddle_hpack_table_free(&decoder.table);
    heddle_hpack_table_free(&encoder.table);
    heddle_hpack_decoder_start(&decoder, HEDDLE_HPACK_DEFAULT_SIZE);
    heddle_hpack_encoder_start(&encoder);
}

static heddle_hpack_result decode(const uint8_t *bytes, size_t size)
{
    heddle_hpack_block block = heddle_hpack_block_start(&decoder, &scratch, bytes, size);
    heddle_hpack_field field;
    heddle_hpack_result result;
    while ((result = heddle_hpack_block_next(&block, &field)) == HEDDLE_HPACK_FIELD) {
        print_hex(field.name, field.name_size);
        print_hex(field.value, field.value_size);
        heddle_hpack_encode(&encoder, &encoded, field.name, field.name_size, field.value, field.value_size);
    }
    return result;
}

/* The line is kept back until the block turns out to be whole. */
static void take_block(const uint8_t *bytes, size_t size)
{
    static char line[64 * LINE];
    line[0] = '\0';
    FILE *out = stdout;
    stdout = fmemopen(line, sizeof(line), "w");
    heddle_bytes_reset(&encoded, SIZE_MAX);
    heddle_hpack_encode_start(&encoder, &encoded);
    heddle_hpack_result result = decode(bytes, size);
    fclose(stdout);
    stdout = out;
    if (result != HEDDLE_HPACK_END) {
        puts("malformed");
        return;
    }
    printf("%u%s |", decoder.table.size, line);
    print_hex(encoded.bytes, encoded.size);
    putchar('\n');
}

int main(void)
{
    static char line[LINE];
    static uint8_t bytes[LINE / 2];
    start();
    while (fgets(line, sizeof(line), stdin)) {
        size_t size = strspn(line, "0123456789abcdef") / 2;
        if (size == 0) {
            start();
            continue;
        }
        for (size_t i = 0; i < size; i++)
            sscanf(line + 2 * i, "%2hhx", &bytes[i]);
        take_block(bytes, size);
        fflush(stdout);
    }
    heddle_hpack_table_free(&decoder.table);
    heddle_hpack_table_free(&encoder.table);
    heddle_bytes_reset(&scratch, 0);
    heddle_bytes_reset(&encoded, 0);
    return 0;
}
