/* fanout PORT
 *
 * What a broadcast costs the kernel: a WebSocket server that sends each message it gets to all of its sockets, with one
 * send() for each and nothing else. It reads small frames that come whole, and checks nothing. */
#include "listener.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 64, ROOM = 4096, MOST = 65536 };

static int sockets[MOST]; /* those that are open */
static size_t count;

static void accept_all(int epoll, int listener)
{
  int descriptor;
  while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = descriptor};
    epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
  }
}

static void end(int descriptor)
{
  for (size_t i = 0; i < count; i++) {
    if (sockets[i] == descriptor)
      sockets[i] = sockets[--count];
  }
  close(descriptor);
}

static void answer(int descriptor, const char *head)
{
  static const char hello[] = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello\n";
  static const char upgraded[] = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
                                 "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
  if (strstr(head, "Upgrade: websocket") && count < MOST) {
    send(descriptor, upgraded, sizeof(upgraded) - 1, MSG_NOSIGNAL);
    sockets[count++] = descriptor;
  } else {
    send(descriptor, hello, sizeof(hello) - 1, MSG_NOSIGNAL);
  }
}

/* A masked text frame of at most 64 kB becomes one without a mask. */
static void broadcast(const char *bytes)
{
  char frame[ROOM + 4] = {(char)0x81};
  size_t size = bytes[1] & 0x7f, head = size < 126 ? 2 : 4;
  frame[1] = (char)size;
  if (head == 4) {
    memcpy(frame + 2, bytes + 2, 2);
    size = (size_t)(uint8_t)bytes[2] << 8 | (uint8_t)bytes[3];
  }
  for (size_t i = 0; i < size && head + 4 + i < ROOM; i++)
    frame[head + i] = (char)(bytes[head + 4 + i] ^ bytes[head + i % 4]);
  for (size_t i = 0; i < count; i++)
    send(sockets[i], frame, head + size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void read_input(int descriptor)
{
  char bytes[ROOM + 1];
  ssize_t size = recv(descriptor, bytes, ROOM, MSG_DONTWAIT);
  if (size <= 0) {
    if (size == 0 || errno != EAGAIN)
      end(descriptor);
    return;
  }
  bytes[size] = '\0';
  if ((uint8_t)bytes[0] == 0x81)
    broadcast(bytes);
  else if (memmem(bytes, (size_t)size, "\r\n\r\n", 4))
    answer(descriptor, bytes);
}

int main(int words, char **word)
{
  if (words != 2) {
    fprintf(stderr, "usage: fanout PORT\n");
    return 2;
  }
  int listener = open_listener((uint16_t)atoi(word[1])), epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int ready = epoll_wait(epoll, events, EVENTS, -1);
    for (int i = 0; i < ready; i++) {
      if (events[i].data.fd == listener)
        accept_all(epoll, listener);
      else
        read_input(events[i].data.fd);
    }
  }
}
