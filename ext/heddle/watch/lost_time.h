#ifndef HEDDLE_LOST_TIME_H
#define HEDDLE_LOST_TIME_H

/*
 * How much of a heartbeat its thread lost to the machine: it was ready to run and had no core, or the whole process
 * stood still (SIGSTOP, a paused virtual machine). That time is no stall of the application's.
 *
 * Two things tell of it: the time that the thread waited in a run queue (Linux: /proc/thread-self/schedstat), and by
 * how much the watch's own thread woke up too late. The loop's thread computed during the rest (its CPU clock): that is
 * not lost.
 */

#include "scheduler/heartbeat.h"

/* The watch is late by at least this, ns: less is what any machine does. */
#define HEDDLE_LOST_TOLERANCE INT64_C(10000000)

/* On the loop's thread. */
void heddle_lost_time_attach(heddle_heartbeat *heartbeat);
void heddle_lost_time_detach(heddle_heartbeat *heartbeat);
/* A heartbeat begins. */
void heddle_lost_time_begin(heddle_heartbeat *heartbeat, int64_t now);
/* The watch looks again, `late` ns later than it meant to. How much the heartbeat has lost so far. */
int64_t heddle_lost_time_add(heddle_heartbeat *heartbeat, int64_t now, int64_t late);
/* Has its thread waited for a core all the time since the last look? For how long is not known before it runs. */
bool heddle_lost_time_is_progressing(const heddle_heartbeat *heartbeat);

#endif
