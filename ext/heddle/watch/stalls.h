#ifndef HEDDLE_STALLS_H
#define HEDDLE_STALLS_H

/* Stalls: heartbeats that took longer than they may. The last ones are kept until Ruby takes them. */

#include "scheduler/loop.h"

/*
 * Called on a Ruby thread, at a point where it takes interrupts; `heartbeat` is that of its loop, or NULL. Notes where
 * the loops are that are late, or who holds the GVL that they wait for.
 */
void heddle_stalls_record_sighting(VALUE thread, heddle_heartbeat *heartbeat);
/* The current fiber is about to wait in place, in a callback of this library: the report of a stall names it. */
void heddle_stalls_note_callback(heddle_loop *loop, const char *library);
/* It has waited until now. */
void heddle_stalls_prolong_callback(heddle_loop *loop);
/* Tells Ruby that some were noted. */
void heddle_stalls_announce(heddle_loop *loop);

void Init_heddle_stalls(VALUE native);

#endif
