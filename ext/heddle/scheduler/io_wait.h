#pragma once

/*
 * The waits of fibers for IO objects that Heddle has not created. The waits are listed by descriptor. Before Ruby 4.0
 * no hook reports that an IO was closed. So before the loop blocks, it checks whether any wait's IO is closed, at most
 * once in SWEEP_INTERVAL (loop_tick.c). From Ruby 4.0 on, the loop does so only while there are waits with `by_number`.
 * A new wait for a descriptor first ends the waits for closed IOs that had this descriptor.
 */

#include "scheduler/loop.h"

typedef struct heddle_io_wait heddle_io_wait;
struct heddle_io_wait {
    heddle_park park;
    heddle_waiter waiter;
    VALUE io;
    int result;    /* when the wait has ended: a readiness mask, 0 after the timeout, or -errno */
    bool linked;   /* the wait is in the list of its descriptor */
    bool reopened; /* IO#reopen has given the descriptor another file */
    /*
     * `io` does not own its descriptor, so the number may belong to another file by now: `device` and `inode` identify
     * the file that it belonged to when the wait began
     */
    bool by_number;
    dev_t device;
    ino_t inode;
    heddle_io_wait *next, *previous; /* in the list of the waits for one descriptor */
};

/*
 * Waits until `io` is ready for one of `events`, at most `timeout` ns (< 0: forever; the caller applies io.timeout).
 * Returns a readiness mask, or 0 after the timeout. Raises IOError when the IO is closed or reopened meanwhile.
 */
int heddle_io_wait_ready(heddle_loop *loop, VALUE io, int events, int64_t timeout);
/*
 * Like heddle_io_wait_ready, but blocks the thread instead of switching to another fiber (wait_in_place.h). IO#reopen
 * does not end this wait.
 */
int heddle_io_wait_ready_in_place(heddle_loop *loop, VALUE io, int events, int64_t timeout);
/*
 * Has the selector refused to arm the waiter (-EPERM), because it is for urgent data only, and a regular file never has
 * any? For such a file select(2) does not fail but waits, so the fiber must wait, too.
 */
static inline bool heddle_io_has_no_urgent_data(const heddle_waiter *waiter, int result)
{
    return result == -EPERM && waiter->events == HEDDLE_PRIORITY;
}
/* Raises IOError if the IO was closed during the wait. */
void heddle_io_check_open(VALUE io);
/* Returns io.timeout in ns, or -1 if the IO has none. */
int64_t heddle_io_get_timeout(VALUE io);
NORETURN(void heddle_io_raise_timeout(void)); /* IO::TimeoutError */

/*
 * Notes about the last transfers on a descriptor. Notes are kept for the descriptor's number. If another file gets that
 * number, a wrong note costs one tick, or one failed system call.
 */
enum {
    HEDDLE_IO_DRAINED = 1, /* the last read returned fewer bytes than requested */
    HEDDLE_IO_FULL = 2,    /* the last write accepted fewer bytes than requested */
    HEDDLE_IO_STREAM = 4,  /* a pipe, a terminal or the like: neither a socket nor a file on a disk */
    /*
     * Before a wait is armed in the selector, the fiber may let the other ready fibers run for a tick, and try the
     * system call again. If it still would block, the next fifteen waits are armed without such a try: these bits count
     * them down, in steps of HEDDLE_IO_MISS.
     */
    HEDDLE_IO_UNLUCKY = 0xf0,
    HEDDLE_IO_MISS = 0x10,
};
uint8_t heddle_io_get_note(const heddle_loop *loop, int fd);
void heddle_io_set_note(heddle_loop *loop, int fd, uint8_t note); /* raises NoMemoryError */

/*
 * Are other fibers ready to run? Also true if the selector is io_uring, and has operations to submit or events to
 * deliver, which io_uring shows without a system call. Any of these may cause the awaited event.
 */
bool heddle_io_has_others_ready(const heddle_loop *loop);
/* Lets all fibers run that are ready now. Raises IOError when `io` is closed or reopened meanwhile. */
void heddle_io_wait_tick(heddle_loop *loop, VALUE io, int fd);

/* Makes the waits whose IO is closed raise IOError. Needed for waits that Ruby itself does not end in this case. */
void heddle_io_fail_closed_waits(heddle_loop *loop);
/* Makes the waits for this descriptor raise IOError. Called from Ruby 4.0 on, when Ruby reports that an IO closes. */
void heddle_io_fail_waits(heddle_loop *loop, int fd);
/*
 * Makes the waits for this descriptor raise IOError in all loops of the main Ractor, because IO#reopen has given the
 * descriptor another file.
 */
void heddle_io_fail_reopened_waits(int fd);
