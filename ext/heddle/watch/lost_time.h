#pragma once

/*
 * Lost time: the part of a heartbeat in which its thread was ready to run but had no core, or the whole process was
 * stopped (SIGSTOP, a paused virtual machine). That time is not a stall of the application.
 *
 * It is measured in two ways: the time that the thread waited in a run queue (Linux: /proc/thread-self/schedstat), and
 * the time by which the watch thread woke up too late, less the time in which the loop's thread used the CPU.
 */

#include "scheduler/heartbeat.h"

/* ns. A wake-up that is late by less than this is normal. */
#define HEDDLE_LOST_TOLERANCE INT64_C(10000000)

/* Called on the loop's thread. */
void heddle_lost_time_attach(heddle_heartbeat *heartbeat);
void heddle_lost_time_detach(heddle_heartbeat *heartbeat);
/* Called when a heartbeat begins. */
void heddle_lost_time_begin(heddle_heartbeat *heartbeat, int64_t now);
/*
 * Called when the watch thread samples again, `late` ns later than planned. Returns how much the heartbeat has lost so
 * far.
 */
int64_t heddle_lost_time_add(heddle_heartbeat *heartbeat, int64_t now, int64_t late);
/*
 * Has the thread waited for a core since the last sample? The duration of that wait is known only when the thread runs
 * again.
 */
bool heddle_lost_time_awaits_core(const heddle_heartbeat *heartbeat);
