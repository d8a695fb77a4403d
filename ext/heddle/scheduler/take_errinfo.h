#ifndef HEDDLE_TAKE_ERRINFO_H
#define HEDDLE_TAKE_ERRINFO_H

#include <ruby.h>

/*
 * Ends what rb_protect has caught, where C goes on after it; returns what it was. Plain rb_set_errinfo(Qnil) is not
 * enough: a fiber in which memory or stack ran out takes no interrupt (Thread#raise, a signal, not even the end of its
 * time slice) before the error has left a frame of Ruby code. A loop with an interrupt that it never takes can't sleep
 * any more either.
 */
VALUE heddle_take_errinfo(void);

#endif
