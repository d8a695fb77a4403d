/* sources: net/handoff_messages.c */
/* ruby: headers */

/*
 * Messages by which connections come from other processes, and the descriptions of sessions in them: whatever comes,
 * each descriptor is handed to the service or closed, and no field is longer than what was received.
 */

#include "fuzz.h"

#include "http/push/description.h"
#include "net/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What Ruby's headers make of errno, from 3.3 on. */
int *rb_errno_ptr(void)
{
    return __errno_location();
}

/* Only senders call these. */
const heddle_transport_operations heddle_plain_transport;

bool heddle_handoff_acquire(heddle_connection *connection)
{
    (void)connection;
    abort();
}

void heddle_handoff_release(heddle_connection *connection)
{
    (void)connection;
    abort();
}

int heddle_sockets_detach(heddle_connection *connection)
{
    (void)connection;
    abort();
}

enum {
    VERSION = 5, /* HEDDLE_HANDOFF_VERSION */
    HEAD = 24 + 8 + 2 * (int)sizeof(heddle_address),
    DESCRIPTORS = 3,
};

static heddle_sockets sockets;
static int pair[2];
static unsigned handed;

static void read_description(const char *bytes, size_t size)
{
    char *copy = fuzz_copy(bytes, size);
    heddle_description_reader fields = heddle_description_open(copy, size, size ? (uint8_t)copy[0] : 0);
    for (int i = 0; fields.valid && i < 64; i++) {
        heddle_description_field field = i % 3 ? heddle_description_take(&fields) : (heddle_description_field){0};
        if (i % 3 == 0)
            PROMISE(heddle_description_take_number(&fields, 1000) <= 1000);
        PROMISE(field.size == 0 || (field.bytes >= copy && field.bytes + field.size <= copy + size));
    }
    PROMISE(!heddle_description_is_complete(&fields) || fields.valid);
    free(copy);
}

int heddle_sockets_add_session(heddle_sockets *all, int fd, const heddle_address *remote, const heddle_address *local,
                               bool secure, const char *bytes, size_t size)
{
    (void)all, (void)remote, (void)local;
    read_description(bytes, size);
    handed++;
    if (secure)
        return -ENOMEM;
    close(fd);
    return 0;
}

int heddle_sockets_add_shared(heddle_sockets *all, int fd, const heddle_address *remote, const heddle_address *local,
                              bool secure, const char *bytes, size_t size, VALUE session)
{
    PROMISE(session == Qnil);
    return heddle_sockets_add_session(all, fd, remote, local, secure, bytes, size);
}

static int find_lowest(void)
{
    int fd = dup(0);
    PROMISE(fd >= 0);
    close(fd);
    return fd;
}

static void begin(void)
{
    if (sockets.scratch)
        return;
    sockets.scratch = malloc(HEDDLE_SCRATCH);
    PROMISE(sockets.scratch && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
}

static void send_message(char *bytes, size_t size, unsigned descriptors)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
    } attached = {0};
    struct iovec piece = {bytes, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (descriptors) {
        message.msg_control = attached.room;
        message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
        attached.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
                                           .cmsg_len = CMSG_LEN(descriptors * sizeof(int))};
        memset(CMSG_DATA(&attached.header), 0, descriptors * sizeof(int)); /* the standard input */
    }
    PROMISE(sendmsg(pair[0], &message, 0) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    begin();
    uint8_t choice = *data;
    char *bytes = fuzz_copy((const char *)data + 1, --size);
    if ((choice & 4) && size >= HEAD) { /* a head that is right, but for its flags and addresses */
        const uint32_t words[] = {VERSION, HEAD, (uint8_t)bytes[8], (uint32_t)(size - HEAD), 0};
        memcpy(bytes, words, sizeof(words));
        if (choice & 8)
            bytes[13] ^= 1;
    }
    int lowest = find_lowest();
    send_message(bytes, size, choice & 3);
    unsigned before = handed;
    int result = heddle_handoff_receive(&sockets, pair[1]);
    PROMISE(result <= 0 && (result < 0 || handed == before + 1));
    PROMISE(find_lowest() == lowest);
    free(bytes);
    return 0;
}
