#pragma once

/* Records stalls: ticks of a loop that ran too long. The latest ones are kept until Ruby fetches them. */

#include "scheduler/loop.h"

/*
 * For each late loop, records the code that blocks it: that of the loop's thread, or, if the loop waits for the GVL,
 * that of the calling thread, which holds it. Ruby threads call this when they check for interrupts. `thread` is the
 * calling thread, and `own` the heartbeat of its loop, or NULL.
 */
void heddle_stalls_record_sighting(VALUE thread, heddle_heartbeat *own);

void Init_heddle_stalls(VALUE native);
