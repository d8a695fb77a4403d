#ifndef HEDDLE_THREAD_DELAY_H
#define HEDDLE_THREAD_DELAY_H

/* Random pauses of offload threads, which trials switch on (heddle_threads_set_delay) to find races. */

void heddle_thread_delay(void);

#endif
