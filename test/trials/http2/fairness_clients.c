/*
 * The clients of the fairness trial: a busy one beside others with one request at a time over HTTP/1.1, all in one loop,
 * so that each is as fast as the others. Each sends its next request as soon as it has a response.
 *
 *   fairness_clients PORT SECONDS OTHERS REQUESTS BEGUN HOW
 *
 * The busy one has so many requests under way: HOW is `streams` of HTTP/2, or `pipelined` over HTTP/1.1. BEGUN is a file
 * in which the server counts those that have begun; a response to another client has that number when its own request
 * began. Prints how many responses each client has had, the busy one first, and then how many of its requests began while
 * one of another client waited: the median, the 99th percentile and the most.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    ROOM = 65536,
    MOST = 256,     /* clients */
    MOST_PASSED = 1024,
    FRAME = 9,
    HEADERS = 1,
    DATA = 0,
    END_STREAM = 1,
};

typedef struct {
    int fd;
    bool http2;
    bool busy;
    uint32_t next_stream;
    size_t used; /* of what was read and is not a whole response yet */
    unsigned long responses;
    uint64_t begun; /* when the last request was sent */
    char bytes[ROOM];
} client;

static client clients[MOST];
static const volatile uint64_t *begun; /* the file */
static unsigned long passed[MOST_PASSED]; /* requests of HTTP/1.1, by how many of HTTP/2 began while they waited */
static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
static const char busy_request[] = "GET /busy HTTP/1.1\r\nHost: a\r\n\r\n";
/* :method GET, :scheme http, :path /busy, :authority a (RFC 7541, appendix A) */
static const char block[] = {(char)0x82, (char)0x86, 0x04, 5, '/', 'b', 'u', 's', 'y', 0x41, 1, 'a'};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void send_all(const client *client, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = write(client->fd, bytes, size);
        if (sent < 0)
            fail("write");
        bytes += sent;
        size -= (size_t)sent;
    }
}

static size_t put_frame(char *to, uint8_t type, uint8_t flags, uint32_t stream, const char *payload, size_t size)
{
    const char head[FRAME] = {0, (char)(size >> 8), (char)size, (char)type, (char)flags, (char)(stream >> 24),
                              (char)(stream >> 16), (char)(stream >> 8), (char)stream};
    memcpy(to, head, FRAME);
    if (size)
        memcpy(to + FRAME, payload, size);
    return FRAME + size;
}

/* So many further requests. */
static void ask(client *client, unsigned count)
{
    char bytes[ROOM];
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (client->http2) {
            size += put_frame(bytes + size, HEADERS, 5, client->next_stream, block, sizeof(block));
            client->next_stream += 2;
        } else {
            const char *text = client->busy ? busy_request : request;
            memcpy(bytes + size, text, strlen(text));
            size += strlen(text);
        }
    }
    client->begun = *begun;
    send_all(client, bytes, size);
}

static void connect_client(client *client, int port, bool http2, unsigned requests, int set)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    client->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        fail("connect");
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    client->http2 = http2;
    client->busy = requests > 1;
    client->next_stream = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(set, EPOLL_CTL_ADD, client->fd, &event) < 0)
        fail("epoll_ctl");
    if (http2) {
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", window[] = {0x3F, 0, 0, 0};
        char bytes[ROOM];
        memcpy(bytes, preface, sizeof(preface) - 1);
        size_t size = sizeof(preface) - 1;
        size += put_frame(bytes + size, 4, 0, 0, NULL, 0);
        size += put_frame(bytes + size, 4, 1, 0, NULL, 0);
        size += put_frame(bytes + size, 8, 0, 0, window, sizeof(window));
        send_all(client, bytes, size);
    }
    ask(client, requests);
}

static void count_passed(uint64_t count)
{
    passed[count < MOST_PASSED ? count : MOST_PASSED - 1]++;
}

/* The number that so many requests did not exceed. */
static unsigned percentile(double share, unsigned long all)
{
    unsigned long left = (unsigned long)(share * (double)all);
    unsigned count = 0;
    while (count < MOST_PASSED - 1 && left >= passed[count])
        left -= passed[count++];
    return count;
}

/* The bytes of the first response; 0: it is not complete. */
static size_t first_response(const client *client)
{
    const char *end = memmem(client->bytes, client->used, "\r\n\r\n", 4);
    const char *length = end ? memmem(client->bytes, client->used, "content-length: ", 16) : NULL;
    if (!length)
        return 0;
    size_t size = (size_t)(end + 4 - client->bytes) + (size_t)atoi(length + 16);
    if (size > client->used)
        return 0;
    if (!client->busy)
        count_passed(strtoull(end + 4, NULL, 10) - client->begun);
    return size;
}

/* The bytes of the first frame, and whether it ends a response; 0: it is not complete. */
static size_t first_frame(const client *client, bool *ends)
{
    const uint8_t *bytes = (const uint8_t *)client->bytes;
    if (client->used < FRAME)
        return 0;
    size_t size = FRAME + ((size_t)bytes[0] << 16 | (size_t)bytes[1] << 8 | bytes[2]);
    if (bytes[3] == 3 || bytes[3] == 7) {
        fprintf(stderr, "the server has ended a stream, or the connection\n");
        exit(1);
    }
    *ends = (bytes[3] == DATA || bytes[3] == HEADERS) && bytes[4] & END_STREAM;
    return size <= client->used ? size : 0;
}

static void read_responses(client *client)
{
    ssize_t bytes = read(client->fd, client->bytes + client->used, ROOM - client->used);
    if (bytes <= 0)
        fail("read");
    client->used += (size_t)bytes;
    unsigned complete = 0;
    for (;;) {
        bool ends = true;
        size_t size = client->http2 ? first_frame(client, &ends) : first_response(client);
        if (size == 0)
            break;
        complete += ends;
        client->used -= size;
        memmove(client->bytes, client->bytes + size, client->used);
    }
    client->responses += complete;
    if (complete)
        ask(client, complete);
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    bool streams = strcmp(argv[6], "streams") == 0;
    int port = atoi(argv[1]), others = atoi(argv[3]), set = epoll_create1(0), file = open(argv[5], O_RDONLY);
    double till = now() + atof(argv[2]);
    begun = mmap(NULL, sizeof(*begun), PROT_READ, MAP_SHARED, file, 0);
    if (set < 0 || begun == MAP_FAILED || others < 0 || others >= MOST)
        return 2;
    for (int i = 0; i <= others; i++)
        connect_client(&clients[i], port, i == 0 && streams, i == 0 ? (unsigned)atoi(argv[4]) : 1, set);
    while (now() < till) {
        struct epoll_event events[MOST];
        int count = epoll_wait(set, events, MOST, 100);
        for (int i = 0; i < count; i++)
            read_responses(events[i].data.ptr);
    }
    unsigned long all = 0;
    for (int i = 0; i <= others; i++) {
        printf("%lu ", clients[i].responses);
        all += i == 0 ? 0 : clients[i].responses;
    }
    printf("%u %u %u\n", percentile(0.5, all), percentile(0.99, all), percentile(1 - 1e-9, all));
    return 0;
}
