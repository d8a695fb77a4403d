#ifndef HEDDLE_CALLBACK_REPORT_H
#define HEDDLE_CALLBACK_REPORT_H

/*
 * Which Ruby code waits in a callback of a native library: the fiber is suspended while a C function of an extension
 * waits for it, and what that function keeps by its thread is there for the next fiber to see.
 */

#include "scheduler/loop.h"

void Init_heddle_callback_report(VALUE heddle);

#endif
