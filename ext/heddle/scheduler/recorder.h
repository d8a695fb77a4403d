#pragma once

/*
 * How all requests of this process have recently spent their time, in rings of fixed size: each stretch of time, and
 * where in the application a wait began; stacks of code that computes; and the names of the requests. They are filled
 * only while the recorder is on.
 */

#include "scheduler/account.h"
#include "scheduler/heartbeat.h"

#include <ruby.h>

/* Records a garbage collection, if the recorder is on. Called during it: allocates nothing. */
void heddle_recorder_add_collection(int64_t began, int64_t ended);

/*
 * Records the stack of the calling thread, which has kept the heartbeat's loop busy since the watch thread noticed it.
 * `spender`: of the loop's fiber; NULL: it is another thread, and the loop waits for the GVL. In a postponed job.
 */
void heddle_recorder_add_stack(heddle_heartbeat *heartbeat, const heddle_spender *spender);

/* Identifies the request of this fiber in what is recorded; nil: there is none. */
VALUE heddle_recorder_number(const heddle_spender *spender);

/* `account`: the module Heddle::Account. */
void Init_heddle_recorder(VALUE account);
