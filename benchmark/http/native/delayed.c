/* delayed
 *
 * The server that HTTP clients are measured with: GET /0.05 is answered after 50 ms, GET /listener with the port of a
 * listener that is new. Says its port, {"port":N}, and ends with its standard input. One thread, one epoll; a request
 * comes in one piece, and the next one not before its answer. */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, HEAD_LIMIT = 4096 };

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndone\n";

struct peer {
  int descriptor;
  bool listens;
  int64_t due; /* µs; 0: it waits for nothing */
  struct peer *sooner, *later;
};

static int epoll;
static struct peer *soonest, *latest;

static int64_t now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void fail(const char *what)
{
  perror(what);
  exit(1);
}

static void add(int descriptor, bool listens)
{
  struct peer *peer = calloc(1, sizeof(*peer));
  if (!peer)
    fail("calloc");
  peer->descriptor = descriptor;
  peer->listens = listens;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0)
    fail("epoll_ctl");
}

/* Its port. */
static int add_listener(void)
{
  struct sockaddr_in address;
  socklen_t size = sizeof(address);
  int listener = open_listener(0);
  if (getsockname(listener, (struct sockaddr *)&address, &size) != 0)
    fail("getsockname");
  add(listener, true);
  return ntohs(address.sin_port);
}

/* Delays are alike, so the place is mostly the last. */
static void wait_until(struct peer *peer, int64_t due)
{
  struct peer *before = latest;
  while (before && before->due > due)
    before = before->sooner;
  peer->due = due;
  peer->sooner = before;
  peer->later = before ? before->later : soonest;
  *(before ? &before->later : &soonest) = peer;
  *(peer->later ? &peer->later->sooner : &latest) = peer;
}

static void stop_waiting(struct peer *peer)
{
  if (!peer->due)
    return;
  *(peer->sooner ? &peer->sooner->later : &soonest) = peer->later;
  *(peer->later ? &peer->later->sooner : &latest) = peer->sooner;
  peer->due = 0;
}

static void end(struct peer *peer)
{
  stop_waiting(peer);
  close(peer->descriptor);
  free(peer);
}

/* It is short: a socket that has no room for it is one whose client does not read. */
static void answer(struct peer *peer, const char *text, size_t length)
{
  if (send(peer->descriptor, text, length, MSG_NOSIGNAL) != (ssize_t)length)
    shutdown(peer->descriptor, SHUT_RDWR);
}

static void answer_listener(struct peer *peer)
{
  char port[16], text[128];
  int digits = snprintf(port, sizeof(port), "%d", add_listener());
  int length = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", digits, port);
  answer(peer, text, (size_t)length);
}

static void serve(struct peer *peer)
{
  char head[HEAD_LIMIT + 1];
  ssize_t count = recv(peer->descriptor, head, HEAD_LIMIT, 0);
  if (count < 0 && errno == EAGAIN)
    return;
  head[count > 0 ? count : 0] = '\0';
  if (strncmp(head, "GET /", 5) != 0 || !strstr(head, "\r\n\r\n") || peer->due) {
    end(peer);
    return;
  }
  double delay = strtod(head + 5, NULL);
  if (strncmp(head + 5, "listener ", 9) == 0)
    answer_listener(peer);
  else if (delay > 0)
    wait_until(peer, now() + (int64_t)(delay * 1e6));
  else
    answer(peer, ANSWER, sizeof(ANSWER) - 1);
}

static void accept_all(int listener)
{
  int descriptor;
  while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
    add(descriptor, false);
}

/* How long epoll may wait, in ms; those that are due have their answers then. */
static int answer_due(void)
{
  int64_t time = soonest ? now() : 0;
  while (soonest && soonest->due <= time) {
    struct peer *peer = soonest;
    stop_waiting(peer);
    answer(peer, ANSWER, sizeof(ANSWER) - 1);
  }
  return soonest ? (int)((soonest->due - time + 999) / 1000) : -1;
}

int main(void)
{
  struct epoll_event events[EVENTS], input = {.events = EPOLLIN};
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input) != 0)
    fail("epoll");
  printf("{\"port\":%d}\n", add_listener());
  fflush(stdout);
  for (;;) {
    int count = epoll_wait(epoll, events, EVENTS, answer_due());
    for (int i = 0; i < count; i++) {
      struct peer *peer = events[i].data.ptr;
      if (!peer)
        return 0; /* whoever started it has closed the input, or is gone */
      if (peer->listens)
        accept_all(peer->descriptor);
      else
        serve(peer);
    }
  }
}
