#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256 };

uint64_t client_now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

void client_prepare(struct client *client, uint16_t port, const char *path, size_t count)
{
  client->port = port;
  client->request_length = (size_t)snprintf(client->request, sizeof(client->request),
                                            "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", path, (unsigned)port);
  client->connections = calloc(count, sizeof(struct connection));
  client->count = count;
  client->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (client->connections == NULL || client->epoll < 0 || client->request_length >= sizeof(client->request)) {
    perror("client");
    exit(1);
  }
}

void client_close(struct connection *connection)
{
  if (connection->state == CONNECTION_CLOSED)
    return;
  close(connection->descriptor);
  connection->state = CONNECTION_CLOSED;
}

static void fail(struct client *client, struct connection *connection)
{
  enum connection_state before = connection->state;
  client_close(connection);
  client->failed(client, connection, before);
}

void client_ask(struct client *client, struct connection *connection)
{
  connection->length = 0;
  connection->state = CONNECTION_WAITING;
  connection->asked_at = client_now();
  /* A request is far smaller than a socket's buffer, which is empty here. */
  ssize_t sent = send(connection->descriptor, client->request, client->request_length, MSG_NOSIGNAL);
  if (sent != (ssize_t)client->request_length)
    fail(client, connection);
}

void client_open(struct client *client, struct connection *connection)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(client->port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connection->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection->descriptor < 0) {
    client->failed(client, connection, CONNECTION_CLOSED);
    return;
  }
  connection->state = CONNECTION_CONNECTING;
  int result = connect(connection->descriptor, (struct sockaddr *)&address, sizeof(address));
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = connection};
  if ((result < 0 && errno != EINPROGRESS) ||
      epoll_ctl(client->epoll, EPOLL_CTL_ADD, connection->descriptor, &event) < 0)
    fail(client, connection);
}

/* The value of a header field, or NULL. `name` ends in a colon. */
static const char *header(const char *head, const char *name)
{
  size_t length = strlen(name);
  for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
    if (strncasecmp(line + 2, name, length) == 0)
      return line + 2 + length + strspn(line + 2 + length, " \t");
  }
  return NULL;
}

/* The status of a complete answer, 0 while bytes are missing. */
static int complete(const struct connection *connection)
{
  const char *head = connection->answer;
  const char *end = strstr(head, "\r\n\r\n");
  if (end == NULL)
    return 0;
  size_t body = connection->length - (size_t)(end + 4 - head);
  const char *length = header(head, "content-length:");
  bool whole = length != NULL ? body >= strtoul(length, NULL, 10)
                              : body >= 5 && memcmp(head + connection->length - 5, "0\r\n\r\n", 5) == 0;
  if (!whole)
    return 0;
  return strncmp(head, "HTTP/1.1 ", 9) == 0 ? atoi(head + 9) : -1;
}

static void read_answer(struct client *client, struct connection *connection)
{
  for (;;) {
    size_t room = ANSWER_LIMIT - 1 - connection->length;
    ssize_t count = recv(connection->descriptor, connection->answer + connection->length, room, 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0 || connection->state == CONNECTION_RESTING) {
      fail(client, connection);
      return;
    }
    connection->length += (size_t)count;
    connection->answer[connection->length] = '\0';
    int status = complete(connection);
    if (status != 0) {
      bool last = header(connection->answer, "connection: close") != NULL;
      connection->state = CONNECTION_RESTING;
      client->answered(client, connection, status);
      if (last && connection->state != CONNECTION_CLOSED)
        fail(client, connection);
      if (connection->state == CONNECTION_CLOSED)
        return;
    } else if (connection->length == ANSWER_LIMIT - 1) {
      fail(client, connection);
      return;
    }
  }
}

void client_turn(struct client *client, int milliseconds)
{
  struct epoll_event events[EVENTS];
  int count = epoll_wait(client->epoll, events, EVENTS, milliseconds);
  for (int index = 0; index < count; index++) {
    struct connection *connection = events[index].data.ptr;
    if (connection->state == CONNECTION_CONNECTING) {
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(connection->descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0)
        fail(client, connection);
      else if (events[index].events & EPOLLOUT)
        client_ask(client, connection);
    }
    if (connection->state == CONNECTION_WAITING || connection->state == CONNECTION_RESTING)
      if (events[index].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_answer(client, connection);
  }
}
