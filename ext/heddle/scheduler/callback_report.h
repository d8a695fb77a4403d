#ifndef HEDDLE_CALLBACK_REPORT_H
#define HEDDLE_CALLBACK_REPORT_H

/*
 * Which Ruby code waits in a callback of a native library: the fiber is suspended while a C function of an extension
 * waits for it, and what that function keeps by its thread is there for the next fiber to see.
 */

#include "scheduler/loop.h"

extern bool heddle_callback_report_on;

/* The calling fiber is about to be left for another one. Notes where, the first time for each place. Never raises. */
void heddle_callback_report_look(heddle_loop *loop);

static inline void heddle_callback_report_switch(heddle_loop *loop)
{
    if (__builtin_expect(heddle_callback_report_on, 0))
        heddle_callback_report_look(loop);
}

void Init_heddle_callback_report(VALUE heddle);

#endif
