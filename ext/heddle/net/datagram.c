#define __APPLE_USE_RFC_3542 1 /* macOS declares struct in6_pktinfo only with it */

#include "net/datagram.h"

#include "selector/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONTROL_ROOM = 64,     /* bytes of ancillary data: one struct in6_pktinfo or in_pktinfo */
    KEPT_ROOM = 64 * 1024, /* bytes of the queue that stay allocated between batches */
};

_Static_assert(CONTROL_ROOM >= CMSG_SPACE(sizeof(struct in6_pktinfo)), "the own address fits");

typedef union {
    struct cmsghdr aligned;
    char bytes[CONTROL_ROOM];
} control;

/* -- recvmmsg and sendmmsg, or their replacement ------------------------------------------------------------------- */

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

/* The number of messages, or -1 when the first failed. A later error is lost, unless the next call meets it, too. */
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

#if defined(HAVE_RECVMMSG) && defined(HAVE_SENDMMSG)

static int send_messages(int fd, message *messages, unsigned count)
{
    return sendmmsg(fd, messages, count, MSG_DONTWAIT);
}

#else

static int send_messages(int fd, message *messages, unsigned count)
{
    unsigned done = 0;
    while (done < count && sendmsg(fd, &messages[done].msg_hdr, MSG_DONTWAIT) >= 0)
        done++;
    return done ? (int)done : -1;
}

#endif

/* -- the own address ----------------------------------------------------------------------------------------------- */

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
 * A client takes no response from another address than the one that it asked. No response can come from a multicast
 * address: there the kernel chooses one of its own.
 */
static void write_own_address(struct msghdr *header, control *memory, const heddle_datagram_peer *peer)
{
    header->msg_control = NULL;
    header->msg_controllen = 0;
    if (!peer->has_own)
        return;
    if (peer->remote.any.sa_family == AF_INET6) {
        struct in6_pktinfo own = {0}; /* without the interface: the way back may be another */
        memcpy(&own.ipi6_addr, peer->own, 16);
        if (IN6_IS_ADDR_MULTICAST(&own.ipi6_addr))
            return;
        if (IN6_IS_ADDR_LINKLOCAL(&own.ipi6_addr))
            own.ipi6_ifindex = peer->own_interface;
        write_control(header, memory, IPPROTO_IPV6, IPV6_PKTINFO, &own, sizeof(own));
    } else {
#ifdef IP_PKTINFO
        struct in_pktinfo own = {0}; /* without the interface, as above */
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
    char bytes[]; /* max_size for each datagram; the kernel provides pages only for those that are used */
};

static size_t incoming_size(const heddle_datagram_socket *socket)
{
    return sizeof(heddle_datagram_incoming) + HEDDLE_DATAGRAM_BATCH * socket->max_size;
}

/* The kernel has overwritten these fields with the sizes of the last datagram. */
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
    do {
        count = receive_messages(socket->fd, incoming->messages, HEDDLE_DATAGRAM_BATCH);
    } while (count < 0 && errno == EINTR);
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

struct heddle_datagram_outgoing {
    unsigned count;
    int64_t since; /* when the first one was queued, CLOCK_MONOTONIC ns */
    message messages[HEDDLE_DATAGRAM_BATCH];
    struct iovec pieces[HEDDLE_DATAGRAM_BATCH]; /* iov_base is set by the flush: the bytes move when they grow */
    control controls[HEDDLE_DATAGRAM_BATCH];
    heddle_datagram_peer peers[HEDDLE_DATAGRAM_BATCH];
    char *bytes; /* from malloc: one datagram behind the other */
    size_t used, capacity;
};

/* The caller's peer and memory must outlive the header. */
static void fill_header(struct msghdr *header, struct iovec *piece, control *memory, const heddle_datagram_peer *peer)
{
    bool is_ipv6 = peer->remote.any.sa_family == AF_INET6;
    *header = (struct msghdr){
        .msg_name = (void *)&peer->remote.any,
        .msg_namelen = is_ipv6 ? sizeof(peer->remote.ipv6) : sizeof(peer->remote.ipv4),
        .msg_iov = piece,
        .msg_iovlen = 1,
    };
    write_own_address(header, memory, peer);
}

/*
 * Sends messages in order. Those behind one that the kernel rejects are sent; when the socket's buffer is full, the
 * rest is dropped, as datagrams may be.
 */
static void send_in_order(heddle_datagram_socket *socket, message *messages, unsigned count)
{
    unsigned done = 0;
    while (done < count) {
        int taken = send_messages(socket->fd, messages + done, count - done);
        if (taken > 0) { /* fewer than all when the next one failed: the next call returns its error */
            socket->sent += (unsigned)taken;
            done += (unsigned)taken;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            socket->unsent += count - done;
            return;
        } else if (errno != EINTR) {
            socket->unsent++;
            done++;
        }
    }
}

void heddle_datagram_flush(heddle_datagram_socket *socket)
{
    heddle_datagram_outgoing *queue = socket->outgoing;
    if (!queue || queue->count == 0)
        return;
    char *start = queue->bytes;
    for (unsigned i = 0; i < queue->count; i++) {
        queue->pieces[i].iov_base = start;
        start += queue->pieces[i].iov_len;
    }
    send_in_order(socket, queue->messages, queue->count);
    heddle_datagram_drop_queue(socket);
    if (queue->capacity > KEPT_ROOM) {
        free(queue->bytes);
        queue->bytes = NULL;
        queue->capacity = 0;
    }
}

void heddle_datagram_drop_queue(heddle_datagram_socket *socket)
{
    if (!socket->outgoing)
        return;
    socket->outgoing->count = 0;
    socket->outgoing->used = 0;
}

/* Makes room for one more datagram; false without memory. */
static bool reserve_room(heddle_datagram_socket *socket, size_t size)
{
    if (!socket->outgoing && !(socket->outgoing = calloc(1, sizeof(*socket->outgoing))))
        return false;
    heddle_datagram_outgoing *queue = socket->outgoing;
    size_t capacity = queue->capacity ? queue->capacity : 4096;
    while (capacity - queue->used < size)
        capacity *= 2;
    if (capacity == queue->capacity)
        return true;
    char *bytes = realloc(queue->bytes, capacity);
    if (!bytes)
        return false;
    queue->bytes = bytes;
    queue->capacity = capacity;
    return true;
}

static void queue_datagram(heddle_datagram_socket *socket, const void *bytes, size_t size,
                           const heddle_datagram_peer *peer)
{
    heddle_datagram_outgoing *queue = socket->outgoing;
    unsigned index = queue->count++;
    if (size)
        memcpy(queue->bytes + queue->used, bytes, size);
    queue->used += size;
    queue->pieces[index].iov_len = size;
    queue->peers[index] = *peer;
    fill_header(&queue->messages[index].msg_hdr, &queue->pieces[index], &queue->controls[index], &queue->peers[index]);
    int64_t now = heddle_clock_now();
    if (index == 0)
        queue->since = now;
    if (queue->count == HEDDLE_DATAGRAM_BATCH || now - queue->since >= HEDDLE_DATAGRAM_MAX_DELAY)
        heddle_datagram_flush(socket);
}

bool heddle_datagram_send(heddle_datagram_socket *socket, const void *bytes, size_t size,
                          const heddle_datagram_peer *peer)
{
    uint64_t unsent = socket->unsent;
    if (size > HEDDLE_DATAGRAM_LARGEST) {
        socket->unsent++;
    } else if (socket->batches && reserve_room(socket, size)) {
        queue_datagram(socket, bytes, size, peer);
    } else {
        struct iovec piece = {(void *)bytes, size};
        control memory;
        message one = {0};
        fill_header(&one.msg_hdr, &piece, &memory, peer);
        send_in_order(socket, &one, 1);
    }
    return socket->unsent == unsent;
}

/* -- batches ------------------------------------------------------------------------------------------------------- */

void heddle_datagram_begin_batch(heddle_datagram_socket *socket)
{
    socket->batches++;
}

void heddle_datagram_end_batch(heddle_datagram_socket *socket)
{
    socket->batches--;
    heddle_datagram_flush(socket);
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

size_t heddle_datagram_memory_size(const heddle_datagram_socket *socket)
{
    return (socket->incoming ? incoming_size(socket) : 0) +
           (socket->outgoing ? sizeof(*socket->outgoing) + socket->outgoing->capacity : 0);
}

void heddle_datagram_release_memory(heddle_datagram_socket *socket)
{
    free(socket->incoming);
    socket->incoming = NULL;
    if (socket->outgoing)
        free(socket->outgoing->bytes);
    free(socket->outgoing);
    socket->outgoing = NULL;
}
