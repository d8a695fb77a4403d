#pragma once

/*
 * The recorder: keeps how all requests of this process have recently spent their time, in rings of fixed size. One ring
 * has stretches of time. A stretch of computing also has the line of the application at which the next wait began.
 * Another ring has stacks of code that computes. One table has the names of the requests, and another one the lines and
 * methods (recorder_places.h). Nothing is recorded while the recorder is off.
 */

#include "scheduler/account.h"
#include "scheduler/heartbeat.h"

#include <ruby.h>

/* Records a garbage collection, if the recorder is on. Called during the collection, so it allocates nothing. */
void heddle_recorder_add_collection(int64_t began, int64_t ended);

/*
 * Records the stack of the calling thread, which keeps the heartbeat's loop busy, or keeps it waiting for the GVL.
 * `spender`: the spender (account.h) of the loop's current fiber, or NULL if the loop waits for the GVL. Called in a
 * postponed job.
 */
void heddle_recorder_add_stack(heddle_heartbeat *heartbeat, const heddle_spender *spender);

/* Returns the number by which recorded entries refer to the spender's request; nil: its time is not counted. */
VALUE heddle_recorder_number(const heddle_spender *spender);

/* `account`: the module Heddle::Account. */
void Init_heddle_recorder(VALUE account);
