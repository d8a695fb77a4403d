#pragma once

/* Stalls: heartbeats that took too long. The last ones are kept until Ruby takes them. */

#include "scheduler/loop.h"

/*
 * Called on a Ruby thread, when it takes interrupts; `heartbeat` is that of its loop, or NULL. Notes where the late
 * loops are, or which code holds the GVL that they wait for.
 */
void heddle_stalls_record_sighting(VALUE thread, heddle_heartbeat *heartbeat);
/* Called before the current fiber waits in place, in a callback of this library, which the report of a stall names. */
void heddle_stalls_note_callback(heddle_loop *loop, const char *library);
/* Called when that wait ends. */
void heddle_stalls_prolong_callback(heddle_loop *loop);
/* Calls Ruby to report the stalls that were noted. */
void heddle_stalls_announce(heddle_loop *loop);

void Init_heddle_stalls(VALUE native);
