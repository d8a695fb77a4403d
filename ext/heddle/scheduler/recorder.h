#pragma once

/*
 * The last stretches of time of all requests of this process, in a ring of fixed size: what each fiber did and for how
 * long, and where in the application a wait began. It is filled only while it is on.
 */

#include "scheduler/account.h"

#include <ruby.h>

/* Records a garbage collection, if the recorder is on. Called during it: allocates nothing. */
void heddle_recorder_add_collection(int64_t began, int64_t ended);

/* Identifies the request of this fiber in what is recorded; nil: there is none. */
VALUE heddle_recorder_number(const heddle_spender *spender);

/* `account`: the module Heddle::Account. */
void Init_heddle_recorder(VALUE account);
