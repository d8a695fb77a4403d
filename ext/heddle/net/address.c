#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

heddle_address heddle_address_of(const struct sockaddr *address)
{
    heddle_address result = {.family = (uint8_t)address->sa_family};
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *ip = (const struct sockaddr_in *)address;
        memcpy(result.bytes, &ip->sin_addr, 4);
        result.port = ntohs(ip->sin_port);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *ip = (const struct sockaddr_in6 *)address;
        memcpy(result.bytes, &ip->sin6_addr, 16);
        result.port = ntohs(ip->sin6_port);
    }
    return result;
}

static heddle_address address_by(int (*ask)(int, struct sockaddr *, socklen_t *), int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    if (ask(fd, (struct sockaddr *)&address, &size) != 0)
        return (heddle_address){0};
    return heddle_address_of((struct sockaddr *)&address);
}

heddle_address heddle_address_of_socket(int fd)
{
    return address_by(getsockname, fd);
}

heddle_address heddle_address_of_peer(int fd)
{
    return address_by(getpeername, fd);
}

const char *heddle_address_text(const heddle_address *address, char room[HEDDLE_ADDRESS_ROOM])
{
    _Static_assert(HEDDLE_ADDRESS_ROOM >= INET6_ADDRSTRLEN, "the longest address fits");
    if (address->family == AF_UNIX)
        return "unix";
    if (address->family == 0 || !inet_ntop(address->family, address->bytes, room, HEDDLE_ADDRESS_ROOM))
        return NULL;
    /* A socket for both families reports an IPv4 client as "::ffff:192.0.2.1". Only the IPv4 part is returned. */
    return strncmp(room, "::ffff:", 7) == 0 && strchr(room, '.') ? room + 7 : room;
}

bool heddle_address_read(const char *text, size_t size, heddle_address *address)
{
    char copy[HEDDLE_ADDRESS_ROOM];
    const char *colon = memchr(text, ':', size), *bracket = NULL;
    bool two = colon && memchr(colon + 1, ':', size - (size_t)(colon + 1 - text));
    if (size && *text == '[') {
        bracket = memchr(text, ']', size);
        if (!bracket)
            return false;
        text++;
        size = (size_t)(bracket - text);
    } else if (colon && !two) {
        size = (size_t)(colon - text);
    }
    if (size == 0 || size >= sizeof(copy))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    *address = (heddle_address){.family = bracket || two ? AF_INET6 : AF_INET};
    return inet_pton(address->family, copy, address->bytes) == 1;
}
