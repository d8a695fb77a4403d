/* paced PORT PATH CONNECTIONS RATE WARM-UP-MS MEASURED-MS
 *
 * Asks at moments of its own, RATE times a second on average, whether earlier answers have come or not: so do people
 * who know nothing of each other. A load that waits for its answers asks less while a server stands still, and does
 * not see what that costs. The moments are those of a Poisson process, the same ones in each run. A request that finds
 * all connections busy waits for one. Its latency counts from its moment.
 *
 * Prints a line of JSON when it begins to measure, and one at the end. */
#include "client.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1 << 20, QUEUE = 1 << 16, SEED = 20261123 };

struct run {
  uint64_t measured_from; /* µs; of moments, 0: not yet */
  size_t answers, wrong, errors, kept, dropped;
  uint32_t *latencies; /* µs */
  uint64_t *moments;   /* of the request on each connection */
  uint64_t queue[QUEUE];
  size_t first, queued;
  size_t next; /* connection */
};

static void answered(struct client *client, struct connection *connection, int status)
{
  struct run *run = client->context;
  uint64_t moment = run->moments[connection - client->connections];
  if (run->measured_from == 0 || moment < run->measured_from)
    return;
  run->answers++;
  if (status != 200)
    run->wrong++;
  if (run->kept < SAMPLES)
    run->latencies[run->kept++] = (uint32_t)(client_now() - moment);
}

static void failed(struct client *client, struct connection *connection, enum connection_state before)
{
  struct run *run = client->context;
  (void)connection;
  if (before != CONNECTION_RESTING)
    run->errors++;
}

static struct connection *free_connection(struct client *client, struct run *run)
{
  for (size_t looked = 0; looked < client->count; looked++) {
    run->next = (run->next + 1) % client->count;
    struct connection *connection = &client->connections[run->next];
    if (connection->state == CONNECTION_RESTING || connection->state == CONNECTION_CLOSED)
      return connection;
  }
  return NULL;
}

static void ask_due(struct client *client, struct run *run)
{
  struct connection *connection;
  while (run->queued > 0 && (connection = free_connection(client, run)) != NULL) {
    run->moments[connection - client->connections] = run->queue[run->first];
    run->first = (run->first + 1) % QUEUE;
    run->queued--;
    if (connection->state == CONNECTION_RESTING)
      client_ask(client, connection);
    else
      client_open(client, connection);
  }
}

static void enqueue(struct run *run, uint64_t moment)
{
  if (run->queued == QUEUE) {
    run->dropped++;
    return;
  }
  run->queue[(run->first + run->queued++) % QUEUE] = moment;
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

int main(int count, char **words)
{
  if (count != 7) {
    fprintf(stderr, "usage: paced PORT PATH CONNECTIONS RATE WARM-UP-MS MEASURED-MS\n");
    return 2;
  }
  struct run *run = calloc(1, sizeof(*run));
  struct client client = {.context = run, .answered = answered, .failed = failed};
  client_prepare(&client, (uint16_t)atoi(words[1]), words[2], strtoul(words[3], NULL, 10));
  if (run == NULL || (run->latencies = calloc(SAMPLES, sizeof(uint32_t))) == NULL ||
      (run->moments = calloc(client.count, sizeof(uint64_t))) == NULL)
    return 1;
  double rate = atof(words[4]);
  uint64_t started = client_now(), from = started + strtoul(words[5], NULL, 10) * 1000,
           end = from + strtoul(words[6], NULL, 10) * 1000, now = started;
  double moment = (double)started;
  srand48(SEED);
  /* The last answers may take their time, but not for ever. */
  while (now < end || (now < end + 5000000 && run->queued > 0)) {
    while (moment <= (double)now && now < end) {
      enqueue(run, (uint64_t)moment);
      moment += -log(1 - drand48()) * 1e6 / rate;
    }
    if (run->measured_from == 0 && now >= from) {
      run->measured_from = from;
      printf("{\"measuring\":true}\n");
      fflush(stdout);
    }
    ask_due(&client, run);
    client_turn(&client, 1);
    now = client_now();
  }
  qsort(run->latencies, run->kept, sizeof(uint32_t), ascending);
  printf("{\"answers\":%zu,\"wrong\":%zu,\"errors\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}\n", run->answers,
         run->wrong, run->errors + run->dropped, percentile_ms(run, 0.5), percentile_ms(run, 0.99),
         percentile_ms(run, 1));
  return 0;
}
