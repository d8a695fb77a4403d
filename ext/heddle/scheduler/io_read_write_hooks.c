/*
 * The hooks io_read, io_write, io_pread and io_pwrite. They usually try the system call first, and wait only after
 * EAGAIN (see should_wait_first).
 */

#include "scheduler/frame_names.h"
#include "scheduler/ruby_hooks.h"
#include "scheduler/io_wait.h"
#include "scheduler/wait_in_place.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <ruby/debug.h>
#include <ruby/io.h>
#include <ruby/io/buffer.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

typedef struct {
    heddle_loop *loop;
    VALUE io;
    int fd;
    bool write;
    char *memory;
    size_t size;
    off_t offset; /* -1: the file's own position */
    bool once;    /* one attempt: returns -EAGAIN instead of waiting, unless the caller must wait (is_caller_waiting) */
    bool never_waits; /* returns -EAGAIN instead of waiting */
    bool socket;  /* the descriptor is a socket: the kernel has accepted a system call for sockets */
    uint8_t note; /* notes about the descriptor (scheduler/io_wait.h) */
} io_transfer;

/* -- one attempt that does not block ----------------------------------------------------------------------------- */

/* Returns S_IFREG, S_IFIFO …, or 0 if fstat fails. */
static mode_t type_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

/* Returns the number of bytes or -errno. May block. */
static ssize_t try_plain(const io_transfer *transfer)
{
    ssize_t result;
    if (transfer->offset < 0)
        result = transfer->write ? write(transfer->fd, transfer->memory, transfer->size)
                                 : read(transfer->fd, transfer->memory, transfer->size);
    else
        result = transfer->write ? pwrite(transfer->fd, transfer->memory, transfer->size, transfer->offset)
                                 : pread(transfer->fd, transfer->memory, transfer->size, transfer->offset);
    return result < 0 ? -errno : result;
}

static bool is_ready(const io_transfer *transfer)
{
    struct pollfd one = {.fd = transfer->fd, .events = transfer->write ? POLLOUT : POLLIN};
    return poll(&one, 1, 0) != 0;
}

/*
 * Returns a non-blocking descriptor of the terminal, which the caller must close, or -1 if this is not a terminal or it
 * can't be opened. poll(2) alone does not prevent blocking: a key such as Ctrl-\ discards the line that poll has
 * reported, and a terminal accepts a long text only as fast as it is read. The terminal is opened once more, because
 * O_NONBLOCK on this descriptor would also apply to other processes that share it. The master end of a pseudo-terminal
 * can't be opened again: its path, /dev/ptmx, creates another pseudo-terminal. So this descriptor itself gets
 * O_NONBLOCK; a master end is hardly ever shared.
 */
static int reopen_terminal(const io_transfer *transfer)
{
    char name[128];
    if (transfer->offset >= 0 || !isatty(transfer->fd))
        return -1;
    if (ptsname(transfer->fd)) {
        fcntl(transfer->fd, F_SETFL, fcntl(transfer->fd, F_GETFL) | O_NONBLOCK);
        return fcntl(transfer->fd, F_DUPFD_CLOEXEC, 0);
    }
    if (ttyname_r(transfer->fd, name, sizeof(name)) != 0)
        return -1;
    return open(name, (transfer->write ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
}

#ifdef __linux__
/*
 * Calls preadv2 or pwritev2 by number, because musl before 1.2.5 lacks them. They fail with EOPNOTSUPP for terminals
 * and for files of some file systems. The kernel expects the offset in two halves; on 64-bit systems the first half is
 * the whole offset.
 */
static ssize_t try_nowait(const io_transfer *transfer)
{
    struct iovec vector = {.iov_base = transfer->memory, .iov_len = transfer->size};
    return syscall(transfer->write ? SYS_pwritev2 : SYS_preadv2, transfer->fd, &vector, 1L, (long)transfer->offset,
                   (long)((int64_t)transfer->offset >> 32), RWF_NOWAIT);
}
#endif

/*
 * Tries the transfer once without blocking. Returns the number of bytes or -errno; -EAGAIN if it would block. Does not
 * change O_NONBLOCK, because the flag belongs to the open file, which other processes may share. The only exception is
 * the master end of a pseudo-terminal (see reopen_terminal).
 */
static ssize_t try_transfer(io_transfer *transfer)
{
    ssize_t result;
    if (transfer->offset < 0 && !(transfer->note & HEDDLE_IO_STREAM)) {
        result = transfer->write ? send(transfer->fd, transfer->memory, transfer->size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : recv(transfer->fd, transfer->memory, transfer->size, MSG_DONTWAIT);
        transfer->socket = result >= 0 || errno != ENOTSOCK;
        if (transfer->socket)
            return result < 0 ? -errno : result;
    }
#ifdef __linux__
    result = try_nowait(transfer);
    if (result >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
        return result < 0 ? -errno : result;
#endif
    io_transfer part = *transfer;
    int terminal = reopen_terminal(transfer);
    if (terminal >= 0) {
        part.fd = terminal;
        result = try_plain(&part);
        close(terminal);
        return result;
    }
    if (!is_ready(transfer))
        return -EAGAIN;
    /* A pipe that is ready has room for PIPE_BUF bytes. Writing more could block, with the GVL. */
    if (part.write && part.offset < 0 && part.size > PIPE_BUF && type_of(part.fd) == S_IFIFO)
        part.size = PIPE_BUF;
    return try_plain(&part);
}

/* Tries the transfer; tries again if a signal interrupted it. */
static ssize_t retry_interrupted(io_transfer *transfer)
{
    ssize_t result;
    do {
        result = try_transfer(transfer);
    } while (result == -EINTR);
    return result == -EWOULDBLOCK ? -EAGAIN : result;
}

/* -- a file whose pages are not in memory ------------------------------------------------------------------------ */

typedef struct {
    heddle_park park;
    heddle_waiter waiter;
    int result;
} completion;

static void note_completion(heddle_waiter *waiter, int result, uint32_t flags)
{
    completion *done = (completion *)((char *)waiter - offsetof(completion, waiter));
    done->result = result;
    heddle_loop_count_disarmed(done->park.loop);
    heddle_park_wake(&done->park);
}

static VALUE run_completion(VALUE data)
{
    completion *done = (completion *)data;
    heddle_park_wait_completion(&done->park, &done->waiter);
    return Qnil;
}

/*
 * Submits the transfer to the selector, and waits for its completion. Returns the number of bytes or -errno; -ENOSYS if
 * this selector can't run operations.
 */
static ssize_t await_completion(io_transfer *transfer)
{
    heddle_operation operation = {
        .write = transfer->write,
        .fd = transfer->fd,
        .buffer = transfer->memory,
        .length = transfer->size > INT32_MAX ? INT32_MAX : (uint32_t)transfer->size,
        .offset = transfer->offset,
    };
    completion done = {.waiter = {.fn = note_completion, .fd = transfer->fd}};
    heddle_park_enter(transfer->loop, &done.park);
    heddle_park_waits_for(&done.park, HEDDLE_SPENT_FILE);
    int result = heddle_loop_submit(transfer->loop, &done.waiter, &operation);
    if (result < 0) {
        heddle_park_leave(&done.park);
        return result;
    }
    rb_ensure(run_completion, (VALUE)&done, heddle_park_leave_ensured, (VALUE)&done.park);
    heddle_io_check_open(transfer->io);
    return done.result;
}

/*
 * How many ticks of the loop a fiber lets pass before its wait is armed in the selector. Two, because a fiber at the
 * other end of a pipe does the same.
 */
static const int TICKS_BEFORE_WAITING = 2;

/* -- the hooks --------------------------------------------------------------------------------------------------- */

/*
 * Should the fiber wait before its first attempt? Yes if the last transfer in this direction moved fewer bytes than
 * requested: another one would probably return EAGAIN.
 */
static bool should_wait_first(const io_transfer *transfer)
{
    return transfer->note & (transfer->write ? HEDDLE_IO_FULL : HEDDLE_IO_DRAINED);
}

/*
 * Lets the other ready fibers run, and tries again. One of them may be at the other end of a pipe, or a peer may send
 * data meanwhile; then no waiter needs to be armed. Returns -EAGAIN if the transfer would still block after
 * TICKS_BEFORE_WAITING ticks; then the next fifteen waits for this descriptor are armed without such a try. For these
 * waits, and whenever no other fiber is ready, returns -EAGAIN at once.
 */
static ssize_t try_after_a_tick(io_transfer *transfer)
{
    ssize_t result = -EAGAIN;
    if (transfer->note & HEDDLE_IO_UNLUCKY) {
        transfer->note -= HEDDLE_IO_MISS;
        return result;
    }
    for (int ticks = 0; ticks < TICKS_BEFORE_WAITING && result == -EAGAIN; ticks++) {
        if (!heddle_io_has_others_ready(transfer->loop))
            return result;
        heddle_io_wait_tick(transfer->loop, transfer->io, transfer->fd);
        result = retry_interrupted(transfer);
    }
    if (result == -EAGAIN)
        transfer->note |= HEDDLE_IO_UNLUCKY;
    return result;
}

/*
 * Records whether the transfer moved fewer bytes than requested. Not called for regular files: no transfer waits for
 * them to be ready, and a short transfer only means the end of the file.
 */
static void note_exhaustion(io_transfer *transfer, ssize_t result)
{
    uint8_t bit = transfer->write ? HEDDLE_IO_FULL : HEDDLE_IO_DRAINED, note = transfer->note & (uint8_t)~bit;
    if (result > 0 && (size_t)result < transfer->size)
        note |= bit;
    if (note != heddle_io_get_note(transfer->loop, transfer->fd))
        heddle_io_set_note(transfer->loop, transfer->fd, note);
}

/*
 * Must the hook wait for its caller? Up to Ruby 4.0, a `length` of 0 means one attempt, and -EAGAIN if it would block.
 * Most methods of IO then call io_wait themselves. But IO#sysread must wait and does not, and IO#read_nonblock must not
 * wait. So this function finds the method that called the hook. For each method of IO in C, the hook waits, which also
 * saves two calls of hooks. IO#read_nonblock is written in Ruby, in <internal:io>. Frames of methods that wrap the
 * hook, also in Ruby, may be between the method and the hook.
 */
static bool is_caller_waiting(heddle_loop *loop)
{
    enum { FRAMES = 6 };
    VALUE frames[FRAMES];
    int lines[FRAMES];
    /*
     * The first frame is this hook, which rb_profile_frames of Ruby 3.3 can't skip. The second frame is usually the
     * same method as last time.
     */
    if (rb_profile_frames(0, 2, frames, lines) == 2 && frames[1] == loop->waiting_method)
        return true;
    int count = rb_profile_frames(0, FRAMES, frames, lines);
    for (int i = 1; i < count; i++) {
        VALUE path = rb_profile_frame_path(frames[i]);
        if (NIL_P(path)) {
            bool waits = heddle_frame_name_is(rb_profile_frame_classpath(frames[i]), "IO");
            if (waits && i == 1)
                loop->waiting_method = frames[i];
            return waits;
        }
        if (heddle_frame_name_begins(path, "<internal:"))
            return false;
    }
    return false;
}

/* Must the hook return -EAGAIN instead of waiting? Its caller then waits by itself, or does not want to wait. */
static bool returns_eagain(const io_transfer *transfer)
{
    return transfer->never_waits || (transfer->once && !is_caller_waiting(transfer->loop));
}

/*
 * Transfers bytes. Waits if necessary, each time at most io.timeout, and raises IO::TimeoutError after that. Returns
 * the number of bytes, 0 at the end of the file, or -errno; -EAGAIN if it would wait but must not (returns_eagain).
 */
static ssize_t transfer_some(io_transfer *transfer)
{
    if (transfer->offset < 0)
        transfer->note = heddle_io_get_note(transfer->loop, transfer->fd);
    bool first = true, in_place = false;
    int64_t timeout = -1;
    for (;;) {
        bool skips = first && should_wait_first(transfer);
        if (skips && returns_eagain(transfer))
            skips = false;
        else if (skips)
            transfer->once = false;
        ssize_t result = skips ? -EAGAIN : retry_interrupted(transfer);
        if (result == -EAGAIN && first)
            in_place = heddle_must_wait_in_place(transfer->loop);
        if (result == -EAGAIN && !skips && !transfer->socket) {
            mode_t type = type_of(transfer->fd);
            if (type == S_IFREG || type == S_IFBLK) {
                result = in_place ? -ENOSYS : await_completion(transfer);
                return result == -ENOSYS ? try_plain(transfer) : result;
            }
            transfer->note |= HEDDLE_IO_STREAM;
        }
        if (result == -EAGAIN && returns_eagain(transfer))
            return result;
        transfer->once = false;
        if (result == -EAGAIN && first && !in_place)
            result = try_after_a_tick(transfer);
        if (result != -EAGAIN) {
            if (transfer->socket || transfer->note & HEDDLE_IO_STREAM)
                note_exhaustion(transfer, result);
            return result;
        }
        if (first)
            timeout = heddle_io_get_timeout(transfer->io);
        first = false;
        int events = transfer->write ? HEDDLE_WRITABLE : HEDDLE_READABLE;
        if (!(in_place ? heddle_io_wait_ready_in_place(transfer->loop, transfer->io, events, timeout)
                       : heddle_io_wait_ready(transfer->loop, transfer->io, events, timeout)))
            heddle_io_raise_timeout();
    }
}

static void find_memory(io_transfer *transfer, VALUE buffer, size_t offset)
{
    size_t size;
    if (transfer->write) {
        const void *base;
        rb_io_buffer_get_bytes_for_reading(buffer, &base, &size);
        transfer->memory = (char *)base;
    } else {
        void *base;
        rb_io_buffer_get_bytes_for_writing(buffer, &base, &size);
        transfer->memory = base;
    }
    if (offset > size)
        rb_raise(rb_eArgError, "offset %zu is beyond the buffer of %zu bytes", offset, size);
    transfer->memory += offset;
    transfer->size = size - offset;
}

/*
 * The hooks' contract up to Ruby 4.0: transfers at least `length` bytes, and at most the rest of the buffer. Returns
 * the number of bytes or -errno.
 */
static ssize_t transfer_at_least(io_transfer *transfer, size_t length)
{
    size_t total = 0;
    transfer->once = length == 0 && !transfer->write && transfer->offset < 0;
    while (transfer->size) {
        ssize_t result = transfer_some(transfer);
        if (result < 0)
            return total ? (ssize_t)total : result;
        total += (size_t)result;
        transfer->memory += result;
        transfer->size -= (size_t)result;
        if (transfer->offset >= 0)
            transfer->offset += result;
        if (result == 0 || total >= length)
            break;
    }
    return (ssize_t)total;
}

/*
 * The hooks' contract from Ruby 4.1 on: makes one transfer of at most `length` bytes. Returns -EAGAIN if it would
 * block, and Ruby then waits.
 */
static ssize_t transfer_at_most(io_transfer *transfer, size_t length)
{
    if (length < transfer->size)
        transfer->size = length;
    if (transfer->size == 0)
        return 0;
    transfer->never_waits = true;
    return transfer_some(transfer);
}

enum { READS = 0, WRITES = 1, POSITIONED = 2 };

/*
 * Runs a hook. Its arguments are io, buffer, [from,] length, offset = 0; from version 3 of the contract on, they are
 * io, buffer, [from,] offset, length. Returns the number of bytes or -errno, as an Integer.
 */
static VALUE transfer_bytes(VALUE self, int argc, const VALUE *argv, int kind, long version)
{
    int first = kind & POSITIONED ? 3 : 2;
    bool at_most = version >= 3;
    rb_check_arity(argc, first + (at_most ? 2 : 1), first + 2);
    size_t sizes[2] = {NUM2SIZET(argv[first]), argc > first + 1 ? NUM2SIZET(argv[first + 1]) : 0};
    VALUE io = argv[0], buffer = argv[1];
    io_transfer transfer = {
        .loop = heddle_loop_get(self),
        .io = io,
        .fd = rb_io_descriptor(io),
        .write = kind & WRITES,
        .offset = kind & POSITIONED ? NUM2OFFT(argv[2]) : -1,
    };
    if (transfer.fd < 0)
        return INT2FIX(-EBADF);
    if (kind & POSITIONED && transfer.offset < 0)
        return INT2FIX(-EINVAL); /* in io_transfer, -1 means the file's own position */
    find_memory(&transfer, buffer, sizes[!at_most]);
    ssize_t result = at_most ? transfer_at_most(&transfer, sizes[1]) : transfer_at_least(&transfer, sizes[0]);
    RB_GC_GUARD(buffer);
    RB_GC_GUARD(io);
    return SSIZET2NUM(result);
}

/* The version of the hooks' contract that this Ruby follows: IO::Buffer::VERSION. */
static long contract;

#define DEFINE_HOOK(function, kind)                                                                                    \
    static VALUE function(int argc, VALUE *argv, VALUE self)                                                           \
    {                                                                                                                  \
        return transfer_bytes(self, argc, argv, kind, contract);                                                       \
    }

/*
 * call-seq: io_read(io, buffer, length, offset = 0) -> Integer
 *
 * Reads at least +length+ bytes into +buffer+, from the buffer's position +offset+ on. Returns the number of bytes, 0
 * at the end of the file, or -errno. A +length+ of 0 means one attempt, which returns -EAGAIN if there are no bytes;
 * but if the caller is a method of IO that must wait, this hook waits. If IO::Buffer::VERSION is 3 (Ruby 4.1), the
 * arguments are (io, buffer, offset, length): the hook then reads once, at most +length+ bytes, and never waits.
 */
DEFINE_HOOK(scheduler_io_read, READS)

/*
 * call-seq: io_write(io, buffer, length, offset = 0) -> Integer
 *
 * Writes at least +length+ bytes of +buffer+. If +length+ is 0, waits until some bytes are written. Otherwise like
 * #io_read.
 */
DEFINE_HOOK(scheduler_io_write, WRITES)

/*
 * call-seq: io_pread(io, buffer, from, length, offset = 0) -> Integer
 *
 * Like #io_read, but reads at the position +from+ of the file, and waits even if +length+ is 0.
 */
DEFINE_HOOK(scheduler_io_pread, READS | POSITIONED)

#if RUBY_API_VERSION_MAJOR >= 4
/* Ruby 3.3 and 3.4 have a bug: they call this hook without the GVL, so any implementation hangs. */
DEFINE_HOOK(scheduler_io_pwrite, WRITES | POSITIONED)
#endif

/* For tests: transfer_as(version, kind, *arguments) runs a hook with any version of the contract. */
static VALUE scheduler_transfer_as(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 2, UNLIMITED_ARGUMENTS);
    return transfer_bytes(self, argc - 2, argv + 2, NUM2INT(argv[1]), NUM2LONG(argv[0]));
}

/*
 * Prefers the constant IO::Buffer::VERSION, which has the version of the running Ruby. The macro has the version of the
 * Ruby that this file was compiled for.
 */
static long find_contract(void)
{
    ID version = rb_intern("VERSION");
    if (rb_const_defined_at(rb_cIOBuffer, version))
        return NUM2LONG(rb_const_get_at(rb_cIOBuffer, version));
    return RUBY_IO_BUFFER_VERSION;
}

/*
 * Ruby warns that IO::Buffer is experimental when a process creates its first buffer. Ruby creates one to call a hook.
 * So this function creates the first buffer without the warning.
 */
static void make_first_buffer(void)
{
    VALUE warning = rb_path2class("Warning"), category = ID2SYM(rb_intern("experimental"));
    VALUE before = rb_funcall(warning, rb_intern("[]"), 1, category);
    rb_funcall(warning, rb_intern("[]="), 2, category, Qfalse);
    rb_class_new_instance(1, &(VALUE){INT2FIX(1)}, rb_cIOBuffer);
    rb_funcall(warning, rb_intern("[]="), 2, category, before);
}

void heddle_define_io_read_write_hooks(VALUE scheduler_class)
{
    contract = find_contract();
    make_first_buffer();
    rb_define_method(scheduler_class, "io_read", scheduler_io_read, -1);
    rb_define_method(scheduler_class, "io_write", scheduler_io_write, -1);
    rb_define_method(scheduler_class, "io_pread", scheduler_io_pread, -1);
#if RUBY_API_VERSION_MAJOR >= 4
    rb_define_method(scheduler_class, "io_pwrite", scheduler_io_pwrite, -1);
#endif
    rb_define_private_method(scheduler_class, "transfer_as", scheduler_transfer_as, -1);
}
