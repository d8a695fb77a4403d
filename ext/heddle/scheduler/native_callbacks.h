#pragma once

/* Detects callbacks: Ruby code that a C function of an extension has called. Used before fibers are switched. */

#include "scheduler/loop.h"
#include "native_code/native_frames.h"

/* Unswitchable code: no fiber is preempted while code of these kinds is on its stack. */
enum { HEDDLE_CODE_UNSWITCHABLE = HEDDLE_CODE_FOREIGN | HEDDLE_CODE_NOT_REENTRANT };

/* The highest address of the calling fiber's stack. */
uintptr_t heddle_stack_base(void);

/* Is unswitchable code on the stack of the calling fiber, or of a fiber that has resumed it? */
heddle_frames_verdict heddle_native_callbacks_inspect(heddle_loop *loop);

/*
 * Returns true if a function of a library that is listed as not re-entrant is on the calling fiber's stack, or might be
 * there. While no such library is loaded, the check is one comparison.
 */
bool heddle_native_callbacks_pinned(heddle_loop *loop, heddle_native_frame *found);

void Init_heddle_native_callbacks(VALUE heddle);
