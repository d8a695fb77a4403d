/*
 * Lingering: a connection that was used for the last time is read for a moment. A socket that is closed with unread
 * input resets the connection, and the reset can overtake the last output (RFC 9112, 9.6). So each protocol first calls
 * heddle_connection_end_output.
 */

#include "net/sockets.h"

bool heddle_connection_linger(heddle_connection *connection, uint64_t *discarded, uint64_t limit)
{
    ssize_t bytes;
    do {
        bytes = heddle_connection_receive(connection, connection->sockets->scratch, HEDDLE_SCRATCH);
        *discarded += bytes > 0 ? (uint64_t)bytes : 0;
    } while (bytes > 0 && *discarded < limit);
    if (bytes == -EAGAIN)
        heddle_connection_want(connection, HEDDLE_READING);
    return bytes == -EAGAIN;
}
