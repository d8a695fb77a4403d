/* sockets PORT PATH COUNT HELLO PREFIX SUFFIX [EVENTS]
 *
 * Opens WebSockets, sends HELLO on each if it is not empty, and says {"opened":…} when all are open or have failed.
 * Then it does what the lines of its input ask for, and says a line of JSON after each:
 *
 *   publish COUNT BYTES     sends a message on the first socket, and the next one when all others that read have it:
 *                           some servers send a publisher its own messages, and some do not
 *   echo RATE MILLISECONDS  sends so many messages a second on each socket, each to come back to it
 *   handshakes MILLISECONDS closes and opens them again all the time
 *   stop COUNT              reads the last ones no more
 *
 * A message is PREFIX, "bench " with the time, padding, and SUFFIX; everything else that comes is ignored.
 *
 * With EVENTS, a path, only the first socket is a WebSocket, which publishes. The others are event streams of this
 * path: GET requests whose responses do not end. */
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 512, KEPT = 512, AT_ONCE = 256, PATIENCE_S = 10, SAMPLES = 1 << 20, FRAME = 1 << 20 };

enum state { CLOSED, CONNECTING, SHAKING, OPEN, STOPPED };

struct peer {
  int descriptor;
  enum state state;
  uint64_t next_at; /* µs; when it sends its next message */
  uint64_t seen;    /* the time in the last message */
  size_t left;      /* of a frame's payload */
  unsigned opcode;
  size_t kept;
  char bytes[KEPT]; /* head of the response, of a frame, or the beginning of its payload */
  bool in_payload;
};

static struct {
  int epoll;
  uint16_t port;
  struct peer *peers;
  size_t count, opened, failed, pending, received, sent;
  bool again; /* an open one is closed and opened */
  uint64_t waited; /* the time in the message that is waited for; 0: every one is a sample */
  const char *hello, *prefix, *suffix;
  bool events; /* all but the first are event streams */
  char request[1024], events_request[1024];
  uint32_t *samples;
  size_t sample_count;
} run;

static char frame[FRAME];

static void peer_open(struct peer *peer);

static void peer_close(struct peer *peer)
{
  struct linger now = {.l_onoff = 1}; /* no TIME_WAIT: ports are few */
  setsockopt(peer->descriptor, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(peer->descriptor);
  peer->state = CLOSED;
}

static void peer_fail(struct peer *peer)
{
  if (peer->state < OPEN)
    run.pending--;
  else
    run.opened--;
  run.failed++;
  peer_close(peer);
}

/* With a mask of zeros, so that the payload is as it is. */
static void peer_send(struct peer *peer, unsigned opcode, const char *payload, size_t size)
{
  size_t head = 2;
  frame[0] = (char)(0x80 | opcode);
  if (size < 126) {
    frame[1] = (char)(0x80 | size);
  } else if (size < 65536) {
    frame[1] = (char)(0x80 | 126);
    frame[2] = (char)(size >> 8);
    frame[3] = (char)size;
    head = 4;
  } else {
    frame[1] = (char)(0x80 | 127);
    for (int i = 0; i < 8; i++)
      frame[2 + i] = (char)((uint64_t)size >> (56 - 8 * i));
    head = 10;
  }
  memset(frame + head, 0, 4);
  memmove(frame + head + 4, payload, size);
  size += head + 4;
  for (size_t done = 0; done < size;) {
    ssize_t sent = send(peer->descriptor, frame + done, size - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
      struct pollfd room = {.fd = peer->descriptor, .events = POLLOUT};
      poll(&room, 1, 1000);
    } else if (sent < 0) {
      return; /* its end comes as an event */
    } else {
      done += (size_t)sent;
    }
  }
}

static void send_message(struct peer *peer, uint64_t time, size_t size)
{
  static char text[FRAME - 64];
  size_t length = (size_t)snprintf(text, sizeof(text), "%sbench %020llu ", run.prefix, (unsigned long long)time);
  size_t tail = strlen(run.suffix), wanted = strlen(run.prefix) + size;
  while (length < wanted && length + tail < sizeof(text) - 1)
    text[length++] = 'x';
  memcpy(text + length, run.suffix, tail);
  peer_send(peer, 1, text, length + tail);
  run.sent++;
}

static bool is_stream(const struct peer *peer)
{
  return run.events && peer != run.peers;
}

/* A message, if one is whole among the kept bytes. */
static const char *find_message(const struct peer *peer)
{
  const char *found = memmem(peer->bytes, peer->kept, "bench ", 6);
  return found && peer->kept >= (size_t)(found - peer->bytes) + 26 ? found : NULL;
}

static void take_message(struct peer *peer, const char *found)
{
  uint64_t time = 0;
  for (int i = 0; i < 20; i++)
    time = time * 10 + (uint64_t)(found[6 + i] - '0');
  if (run.waited && (time != run.waited || peer->seen == time || peer == run.peers))
    return;
  peer->seen = time;
  run.received++;
  if (!run.waited && run.sample_count < SAMPLES)
    run.samples[run.sample_count++] = (uint32_t)(client_now() - time);
}

static void take_frame(struct peer *peer)
{
  const char *found;
  peer->in_payload = false;
  if (peer->opcode == 9)
    peer_send(peer, 10, peer->bytes, peer->kept);
  else if (peer->opcode == 8)
    peer_fail(peer);
  else if ((found = find_message(peer)))
    take_message(peer, found);
}

/* Events are found by their data, whatever chunks they come in. The next one is published when all have this one. */
static void take_events(struct peer *peer, const char *bytes, size_t size)
{
  while (size) {
    size_t used = size < KEPT - peer->kept ? size : KEPT - peer->kept;
    memcpy(peer->bytes + peer->kept, bytes, used);
    peer->kept += used;
    bytes += used;
    size -= used;
    const char *found = find_message(peer);
    if (found)
      take_message(peer, found);
    /* What may be the beginning of a message stays. */
    size_t rest = found ? peer->kept - (size_t)(found + 26 - peer->bytes) : peer->kept < 26 ? peer->kept : 25;
    memmove(peer->bytes, peer->bytes + peer->kept - rest, rest);
    peer->kept = rest;
  }
}

/* One frame's head and then its payload, of which the first bytes are kept. */
static void take_bytes(struct peer *peer, const char *bytes, size_t size)
{
  while (size && peer->state == OPEN) {
    if (!peer->in_payload) {
      peer->bytes[peer->kept++] = *bytes++;
      size--;
      unsigned length = peer->kept > 1 ? peer->bytes[1] & 0x7f : 0;
      size_t head = length == 126 ? 4 : length == 127 ? 10 : 2;
      if (peer->kept < 2 || peer->kept < head)
        continue;
      peer->left = head == 2 ? length : 0;
      for (size_t i = 2; i < head; i++)
        peer->left = peer->left << 8 | (uint8_t)peer->bytes[i];
      peer->opcode = peer->bytes[0] & 0x0f;
      peer->kept = 0;
      peer->in_payload = true;
    } else {
      size_t used = size < peer->left ? size : peer->left, room = KEPT - peer->kept;
      memcpy(peer->bytes + peer->kept, bytes, used < room ? used : room);
      peer->kept += used < room ? used : room;
      peer->left -= used;
      bytes += used;
      size -= used;
    }
    if (peer->in_payload && peer->left == 0) {
      take_frame(peer);
      peer->kept = 0;
    }
  }
}

static void take_input(struct peer *peer, const char *bytes, size_t size)
{
  if (is_stream(peer))
    take_events(peer, bytes, size);
  else
    take_bytes(peer, bytes, size);
}

static void take_head(struct peer *peer, const char *bytes, size_t size)
{
  size_t used = size < KEPT - 1 - peer->kept ? size : KEPT - 1 - peer->kept, before = peer->kept;
  memcpy(peer->bytes + before, bytes, used);
  peer->bytes[before + used] = '\0';
  char *end = strstr(peer->bytes, "\r\n\r\n");
  if (!end && before + used < KEPT - 1) {
    peer->kept += used;
    return;
  }
  if (!end || strncmp(peer->bytes, is_stream(peer) ? "HTTP/1.1 200" : "HTTP/1.1 101", 12) != 0) {
    peer_fail(peer);
    return;
  }
  size_t rest = before + used - (size_t)(end + 4 - peer->bytes);
  peer->state = OPEN;
  peer->kept = 0;
  run.pending--;
  run.opened++;
  if (*run.hello && !is_stream(peer))
    peer_send(peer, 1, run.hello, strlen(run.hello));
  take_input(peer, bytes + used - rest, size - used + rest);
  if (run.again && peer->state == OPEN) {
    run.sample_count++;
    run.opened--;
    peer_close(peer);
    peer_open(peer);
  }
}

static void peer_open(struct peer *peer)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(run.port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  memset(peer, 0, offsetof(struct peer, bytes));
  peer->in_payload = false;
  peer->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  peer->state = CONNECTING;
  run.pending++;
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = peer};
  int result = connect(peer->descriptor, (struct sockaddr *)&address, sizeof(address));
  if ((result < 0 && errno != EINPROGRESS) || epoll_ctl(run.epoll, EPOLL_CTL_ADD, peer->descriptor, &event) < 0)
    peer_fail(peer);
}

static void peer_read(struct peer *peer, bool ended)
{
  static char bytes[262144];
  while (peer->state == SHAKING || peer->state == OPEN) {
    int descriptor = peer->descriptor;
    ssize_t count = recv(descriptor, bytes, sizeof(bytes), 0);
    if (count < 0 && errno == EAGAIN)
      return;
    if (count <= 0) {
      peer_fail(peer);
      return;
    }
    if (peer->state == SHAKING)
      take_head(peer, bytes, (size_t)count);
    else
      take_input(peer, bytes, (size_t)count);
    /* A short read was all there is, unless the end has come with it: what comes later is another event. */
    if (peer->descriptor != descriptor || peer->state == CONNECTING || (!ended && (size_t)count < sizeof(bytes)))
      return;
  }
}

static void turn(int milliseconds)
{
  struct epoll_event events[EVENTS];
  int count = epoll_wait(run.epoll, events, EVENTS, milliseconds);
  for (int i = 0; i < count; i++) {
    struct peer *peer = events[i].data.ptr;
    if (peer->state == CONNECTING && (events[i].events & EPOLLOUT)) {
      peer->state = SHAKING;
      const char *request = is_stream(peer) ? run.events_request : run.request;
      if (send(peer->descriptor, request, strlen(request), MSG_NOSIGNAL) < 0)
        peer_fail(peer);
    }
    if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
      peer_read(peer, events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
  }
}

static void open_all(void)
{
  uint64_t start = client_now(), moved = start;
  size_t done = 0;
  for (size_t next = 0; (next < run.count || run.pending) && client_now() - moved < PATIENCE_S * 1000000ULL;) {
    while (next < run.count && run.pending < AT_ONCE)
      peer_open(&run.peers[next++]);
    turn(100);
    if (run.opened + run.failed != done) {
      done = run.opened + run.failed;
      moved = client_now();
    }
  }
  printf("{\"opened\":%zu,\"failed\":%zu,\"seconds\":%.3f}\n", run.opened, run.failed + run.pending,
         (double)(client_now() - start) / 1e6);
}

static int ascending(const void *left, const void *right)
{
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

static double percentile_ms(double share)
{
  size_t count = run.sample_count;
  return count ? run.samples[(size_t)((double)(count - 1) * share)] / 1000.0 : 0;
}

static void say_samples(size_t missing)
{
  qsort(run.samples, run.sample_count, sizeof(uint32_t), ascending);
  printf("{\"messages\":%zu,\"missing\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"most_ms\":%.3f}\n", run.sample_count,
         missing, percentile_ms(0.5), percentile_ms(0.99), percentile_ms(1));
}

static size_t readers(void)
{
  size_t count = 0;
  for (size_t i = 1; i < run.count; i++)
    count += run.peers[i].state == OPEN;
  return count;
}

/* A sample is the time until the last one has a message. The first that is not whole is the last. */
static void publish(size_t count, size_t size)
{
  size_t missing = 0;
  run.sample_count = 0;
  for (size_t i = 0; i < count && !missing; i++) {
    uint64_t start = run.waited = client_now(), now = start;
    size_t opened = run.opened, wanted = readers();
    run.received = 0;
    send_message(&run.peers[0], start, size);
    while (run.received < wanted && (now = client_now()) - start < PATIENCE_S * 1000000ULL) {
      turn(100);
      if (run.opened != opened) {
        opened = run.opened;
        wanted = readers();
      }
    }
    now = client_now();
    missing += wanted > run.received ? wanted - run.received : 0;
    run.samples[run.sample_count++] = (uint32_t)(now - start);
  }
  say_samples(missing);
}

static void echo(double rate, uint64_t milliseconds)
{
  uint64_t pause = (uint64_t)(1e6 / rate), start = client_now(), end = start + milliseconds * 1000, now;
  run.waited = 0;
  run.sample_count = run.received = run.sent = 0;
  for (size_t i = 0; i < run.count; i++)
    run.peers[i].next_at = start + pause * i / run.count;
  while ((now = client_now()) < end) {
    for (size_t i = 0; i < run.count; i++) {
      if (run.peers[i].state != OPEN || run.peers[i].next_at > now)
        continue;
      send_message(&run.peers[i], client_now(), 32);
      run.peers[i].next_at += pause;
    }
    turn(1);
  }
  while (run.received < run.sent && client_now() < end + 2000000)
    turn(100);
  say_samples(run.sent - run.received);
}

static void handshakes(uint64_t milliseconds)
{
  uint64_t start = client_now(), now;
  run.again = true;
  run.failed = run.sample_count = 0;
  for (size_t i = 0; i < run.count; i++) {
    if (run.peers[i].state == OPEN) {
      run.opened--;
      peer_close(&run.peers[i]);
      peer_open(&run.peers[i]);
    }
  }
  while ((now = client_now()) < start + milliseconds * 1000)
    turn(10);
  printf("{\"handshakes\":%zu,\"failed\":%zu,\"rate\":%.1f}\n", run.sample_count, run.failed,
         (double)run.sample_count * 1e6 / (double)(now - start));
}

static void stop(size_t count)
{
  for (size_t i = run.count - count; i < run.count; i++) {
    if (run.peers[i].state == OPEN)
      run.peers[i].state = STOPPED;
  }
  printf("{\"stopped\":%zu}\n", count);
}

/* Until a line has come: pings are answered meanwhile. */
static bool next_line(char *line, size_t room)
{
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  fflush(stdout);
  while (poll(&input, 1, 0) == 0)
    turn(20);
  return fgets(line, (int)room, stdin) != NULL;
}

int main(int count, char **words)
{
  char line[128];
  unsigned long first, second;
  if (count != 7 && count != 8) {
    fprintf(stderr, "usage: sockets PORT PATH COUNT HELLO PREFIX SUFFIX [EVENTS]\n");
    return 2;
  }
  run.port = (uint16_t)atoi(words[1]);
  run.count = strtoul(words[3], NULL, 10);
  run.hello = words[4];
  run.prefix = words[5];
  run.suffix = words[6];
  snprintf(run.request, sizeof(run.request),
           "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nOrigin: http://127.0.0.1:%s\r\nConnection: Upgrade\r\n"
           "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
           "%s\r\n",
           words[2], words[1], words[1], *run.hello ? "Sec-WebSocket-Protocol: actioncable-v1-json\r\n" : "");
  run.events = count == 8;
  if (run.events)
    snprintf(run.events_request, sizeof(run.events_request),
             "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAccept: text/event-stream\r\nCache-Control: no-cache\r\n\r\n",
             words[7], words[1]);
  run.epoll = epoll_create1(EPOLL_CLOEXEC);
  run.peers = calloc(run.count, sizeof(struct peer));
  run.samples = calloc(SAMPLES, sizeof(uint32_t));
  if (run.epoll < 0 || !run.peers || !run.samples) {
    perror("sockets");
    return 1;
  }
  setvbuf(stdin, NULL, _IONBF, 0);
  open_all();
  while (next_line(line, sizeof(line))) {
    if (sscanf(line, "publish %lu %lu", &first, &second) == 2)
      publish(first, second);
    else if (sscanf(line, "echo %lu %lu", &first, &second) == 2)
      echo((double)first, second);
    else if (sscanf(line, "handshakes %lu", &first) == 1)
      handshakes(first);
    else if (sscanf(line, "stop %lu", &first) == 1)
      stop(first);
    else
      break;
  }
  return 0;
}
