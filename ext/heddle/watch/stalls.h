#pragma once

/* Records stalls: ticks of a loop that ran too long. The latest ones are kept until Ruby fetches them. */

#include "scheduler/loop.h"

/*
 * Records which code each late loop runs, or which code holds the GVL while a late loop waits for it. A Ruby thread
 * calls this when it checks for interrupts. `heartbeat` belongs to the loop of that thread, or is NULL.
 */
void heddle_stalls_record_sighting(VALUE thread, heddle_heartbeat *heartbeat);

void Init_heddle_stalls(VALUE native);
