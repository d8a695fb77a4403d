/* UDP sockets that receive many datagrams with one system call: see datagram.h. */

#define __APPLE_USE_RFC_3542 1 /* without it, macOS does not declare struct in6_pktinfo */

#include "net/datagram.h"

enum {
    CONTROL_ROOM = 64, /* bytes of ancillary data, for one struct in6_pktinfo or in_pktinfo */
};

_Static_assert(CONTROL_ROOM >= CMSG_SPACE(sizeof(struct in6_pktinfo)), "the local address fits");

typedef union {
    struct cmsghdr aligned;
    char bytes[CONTROL_ROOM];
} control;

/* -- recvmmsg, or its replacement ---------------------------------------------------------------------------------- */

#ifdef HAVE_RECVMMSG

typedef struct mmsghdr message;

static int receive_messages(int fd, message *messages, unsigned count)
{
    return recvmmsg(fd, messages, count, MSG_DONTWAIT, NULL);
}

#else

typedef struct {
    struct msghdr msg_hdr;
    unsigned msg_len;
} message;

/*
 * Replaces recvmmsg. Returns the number of messages, or -1 if the first one failed. The error of a later message is
 * lost, unless it occurs again in the next call.
 */
static int receive_messages(int fd, message *messages, unsigned count)
{
    unsigned done = 0;
    for (; done < count; done++) {
        ssize_t size = recvmsg(fd, &messages[done].msg_hdr, MSG_DONTWAIT);
        if (size < 0)
            break;
        messages[done].msg_len = (unsigned)size;
    }
    return done ? (int)done : -1;
}

#endif

/* -- the local address --------------------------------------------------------------------------------------------- */

static void read_own_address(struct msghdr *header, heddle_datagram_peer *peer)
{
    peer->has_own = false;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
#ifdef IP_PKTINFO
        if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo own;
            memcpy(&own, CMSG_DATA(part), sizeof(own));
            memcpy(peer->own, &own.ipi_spec_dst, 4);
            peer->has_own = true;
        }
#endif
        if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo own;
            memcpy(&own, CMSG_DATA(part), sizeof(own));
            memcpy(peer->own, &own.ipi6_addr, 16);
            peer->own_interface = (uint32_t)own.ipi6_ifindex;
            peer->has_own = true;
        }
    }
}

static void write_control(struct msghdr *header, control *memory, int level, int type, const void *data, size_t size)
{
    memset(memory, 0, sizeof(*memory));
    header->msg_control = memory;
    header->msg_controllen = CMSG_SPACE(size);
    struct cmsghdr *part = CMSG_FIRSTHDR(header);
    part->cmsg_level = level;
    part->cmsg_type = type;
    part->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(part), data, size);
}

/*
 * Sets the source address of a response to the address to which the request was sent: a client ignores responses from
 * other addresses. A multicast address can't be a source address, so for a request to a multicast address the kernel
 * chooses one of this machine's addresses.
 */
static void write_own_address(struct msghdr *header, control *memory, const heddle_datagram_peer *peer)
{
    header->msg_control = NULL;
    header->msg_controllen = 0;
    if (!peer->has_own)
        return;
    if (peer->remote.any.sa_family == AF_INET6) {
        struct in6_pktinfo own = {0}; /* no interface unless set below: a response may leave by any */
        memcpy(&own.ipi6_addr, peer->own, 16);
        if (IN6_IS_ADDR_MULTICAST(&own.ipi6_addr))
            return;
        if (IN6_IS_ADDR_LINKLOCAL(&own.ipi6_addr))
            own.ipi6_ifindex = peer->own_interface;
        write_control(header, memory, IPPROTO_IPV6, IPV6_PKTINFO, &own, sizeof(own));
    } else {
#ifdef IP_PKTINFO
        struct in_pktinfo own = {0}; /* no interface, as above */
        memcpy(&own.ipi_spec_dst, peer->own, 4);
        if (IN_MULTICAST(ntohl(own.ipi_spec_dst.s_addr)))
            return;
        write_control(header, memory, IPPROTO_IP, IP_PKTINFO, &own, sizeof(own));
#endif
    }
}

/* -- receiving ----------------------------------------------------------------------------------------------------- */

struct heddle_datagram_incoming {
    message messages[HEDDLE_DATAGRAM_BATCH];
    struct iovec pieces[HEDDLE_DATAGRAM_BATCH];
    control controls[HEDDLE_DATAGRAM_BATCH];
    heddle_datagram datagrams[HEDDLE_DATAGRAM_BATCH];
    char bytes[]; /* max_size bytes for each datagram; pages that are never written take no memory */
};

static size_t incoming_size(const heddle_datagram_socket *socket)
{
    return sizeof(heddle_datagram_incoming) + HEDDLE_DATAGRAM_BATCH * socket->max_size;
}

/* Sets the sizes of the buffers, which the kernel overwrites with the sizes of each received datagram. */
static void reset_message(heddle_datagram_incoming *incoming, int index, bool is_wildcard)
{
    struct msghdr *header = &incoming->messages[index].msg_hdr;
    header->msg_namelen = sizeof(incoming->datagrams[index].peer.remote);
    header->msg_control = is_wildcard ? &incoming->controls[index] : NULL;
    header->msg_controllen = is_wildcard ? sizeof(incoming->controls[index]) : 0;
    header->msg_flags = 0;
}

static heddle_datagram_incoming *allocate_incoming(heddle_datagram_socket *socket)
{
    heddle_datagram_incoming *incoming = malloc(incoming_size(socket));
    if (!incoming)
        return NULL;
    memset(incoming, 0, sizeof(*incoming));
    for (int i = 0; i < HEDDLE_DATAGRAM_BATCH; i++) {
        struct msghdr *header = &incoming->messages[i].msg_hdr;
        incoming->datagrams[i].bytes = incoming->bytes + (size_t)i * socket->max_size;
        incoming->pieces[i] = (struct iovec){(char *)incoming->datagrams[i].bytes, socket->max_size};
        header->msg_iov = &incoming->pieces[i];
        header->msg_iovlen = 1;
        header->msg_name = &incoming->datagrams[i].peer.remote;
        reset_message(incoming, i, socket->is_wildcard);
    }
    return incoming;
}

int heddle_datagram_receive(heddle_datagram_socket *socket)
{
    if (!socket->incoming && !(socket->incoming = allocate_incoming(socket)))
        return -ENOMEM;
    heddle_datagram_incoming *incoming = socket->incoming;
    int count;
    HEDDLE_RETRY(count, receive_messages(socket->fd, incoming->messages, HEDDLE_DATAGRAM_BATCH));
    if (count < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    for (int i = 0; i < count; i++) {
        heddle_datagram *datagram = &incoming->datagrams[i];
        datagram->size = incoming->messages[i].msg_len;
        datagram->truncated = incoming->messages[i].msg_hdr.msg_flags & MSG_TRUNC;
        read_own_address(&incoming->messages[i].msg_hdr, &datagram->peer);
        reset_message(incoming, i, socket->is_wildcard);
    }
    return count;
}

const heddle_datagram *heddle_datagram_at(const heddle_datagram_socket *socket, int index)
{
    return &socket->incoming->datagrams[index];
}

bool heddle_datagram_is_late_error(int error)
{
    return error == -ECONNREFUSED || error == -EHOSTUNREACH || error == -ENETUNREACH;
}

/* -- sending ------------------------------------------------------------------------------------------------------- */

bool heddle_datagram_send(heddle_datagram_socket *socket, const void *bytes, size_t size,
                          const heddle_datagram_peer *peer)
{
    bool is_ipv6 = peer->remote.any.sa_family == AF_INET6;
    struct iovec piece = {(void *)bytes, size};
    control memory;
    struct msghdr header = {
        .msg_name = (void *)&peer->remote.any,
        .msg_namelen = is_ipv6 ? sizeof(peer->remote.ipv6) : sizeof(peer->remote.ipv4),
        .msg_iov = &piece,
        .msg_iovlen = 1,
    };
    ssize_t result;
    write_own_address(&header, &memory, peer);
    HEDDLE_RETRY(result, sendmsg(socket->fd, &header, MSG_DONTWAIT));
    if (result < 0)
        socket->unsent++;
    return result >= 0;
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

size_t heddle_datagram_memory_size(const heddle_datagram_socket *socket)
{
    return socket->incoming ? incoming_size(socket) : 0;
}

void heddle_datagram_release_memory(heddle_datagram_socket *socket)
{
    free(socket->incoming);
    socket->incoming = NULL;
}
