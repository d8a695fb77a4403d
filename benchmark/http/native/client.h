/* The load generator for what wrk can't do: see holder.c, paced.c and steady.c. One thread, one epoll, requests without
 * a body. A connection asks, reads the whole answer, and tells the program that uses it. */
#ifndef HEDDLE_BENCH_CLIENT_H
#define HEDDLE_BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A head and a body; a longer answer is an error. The system gives a connection the pages that its answers fill. */
enum { ANSWER_LIMIT = 65536 };

enum connection_state {
  CONNECTION_CLOSED,
  CONNECTION_CONNECTING,
  CONNECTION_WAITING, /* for an answer */
  CONNECTION_RESTING, /* open, with nothing asked */
};

struct connection {
  int descriptor;
  enum connection_state state;
  uint64_t asked_at; /* µs */
  size_t length;
  char answer[ANSWER_LIMIT];
};

struct client {
  int epoll;
  uint16_t port;
  char request[512];
  size_t request_length;
  struct connection *connections;
  size_t count;
  void *context;
  /* An answer is complete; `status` is its number. The connection rests. */
  void (*answered)(struct client *client, struct connection *connection, int status);
  /* It could not be opened, or ended before its answer was complete, or while it rested. It is closed. */
  void (*failed)(struct client *client, struct connection *connection, enum connection_state before);
};

/* Microseconds on the monotonic clock. */
uint64_t client_now(void);

/* Ends the program with a message if memory or epoll can't be had. */
void client_prepare(struct client *client, uint16_t port, const char *path, size_t count);

/* Opens the connection, and asks as soon as it is open. */
void client_open(struct client *client, struct connection *connection);

/* Sends a request on a connection that rests. */
void client_ask(struct client *client, struct connection *connection);

void client_close(struct connection *connection);

/* Handles what happens, for at most `milliseconds` until the first event. */
void client_turn(struct client *client, int milliseconds);

#endif
