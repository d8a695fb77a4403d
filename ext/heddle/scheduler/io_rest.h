#pragma once

/*
 * Lets a loop sleep without a deadline although fibers wait for IOs that another thread may close. Ruby < 4.0 has no
 * hook that reports such a close. Only a thread that holds the GVL can close an IO. So the loop is woken when another
 * thread gets the GVL, and looks for closed IOs.
 */

#include "scheduler/loop.h"

/* Called with the GVL, before the loop sleeps and after it has slept. */
void heddle_io_begin_rest(heddle_loop *loop);
void heddle_io_end_rest(heddle_loop *loop);
