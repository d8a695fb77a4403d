#ifndef HEDDLE_IO_WAIT_H
#define HEDDLE_IO_WAIT_H

/*
 * Waits on IO objects that we don't own. Before Ruby 4.0 nothing tells of a close: the waits are kept by
 * descriptor, swept before the loop blocks, and a new wait by another IO fails the old one first.
 */

#include "scheduler/loop.h"

typedef struct heddle_io_wait heddle_io_wait;
struct heddle_io_wait {
    heddle_park park;
    heddle_waiter waiter;
    VALUE io;
    int result;
    bool linked;
    bool reopened; /* the descriptor is another file's now (IO#reopen) */
    heddle_io_wait *next, *previous; /* the waits of one descriptor */
};

/*
 * Waits until `io` is ready for one of `events`, at most `timeout` ns (< 0: for ever; the deadline is `io.timeout`
 * where `use_io_timeout` says so). A readiness mask, or 0 when the time is up. Raises IOError when the IO is closed
 * meanwhile, IO::TimeoutError when it was io.timeout that passed.
 */
int heddle_io_wait_ready(heddle_loop *loop, VALUE io, int events, int64_t timeout);
/* The same without a switch of fibers (wait_in_place.h). */
int heddle_io_wait_ready_in_place(heddle_loop *loop, VALUE io, int events, int64_t timeout);
/* io.timeout in ns, or -1. */
/* Raises IOError where the IO, which was open when the wait began, is closed. */
void heddle_io_check_open(VALUE io);

int64_t heddle_io_timeout(VALUE io);
NORETURN(void heddle_io_timed_out(void));

/*
 * The results of the last transfers on a descriptor. A note is about a number: of another file that got it since, it
 * costs a turn or a call that fails, and nothing else.
 */
enum {
    HEDDLE_IO_DRAINED = 1, /* the last read took all there was */
    HEDDLE_IO_FULL = 2,    /* the last write took all the room there was */
    HEDDLE_IO_STREAM = 4,  /* no socket, and no file of a disk: a pipe, a terminal */
    HEDDLE_IO_UNLUCKY = 0xf0, /* so many waits are still to go to the selector before a turn is tried again */
    HEDDLE_IO_UNLUCKY_ONE = 0x10,
};
uint8_t heddle_io_get_note(const heddle_loop *loop, int fd);
void heddle_io_set_note(heddle_loop *loop, int fd, uint8_t note); /* raises NoMemoryError */

/* Is anybody ready, or known to have become so, whose turn may bring what is waited for? */
bool heddle_io_has_others_ready(const heddle_loop *loop);
/* Lets everybody ready have a turn. Raises IOError when `io` is closed or reopened meanwhile. */
void heddle_io_wait_tick(heddle_loop *loop, VALUE io, int fd);

void heddle_io_wait_link(heddle_io_wait *wait);
void heddle_io_wait_unlink(heddle_io_wait *wait);
/* Fails the waits whose IO is closed. */
void heddle_io_wait_sweep(heddle_loop *loop);
/* Fails the waits on this descriptor (Ruby >= 4.0 tells us of a close). */
void heddle_io_wait_closed(heddle_loop *loop, int fd);
/* IO#reopen has put another file behind this number: fails the waits on it in all loops of the main Ractor. */
void heddle_io_reopened(int fd);

#endif
