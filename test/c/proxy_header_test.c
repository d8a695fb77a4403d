/* sources: net/proxy_header.c */
#include "../fuzz/proxy_header_fuzz.c"

enum { CHECK_CHOICES = 1 };

#include "http_corpus.h"

static const char SIGNATURE_BYTES[] = "\r\n\r\n\0\r\nQUIT\n";

/* A binary header: version and command, family and protocol, what follows. */
static size_t binary(char *bytes, int command, int family, const char *rest, size_t size)
{
    memcpy(bytes, SIGNATURE_BYTES, 12);
    bytes[12] = (char)command;
    bytes[13] = (char)family;
    bytes[14] = (char)(size >> 8);
    bytes[15] = (char)size;
    memcpy(bytes + 16, rest, size);
    return 16 + size;
}

static void expect(long result, const char *bytes, size_t size)
{
    heddle_proxy_header header;
    CHECK_EQUAL(result, parse(&header, bytes, size));
    check_promises(bytes, size);
}

static void corpus_of_proxy_headers_keeps_the_invariants(void)
{
    CHECK(check_corpus("proxy_header") >= 8);
}

static void headers_of_version_1_are_parsed(void)
{
    heddle_proxy_header header;
    const char *line = "PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\nGET /";
    CHECK_EQUAL(45, parse(&header, line, strlen(line)));
    CHECK_EQUAL(AF_INET, header.source.family);
    CHECK(memcmp(header.source.bytes, "\xC0\x00\x02\x07", 4) == 0 && header.source.port == 56324);
    CHECK(memcmp(header.destination.bytes, "\xC6\x33\x64\x01", 4) == 0 && header.destination.port == 443);
    line = "PROXY TCP6 2001:db8::1 ::1 1 65535\r\n";
    CHECK_EQUAL((long)strlen(line), parse(&header, line, strlen(line)));
    CHECK_EQUAL(AF_INET6, header.source.family);
    CHECK(header.source.bytes[0] == 0x20 && header.source.bytes[15] == 1 && header.destination.port == 65535);
    line = "PROXY UNKNOWN whatever 1 2\r\nx";
    CHECK_EQUAL((long)strlen(line) - 1, parse(&header, line, strlen(line)));
    CHECK_EQUAL(0, header.source.family);
    const char *longest =
        "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
        "65535 65535\r\n";
    CHECK_EQUAL(107, strlen(longest));
    expect(107, longest, 107);
}

static void malformed_headers_of_version_1_are_rejected(void)
{
    const char *wrong[] = {
        "PROXY \r\n", "PROXY TCP4\r\n", "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
        "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 +2\r\n",
        "PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n", "PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\rx", "PROXY UNKNOWNX\r\n",
        "PROXY TCP4\t1.2.3.4 1.2.3.4 1 2\r\n", "PROXX", "GET / HTTP/1.1\r\n", "proxy TCP4",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        expect(-1, wrong[i], strlen(wrong[i]));
    /* inet_pton ends at a NUL. */
    static const char nul[] = "PROXY TCP4 1.2.3.4\0x 1.2.3.4 1 2\r\n", unknown[] = "PROXY UNKNOWN \0\r\n";
    expect(-1, nul, sizeof(nul) - 1);
    expect(-1, unknown, sizeof(unknown) - 1);
    char line[120];
    memset(line, 'x', sizeof(line));
    memcpy(line, "PROXY UNKNOWN ", 14);
    expect(0, line, 105);
    expect(-1, line, 106);
    memcpy(line + 106, "\r\n", 2);
    expect(-1, line, 108);
}

static void headers_of_version_2_are_parsed(void)
{
    heddle_proxy_header header;
    char bytes[1024];
    size_t size = binary(bytes, 0x21, 0x11, "\x01\x02\x03\x04\x05\x06\x07\x08\x00\x50\x01\xBB", 12);
    CHECK_EQUAL(28, parse(&header, bytes, size));
    CHECK(header.source.family == AF_INET && header.source.bytes[3] == 4 && header.source.port == 80);
    CHECK(header.destination.bytes[0] == 5 && header.destination.port == 443 && !header.secure);
    check_promises(bytes, size);
    char rest[400] = {[0] = 0x20, [1] = 1, [15] = 1, [31] = 2, [33] = 9, [35] = 8};
    size = binary(bytes, 0x21, 0x21, rest, 36);
    CHECK_EQUAL(52, parse(&header, bytes, size));
    CHECK(header.source.family == AF_INET6 && header.source.port == 9 && header.destination.port == 8);
    check_promises(bytes, size);
    memcpy(rest + 36, "\x04\x00\x00\x20\x00\x05\x01\x00\x00\x00\x00", 11); /* NOOP, and SSL with its client bit */
    size = binary(bytes, 0x21, 0x21, rest, 47);
    CHECK_EQUAL(63, parse(&header, bytes, size));
    CHECK(header.secure);
    check_promises(bytes, size);
    size = binary(bytes, 0x21, 0x31, rest, 216);
    CHECK_EQUAL(232, parse(&header, bytes, size));
    CHECK_EQUAL(0, header.source.family);
    size = binary(bytes, 0x20, 0x00, "anything", 8);
    CHECK_EQUAL(24, parse(&header, bytes, size));
    CHECK(header.source.family == 0 && !header.secure);
    check_promises(bytes, size);
}

static void malformed_headers_of_version_2_are_rejected(void)
{
    char bytes[1024], rest[400] = {0};
    const struct {
        int command, family;
        size_t size;
    } wrong[] = {{0x11, 0x11, 12}, {0x22, 0x11, 12}, {0x21, 0x41, 12}, {0x21, 0x13, 12},
                 {0x21, 0x11, 11}, {0x21, 0x21, 35}, {0x21, 0x31, 215}, {0x21, 0x11, 13}, {0x21, 0x11, 14}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        expect(-1, bytes, binary(bytes, wrong[i].command, wrong[i].family, rest, wrong[i].size));
    rest[12] = 4;
    rest[14] = 1; /* one more byte than there is */
    expect(-1, bytes, binary(bytes, 0x21, 0x11, rest, 15));
    expect(-1, "\r\n\r\nGET", 7);
    expect(0, "\r\n\r\n\0\r\nQUIT", 11);
}

static void any_byte_at_any_place_keeps_the_invariants(void)
{
    char bytes[64];
    size_t size = binary(bytes, 0x21, 0x11,
                         "\x01\x02\x03\x04\x05\x06\x07\x08\x00\x50\x01\xBB\x20\x00\x05\x01\x00\x00\x00\x00", 20);
    char line[] = "PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\nG";
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < size; at++) {
            char before = bytes[at];
            bytes[at] = (char)byte;
            check_promises(bytes, size);
            bytes[at] = before;
        }
        for (size_t at = 0; at < sizeof(line) - 1; at++) {
            char before = line[at];
            line[at] = (char)byte;
            check_promises(line, sizeof(line) - 1);
            line[at] = before;
        }
    }
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("PROXY protocol", "corpus of proxy headers keeps the invariants",
              corpus_of_proxy_headers_keeps_the_invariants);
    check_run("PROXY protocol", "headers of version 1 are parsed", headers_of_version_1_are_parsed);
    check_run("PROXY protocol", "malformed headers of version 1 are rejected",
              malformed_headers_of_version_1_are_rejected);
    check_run("PROXY protocol", "headers of version 2 are parsed", headers_of_version_2_are_parsed);
    check_run("PROXY protocol", "malformed headers of version 2 are rejected",
              malformed_headers_of_version_2_are_rejected);
    check_run("PROXY protocol", "any byte at any place keeps the invariants",
              any_byte_at_any_place_keeps_the_invariants);
    return check_end();
}
