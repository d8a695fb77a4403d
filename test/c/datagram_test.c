/* sources: net/datagram.c */
/* wrap: sendmsg */
/* link: -DHAVE_RECVMMSG=1 */
#include "check.h"
#include "net/datagram.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

/* Datagrams are received in batches, and sent one by one; those that were not sent are counted. */

enum { SMALL = 64 };

static heddle_datagram_socket server;
static int client;
static heddle_datagram_peer client_peer;

/* -- system calls that fail on purpose ----------------------------------------------------------------------------- */

static int calls;
static int first_failing, end_failing; /* calls that fail with this errno: from the first one up to the end */
static int code;
static struct in6_pktinfo own_ipv6; /* of the last datagram's control message */
static size_t control_size;

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);

static void note_control(const struct msghdr *message)
{
    control_size = message->msg_controllen;
    if (control_size == CMSG_SPACE(sizeof(own_ipv6)))
        memcpy(&own_ipv6, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof(own_ipv6));
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    calls++;
    note_control(message);
    if (calls >= first_failing && calls < end_failing) {
        errno = code;
        return -1;
    }
    return __real_sendmsg(fd, message, flags);
}

/* -- sockets ------------------------------------------------------------------------------------------------------- */

static int bind_udp(int family, const char *address, heddle_datagram_peer *bound)
{
    int fd = (int)MUST(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    socklen_t size = sizeof(bound->remote);
    *bound = (heddle_datagram_peer){0};
    bound->remote.any.sa_family = (sa_family_t)family;
    if (family == AF_INET)
        inet_pton(family, address, &bound->remote.ipv4.sin_addr);
    else
        inet_pton(family, address, &bound->remote.ipv6.sin6_addr);
    MUST(bind(fd, &bound->remote.any, family == AF_INET ? sizeof(bound->remote.ipv4) : sizeof(bound->remote.ipv6)));
    MUST(getsockname(fd, &bound->remote.any, &size));
    return fd;
}

/* Both on 127.0.0.1; the client is connected to the server, and takes nothing from others. */
static void open_pair(size_t max_size)
{
    heddle_datagram_peer address;
    calls = first_failing = end_failing = 0;
    server = (heddle_datagram_socket){.fd = bind_udp(AF_INET, "127.0.0.1", &address), .max_size = max_size};
    client = bind_udp(AF_INET, "127.0.0.1", &client_peer);
    MUST(connect(client, &address.remote.any, sizeof(address.remote.ipv4)));
}

static void close_pair(void)
{
    heddle_datagram_release_memory(&server);
    close(server.fd);
    close(client);
}

static void send_numbers(int count)
{
    for (int i = 0; i < count; i++)
        MUST(send(client, &i, sizeof(i), 0));
}

/* The number in the next datagram, or -1 when there is none. */
static int read_number(void)
{
    int number;
    return recv(client, &number, sizeof(number), MSG_DONTWAIT) == sizeof(number) ? number : -1;
}

static bool respond(int number)
{
    return heddle_datagram_send(&server, &number, sizeof(number), &client_peer);
}

/* -- tests --------------------------------------------------------------------------------------------------------- */

static void datagrams_beyond_a_batch_come_with_the_next_receive(void)
{
    open_pair(SMALL);
    CHECK_EQUAL(-EAGAIN, heddle_datagram_receive(&server));
    send_numbers(HEDDLE_DATAGRAM_BATCH + 3);
    CHECK_EQUAL(HEDDLE_DATAGRAM_BATCH, heddle_datagram_receive(&server));
    for (int i = 0; i < HEDDLE_DATAGRAM_BATCH; i++) {
        const heddle_datagram *datagram = heddle_datagram_at(&server, i);
        CHECK_EQUAL(sizeof(i), datagram->size);
        CHECK(memcmp(datagram->bytes, &i, sizeof(i)) == 0);
        CHECK(!datagram->truncated && !datagram->peer.has_own);
        CHECK_EQUAL(client_peer.remote.ipv4.sin_port, datagram->peer.remote.ipv4.sin_port);
        CHECK_EQUAL(client_peer.remote.ipv4.sin_addr.s_addr, datagram->peer.remote.ipv4.sin_addr.s_addr);
    }
    CHECK_EQUAL(3, heddle_datagram_receive(&server));
    CHECK(memcmp(heddle_datagram_at(&server, 2)->bytes, &(int){HEDDLE_DATAGRAM_BATCH + 2}, sizeof(int)) == 0);
    CHECK_EQUAL(-EAGAIN, heddle_datagram_receive(&server));
    close_pair();
}

static void truncated_datagram_is_marked(void)
{
    static const int sizes[] = {0, SMALL, SMALL + 1, 3};
    char bytes[SMALL + 1] = {0};
    open_pair(SMALL);
    for (int i = 0; i < 4; i++)
        MUST(send(client, bytes, (size_t)sizes[i], 0));
    CHECK_EQUAL(4, heddle_datagram_receive(&server));
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(sizes[i] > SMALL ? SMALL : sizes[i], heddle_datagram_at(&server, i)->size);
        CHECK_EQUAL(sizes[i] > SMALL, heddle_datagram_at(&server, i)->truncated);
    }
    close_pair();
}

static void datagram_is_sent_at_once(void)
{
    open_pair(SMALL);
    CHECK(respond(7));
    CHECK_EQUAL(7, read_number());
    CHECK_EQUAL(0, heddle_datagram_memory_size(&server));
    close_pair();
}

static void rejected_datagram_does_not_affect_the_others(void)
{
    heddle_datagram_peer nobody;
    open_pair(SMALL);
    nobody = client_peer;
    nobody.remote.ipv4.sin_port = 0; /* EINVAL */
    respond(1);
    heddle_datagram_send(&server, "x", 1, &nobody);
    respond(2);
    heddle_datagram_send(&server, "x", 1, &nobody);
    CHECK_EQUAL(1, read_number());
    CHECK_EQUAL(2, read_number());
    CHECK_EQUAL(2, server.unsent);
    CHECK(!heddle_datagram_send(&server, "x", 1, &nobody));
    CHECK_EQUAL(3, server.unsent);
    close_pair();
}

static void datagrams_are_counted_as_unsent_when_the_buffer_is_full(void)
{
    open_pair(SMALL);
    first_failing = 4;
    end_failing = 1000;
    code = EAGAIN;
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(i < 3, respond(i));
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(i, read_number());
    CHECK_EQUAL(-1, read_number());
    CHECK_EQUAL(7, server.unsent);
    end_failing = 0;
    CHECK(respond(2));
    CHECK_EQUAL(2, read_number());
    close_pair();
}

static void interrupted_system_call_is_repeated(void)
{
    open_pair(SMALL);
    first_failing = 1;
    end_failing = 2;
    code = EINTR;
    CHECK(respond(1));
    CHECK_EQUAL(1, read_number());
    CHECK_EQUAL(2, calls);
    close_pair();
}

static void large_datagram_is_sent_whole(void)
{
    char *large = calloc(1, HEDDLE_DATAGRAM_LARGEST), *received = malloc(HEDDLE_DATAGRAM_LARGEST);
    size_t sizes[] = {30000, 0, 40000, 1};
    open_pair(SMALL);
    int room = 1 << 20;
    MUST(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)));
    for (int i = 0; i < 4; i++) {
        memset(large, 'a' + i, sizes[i]);
        CHECK(heddle_datagram_send(&server, large, sizes[i], &client_peer));
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(sizes[i], recv(client, received, HEDDLE_DATAGRAM_LARGEST, 0));
        for (size_t at = 0; at < sizes[i]; at++)
            CHECK(received[at] == 'a' + i);
    }
    CHECK(!heddle_datagram_send(&server, large, HEDDLE_DATAGRAM_LARGEST + 1, &client_peer));
    CHECK(!heddle_datagram_send(&server, large, HEDDLE_DATAGRAM_LARGEST, &client_peer));     /* no room for a header */
    CHECK_EQUAL(2, server.unsent);
    close_pair();
    free(large);
    free(received);
}

/* -- wildcard addresses -------------------------------------------------------------------------------------------- */

static void check_own_address(int family, const char *wildcard, const char *asked)
{
    heddle_datagram_peer bound, target, source;
    int on = 1;
    calls = first_failing = end_failing = 0;
    server = (heddle_datagram_socket){.fd = bind_udp(family, wildcard, &bound), .is_wildcard = true, .max_size = SMALL};
    MUST(setsockopt(server.fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
                    family == AF_INET ? IP_PKTINFO : IPV6_RECVPKTINFO, &on, sizeof(on)));
    target = bound;
    inet_pton(family, asked, family == AF_INET ? (void *)&target.remote.ipv4.sin_addr
                                               : (void *)&target.remote.ipv6.sin6_addr);
    client = bind_udp(family, family == AF_INET ? "127.0.0.1" : "::1", &client_peer);
    for (int round = 0; round < 2; round++) { /* the second one reuses the memory of the first */
        MUST(sendto(client, "ask", 3, 0, &target.remote.any, sizeof(target.remote)));
        CHECK_EQUAL(1, heddle_datagram_receive(&server));
        const heddle_datagram *datagram = heddle_datagram_at(&server, 0);
        CHECK(datagram->peer.has_own);
        CHECK(heddle_datagram_send(&server, "answer", 6, &datagram->peer));
        char answer[6], text[INET6_ADDRSTRLEN];
        socklen_t size = sizeof(source.remote);
        CHECK_EQUAL(6, recvfrom(client, answer, 6, 0, &source.remote.any, &size));
        inet_ntop(family, family == AF_INET ? (void *)&source.remote.ipv4.sin_addr
                                            : (void *)&source.remote.ipv6.sin6_addr, text, sizeof(text));
        CHECK(strcmp(text, asked) == 0);
    }
    close_pair();
}

static void response_comes_from_the_ipv4_address_of_the_request(void)
{
    check_own_address(AF_INET, "0.0.0.0", "127.0.0.9");
}

static void response_comes_from_the_ipv6_address_of_the_request(void)
{
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool possible = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    if (!possible)
        SKIP("this machine has no IPv6");
    check_own_address(AF_INET6, "::", "::1");
}

/* A response that is never sent: only its control message counts. */
static void respond_from(int family, const char *own)
{
    heddle_datagram_peer peer = {.remote.any.sa_family = (sa_family_t)family, .own_interface = 7, .has_own = true};
    CHECK_EQUAL(1, inet_pton(family, own, peer.own));
    calls = 0;
    first_failing = 1;
    end_failing = 2;
    code = ENETUNREACH;
    own_ipv6 = (struct in6_pktinfo){0};
    CHECK(!heddle_datagram_send(&server, "answer", 6, &peer));
    CHECK_EQUAL(1, calls);
}

static void only_link_local_address_has_an_interface(void)
{
    open_pair(SMALL);
    respond_from(AF_INET6, "fe80::1");
    CHECK_EQUAL(CMSG_SPACE(sizeof(struct in6_pktinfo)), control_size);
    CHECK_EQUAL(7, own_ipv6.ipi6_ifindex);
    respond_from(AF_INET6, "2001:db8::1");
    CHECK_EQUAL(CMSG_SPACE(sizeof(struct in6_pktinfo)), control_size);
    CHECK_EQUAL(0, own_ipv6.ipi6_ifindex);
    close_pair();
}

static void response_to_a_multicast_request_has_a_unicast_source(void)
{
    open_pair(SMALL);
    respond_from(AF_INET6, "ff02::fb");
    CHECK_EQUAL(0, control_size);
    respond_from(AF_INET, "224.0.0.251");
    CHECK_EQUAL(0, control_size);
    respond_from(AF_INET, "192.0.2.1");
    CHECK(control_size > 0);
    close_pair();
}

int main(int argc, char **argv)
{
    check_filter = argc > 1 ? argv[1] : NULL;
    check_run("datagram", "datagrams beyond a batch come with the next receive",
              datagrams_beyond_a_batch_come_with_the_next_receive);
    check_run("datagram", "truncated datagram is marked", truncated_datagram_is_marked);
    check_run("datagram", "datagram is sent at once", datagram_is_sent_at_once);
    check_run("datagram", "rejected datagram does not affect the others", rejected_datagram_does_not_affect_the_others);
    check_run("datagram", "datagrams are counted as unsent when the buffer is full",
              datagrams_are_counted_as_unsent_when_the_buffer_is_full);
    check_run("datagram", "interrupted system call is repeated", interrupted_system_call_is_repeated);
    check_run("datagram", "large datagram is sent whole", large_datagram_is_sent_whole);
    check_run("datagram", "response comes from the IPv4 address of the request",
              response_comes_from_the_ipv4_address_of_the_request);
    check_run("datagram", "response comes from the IPv6 address of the request",
              response_comes_from_the_ipv6_address_of_the_request);
    check_run("datagram", "only link local address has an interface", only_link_local_address_has_an_interface);
    check_run("datagram", "response to a multicast request has a unicast source",
              response_to_a_multicast_request_has_a_unicast_source);
    return check_end();
}
