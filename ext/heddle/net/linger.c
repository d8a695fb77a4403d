/*
 * Lingering. If a socket is closed while it has unread input, the kernel resets the connection, and the reset can
 * overtake the last output (RFC 9112, 9.6). So the server first ends only its output, and continues to read for a
 * moment.
 */

#include "net/sockets.h"

bool heddle_linger_begin(heddle_connection *connection, int64_t timeout)
{
    if (timeout == 0)
        return false;
    if (connection->transport.tls)
        heddle_tls_send_close_notify(&connection->transport);
    if (shutdown(connection->transport.fd, SHUT_WR) < 0)
        return false;
    heddle_bytes_reset(&connection->input, 0);
    heddle_connection_set_time_limit(connection, timeout);
    return true;
}

ssize_t heddle_linger_read(heddle_connection *connection, uint64_t *discarded, uint64_t limit, unsigned reads)
{
    ssize_t bytes;
    do {
        bytes = heddle_connection_receive(connection, connection->sockets->scratch, HEDDLE_SCRATCH);
        *discarded += bytes > 0 ? (uint64_t)bytes : 0;
    } while (bytes > 0 && *discarded < limit && --reads);
    if (bytes == -EAGAIN)
        heddle_connection_want(connection, HEDDLE_READING);
    return *discarded < limit ? bytes : 0;
}
