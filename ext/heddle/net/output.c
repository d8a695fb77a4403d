#include "net/output.h"

#include "net/sockets.h"

#include <limits.h>
#include <ruby/io.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/sendfile.h>
#endif

#ifndef IOV_MAX
#define IOV_MAX 1024
#endif

enum {
    PIECES_ON_STACK = 64,
    FILE_PIECE = 65536,
};

/* -- one attempt ------------------------------------------------------------------------------------------------- */

static heddle_connection *find_open_connection(heddle_connection *const *place)
{
    if (!*place)
        rb_raise(rb_eIOError, "this connection is closed, or was released with idle!");
    return *place;
}

static heddle_connection *find_writable_connection(heddle_connection *const *place)
{
    heddle_connection *connection = find_open_connection(place);
    if (connection->waits[HEDDLE_WRITING])
        rb_raise(rb_eIOError, "another fiber is writing to this connection already");
    return connection;
}

/* Bytes, or -EAGAIN; raises the error of a broken connection. */
static ssize_t check_result(heddle_connection *connection, ssize_t result)
{
    if (result >= 0 || result == -EAGAIN)
        return result;
    connection->error = (int)-result;
    heddle_transport_note(&connection->transport, HEDDLE_BROKEN);
    rb_syserr_fail((int)-result, "writing to the connection");
}

static void wait_for_room(heddle_connection *const *place, int64_t timeout)
{
    heddle_connection *connection = find_open_connection(place);
    /* The event may have come before, and been delivered to another fiber. */
    if (heddle_transport_has(&connection->transport, HEDDLE_HAS_ROOM))
        return;
    int64_t deadline = timeout < 0 ? -1 : heddle_deadline_after(timeout);
    heddle_connection_wait_or_raise(connection, HEDDLE_WRITING, deadline, "the connection's peer took nothing in time");
}

/* -- strings ----------------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_connection *const *place;
    VALUE data;    /* the caller's object */
    /* the Strings from `first` on, frozen and pinned; NULL: no other fiber has run yet, so `data` is unchanged */
    VALUE *retained;
    long first, count;
    size_t offset; /* offset in the first String */
    VALUE buffer;
} output;

static VALUE string_at(const output *output, long i)
{
    if (output->retained)
        return output->retained[i];
    return RB_TYPE_P(output->data, T_ARRAY) ? RARRAY_AREF(output->data, i) : output->data;
}

static int gather_pieces(const output *output, struct iovec *pieces, int most)
{
    int used = 0;
    size_t offset = output->offset;
    for (long i = output->first; i < output->count && used < most; i++, offset = 0) {
        VALUE string = string_at(output, i);
        size_t length = (size_t)RSTRING_LEN(string) - offset;
        if (length)
            pieces[used++] = (struct iovec){.iov_base = RSTRING_PTR(string) + offset, .iov_len = length};
    }
    return used;
}

static void advance_output(output *output, size_t bytes)
{
    while (output->first < output->count) {
        size_t left = (size_t)RSTRING_LEN(string_at(output, output->first)) - output->offset;
        if (bytes < left) {
            output->offset += bytes;
            return;
        }
        bytes -= left;
        output->first++;
        output->offset = 0;
    }
}

static size_t sum_sizes(const struct iovec *pieces, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += pieces[i].iov_len;
    return bytes;
}

/* Copies and pins the remaining Strings, because other fibers run during the wait. */
static void retain_pieces(output *output)
{
    if (output->retained)
        return;
    /* The collector scans a temporary buffer conservatively, which pins its objects. */
    VALUE *retained = rb_alloc_tmp_buffer2(&output->buffer, output->count, sizeof(VALUE));
    for (long i = 0; i < output->count; i++)
        retained[i] = Qnil;
    for (long i = output->first; i < output->count; i++)
        retained[i] = rb_str_new_frozen(string_at(output, i));
    output->retained = retained;
}

static void send_all(output *output, struct iovec *pieces, int most, int64_t timeout)
{
    for (;;) {
        heddle_connection *connection = find_open_connection(output->place);
        heddle_transport *transport = &connection->transport;
        int count = gather_pieces(output, pieces, most);
        if (count == 0)
            return;
        /* before the call, so that events noted during it are kept */
        heddle_transport_forget(transport, HEDDLE_HAS_ROOM);
        ssize_t sent = check_result(connection, transport->operations->send(transport, pieces, count));
        if (sent > 0) {
            connection->output.sent += (uint64_t)sent;
            advance_output(output, (size_t)sent);
        }
        if (sent >= 0 && (size_t)sent == sum_sizes(pieces, count))
            continue;
        retain_pieces(output);
        wait_for_room(output->place, timeout);
    }
}

static size_t count_bytes(const output *output)
{
    size_t bytes = 0;
    for (long i = 0; i < output->count; i++) {
        VALUE string = string_at(output, i);
        Check_Type(string, T_STRING);
        bytes += (size_t)RSTRING_LEN(string);
    }
    return bytes;
}

size_t heddle_output_write(heddle_connection *const *place, VALUE data, int64_t timeout)
{
    output output = {.place = place, .data = data, .buffer = Qnil};
    output.count = RB_TYPE_P(data, T_ARRAY) ? RARRAY_LEN(data) : 1;
    find_writable_connection(place);
    size_t bytes = count_bytes(&output);

    struct iovec few[PIECES_ON_STACK];
    if (output.count <= PIECES_ON_STACK) {
        send_all(&output, few, PIECES_ON_STACK, timeout);
    } else {
        VALUE buffer;
        int most = output.count < IOV_MAX ? (int)output.count : IOV_MAX;
        struct iovec *many = ALLOCV_N(struct iovec, buffer, most);
        send_all(&output, many, most, timeout);
        ALLOCV_END(buffer);
    }
    if (output.retained)
        rb_free_tmp_buffer(&output.buffer);
    RB_GC_GUARD(data);
    return bytes;
}

/* -- files ------------------------------------------------------------------------------------------------------- */

typedef struct {
    heddle_connection *const *place;
    int fd;
    off_t offset;
    size_t left;
} file_output;

/* Sends a piece of the file by read and send, where the system or the transport has no sendfile. */
static ssize_t copy_piece(heddle_connection *connection, file_output *output)
{
    char *scratch = heddle_sockets_scratch(connection->sockets);
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

/* Bytes, 0 at the end of the file, or -EAGAIN. */
static ssize_t send_piece(heddle_connection *connection, file_output *output)
{
#ifdef __linux__
    if (connection->transport.operations == &heddle_plain_transport) {
        ssize_t sent;
        do {
            sent = sendfile(connection->transport.fd, output->fd, &output->offset, output->left);
        } while (sent < 0 && errno == EINTR);
        if (sent >= 0)
            return sent;
        if (errno != EINVAL && errno != ENOSYS)
            return check_result(connection, -errno);
    }
#endif
    return copy_piece(connection, output);
}

void heddle_output_sendfile(heddle_connection *const *place, VALUE file, off_t offset, size_t length, int64_t timeout)
{
    file_output output = {.place = place, .fd = rb_io_descriptor(file), .offset = offset, .left = length};
    struct stat status;
    find_writable_connection(place);
    if (fstat(output.fd, &status) != 0)
        rb_sys_fail("the file to be sent");
    if (!S_ISREG(status.st_mode))
        rb_raise(rb_eArgError, "only regular files can be sent, use write for others");
    while (output.left > 0) {
        heddle_connection *connection = find_open_connection(place);
        if (rb_io_descriptor(file) != output.fd)
            rb_raise(rb_eIOError, "the file was reopened while it was being sent");
        heddle_transport_forget(&connection->transport, HEDDLE_HAS_ROOM);
        ssize_t sent = send_piece(connection, &output);
        if (sent == 0)
            rb_raise(rb_eEOFError, "the file ended early: %zu bytes are missing",
                     output.left);
        if (sent > 0) {
            connection->output.sent += (uint64_t)sent;
            output.left -= (size_t)sent;
        } else {
            wait_for_room(place, timeout);
        }
    }
    RB_GC_GUARD(file);
}
