#pragma once

/*
 * Waits for IO objects that Heddle has not created. Before Ruby 4.0 no hook reports a close. So the waits are listed by
 * descriptor, and the loop checks them before it blocks. A new wait for a descriptor first ends the waits for IOs that
 * were closed.
 */

#include "scheduler/loop.h"

typedef struct heddle_io_wait heddle_io_wait;
struct heddle_io_wait {
    heddle_park park;
    heddle_waiter waiter;
    VALUE io;
    int result;
    bool linked;
    bool reopened; /* IO#reopen has given the descriptor another file */
    bool by_number; /* `io` does not own its descriptor, whose number may belong to another file meanwhile */
    dev_t device;
    ino_t inode;
    heddle_io_wait *next, *previous; /* in the list of the waits for one descriptor */
};

/*
 * Waits until `io` is ready for one of `events`, at most `timeout` ns (< 0: forever; the caller applies io.timeout).
 * Returns a readiness mask, or 0 after the timeout. Raises IOError when the IO is closed or reopened meanwhile.
 */
int heddle_io_wait_ready(heddle_loop *loop, VALUE io, int events, int64_t timeout);
/* Waits in the same way, but without a switch of fibers (wait_in_place.h). IO#reopen does not end this wait. */
int heddle_io_wait_ready_in_place(heddle_loop *loop, VALUE io, int events, int64_t timeout);
/* Was only urgent data awaited, of a file, which never has any? Nothing is armed then, and select(2) would wait. */
static inline bool heddle_io_has_no_urgent_data(const heddle_waiter *waiter, int result)
{
    return result == -EPERM && waiter->events == HEDDLE_PRIORITY;
}
/* Raises IOError if the IO was closed during the wait. */
void heddle_io_check_open(VALUE io);
/* io.timeout in ns, or -1: none. */
int64_t heddle_io_get_timeout(VALUE io);
NORETURN(void heddle_io_raise_timeout(void)); /* IO::TimeoutError */

/*
 * Notes about the last transfers on a descriptor. A note belongs to the descriptor's number. If another file gets the
 * number, the wrong note costs one tick, or one system call that fails.
 */
enum {
    HEDDLE_IO_DRAINED = 1, /* the last read took all bytes there were */
    HEDDLE_IO_FULL = 2,    /* the last write took all the room there was */
    HEDDLE_IO_STREAM = 4,  /* neither a socket nor a file on a disk, such as a pipe or a terminal */
    /*
     * Before a wait is armed in the selector, the fiber may let the other ready fibers run for a tick, and try again.
     * After a failed attempt the next fifteen waits skip that; these bits count down.
     */
    HEDDLE_IO_UNLUCKY = 0xf0,
    HEDDLE_IO_MISS = 0x10,
};
uint8_t heddle_io_get_note(const heddle_loop *loop, int fd);
void heddle_io_set_note(heddle_loop *loop, int fd, uint8_t note); /* raises NoMemoryError */

/*
 * Are other fibers ready to run? Also true if the selector knows without a system call (io_uring) that it has something
 * to submit or an event to take. Each of these may cause the awaited event.
 */
bool heddle_io_has_others_ready(const heddle_loop *loop);
/* Lets the fibers that are ready now run. Raises IOError when `io` is closed or reopened meanwhile. */
void heddle_io_wait_tick(heddle_loop *loop, VALUE io, int fd);

/* Fails the waits whose IO is closed: before Ruby 4.0 no hook reports that. */
void heddle_io_fail_closed_waits(heddle_loop *loop);
/* Fails the waits for this descriptor (Ruby >= 4.0 reports a close). */
void heddle_io_fail_waits(heddle_loop *loop, int fd);
/* Fails the waits for this descriptor in all loops of the main Ractor: IO#reopen has given it another file. */
void heddle_io_fail_reopened_waits(int fd);
