/* sources: http/h2/hpack_decoder.c http/h2/hpack_encoder.c http/h2/hpack_table.c http/h2/huffman.c http/h2/tables.c */

/*
 * HPACK: any bytes give fields or an error and keep the table within its limit; what is decoded, the encoder sends so
 * that a decoder finds the same again, block after block, with both tables equal in size.
 */

#include "fuzz.h"
#include "http/h2/hpack.h"

enum {
    BLOCKS = 8,
    MOST_FIELDS = 4096,
};

static heddle_hpack_decoder reader, checker;
static heddle_hpack_encoder writer;
static heddle_bytes scratch, again, encoded, first, second;

static void note(heddle_bytes *to, const heddle_hpack_field *field)
{
    PROMISE(heddle_bytes_add(to, &field->name_size, sizeof(field->name_size)));
    PROMISE(heddle_bytes_add(to, field->name, field->name_size));
    PROMISE(heddle_bytes_add(to, &field->value_size, sizeof(field->value_size)));
    PROMISE(heddle_bytes_add(to, field->value, field->value_size));
}

static void read_again(unsigned count)
{
    char *copy = fuzz_copy(encoded.bytes, encoded.size);
    heddle_hpack_block block = heddle_hpack_block_start(&checker, &again, copy, encoded.size);
    heddle_hpack_field field;
    heddle_bytes_reset(&second, SIZE_MAX);
    for (unsigned i = 0; i < count; i++) {
        PROMISE(heddle_hpack_block_next(&block, &field) == HEDDLE_HPACK_FIELD);
        note(&second, &field);
    }
    PROMISE(heddle_hpack_block_next(&block, &field) == HEDDLE_HPACK_END);
    free(copy);
    PROMISE(first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0);
    PROMISE(checker.table.size == writer.table.size && checker.table.count == writer.table.count);
}

/* False: the block is malformed. */
static bool decode_block(const char *bytes, size_t size)
{
    char *copy = fuzz_copy(bytes, size);
    heddle_hpack_block block = heddle_hpack_block_start(&reader, &scratch, copy, size);
    heddle_hpack_field field;
    heddle_hpack_result result;
    unsigned count = 0;
    heddle_bytes_reset(&first, SIZE_MAX);
    heddle_bytes_reset(&encoded, SIZE_MAX);
    PROMISE(heddle_bytes_reserve(&first, 1) && heddle_bytes_reserve(&second, 1));
    PROMISE(heddle_hpack_encode_start(&writer, &encoded));
    while ((result = heddle_hpack_block_next(&block, &field)) == HEDDLE_HPACK_FIELD) {
        PROMISE(reader.table.size <= reader.table.limit && reader.table.limit <= reader.limit);
        PROMISE(reader.table.count * HEDDLE_HPACK_OVERHEAD <= reader.table.size);
        PROMISE(++count <= MOST_FIELDS);
        note(&first, &field);
        PROMISE(heddle_hpack_encode(&writer, &encoded, field.name, field.name_size, field.value, field.value_size));
    }
    free(copy);
    read_again(count);
    return result == HEDDLE_HPACK_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    uint32_t limit = *data & 1 ? 100 : HEDDLE_HPACK_DEFAULT_SIZE;
    heddle_hpack_decoder_start(&reader, limit);
    heddle_hpack_decoder_start(&checker, HEDDLE_HPACK_DEFAULT_SIZE);
    heddle_hpack_encoder_start(&writer);
    heddle_hpack_encoder_limit(&writer, limit);
    /* Each block is behind its size; the last one may be cut short. */
    const char *at = (const char *)data + 1, *end = (const char *)data + size;
    for (unsigned i = 0; i < BLOCKS && at < end; i++) {
        size_t block = (uint8_t)*at++;
        if (block > (size_t)(end - at))
            block = (size_t)(end - at);
        if (!decode_block(at, block))
            break;
        at += block;
        if (*data & 2)
            heddle_hpack_encoder_trim(&writer);
    }
    heddle_hpack_table_free(&reader.table);
    heddle_hpack_table_free(&checker.table);
    heddle_hpack_table_free(&writer.table);
    heddle_bytes_reset(&scratch, 0);
    heddle_bytes_reset(&again, 0);
    heddle_bytes_reset(&encoded, 0);
    heddle_bytes_reset(&first, 0);
    heddle_bytes_reset(&second, 0);
    return 0;
}
