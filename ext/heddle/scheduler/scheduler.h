#ifndef HEDDLE_SCHEDULER_H
#define HEDDLE_SCHEDULER_H

#include <ruby.h>

void Init_heddle_scheduler(VALUE heddle);

#endif
