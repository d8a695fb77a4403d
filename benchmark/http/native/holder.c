/* holder PORT PATH CONNECTIONS
 *
 * Opens the connections, asks once on each, and holds them all. Prints a line of JSON when every one is open or has
 * failed; waits for a line; then asks once more on each that is still open and prints how many answered. */
#include "client.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { AT_ONCE = 256, LIMIT_S = 60, STUCK_S = 10 };

struct hold {
  size_t pending, answered, failed, lost; /* lost: closed by the server while it had nothing to do */
};

static void answered(struct client *client, struct connection *connection, int status)
{
  struct hold *hold = client->context;
  (void)connection;
  hold->pending--;
  if (status == 200)
    hold->answered++;
  else
    hold->failed++;
}

static void failed(struct client *client, struct connection *connection, enum connection_state before)
{
  struct hold *hold = client->context;
  (void)connection;
  if (before == CONNECTION_RESTING) {
    hold->lost++;
  } else {
    hold->pending--;
    hold->failed++;
  }
}

/* Makes `act` act on every connection, a few hundred at a time. */
static void all(struct client *client, void (*act)(struct client *, struct connection *))
{
  struct hold *hold = client->context;
  size_t next = 0, seen = 0;
  uint64_t moved = client_now(), deadline = moved + LIMIT_S * 1000000ULL;
  while (next < client->count || hold->pending > 0) {
    while (next < client->count && hold->pending < AT_ONCE) {
      hold->pending++;
      act(client, &client->connections[next++]);
    }
    client_turn(client, 100);
    uint64_t now = client_now();
    if (hold->answered + hold->failed != seen) {
      seen = hold->answered + hold->failed;
      moved = now;
    }
    if (now > deadline || now > moved + STUCK_S * 1000000ULL)
      return;
  }
}

static void ask_again(struct client *client, struct connection *connection)
{
  struct hold *hold = client->context;
  if (connection->state == CONNECTION_RESTING)
    client_ask(client, connection);
  else
    hold->pending--;
}

static void say(const struct hold *hold)
{
  printf("{\"answered\":%zu,\"failed\":%zu,\"pending\":%zu,\"lost\":%zu}\n", hold->answered, hold->failed,
         hold->pending, hold->lost);
  fflush(stdout);
}

int main(int count, char **words)
{
  if (count != 4) {
    fprintf(stderr, "usage: holder PORT PATH CONNECTIONS\n");
    return 2;
  }
  struct hold hold = {0};
  struct client client = {.context = &hold, .answered = answered, .failed = failed};
  client_prepare(&client, (uint16_t)atoi(words[1]), words[2], strtoul(words[3], NULL, 10));
  all(&client, client_open);
  say(&hold);

  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  while (poll(&input, 1, 0) == 0)
    client_turn(&client, 50);
  hold.answered = hold.failed = hold.pending = 0;
  all(&client, ask_again);
  say(&hold);
  return 0;
}
