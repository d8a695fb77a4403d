/* steady PORT PATH CONNECTIONS SPREAD-MS WARM-UP-MS MEASURED-MS
 *
 * Asks on all connections all the time, and measures when they are all at it. wrk counts from its start, so that of
 * ten seconds of requests that take a second it loses one; and it opens all connections at once, after which the
 * answers come in one burst a second. Here the connections are opened evenly over SPREAD-MS, which is to be the time
 * that a request takes, or a multiple.
 *
 * Prints a line of JSON when it begins to measure, and one at the end. The rate is the sum of the connections' own:
 * the time from a connection's first measured answer to its last says it without an error at the window's edges, which
 * would be one answer in six where a request takes a second. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1 << 22, REOPEN_MS = 100 };

struct history { /* of one connection, while it is measured */
  uint64_t first, last; /* µs */
  size_t answers;
};

struct run {
  bool measuring;
  uint64_t measured_from; /* µs */
  size_t answers, wrong, errors, kept;
  uint32_t *latencies; /* µs */
  struct history *histories;
};

static void note(struct history *history, uint64_t now)
{
  if (history->answers++ == 0)
    history->first = now;
  history->last = now;
}

/* Answers a second. Who was answered once or never has no time between two: there the window has to do. */
static double rate(const struct history *histories, size_t count, double window)
{
  double sum = 0;
  for (size_t index = 0; index < count; index++) {
    const struct history *history = &histories[index];
    if (history->answers > 1 && history->last > history->first)
      sum += (double)(history->answers - 1) * 1e6 / (double)(history->last - history->first);
    else
      sum += (double)history->answers / window;
  }
  return sum;
}

static void answered(struct client *client, struct connection *connection, int status)
{
  struct run *run = client->context;
  if (run->measuring) {
    uint64_t now = client_now();
    run->answers++;
    if (status == 200)
      note(&run->histories[connection - client->connections], now);
    else
      run->wrong++;
    if (run->kept < SAMPLES)
      run->latencies[run->kept++] = (uint32_t)(now - connection->asked_at);
  }
  /* After `connection: close` this may fail, and is not what the server is asked about. */
  client_ask(client, connection);
}

static void failed(struct client *client, struct connection *connection, enum connection_state before)
{
  struct run *run = client->context;
  (void)connection;
  (void)before;
  run->errors++;
}

static int ascending(const void *left, const void *right)
{
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

static double percentile_ms(const struct run *run, double share)
{
  return run->kept == 0 ? 0 : run->latencies[(size_t)((double)(run->kept - 1) * share)] / 1000.0;
}

static void reopen(struct client *client, size_t opened)
{
  for (size_t index = 0; index < opened; index++) {
    if (client->connections[index].state == CONNECTION_CLOSED)
      client_open(client, &client->connections[index]);
  }
}

static size_t open_due(struct client *client, size_t opened, uint64_t elapsed, uint64_t spread)
{
  size_t due = elapsed >= spread ? client->count : (size_t)(client->count * elapsed / spread);
  while (opened < due)
    client_open(client, &client->connections[opened++]);
  return opened;
}

int main(int count, char **words)
{
  if (count != 7) {
    fprintf(stderr, "usage: steady PORT PATH CONNECTIONS SPREAD-MS WARM-UP-MS MEASURED-MS\n");
    return 2;
  }
  struct run run = {.latencies = calloc(SAMPLES, sizeof(uint32_t))};
  struct client client = {.context = &run, .answered = answered, .failed = failed};
  client_prepare(&client, (uint16_t)atoi(words[1]), words[2], strtoul(words[3], NULL, 10));
  run.histories = calloc(client.count, sizeof(struct history));
  if (run.latencies == NULL || run.histories == NULL)
    return 1;
  uint64_t spread = strtoul(words[4], NULL, 10) * 1000, warm_up = strtoul(words[5], NULL, 10) * 1000,
           measured = strtoul(words[6], NULL, 10) * 1000;

  uint64_t started = client_now(), now = started, reopened = started;
  size_t opened = 0;
  while (now < started + spread + warm_up + measured) {
    opened = open_due(&client, opened, now - started, spread);
    if (now - reopened > REOPEN_MS * 1000) {
      reopen(&client, opened);
      reopened = now;
    }
    if (!run.measuring && now >= started + spread + warm_up) {
      run.measuring = true;
      run.measured_from = now;
      printf("{\"measuring\":true}\n");
      fflush(stdout);
    }
    client_turn(&client, 1);
    now = client_now();
  }

  double seconds = (double)(now - run.measured_from) / 1e6;
  qsort(run.latencies, run.kept, sizeof(uint32_t), ascending);
  printf("{\"rate\":%.1f,\"answers\":%zu,\"wrong\":%zu,\"errors\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n",
         rate(run.histories, client.count, seconds), run.answers, run.wrong, run.errors, percentile_ms(&run, 0.5),
         percentile_ms(&run, 0.99));
  return 0;
}
