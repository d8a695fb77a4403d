#ifndef HEDDLE_DAWDLING_H
#define HEDDLE_DAWDLING_H

/* Random pauses of offload threads, which trials switch on (heddle_threads_dawdle) to find races. */

void heddle_dawdle(void);

#endif
