#include "net/proxy_header.h"

#include <arpa/inet.h>

/* -- version 1: a line ------------------------------------------------------------------------------------------- */

enum {
    LONGEST_LINE = 107, /* including its CRLF */
};

static const char WORD[] = "PROXY ";

/* The part of a line that was not split into words yet. */
typedef struct {
    const char *at, *end;
} rest;

/* Returns the length of the next word; 0 if it is empty, longer than the room, or if the line has ended. */
static size_t read_word(rest *line, char *word, size_t room)
{
    size_t size = 0;
    while (line->at < line->end && *line->at != ' ') {
        if (size == room - 1)
            return 0;
        word[size++] = *line->at++;
    }
    word[size] = 0;
    if (line->at < line->end)
        line->at++; /* skips one space */
    return size;
}

static bool read_address(rest *line, int family, heddle_address *address)
{
    char word[INET6_ADDRSTRLEN + 1];
    address->family = (uint8_t)family;
    return read_word(line, word, sizeof(word)) && inet_pton(family, word, address->bytes) == 1;
}

static bool read_port(rest *line, heddle_address *address)
{
    char word[6];
    size_t size = read_word(line, word, sizeof(word));
    unsigned port = 0;
    for (size_t i = 0; i < size; i++) {
        if (word[i] < '0' || word[i] > '9')
            return false;
        port = port * 10 + (unsigned)(word[i] - '0');
    }
    address->port = (uint16_t)port;
    return size && port <= UINT16_MAX && (word[0] != '0' || size == 1);
}

static bool read_line(heddle_proxy_header *header, rest line)
{
    char word[8];
    size_t size = read_word(&line, word, sizeof(word));
    if (size == 7 && memcmp(word, "UNKNOWN", 7) == 0)
        return true; /* the specification allows any text after UNKNOWN */
    if (size != 4 || memcmp(word, "TCP", 3) != 0 || (word[3] != '4' && word[3] != '6') || line.end[-1] == ' ')
        return false;
    int family = word[3] == '4' ? AF_INET : AF_INET6;
    return read_address(&line, family, &header->source) && read_address(&line, family, &header->destination) &&
           read_port(&line, &header->source) && read_port(&line, &header->destination) && line.at == line.end;
}

static long parse_line(heddle_proxy_header *header, const char *bytes, size_t size)
{
    size_t known = sizeof(WORD) - 1, seen = size < LONGEST_LINE ? size : LONGEST_LINE;
    if (memcmp(bytes, WORD, size < known ? size : known) != 0)
        return -1;
    const char *end = memchr(bytes, '\r', seen);
    size_t length = end ? (size_t)(end - bytes) : size;
    if (length + 2 > LONGEST_LINE || memchr(bytes, '\n', length) || memchr(bytes, 0, length))
        return -1;
    if (!end || length + 1 == size)
        return 0;
    if (end[1] != '\n')
        return -1;
    heddle_proxy_header read = {0};
    if (length <= known || !read_line(&read, (rest){bytes + known, end}))
        return -1;
    *header = read;
    return (long)length + 2;
}

/* -- version 2: binary ------------------------------------------------------------------------------------------- */

static const unsigned char SIGNATURE[] = {0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A};

enum {
    /* bytes of the fixed part: signature, version and command, family and protocol, length of the rest */
    FIXED = 16,
    TYPE_SSL = 0x20,
    CLIENT_SSL = 1,
};

static unsigned read_number16(const unsigned char *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

/* Reads the TLV fields: each has a type (1 byte), a length (2 bytes) and a value. */
static bool read_additions(heddle_proxy_header *header, const unsigned char *at, size_t size)
{
    while (size) {
        if (size < 3 || size - 3 < read_number16(at + 1))
            return false;
        size_t length = read_number16(at + 1);
        if (at[0] == TYPE_SSL && length >= 5)
            header->secure = (at[3] & CLIENT_SSL) != 0;
        at += 3 + length;
        size -= 3 + length;
    }
    return true;
}

static void read_pair(heddle_proxy_header *header, const unsigned char *at, int family, size_t length)
{
    header->source.family = header->destination.family = (uint8_t)family;
    memcpy(header->source.bytes, at, length);
    memcpy(header->destination.bytes, at + length, length);
    header->source.port = (uint16_t)read_number16(at + 2 * length);
    header->destination.port = (uint16_t)read_number16(at + 2 * length + 2);
}

static bool read_rest(heddle_proxy_header *header, const unsigned char *bytes, size_t size)
{
    unsigned command = bytes[12] & 0x0F, family = bytes[13] >> 4, protocol = bytes[13] & 0x0F;
    /* the size of both addresses and ports together, in bytes: unspecified, IPv4, IPv6, Unix */
    static const size_t addresses[] = {0, 12, 36, 216};
    if (command > 1 || family > 3 || protocol > 2)
        return false;
    if (command == 0)
        return true; /* the proxy's own connection, such as a health check: its addresses have no meaning */
    size_t length = addresses[family];
    if (size < length)
        return false;
    if (family == 1)
        read_pair(header, bytes + FIXED, AF_INET, 4);
    else if (family == 2)
        read_pair(header, bytes + FIXED, AF_INET6, 16);
    return family == 0 || read_additions(header, bytes + FIXED + length, size - length);
}

static long parse_binary(heddle_proxy_header *header, const unsigned char *bytes, size_t size)
{
    if (memcmp(bytes, SIGNATURE, size < sizeof(SIGNATURE) ? size : sizeof(SIGNATURE)) != 0)
        return -1;
    if (size > 12 && bytes[12] >> 4 != 2)
        return -1;
    if (size < FIXED)
        return 0;
    size_t length = read_number16(bytes + 14);
    if (size < FIXED + length)
        return 0;
    heddle_proxy_header read = {0};
    if (!read_rest(&read, bytes, length))
        return -1;
    *header = read;
    return (long)(FIXED + length);
}

long heddle_proxy_header_parse(heddle_proxy_header *header, const char *bytes, size_t size)
{
    if (size == 0)
        return 0;
    return bytes[0] == WORD[0] ? parse_line(header, bytes, size)
                               : parse_binary(header, (const unsigned char *)bytes, size);
}
