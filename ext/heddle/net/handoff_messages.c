/*
 * The messages by which connections move to another process: idle connections of a worker that ends, and connections
 * of a worker that is blocked. A message has the descriptor, the client's addresses, and the unused input. Later input
 * is still in the kernel. No client sees its connection closed.
 */

#include "net/sockets.h"
#include "selector/retry.h"

#include <fcntl.h>
#include <sys/socket.h>

enum {
    FLAG_SECURE = 1,
    FLAG_SESSION = 2, /* the bytes describe the session for the service; they are not input */
};

/*
 * Sent over a pair of SOCK_SEQPACKET sockets to any process that reads, perhaps of a newer version of this program. The
 * unused input follows it.
 */
typedef struct {
    uint32_t version, size;
    uint32_t flags, bytes;
    uint32_t sender;   /* its process id */
    /* when a running worker shared it (net/work_sharing.h), ns, CLOCK_MONOTONIC; 0: handed off for another reason */
    int64_t shared_at;
    heddle_address remote, local;
} handoff_message;

typedef union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
} attached_descriptor;

/* Sends the message and the pieces of input. `pieces[0]` is left free by the caller, for the message. */
static int send_message(heddle_connection *connection, struct iovec *pieces, int count, int socket, uint32_t flags,
                        int64_t shared_at)
{
    handoff_message fields;
    attached_descriptor attached;
    size_t bytes = 0;
    for (int i = 1; i <= count; i++)
        bytes += pieces[i].iov_len;
    if (count < 0 || bytes > HEDDLE_SCRATCH || connection->transport.operations != &heddle_plain_transport)
        return -EOPNOTSUPP;
    pieces[0] = (struct iovec){.iov_base = &fields, .iov_len = sizeof(fields)};
    memset(&fields, 0, sizeof(fields));
    fields.version = HEDDLE_HANDOFF_VERSION;
    fields.size = sizeof(fields);
    fields.flags = flags | (connection->secure ? FLAG_SECURE : 0);
    fields.bytes = (uint32_t)bytes;
    fields.sender = (uint32_t)getpid();
    fields.shared_at = shared_at;
    fields.remote = connection->remote;
    fields.local = connection->local;
    memset(&attached, 0, sizeof(attached));
    struct msghdr message = {.msg_iov = pieces,
                             .msg_iovlen = (size_t)count + 1,
                             .msg_control = attached.room,
                             .msg_controllen = sizeof(attached.room)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &connection->transport.fd, sizeof(int));
    ssize_t result;
    HEDDLE_RETRY(result, sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
    if (result >= 0)
        return 0;
    /* EMSGSIZE: the input does not fit into a message of this socket */
    return errno == EMSGSIZE ? -EOPNOTSUPP : errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

int heddle_connection_send(heddle_connection *connection, int socket, int64_t shared_at)
{
    struct iovec pieces[1 + HEDDLE_INPUT_PIECES];
    const heddle_protocol *protocol = connection->protocol;
    int count = protocol->collect_input ? protocol->collect_input(connection, pieces + 1) : -1;
    return send_message(connection, pieces, count, socket, 0, shared_at);
}

int heddle_connection_send_session(heddle_connection *connection, int socket, const char *bytes, size_t size)
{
    struct iovec pieces[] = {{0}, {.iov_base = (char *)bytes, .iov_len = size}};
    return send_message(connection, pieces, 1, socket, FLAG_SESSION, 0);
}

/* Claims a connection for a drain, if it is idle. Connections that are not idle are served to their end here. */
static bool claim_idle_connection(heddle_connection *connection)
{
    return connection && connection->protocol && !connection->protocol->stays &&
           connection->transport.operations == &heddle_plain_transport && connection->protocol->is_idle(connection) &&
           heddle_connection_acquire(connection);
}

int heddle_connection_hand_off(heddle_connection *connection, int socket, int64_t shared_at)
{
    heddle_transport *transport = &connection->transport;
    if (connection->output.size || !heddle_transport_change_owner(transport, HEDDLE_OWNER_LOOP, HEDDLE_OWNER_HANDOFF))
        return -EBUSY;
    int result = heddle_connection_send(connection, socket, shared_at);
    if (result < 0) {
        heddle_transport_change_owner(transport, HEDDLE_OWNER_HANDOFF, HEDDLE_OWNER_LOOP);
        return result;
    }
    close(heddle_sockets_detach(connection));
    return 0;
}

static int send_idle(heddle_connection *connection, int socket)
{
    if (!claim_idle_connection(connection))
        return 0;
    int result = heddle_connection_hand_off(connection, socket, 0);
    if (result < 0)
        heddle_connection_release(connection);
    return result;
}

static int send_described(heddle_connection *connection, int socket)
{
    char bytes[HEDDLE_SESSION_DESCRIPTION];
    if (connection->transport.operations != &heddle_plain_transport)
        return 0;
    ssize_t size = connection->protocol->describe(connection, bytes);
    if (size < 0)
        return 0;
    int result = heddle_connection_send_session(connection, socket, bytes, (size_t)size);
    if (result < 0)
        return result;
    close(heddle_sockets_detach(connection));
    return 0;
}

int heddle_handoff_send_idle(heddle_sockets *sockets, int socket)
{
    for (uint32_t i = 0; i < sockets->slot_count; i++) {
        heddle_connection *connection = sockets->slots[i].connection;
        bool described = connection && connection->protocol && connection->protocol->describe;
        int result = described ? send_described(connection, socket) : send_idle(connection, socket);
        if (result < 0)
            return result;
    }
    return 0;
}

#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0 /* macOS sets close-on-exec with a separate call */
#endif

/* Returns the descriptor, or -errno. */
static int receive_message(int socket, handoff_message *fields, char *bytes, size_t room)
{
    struct iovec pieces[] = {{.iov_base = fields, .iov_len = sizeof(*fields)}, {.iov_base = bytes, .iov_len = room}};
    attached_descriptor attached;
    struct msghdr message = {.msg_iov = pieces,
                             .msg_iovlen = 2,
                             .msg_control = attached.room,
                             /* without padding, which has room for a second descriptor: that one would leak */
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t result;
    HEDDLE_RETRY(result, recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    if (result < 0)
        return -errno;
    if (result == 0)
        return -EPIPE;
    int fd = -EPROTO;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(header), sizeof(int));
    if (fd >= 0 && !MSG_CMSG_CLOEXEC)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (fd >= 0 && ((size_t)result < sizeof(*fields) || fields->version != HEDDLE_HANDOFF_VERSION ||
                    fields->size != sizeof(*fields) || (size_t)result != sizeof(*fields) + fields->bytes ||
                    (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))) {
        close(fd);
        fd = -EPROTO;
    }
    return fd;
}

/* How long a sender leaves a shared connection to the others before it may receive it itself, ns. */
#define SHARING_BACKOFF INT64_C(20000000)

/*
 * Has this worker just shared the next connection itself? Always false while the worker drains: then it takes such
 * connections back.
 */
static bool is_own_share(const heddle_sockets *sockets, int socket)
{
    handoff_message fields;
    return sockets->handoff.on &&
           recv(socket, &fields, sizeof(fields), MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof(fields) &&
           fields.version == HEDDLE_HANDOFF_VERSION && fields.sender == (uint32_t)getpid() &&
           heddle_clock_now() - fields.shared_at < SHARING_BACKOFF;
}

int heddle_handoff_receive(heddle_sockets *sockets, int socket)
{
    handoff_message fields;
    if (heddle_reserve_parked(&sockets->reserve) || is_own_share(sockets, socket))
        return -EBUSY;
    if (sockets->max_connections && sockets->connections >= sockets->max_connections)
        return -EDQUOT;
    /* If too many descriptors are open, a received descriptor would be lost, so this is checked first. */
    int room = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (room < 0)
        return -errno;
    close(room);
    int fd = receive_message(socket, &fields, sockets->scratch, HEDDLE_SCRATCH);
    if (fd < 0)
        return fd;
    bool secure = fields.flags & FLAG_SECURE;
    int result = fields.flags & FLAG_SESSION ? heddle_sockets_add_session(sockets, fd, &fields.remote, &fields.local,
                                                                          secure, sockets->scratch, fields.bytes)
                                             : heddle_sockets_add_shared(sockets, fd, &fields.remote, &fields.local,
                                                                         secure, sockets->scratch, fields.bytes, Qnil);
    if (result < 0)
        close(fd);
    if (result == -EPERM)
        sockets->refused++;
    if (result == 0)
        sockets->handoffs_received++;
    return result;
}
