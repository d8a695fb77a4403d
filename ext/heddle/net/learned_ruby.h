#ifndef HEDDLE_LEARNED_RUBY_H
#define HEDDLE_LEARNED_RUBY_H

#include "net/learned.h"

#include <ruby.h>

/* The table of a Heddle::Net::Learned; raises when it is not open. */
heddle_learned *heddle_learned_of(VALUE object);

void Init_heddle_learned(VALUE net);

#endif
