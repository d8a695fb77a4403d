#pragma once

/* Records stalls: ticks of a loop that ran too long. The latest ones are kept until Ruby fetches them. */

#include "scheduler/loop.h"

/*
 * For each late loop, records the code that blocks it: the loop's own, or that of the calling thread if the loop waits
 * for the GVL, which this thread holds. A Ruby thread calls this when it checks for interrupts. `heartbeat` belongs to
 * the loop of that thread, or is NULL.
 */
void heddle_stalls_record_sighting(VALUE thread, heddle_heartbeat *heartbeat);

void Init_heddle_stalls(VALUE native);
