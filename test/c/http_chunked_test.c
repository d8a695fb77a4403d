/* sources: http/h1/chunked_decoder.c http/text.c http/h1/line_errors.c http/rejection.c http/request_limits.c */
#include "../fuzz/chunked_fuzz.c"

enum { CHECK_CHOICES = 2 };

#include "http_corpus.h"

static void corpus_of_chunked_bodies_keeps_the_invariants(void)
{
    CHECK(check_corpus("chunked") >= 15);
}

static void any_byte_at_any_place_keeps_the_invariants(void)
{
    static const char body[] = "2;a=b\r\nhi\r\n0a\r\n0123456789\r\n0\r\nA: b\r\n\r\nrest";
    char copy[sizeof(body)];
    for (size_t at = 0; at < sizeof(body) - 1; at++) {
        memcpy(copy, body, sizeof(body));
        for (int byte = 0; byte < 256; byte += byte < 128 ? 1 : 16) {
            copy[at] = (char)byte;
            check_promises(copy, sizeof(body) - 1);
        }
    }
}

/* The decoder's memory of the body is numbers alone: a body of more than 4 GiB in one chunk. */
static void chunk_sizes_beyond_32_bits_are_counted(void)
{
    enum { PIECE = 1 << 20 };
    heddle_http_limits limits = {.header = 100, .header_count = 1, .body = UINT64_C(1) << 40};
    heddle_chunked chunked;
    heddle_rejection rejection;
    char *piece = calloc(1, PIECE);
    size_t length;
    heddle_chunked_start(&chunked, 0, 0);
    CHECK_EQUAL(11, heddle_chunked_decode(&chunked, "100100000\r\n", 11, piece, &length, &limits, &rejection));
    for (int i = 0; i < (1 << 12) + 1; i++) {
        CHECK_EQUAL(PIECE, heddle_chunked_decode(&chunked, piece, PIECE, piece, &length, &limits, &rejection));
        CHECK_EQUAL(PIECE, length);
    }
    CHECK(!chunked.done);
    CHECK_EQUAL(7, heddle_chunked_decode(&chunked, "\r\n0\r\n\r\n", 7, piece, &length, &limits, &rejection));
    CHECK_EQUAL(0, length);
    CHECK(chunked.done);
    CHECK_EQUAL(0, heddle_chunked_decode(&chunked, "more", 4, piece, &length, &limits, &rejection));
    free(piece);
}

static int status_of_trailers(const char *bytes, uint32_t head_bytes, uint32_t head_lines)
{
    heddle_http_limits limits = {.header = 1024, .header_count = 100, .body = 1024};
    heddle_chunked chunked;
    heddle_rejection rejection = {0};
    char output[64];
    size_t length;
    heddle_chunked_start(&chunked, head_bytes, head_lines);
    int64_t used = heddle_chunked_decode(&chunked, bytes, strlen(bytes), output, &length, &limits, &rejection);
    return used < 0 ? rejection.status : 0;
}

static void trailers_count_against_the_limits_of_the_head_section(void)
{
    static const char one[] = "0\r\nA: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n\r\n", two[] = "0\r\nA: b\r\nC: d\r\n\r\n";
    CHECK_EQUAL(0, status_of_trailers(one, 0, 99));
    CHECK_EQUAL(431, status_of_trailers(one, 1000, 0));
    CHECK_EQUAL(0, status_of_trailers(two, 1000, 98));
    CHECK_EQUAL(431, status_of_trailers(two, 0, 99));
}

/*
 * The session may give the bytes again that were rejected. From the state at the fault, the chunk's data here would be
 * the end of the body.
 */
static void rejected_body_stays_rejected(void)
{
    static const char body[] = "8\r\n\r\nGET / \r\n0\r\nA: \1\r\n\r\n";
    heddle_http_limits limits = {.header = 1024, .header_count = 100, .body = 1024};
    heddle_chunked chunked;
    heddle_rejection rejection = {0};
    char output[sizeof(body)];
    size_t length;
    heddle_chunked_start(&chunked, 0, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(-1, heddle_chunked_decode(&chunked, body, sizeof(body) - 1, output, &length, &limits, &rejection));
        CHECK_EQUAL(400, rejection.status);
    }
    CHECK(!chunked.done);
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("chunked body", "corpus of chunked bodies keeps the invariants",
              corpus_of_chunked_bodies_keeps_the_invariants);
    check_run("chunked body", "any byte at any place keeps the invariants", any_byte_at_any_place_keeps_the_invariants);
    check_run("chunked body", "trailers count against the limits of the head section",
              trailers_count_against_the_limits_of_the_head_section);
    check_run("chunked body", "chunk sizes beyond 32 bits are counted", chunk_sizes_beyond_32_bits_are_counted);
    check_run("chunked body", "rejected body stays rejected", rejected_body_stays_rejected);
    return check_end();
}
