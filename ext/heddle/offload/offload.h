#ifndef HEDDLE_OFFLOAD_H
#define HEDDLE_OFFLOAD_H

/* Heddle::Offload: native calls that release the GVL hold up their own fiber only. */

#include <ruby.h>

void Init_heddle_offload(VALUE heddle);

#endif
