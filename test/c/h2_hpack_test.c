/* sources: http/h2/hpack_decoder.c http/h2/hpack_encoder.c http/h2/hpack_table.c http/h2/huffman.c http/h2/tables.c */

/* HPACK: the examples of RFC 7541, appendix C, and what bounds a decoder and an encoder. */

#include "check.h"
#include "http/h2/hpack.h"

enum {
    TEXT = 8192,
};

static heddle_hpack_decoder decoder;
static heddle_bytes scratch;

static size_t parse_hex(const char *hex, uint8_t *to)
{
    size_t size = 0;
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        to[size++] = (uint8_t)byte;
    return size;
}

/* The fields as lines; the result of the last call. */
static heddle_hpack_result decode_bytes(const void *bytes, size_t size, char *text)
{
    void *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    heddle_hpack_block block = heddle_hpack_block_start(&decoder, &scratch, copy, size);
    heddle_hpack_field field;
    heddle_hpack_result result;
    *text = '\0';
    while ((result = heddle_hpack_block_next(&block, &field)) == HEDDLE_HPACK_FIELD) {
        char *end = text + strlen(text);
        sprintf(end, "%.*s: %.*s%s\n", (int)field.name_size, field.name, (int)field.value_size, field.value,
                field.never_indexed ? " (never indexed)" : "");
    }
    free(copy);
    return result;
}

static heddle_hpack_result decode_hex(const char *hex, char *text)
{
    uint8_t bytes[TEXT];
    return decode_bytes(bytes, parse_hex(hex, bytes), text);
}

static void expect(const char *hex, const char *fields, uint32_t table_size)
{
    char text[TEXT];
    CHECK_EQUAL(HEDDLE_HPACK_END, decode_hex(hex, text));
    if (strcmp(fields, text) != 0)
        printf("%s", text);
    CHECK(strcmp(fields, text) == 0);
    CHECK_EQUAL(table_size, decoder.table.size);
}

static void expect_malformed(const char *hex)
{
    char text[TEXT];
    heddle_hpack_decoder_start(&decoder, HEDDLE_HPACK_DEFAULT_SIZE);
    CHECK_EQUAL(HEDDLE_HPACK_MALFORMED, decode_hex(hex, text));
    heddle_hpack_table_free(&decoder.table);
}

static void start(uint32_t limit)
{
    heddle_hpack_decoder_start(&decoder, limit);
}

static void finish(void)
{
    heddle_hpack_table_free(&decoder.table);
    heddle_bytes_reset(&scratch, 0);
}

/* -- RFC 7541, appendix C ------------------------------------------------------------------------------------------ */

static void representations_are_decoded(void)
{
    start(4096);
    expect("400a637573746f6d2d6b65790d637573746f6d2d686561646572", "custom-key: custom-header\n", 55);
    finish();
    start(4096);
    expect("040c2f73616d706c652f70617468", ":path: /sample/path\n", 0);
    expect("100870617373776f726406736563726574", "password: secret (never indexed)\n", 0);
    expect("82", ":method: GET\n", 0);
    finish();
}

#define FIRST_REQUEST ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n"
#define SECOND_REQUEST FIRST_REQUEST "cache-control: no-cache\n"
#define THIRD_REQUEST                                                                                                 \
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value\n"

static void requests_are_decoded(void)
{
    start(4096);
    expect("828684410f7777772e6578616d706c652e636f6d", FIRST_REQUEST, 57);
    expect("828684be58086e6f2d6361636865", SECOND_REQUEST, 110);
    expect("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", THIRD_REQUEST, 164);
    finish();
}

static void requests_with_huffman_code_are_decoded(void)
{
    start(4096);
    expect("828684418cf1e3c2e5f23a6ba0ab90f4ff", FIRST_REQUEST, 57);
    expect("828684be5886a8eb10649cbf", SECOND_REQUEST, 110);
    expect("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", THIRD_REQUEST, 164);
    finish();
}

#define ANSWER(status, second)                                                                                        \
    ":status: " status "\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:" second " GMT\n"                      \
    "location: https://www.example.com\n"
#define LAST_ANSWER                                                                                                   \
    ANSWER("200", "22") "content-encoding: gzip\n"                                                                    \
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n"

static void responses_are_decoded(void)
{
    start(256);
    expect("4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e17687474"
           "70733a2f2f7777772e6578616d706c652e636f6d", ANSWER("302", "21"), 222);
    expect("4803333037c1c0bf", ANSWER("307", "21"), 222);
    expect("88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a"
           "4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
           LAST_ANSWER, 215);
    finish();
}

static void responses_with_huffman_code_are_decoded(void)
{
    start(256);
    expect("488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae"
           "82ae43d3", ANSWER("302", "21"), 222);
    expect("4883640effc1c0bf", ANSWER("307", "21"), 222);
    expect("88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960"
           "d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007", LAST_ANSWER, 215);
    finish();
}

/* -- the decoder's bounds ------------------------------------------------------------------------------------------ */

static void malformed_blocks_are_rejected(void)
{
    static const char *const blocks[] = {
        "80",                         /* index 0 */
        "be",                         /* an empty dynamic table */
        "ff8080808000",               /* an integer of five bytes too many */
        "ffffffffff7f",               /* an integer above 32 bits */
        "ff",                         /* an integer that goes on */
        "40",                         /* a name that does not come */
        "400a6162",                   /* a name cut short */
        "40016104616263",             /* a value cut short */
        "4001617f",                   /* the size of a value cut short */
        "8220",                       /* an update behind a field */
        "3fe21f",                     /* a table larger than allowed */
        "00016182ffff",               /* Huffman: 16 bits of padding */
        "0001618118",                 /* Huffman: padding of zeros */
        "00016184ffffffff",           /* Huffman: the end of the string */
    };
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
        expect_malformed(blocks[i]);
    heddle_bytes_reset(&scratch, 0);
}

/* A reference to an entry that the same literal evicts. */
static void name_stays_valid_when_its_entry_is_evicted(void)
{
    char text[TEXT];
    start(64);
    expect("40046e616d650576616c7565", "name: value\n", 41);
    expect("7e066f7468657221", "name: other!\n", 42);
    expect("7e207878787878787878787878787878787878787878787878787878787878787878", "name: "
           "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", 0); /* larger than the table, which it empties */
    CHECK_EQUAL(HEDDLE_HPACK_MALFORMED, decode_hex("be", text));
    finish();
}

/* -- the encoder --------------------------------------------------------------------------------------------------- */

static heddle_hpack_encoder encoder;
static heddle_bytes out;

static size_t encode(const char *name, const char *value)
{
    size_t before = out.size;
    CHECK(heddle_hpack_encode(&encoder, &out, name, strlen(name), value, strlen(value)));
    return out.size - before;
}

static void begin_block(void)
{
    heddle_bytes_reset(&out, SIZE_MAX);
    CHECK(heddle_hpack_encode_start(&encoder, &out));
}

static void expect_block(const char *fields)
{
    char text[TEXT];
    CHECK_EQUAL(HEDDLE_HPACK_END, decode_bytes(out.bytes, out.size, text));
    if (strcmp(fields, text) != 0)
        printf("%s", text);
    CHECK(strcmp(fields, text) == 0);
    CHECK_EQUAL(decoder.table.size, encoder.table.size);
}

static void field_that_is_sent_again_is_indexed(void)
{
    start(4096);
    heddle_hpack_encoder_start(&encoder);
    for (int i = 0; i < 3; i++) {
        begin_block();
        CHECK_EQUAL(1, encode(":status", "200"));
        size_t size = encode("content-type", "text/html; charset=utf-8");
        CHECK(i < 2 ? size > 1 : size == 1);
        CHECK(encode("set-cookie", "a=b") > 1);
        CHECK(encode("x-empty", "") > 0);
        expect_block(":status: 200\ncontent-type: text/html; charset=utf-8\nset-cookie: a=b (never indexed)\n"
                     "x-empty: \n");
    }
    heddle_hpack_encoder_trim(&encoder);
    begin_block();
    CHECK_EQUAL(4, out.size); /* 0, and the limit again */
    encode(":status", "404");
    expect_block(":status: 404\n");
    heddle_hpack_encoder_limit(&encoder, 0);
    heddle_hpack_encoder_limit(&encoder, 100);
    for (int i = 0; i < 100; i++) {
        char value[32];
        begin_block();
        snprintf(value, sizeof(value), "value %d", i / 3);
        encode("x-name", value);
        CHECK(encoder.table.size <= 100);
        char line[64];
        snprintf(line, sizeof(line), "x-name: %s\n", value);
        expect_block(line);
    }
    heddle_hpack_table_free(&encoder.table);
    heddle_bytes_reset(&out, 0);
    finish();
}

static void every_byte_is_encoded_and_decoded(void)
{
    char text[512], back[512];
    uint8_t coded[4096];
    for (int i = 0; i < 512; i++)
        text[i] = (char)(i * 7 + i / 256);
    for (size_t size = 0; size <= sizeof(text); size++) {
        size_t coded_size = heddle_huffman_size(text, size);
        CHECK(coded_size <= sizeof(coded));
        heddle_huffman_encode(text, size, coded);
        CHECK(size <= heddle_huffman_room(coded_size));
        CHECK_EQUAL(size, heddle_huffman_decode(coded, coded_size, back));
        CHECK(memcmp(text, back, size) == 0);
    }
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("hpack", "representations of appendix C.2 are decoded", representations_are_decoded);
    check_run("hpack", "requests of appendix C.3 are decoded", requests_are_decoded);
    check_run("hpack", "requests with Huffman code of appendix C.4 are decoded",
              requests_with_huffman_code_are_decoded);
    check_run("hpack", "responses of appendix C.5 are decoded", responses_are_decoded);
    check_run("hpack", "responses with Huffman code of appendix C.6 are decoded",
              responses_with_huffman_code_are_decoded);
    check_run("hpack", "malformed blocks are rejected", malformed_blocks_are_rejected);
    check_run("hpack", "name stays valid when its entry is evicted", name_stays_valid_when_its_entry_is_evicted);
    check_run("hpack", "field that is sent again is indexed", field_that_is_sent_again_is_indexed);
    check_run("hpack", "every byte is encoded and decoded by the Huffman code", every_byte_is_encoded_and_decoded);
    return check_end();
}
