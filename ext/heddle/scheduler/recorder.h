#pragma once

/*
 * How all requests of this process have recently spent their time, in rings of fixed size: each stretch of time with
 * the line of the application where a wait began, stacks of code that computes, and the names of the requests. The
 * rings are filled only while the recorder is on.
 */

#include "scheduler/account.h"
#include "scheduler/heartbeat.h"

#include <ruby.h>

/* Records a garbage collection, if the recorder is on. Called during it: allocates nothing. */
void heddle_recorder_add_collection(int64_t began, int64_t ended);

/*
 * Records the stack of the calling thread, which has kept the heartbeat's loop busy since the watch thread noticed it.
 * `spender`: the spender of the loop's fiber, or NULL if the loop waits for the GVL, which the calling thread holds.
 * Called in a postponed job.
 */
void heddle_recorder_add_stack(heddle_heartbeat *heartbeat, const heddle_spender *spender);

/* The number of this fiber's request in the recorded entries, or nil. */
VALUE heddle_recorder_number(const heddle_spender *spender);

/* `account`: the module Heddle::Account. */
void Init_heddle_recorder(VALUE account);
