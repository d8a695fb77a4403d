#pragma once

/*
 * Lost time is the part of a heartbeat's age (the time since the loop last switched fibers) in which the loop's thread
 * was ready to run but had no core. It also includes the time for which the whole process was stopped (SIGSTOP, a
 * paused virtual machine). Lost time does not count as a stall of the application.
 *
 * It is the larger of two measurements: how long the thread waited in a run queue (Linux: /proc/thread-self/schedstat),
 * and how late the watch thread woke up. Time in which the loop's thread used the CPU never counts as lost.
 */

#include "scheduler/heartbeat.h"

/* In ns. A wake-up that is late by less than this is normal. */
#define HEDDLE_LOST_TOLERANCE INT64_C(10000000)

/* Opens the clocks of the calling thread, which is the loop's thread. */
void heddle_lost_time_attach(heddle_heartbeat *heartbeat);
void heddle_lost_time_detach(heddle_heartbeat *heartbeat);
/* Starts the measurement when a heartbeat begins. */
void heddle_lost_time_begin(heddle_heartbeat *heartbeat, int64_t now);
/*
 * Continues the measurement. The watch thread calls this when it samples again, `late` ns later than planned. Returns
 * the time that the heartbeat has lost so far, in ns.
 */
int64_t heddle_lost_time_add(heddle_heartbeat *heartbeat, int64_t now, int64_t late);
/*
 * Returns whether the thread has waited for a core since the last sample. The duration of that wait is known only when
 * the thread runs again.
 */
bool heddle_lost_time_awaits_core(const heddle_heartbeat *heartbeat);
