/*
 * The messages that hand off connections to another process: from a worker that drains, is blocked or shares its work.
 * A message contains the descriptor, the addresses of both ends, and the unused input or a description of the session.
 * Input that arrives later waits in the kernel until the other process reads it. The connection stays open.
 */

#include "net/sockets.h"

#include <fcntl.h>
#include <sys/socket.h>

enum {
    FLAG_SECURE = 1,
    FLAG_SESSION = 2, /* the bytes are a description of the session, not input */
};

/*
 * Sent over a pair of SOCK_SEQPACKET sockets. Any process that reads from the other end may receive it, even one that
 * runs a newer version of Heddle. The unused input, or the session's description, follows this record.
 */
typedef struct {
    uint32_t version, size;
    uint32_t flags, bytes;
    uint32_t sender;   /* the sender's process ID */
    /*
     * when a running worker shared this connection (net/work_sharing.h), CLOCK_MONOTONIC in ns; 0: handed off for
     * another reason
     */
    int64_t shared_at;
    heddle_address remote, local;
} handoff_message;

typedef union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
} attached_descriptor;

/*
 * Sends a message with `count` pieces of the input, or of the description; `count` < 0: the connection can't be handed
 * off. These pieces begin at pieces[1]; this function uses pieces[0] for the record. Returns 0, -EOPNOTSUPP if the
 * connection can't be handed off, or another -errno.
 */
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
    /* the input does not fit into a message of this socket */
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

/* Acquires the connection if it is idle. A connection that is not idle stays in this process. */
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
#define MSG_CMSG_CLOEXEC 0 /* macOS has no such flag, so receive_message calls fcntl */

#endif

/* Returns the received descriptor, or -errno. */
static int receive_message(int socket, handoff_message *fields, char *bytes, size_t room)
{
    struct iovec pieces[] = {{.iov_base = fields, .iov_len = sizeof(*fields)}, {.iov_base = bytes, .iov_len = room}};
    attached_descriptor attached;
    struct msghdr message = {.msg_iov = pieces,
                             .msg_iovlen = 2,
                             .msg_control = attached.room,
                             /* not CMSG_SPACE: its padding has room for a second descriptor, which would leak */
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

/* In ns. For this long a worker does not receive a connection that it has shared, so that other workers get it. */
#define SHARING_BACKOFF INT64_C(20000000)

/*
 * Returns whether this worker itself has just shared the connection that it would receive next. Returns false while
 * this worker does not share connections, for example while it drains: then it receives its own ones, too.
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
    /* Without a free descriptor in this process, the received one would be lost. So first check that one is free. */
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
