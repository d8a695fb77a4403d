/* sources: net/proxy_header.c */

/*
 * Headers of the PROXY protocol: any bytes give one result however they are cut, what follows a header does not matter,
 * and an accepted line is what a second, slow reading of it finds. The first byte of an input means nothing.
 */

#include "net/proxy_header.h"

#include "fuzz.h"

#include <arpa/inet.h>

static long parse(heddle_proxy_header *header, const char *bytes, size_t size)
{
    char *copy = fuzz_copy(bytes, size);
    *header = (heddle_proxy_header){.secure = true, .source = {.family = 77}};
    long result = heddle_proxy_header_parse(header, copy, size);
    free(copy);
    PROMISE(result >= -1 && result <= (long)size);
    PROMISE(result > 0 || header->source.family == 77); /* nothing is touched before it is complete */
    return result;
}

static bool same_address(const heddle_address *a, const heddle_address *b)
{
    return a->family == b->family && a->port == b->port && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static void check_line(const heddle_proxy_header *header, const char *bytes, size_t size)
{
    PROMISE(size <= 107 && memcmp(bytes, "PROXY ", 6) == 0 && memcmp(bytes + size - 2, "\r\n", 2) == 0);
    PROMISE(!memchr(bytes, '\n', size - 1) && !memchr(bytes, 0, size) && !header->secure);
    if (header->source.family == 0) {
        PROMISE(memcmp(bytes + 6, "UNKNOWN", 7) == 0 && header->destination.family == 0);
        return;
    }
    char line[108], word[5], from[108], to[108], from_port[108], to_port[108], rest;
    memcpy(line, bytes, size);
    line[size - 2] = 0;
    PROMISE(sscanf(line, "PROXY %4s %107s %107s %107s %107s%c", word, from, to, from_port, to_port, &rest) == 5);
    PROMISE(strlen(word) + strlen(from) + strlen(to) + strlen(from_port) + strlen(to_port) + 10 == size - 2);
    int family = strcmp(word, "TCP4") == 0 ? AF_INET : AF_INET6;
    PROMISE(family == AF_INET || strcmp(word, "TCP6") == 0);
    heddle_address source = {.family = (uint8_t)family, .port = (uint16_t)atoi(from_port)};
    heddle_address destination = {.family = (uint8_t)family, .port = (uint16_t)atoi(to_port)};
    PROMISE(inet_pton(family, from, source.bytes) == 1 && inet_pton(family, to, destination.bytes) == 1);
    PROMISE(same_address(&header->source, &source) && same_address(&header->destination, &destination));
    PROMISE(atoi(from_port) <= 65535 && atoi(to_port) <= 65535);
}

static void check_binary(const heddle_proxy_header *header, const uint8_t *bytes, size_t size)
{
    PROMISE(memcmp(bytes, "\r\n\r\n\0\r\nQUIT\n", 12) == 0 && bytes[12] >> 4 == 2);
    PROMISE(size == 16 + ((size_t)bytes[14] << 8 | bytes[15]));
    bool local = (bytes[12] & 15) == 0;
    int family = local ? 0 : bytes[13] >> 4 == 1 ? AF_INET : bytes[13] >> 4 == 2 ? AF_INET6 : 0;
    PROMISE(header->source.family == family && header->destination.family == family);
    size_t length = family == AF_INET ? 4 : 16;
    if (family) {
        PROMISE(memcmp(header->source.bytes, bytes + 16, length) == 0);
        PROMISE(memcmp(header->destination.bytes, bytes + 16 + length, length) == 0);
        PROMISE(header->source.port == (bytes[16 + 2 * length] << 8 | bytes[17 + 2 * length]));
    }
    PROMISE(!local || !header->secure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *bytes = (const char *)data + 1;
    heddle_proxy_header whole, part;
    long result = parse(&whole, bytes, --size);
    if (result > 0 && bytes[0] == 'P')
        check_line(&whole, bytes, (size_t)result);
    else if (result > 0)
        check_binary(&whole, data + 1, (size_t)result);
    for (size_t cut = 1; cut < size; cut++) {
        long early = parse(&part, bytes, cut);
        if (result > 0)
            PROMISE(early == (cut < (size_t)result ? 0 : result));
        else
            PROMISE(early == 0 || early == result); /* refused earlier, maybe, and never taken back */
    }
    return 0;
}
