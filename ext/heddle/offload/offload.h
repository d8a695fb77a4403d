#pragma once

/* Heddle::Offload: a native call that releases the GVL blocks only its own fiber. */

#include <ruby.h>

void Init_heddle_offload(VALUE heddle);
