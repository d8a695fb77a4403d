#ifndef HEDDLE_RACK_H
#define HEDDLE_RACK_H

#include <ruby.h>

void Init_heddle_rack(VALUE heddle);

#endif
