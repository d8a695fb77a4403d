/* Sends files, with sendfile(2) if possible: see sendfile.h. */

#include "net/sendfile.h"

#include "net/sockets.h"

#include <ruby/io.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/sendfile.h>
#endif

/* -- one attempt ------------------------------------------------------------------------------------------------- */

static heddle_connection *find_open_connection(heddle_connection *const *place)
{
    if (!*place)
        rb_raise(rb_eIOError, "this connection is closed");
    return *place;
}

static void check_writable(heddle_connection *const *place)
{
    const heddle_connection *connection = find_open_connection(place);
    if (connection->waits[HEDDLE_WRITING])
        rb_raise(rb_eIOError, "another fiber is already writing to this connection: only one fiber may write");
}

/* Returns the number of bytes that were sent, or -EAGAIN. Raises the error of a broken connection. */
static ssize_t check_result(heddle_connection *connection, ssize_t result)
{
    if (result >= 0 || result == -EAGAIN)
        return result;
    connection->error = (int)-result;
    heddle_transport_note(&connection->transport, HEDDLE_BROKEN);
    rb_syserr_fail((int)-result, "writing to the connection");
}

static void wait_to_write(heddle_connection *connection, int64_t timeout)
{
    int64_t deadline = timeout < 0 ? -1 : heddle_deadline_after(timeout);
    heddle_connection_wait_or_raise(connection, HEDDLE_WRITING, deadline,
                                    "the connection's peer read nothing before the timeout");
}

static void wait_for_room(heddle_connection *const *place, int64_t timeout)
{
    heddle_connection *connection = find_open_connection(place);
    /* If room was reported since the last attempt, don't wait: the kernel may not report the same event again. */
    if (!heddle_transport_has(&connection->transport, HEDDLE_HAS_ROOM))
        wait_to_write(connection, timeout);
}

/* -- files ------------------------------------------------------------------------------------------------------- */

typedef struct {
    int fd;
    off_t offset;
    size_t left;
} file_output;

/* Reads a piece of the file and sends it. Used if the system, the transport or the file does not support sendfile. */
static ssize_t copy_piece(heddle_connection *connection, file_output *output)
{
    char *scratch = connection->sockets->scratch;
    size_t size = output->left < HEDDLE_SCRATCH ? output->left : HEDDLE_SCRATCH;
    ssize_t bytes = pread(output->fd, scratch, size, output->offset);
    if (bytes < 0)
        rb_sys_fail("reading the file to be sent");
    if (bytes == 0)
        return 0;
    struct iovec piece = {.iov_base = scratch, .iov_len = (size_t)bytes};
    ssize_t sent = connection->transport.operations->send(&connection->transport, &piece, 1);
    if (sent > 0)
        output->offset += sent;
    return check_result(connection, sent);
}

/* Sends a piece of the file. Returns the number of bytes that were sent, 0 at the end of the file, or -EAGAIN. */
static ssize_t send_piece(heddle_connection *connection, file_output *output)
{
#ifdef __linux__
    if (connection->transport.operations == &heddle_plain_transport) {
        size_t size = output->left < HEDDLE_OUTPUT_PART ? output->left : HEDDLE_OUTPUT_PART;
        ssize_t sent;
        HEDDLE_RETRY(sent, sendfile(connection->transport.fd, output->fd, &output->offset, size));
        if (sent >= 0)
            return sent;
        if (errno != EINVAL && errno != ENOSYS)
            return check_result(connection, -errno);
    }
#endif
    return copy_piece(connection, output);
}

void heddle_sendfile_all(heddle_connection *const *place, VALUE file, off_t offset, size_t length, int64_t timeout)
{
    file_output output = {.fd = rb_io_descriptor(file), .offset = offset, .left = length};
    struct stat status;
    check_writable(place);
    if (fstat(output.fd, &status) != 0)
        rb_sys_fail("examining the file to be sent");
    if (!S_ISREG(status.st_mode))
        rb_raise(rb_eArgError, "only regular files can be sent; use write for other files");
    while (output.left > 0) {
        heddle_connection *connection = find_open_connection(place);
        if (rb_io_descriptor(file) != output.fd)
            rb_raise(rb_eIOError, "the file was reopened while it was being sent");
        heddle_transport_forget(&connection->transport, HEDDLE_HAS_ROOM);
        ssize_t sent = send_piece(connection, &output);
        if (sent == 0)
            rb_raise(rb_eEOFError, "the file ended early: %zu bytes are missing", output.left);
        if (sent > 0) {
            connection->output.sent += (uint64_t)sent;
            output.left -= (size_t)sent;
            if (output.left) {
                heddle_transport_note(&connection->transport, HEDDLE_HAS_ROOM);
                heddle_turns_wait(connection, HEDDLE_TURN_SENDS);
                wait_to_write(connection, timeout);
            }
        } else {
            wait_for_room(place, timeout);
        }
    }
    RB_GC_GUARD(file);
}
