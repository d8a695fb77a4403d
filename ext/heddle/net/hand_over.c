/*
 * A worker that ends gives its idle connections to the others, with the descriptor and what was known of the client:
 * what it may have sent meanwhile is still the kernel's. No client finds its connection closed.
 */

#include "net/sockets.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LETTER_VERSION = 1 };

/* Goes over one pair of SOCK_SEQPACKET sockets, to whoever reads it first; a new version of this program may read. */
typedef struct {
    uint32_t version, size;
    heddle_address remote, local;
} letter;

typedef union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
} attached_descriptor;

static int send_letter(int socket, heddle_connection *connection)
{
    letter words = {.version = LETTER_VERSION, .size = sizeof(letter)};
    words.remote = connection->remote;
    words.local = connection->local;
    struct iovec piece = {.iov_base = &words, .iov_len = sizeof(words)};
    attached_descriptor attached;
    memset(&attached, 0, sizeof(attached));
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = attached.room,
                             .msg_controllen = sizeof(attached.room)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &connection->transport.fd, sizeof(int));
    ssize_t result;
    do {
        result = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : 0;
}

/* Only a plain socket is whole without what its process knows of it. */
static bool can_go(heddle_sockets *sockets, heddle_connection *connection)
{
    return connection && !connection->queued && !connection->prelude && !connection->secure &&
           connection->transport.operations == &heddle_plain_transport && sockets->protocol->operations->at_rest(connection) &&
           heddle_transport_change_owner(&connection->transport, HEDDLE_OWNER_IDLE, HEDDLE_OWNER_HANDOFF);
}

int heddle_sockets_hand_over(heddle_sockets *sockets, int socket)
{
    for (uint32_t i = 0; i < sockets->place_count; i++) {
        heddle_connection *connection = sockets->places[i].connection;
        if (!can_go(sockets, connection))
            continue;
        int result = send_letter(socket, connection);
        if (result < 0) {
            heddle_transport_change_owner(&connection->transport, HEDDLE_OWNER_HANDOFF, HEDDLE_OWNER_IDLE);
            return result;
        }
        int fd = heddle_sockets_detach(connection);
        if (fd >= 0)
            close(fd);
    }
    return 0;
}

static int receive_letter(int socket, letter *words)
{
    struct iovec piece = {.iov_base = words, .iov_len = sizeof(*words)};
    attached_descriptor attached;
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = attached.room,
                             .msg_controllen = sizeof(attached.room)};
    ssize_t result;
    do {
        result = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (result < 0 && errno == EINTR);
    if (result < 0)
        return -errno;
    if (result == 0)
        return -EPIPE;
    int fd = -EPROTO;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(header), sizeof(int));
    if (fd >= 0 && (result != sizeof(*words) || words->version != LETTER_VERSION || words->size != sizeof(*words))) {
        close(fd);
        fd = -EPROTO;
    }
    return fd;
}

int heddle_sockets_take_over(heddle_sockets *sockets, int socket)
{
    letter words;
    if (sockets->max_connections && sockets->connections >= sockets->max_connections)
        return -EDQUOT;
    int fd = receive_letter(socket, &words);
    if (fd < 0)
        return fd;
    int result = heddle_sockets_add(sockets, fd, &words.remote, &words.local, NULL);
    if (result < 0)
        close(fd);
    return result;
}
