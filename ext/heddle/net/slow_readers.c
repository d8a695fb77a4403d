/*
 * Limits the output that waits for slow clients, by a budget for all connections of a heddle_sockets and by a minimum
 * rate. The code that sends does not check these limits. Instead the server periodically checks the connections with
 * unsent output, of which there are few.
 */

#include "net/majority_address.h"
#include "net/sockets.h"

#include <sys/ioctl.h>
#ifdef __linux__
#include <linux/sockios.h>
#endif

enum {
    /* one check disconnects at most this many clients for their rate, and then at most this many for the budget */
    MOST_CUTS = 64,
};

/* In ns. A client must have been measured for this long before it can count as the slowest. */
static const int64_t LEAST_WATCH = 500000000;

/*
 * Returns how many bytes the client has acknowledged. Bytes in the kernel's send buffer don't count: the kernel accepts
 * many at once, even if the client reads nothing. On systems without SIOCOUTQ their number is unknown, so they count.
 */
static int64_t count_taken(const heddle_connection *connection)
{
    int kernel = 0;
#ifdef SIOCOUTQ
    if (ioctl(connection->transport.fd, SIOCOUTQ, &kernel) != 0)
        kernel = 0;
#endif
    /* with TLS the result is a little too low: the kernel's number includes the overhead of TLS, but `sent` does not */
    return (int64_t)connection->output.sent - kernel;
}

static size_t count_waiting(const heddle_connection *connection)
{
    const heddle_protocol *protocol = connection->protocol;
    if (!protocol || connection->error)
        return 0;
    return protocol->count_waiting ? protocol->count_waiting(connection) : connection->output.size;
}

/* Returns the next connection with unsent output, or NULL. Begins with the first one if `connection` is NULL. */
static heddle_connection *find_next(heddle_sockets *sockets, heddle_connection *connection)
{
    heddle_link *head = &sockets->unsent;
    heddle_link *link = connection ? heddle_link_after(head, &connection->unsent_link) : heddle_link_first(head);
    return link ? HEDDLE_CONTAINER_OF(link, heddle_connection, unsent_link) : NULL;
}

/* Returns how many bytes the client has received per second since the current measurement began. */
static double find_rate(const heddle_connection *connection, int64_t now)
{
    int64_t taken = count_taken(connection) - connection->watched_taken;
    return (double)taken * 1e9 / (double)(now - connection->watched_since);
}

/*
 * Disconnects the client. Ends the response as if the client had reset the connection, and discards the output that the
 * kernel has not sent.
 */
static void cut_off(heddle_sockets *sockets, uint64_t identity)
{
    heddle_connection *connection = heddle_sockets_at(sockets, identity);
    if (!connection)
        return;
    connection->error = ETIMEDOUT;
    heddle_transport_will_reset(&connection->transport);
    heddle_sockets_deliver_event(sockets, connection, HEDDLE_BROKEN);
}

/*
 * Measures a connection's rate over periods of `span` ns. While the connection waits for its turn to send, each check
 * begins a new period, because this server causes the delay. Returns true if a period ends now in which the client
 * received fewer than `rate` bytes per second.
 */
static bool watch_connection(heddle_connection *connection, int64_t now, double rate, int64_t span)
{
    uint32_t slow_check = connection->sockets->slow_check;
    bool begins = !connection->watched_check || connection->watched_check != slow_check - 1 ||
                  heddle_turns_waits(connection, HEDDLE_TURN_SENDS);
    bool ends = !begins && now - connection->watched_since >= span;
    bool slow = ends && find_rate(connection, now) < rate;
    connection->watched_check = slow_check;
    /* The period of a slow client continues. So if this check has reached MOST_CUTS, the next one finds it again. */
    if (begins || (ends && !slow)) {
        connection->watched_since = now;
        connection->watched_taken = count_taken(connection);
    }
    return slow;
}

static heddle_majority find_majority(heddle_sockets *sockets)
{
    heddle_majority majority = {0};
    heddle_connection *connection = NULL;
    while ((connection = find_next(sockets, connection)))
        heddle_majority_vote(&majority, connection->address_bucket, count_waiting(connection));
    while ((connection = find_next(sockets, connection)))
        heddle_majority_count(&majority, connection->address_bucket, count_waiting(connection));
    return majority;
}

typedef struct {
    uint64_t identity;
    size_t waiting;
    double rate;
} slow_reader;

/*
 * Finds the slowest clients among those that were measured for at least LEAST_WATCH. Returns their number; the slowest
 * one comes first. If an address has more than half of all waiting bytes, considers only the clients of that address.
 */
static size_t find_slowest(heddle_sockets *sockets, int64_t now, slow_reader found[MOST_CUTS])
{
    heddle_majority majority = find_majority(sockets);
    size_t count = 0;
    for (heddle_connection *connection = NULL; (connection = find_next(sockets, connection));) {
        size_t waiting = count_waiting(connection);
        if (!waiting || connection->watched_check != sockets->slow_check ||
            now - connection->watched_since < LEAST_WATCH ||
            !heddle_majority_includes(&majority, connection->address_bucket))
            continue;
        slow_reader reader = {heddle_sockets_identity(sockets, connection), waiting, find_rate(connection, now)};
        size_t place = count;
        for (; place > 0 && found[place - 1].rate > reader.rate; place--) {
            if (place < MOST_CUTS)
                found[place] = found[place - 1];
        }
        if (place < MOST_CUTS)
            found[place] = reader;
        count += count < MOST_CUTS;
    }
    return count;
}

size_t heddle_sockets_cut_slow_readers(heddle_sockets *sockets, uint64_t budget, double rate, int64_t span)
{
    int64_t now = heddle_clock_now();
    uint64_t waiting = 0, slow[MOST_CUTS];
    size_t cuts = 0;
    if (++sockets->slow_check == 0)
        sockets->slow_check = 1; /* 0 means that a connection was never measured */
    for (heddle_connection *connection = NULL; (connection = find_next(sockets, connection));) {
        size_t bytes = count_waiting(connection);
        if (bytes && watch_connection(connection, now, rate, span) && cuts < MOST_CUTS)
            slow[cuts++] = heddle_sockets_identity(sockets, connection);
        else
            waiting += bytes;
    }
    for (size_t i = 0; i < cuts; i++)
        cut_off(sockets, slow[i]);
    if (waiting > budget) {
        slow_reader slowest[MOST_CUTS];
        size_t count = find_slowest(sockets, now, slowest);
        for (size_t i = 0; i < count && waiting > budget; i++, cuts++) {
            waiting -= slowest[i].waiting;
            cut_off(sockets, slowest[i].identity);
        }
    }
    return cuts;
}
