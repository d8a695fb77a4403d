/* What the servers in C listen with. */
#ifndef HEDDLE_BENCH_LISTENER_H
#define HEDDLE_BENCH_LISTENER_H

#include <stdint.h>

/* A socket that listens on the loopback address and does not block; port 0: any that is free. Ends the program where
 * that can't be had. */
int open_listener(uint16_t port);

#endif
