#pragma once

/* Stalls: ticks that ran too long. The last ones are kept until Ruby takes them. */

#include "scheduler/loop.h"

/*
 * Called on a Ruby thread, when it checks for interrupts; `heartbeat` belongs to the thread's loop, or is NULL. Notes
 * which code the late loops run, or which code holds the GVL while they wait for it.
 */
void heddle_stalls_record_sighting(VALUE thread, heddle_heartbeat *heartbeat);

void Init_heddle_stalls(VALUE native);
