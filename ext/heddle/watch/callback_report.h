#pragma once

/*
 * Reports Ruby code that waits in a callback of a native library. While its fiber is suspended, a C function of an
 * extension waits for it, and the next fiber would see the state that this function keeps by thread.
 */

#include "scheduler/loop.h"

void Init_heddle_callback_report(VALUE heddle);
