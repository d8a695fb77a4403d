/* sender PORT LENGTH
 *
 * What the loopback carries: answers every request with LENGTH bytes from memory, as plainly as it can be done. No
 * parser: the end of a head is the end of a request. */
#include "listener.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 64, HEAD_LIMIT = 4096 };

struct connection {
  int descriptor;
  size_t to_send; /* bytes of the answer that are left */
  size_t head_length;
  char head[HEAD_LIMIT];
};

static char *answer;
static size_t answer_length;

static void end(struct connection *connection)
{
  close(connection->descriptor);
  free(connection);
}

/* False when the connection has ended. */
static int advance(struct connection *connection)
{
  for (;;) {
    while (connection->to_send > 0) {
      const char *from = answer + (answer_length - connection->to_send);
      ssize_t sent = send(connection->descriptor, from, connection->to_send, MSG_NOSIGNAL);
      if (sent < 0)
        return errno == EAGAIN;
      connection->to_send -= (size_t)sent;
    }
    ssize_t count = recv(connection->descriptor, connection->head + connection->head_length,
                         HEAD_LIMIT - connection->head_length, 0);
    if (count <= 0)
      return count < 0 && errno == EAGAIN;
    connection->head_length += (size_t)count;
    if (memmem(connection->head, connection->head_length, "\r\n\r\n", 4) != NULL) {
      connection->head_length = 0;
      connection->to_send = answer_length;
    } else if (connection->head_length == HEAD_LIMIT) {
      return 0;
    }
  }
}

static void accept_all(int epoll, int listener)
{
  int descriptor;
  while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    struct connection *connection = calloc(1, sizeof(*connection));
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = connection};
    if (connection == NULL)
      abort();
    connection->descriptor = descriptor;
    epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
  }
}

int main(int count, char **words)
{
  if (count != 3) {
    fprintf(stderr, "usage: sender PORT LENGTH\n");
    return 2;
  }
  size_t length = strtoul(words[2], NULL, 10);
  answer = malloc(length + 256);
  if (answer == NULL)
    return 1;
  int head = sprintf(answer, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: %zu\r\n\r\n", length);
  answer_length = (size_t)head + length;
  for (size_t index = 0; index < length; index++)
    answer[(size_t)head + index] = "0123456789abcde\n"[index % 16];

  int listener = open_listener((uint16_t)atoi(words[1])), epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int ready = epoll_wait(epoll, events, EVENTS, -1);
    for (int index = 0; index < ready; index++) {
      struct connection *connection = events[index].data.ptr;
      if (connection == NULL)
        accept_all(epoll, listener);
      else if (!advance(connection))
        end(connection);
    }
  }
}
