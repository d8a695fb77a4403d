#ifndef HEDDLE_CALLBACKS_H
#define HEDDLE_CALLBACKS_H

/* Switches of fibers in Ruby code that a C function of an extension has called and waits for. */

#include "scheduler/loop.h"
#include "scheduler/native_frames.h"

/* Code above which no fiber is preempted. */
enum { HEDDLE_KEPT_WHOLE = HEDDLE_CODE_FOREIGN | HEDDLE_CODE_NOT_REENTRANT };

/* As heddle_native_frames_inspect, for the calling fiber of this loop and for what has resumed it. */
heddle_frames_verdict heddle_callbacks_inspect(heddle_loop *loop, unsigned kinds, heddle_native_frame *found);

/*
 * Does a function of a library that is listed as not re-entrant wait for the calling fiber, or can that not be ruled
 * out? A comparison while none is loaded.
 */
bool heddle_callbacks_pinned(heddle_loop *loop, heddle_native_frame *found);

void Init_heddle_callbacks(VALUE heddle);

#endif
